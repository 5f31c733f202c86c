"""Of a change, the check tells what it tells of the whole source there: exactly, whatever line is changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.asking import asked
from opwalker.model.check import Finding
from opwalker.source.changes import Changes
from opwalker.views.check.check import tree_of
from opwalker.views.check.focus import touched
from opwalker.views.check.run import run_rules
from opwalker.views.check.settings import read_settings
from tests.rules.pages import example, sections, write_files

RULES = [(rule, sections(page)) for rule, page in pipeline.load_rules()]
#: Several examples in one source: functions, macros and ops of one name are told apart by what their files include.
TOGETHER = 14


def _lines(files: dict[str, str]) -> Iterator[Changes]:
    for file, text in sorted(files.items()):
        yield from ({file: ((line, line),)} for line in range(1, text.count("\n") + 1))


@pytest.mark.parametrize("first", range(0, len(RULES), TOGETHER))
def test_a_change_is_told_what_the_whole_is_told_there(first: int, tmp_path: Path) -> None:
    files = {
        f"{rule.id}/{name}": text
        for rule, parts in RULES[first : first + TOGETHER]
        for name, text in example(parts["Flagged"]).files.items()
    }
    write_files(files, tmp_path / "source")
    rules = [rule for rule, _ in RULES]

    def judge(session) -> tuple[int, list[tuple[Changes, set[Finding], set[Finding]]]]:
        names = read_settings(session.root.path).names
        whole, wrong = run_rules(tree_of(session, names), rules), []
        tree = tree_of(session, names)
        placed = {(at.file, at.line) for one in whole for at in (one, *one.related)}
        for change in (one for one in _lines(files) if _near(one, placed)):
            there = {one for one in whole if touched(change, one)}
            found = {one for one in run_rules(tree.narrowed(change), rules) if touched(change, one)}
            if found != there:
                wrong.append((change, found - there, there - found))
        return len(whole), wrong

    options = pipeline.Options(source=str(tmp_path / "source"), cache=tmp_path / "cache", jobs=1)
    number, wrong = asked(options, None, None, judge)
    assert number > TOGETHER // 2
    assert wrong == []


def _near(change: Changes, placed: set[tuple[str, int]]) -> bool:
    """Whether a finding stands on the changed line, or one line off."""
    ((file, ((line, _),)),) = change.items()
    return any((file, line + off) in placed for off in (-1, 0, 1))
