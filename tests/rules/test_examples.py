"""Every rule is right on the examples that say what its conditions are for: ``examples/<rule>.md``."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import pipeline
from tests.rules.pages import FOLDER, findings, more_examples

EXAMPLES = [(path.stem, title) for path in sorted(FOLDER.glob("*.md")) for title in more_examples(path.stem)]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_each_file_is_of_a_rule() -> None:
    assert {path.stem for path in FOLDER.iterdir()} <= {rule.id for rule, _ in pipeline.load_rules()}


@pytest.mark.parametrize(("rule", "title"), EXAMPLES)
def test_what_is_found(rule: str, title: str, tmp_path: Path, cache: Path) -> None:
    shown = more_examples(rule)[title]
    assert shown.files
    assert shown.differences(findings(shown.files, rule, tmp_path, cache)) == []
