"""Every rule does what its page says: it flags each marked line of *Flagged* and no other, and nothing of *Clean*."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.model.check import SEVERITIES
from tests.rules.pages import example, findings, sections

RULES = {rule.id: (rule, page) for rule, page in pipeline.load_rules()}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_whole_page(name: str) -> None:
    rule, page = RULES[name]
    assert list(sections(page)) == ["Why", "Flagged", "Clean", "Use instead"]
    assert rule.severity in SEVERITIES
    summary = page.strip().split("\n\n", 1)[0]
    assert summary.endswith(".") and len(summary) < 160


@pytest.mark.parametrize("name", RULES)
def test_what_is_flagged(name: str, tmp_path: Path, cache: Path) -> None:
    shown = example(sections(RULES[name][1])["Flagged"])
    assert shown.marked, "no line is marked"
    assert shown.differences(findings(shown.files, name, tmp_path, cache)) == []


@pytest.mark.parametrize("name", RULES)
def test_what_is_clean(name: str, tmp_path: Path, cache: Path) -> None:
    shown = example(sections(RULES[name][1])["Clean"])
    assert shown.files and not shown.marked
    assert shown.differences(findings(shown.files, name, tmp_path, cache)) == []
