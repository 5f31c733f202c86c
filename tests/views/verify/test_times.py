"""Which times are taken, in which order, and what is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker.views.verify import times
from opwalker.views.verify.contract import Contract, load
from opwalker.views.verify.trial import Outcome, Subject
from tests.views.verify.doubled import CONTRACT


def contract(folder: Path, op: str) -> Contract:
    (folder / f"{op}.py").write_text(CONTRACT, encoding="utf-8")
    return load(folder, op)


def test_ours_and_a_librarys_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = contract(tmp_path, "one"), contract(tmp_path, "other")
    ours, theirs = (Subject("f", "one", (), (), implementation=name) for name in ("reference", "library"))
    seen = []

    def outcomes(subjects, trials, deadline, until):
        seen.extend((trial.kind, trial.subject, trial.case, trial.seed) for trial in trials)
        for trial in trials:
            slow = trial.kind != "copy" and trial.subject == 1
            yield Outcome(not_run="no such op") if slow and trial.case else Outcome(time_us=2.0, bytes=4000)

    monkeypatch.setattr(times, "outcomes", outcomes)
    copy, found = times.measured_in_turn([(one, ours), (one, theirs), (other, ours)], seed=7, deadline=1)
    assert copy == 2.0
    assert seen == [
        ("copy", 0, 0, 0),
        ("bench", 0, 0, 7),  # the same numbers for both
        ("bench", 1, 0, 7),
        ("bench", 0, 1, 8),
        ("bench", 1, 1, 8),
        ("bench", 2, 0, 7),
        ("bench", 2, 1, 8),
    ]
    assert [(subject, rate) for subject, _, _, rate in found] == [
        (0, 2.0),
        (1, 2.0),
        (0, 2.0),
        (1, None),
        (2, 2.0),
        (2, 2.0),
    ]


def test_nothing_to_time_is_no_copy_either() -> None:
    assert times.measured_in_turn([], seed=1, deadline=1) == (None, [])
