"""The cases under fixtures/cases: what is hard to read, and what a reader who managed it would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Ask
from tests.e2e.questions import questions, told

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"


def test_every_case_has_its_answer() -> None:
    folders = {folder.name for folder in CASES.iterdir() if folder.is_dir()}
    assert len(folders) >= 6
    assert folders == {case for case, _, _ in questions(CASES)}


@pytest.mark.parametrize(("case", "command", "answer"), questions(CASES))
def test_the_answer_is_the_one_written_down(ask: Ask, case: str, command: str, answer: str) -> None:
    assert told(ask, CASES / case, command) == answer
