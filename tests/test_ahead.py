"""Answers made ahead: every name once, by more than one process; what another process leaves is made here."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from opwalker import ahead
from opwalker.asking import Options, Session, asked

NAMES = [f"mini::op{number}" for number in range(48)]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[bool, list[str]]]:
    """Whether names are shared out, and what was noted of them: ``pid name`` lines."""
    source, log = tmp_path / "mini", tmp_path / "log"
    source.mkdir()
    (source / "ops.cpp").write_text("int answer() { return 1; }\n")
    first = os.getpid()

    def one(jobs: int, names: list[str] = NAMES, dies: bool = False) -> tuple[bool, list[str]]:
        def note(session: Session, name: str) -> None:
            if dies and os.getpid() != first:
                os._exit(9)
            while not dies and os.getpid() == first and not _other_has(log, first):
                time.sleep(0.01)
            with log.open("a") as out:
                out.write(f"{os.getpid()} {name}\n")

        def ask(session: Session) -> bool:
            return ahead.made_ahead(session, names, note)

        shared = asked(Options(str(source), jobs=jobs, cache=tmp_path / "cache"), None, None, ask)
        return shared, log.read_text().splitlines() if log.exists() else []

    return one


def _other_has(log: Path, pid: int) -> bool:
    return log.exists() and any(not line.startswith(f"{pid} ") for line in log.read_text().splitlines())


def test_every_name_is_answered_once_and_not_by_one_process_alone(run: Callable[..., tuple[bool, list[str]]]) -> None:
    shared, lines = run(2)
    assert shared
    assert sorted(line.split(" ", 1)[1] for line in lines) == sorted(NAMES)
    assert len({line.split(" ", 1)[0] for line in lines}) == 2


def test_a_process_that_ends_early_costs_its_names_alone(run: Callable[..., tuple[bool, list[str]]]) -> None:
    shared, lines = run(2, dies=True)
    assert shared
    assert {line.split(" ", 1)[0] for line in lines} == {str(os.getpid())}
    assert len(lines) >= len(NAMES) - ahead._AT_ONCE


@pytest.mark.parametrize(("jobs", "names"), [(1, NAMES), (2, NAMES[:5])], ids=["one process", "few names"])
def test_what_is_sooner_done_by_one_process_is_not_shared(
    run: Callable[..., tuple[bool, list[str]]], jobs: int, names: list[str]
) -> None:
    assert run(jobs, names) == (False, [])


@pytest.fixture
def shared(tmp_path: Path) -> Callable[..., list[str]]:
    """What is answered to 16 names: who answered, which name, and what the store says in the process that answers."""
    source, log = tmp_path / "mini", tmp_path / "log"
    source.mkdir()
    (source / "ops.cpp").write_text("int answer() { return 1; }\n")
    first = os.getpid()

    def one(jobs: int, dies: bool = False) -> list[str]:
        def ask(session: Session) -> list[str]:
            def answer(number: int) -> str:
                if dies and os.getpid() != first:
                    os._exit(9)
                while jobs > 1 and not dies and os.getpid() == first and not _other_has(log, first):
                    time.sleep(0.01)
                with log.open("a") as out:
                    out.write(f"{os.getpid()} {number}\n")
                return f"{os.getpid()} {NAMES[number]} {session.store.paths(('cpp',))}"

            return ahead.shared_out(session, NAMES[:16], answer, str)

        return asked(Options(str(source), jobs=jobs, cache=tmp_path / "cache"), None, None, ask)

    return one


@pytest.mark.parametrize(("jobs", "dies", "others"), [(2, False, True), (2, True, False), (1, False, False)])
def test_shared_answers_come_back_in_order_whoever_gives_them(
    shared: Callable[..., list[str]], jobs: int, dies: bool, others: bool
) -> None:
    found = [line.split(" ", 2) for line in shared(jobs, dies)]
    assert [name for _, name, _ in found] == NAMES[:16]
    assert {held for *_, held in found} == {"['ops.cpp']"}
    assert any(pid != str(os.getpid()) for pid, *_ in found) == others


class _Taken:
    """A number that processes would share."""

    value = 0

    @staticmethod
    def get_lock() -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()


KIN = [
    ("no kin", [], 12, [2] * 6),
    ("each alone", list("abcdefghijkl"), 12, [2] * 6),
    ("all of one", ["a"] * 12, 12, [6, 3, 2, 1]),
    ("runs of five and seven", ["a"] * 5 + ["b"] * 7, 12, [5, 3, 2, 2]),
    ("a run that begins within what is taken", list("aabccc"), 6, [2, 2, 2]),
    ("many of one", ["a"] * 100, 100, [32, 32, 18, 9, 4, 2, 2, 1]),
]


@pytest.mark.parametrize(("what", "kin", "count", "takes"), KIN, ids=[case[0] for case in KIN])
def test_what_is_of_one_kin_is_taken_together(what: str, kin: list[str], count: int, takes: list[int]) -> None:
    """One process takes a run, but no more than half of what is left, and leaves nothing out."""
    taken, found, before = _Taken(), [], 0
    while before < count:
        numbers = ahead._numbers(taken, count, 2, kin)
        for number in numbers:
            found.append(number)
            if number == taken.value - 1:
                break
        takes, expected = takes[1:], takes[0]
        assert taken.value - before == expected
        before = taken.value
    assert found == list(range(count))
    assert takes == []
