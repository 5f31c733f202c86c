"""Units are read in processes of their own: what goes wrong in one costs that one."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from opwalker.facts import clang_workers
from opwalker.facts.clang_library import ClangMissing
from opwalker.facts.clang_workers import read_units
from opwalker.facts.workers_job import Limits
from opwalker.model.clang import ClangUnit, UnitRequest
from tests.interrupts import children, eventually, interrupted_everywhere


def requests(*names: str) -> list[UnitRequest]:
    return [UnitRequest("/nowhere", name, ()) for name in names]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch):
    """Puts a function in the place of the reader; forked workers have it too."""
    if clang_workers._START != "fork":
        raise AssertionError("these tests replace the reader in forked workers")
    return lambda function: monkeypatch.setattr(clang_workers, "read_unit", function)


def test_units_come_back_in_order_and_one_that_crashes_costs_itself(reader, tmp_path: Path) -> None:
    """The first is not read until the two others are done."""
    others_done = tmp_path / "done"

    def read(request: UnitRequest) -> ClangUnit:
        if request.path == "crash.cu":
            os.kill(os.getpid(), signal.SIGKILL)
        while request.path == "first.cu" and not others_done.exists():
            time.sleep(0.01)
        return ClangUnit(request.path, errors=1)

    reader(read)
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if done == 2:
            others_done.touch()

    found = read_units(requests("first.cu", "crash.cu", "last.cu"), 2, progress=progress)
    assert [unit.path for unit in found] == ["first.cu", "crash.cu", "last.cu"]
    assert [unit.unread for unit in found] == [None, "the process that read it was ended by SIGKILL", None]
    assert told[-1] == (3, 3)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (lambda request: time.sleep(60), "not read within 0.3 seconds"),
        (lambda request: exec("while True: pass"), "not read within 0.5 seconds"),
        (lambda request: bytearray(900 << 20), "needs more than 256 MiB to be read"),
        (lambda request: os._exit(3), "the process that read it ended with status 3"),
        (lambda request: 1 / 0, "reading it failed with ZeroDivisionError: division by zero"),
    ],
    ids=["hangs", "computes", "grows", "leaves", "fails"],
)
def test_limits(reader, read, why: str) -> None:
    reader(read)
    (found,) = read_units(
        requests("a.cu"), limits=Limits(seconds=float(why.split()[3]) if "within" in why else 600, memory=256 << 20)
    )
    assert found == ClangUnit("a.cu", unread=why)


def test_an_interrupt_anywhere_leaves_no_process(reader) -> None:
    reader(lambda request: time.sleep(600) if request.path == "hang.cu" else ClangUnit(request.path))
    before, limits = children(), Limits(seconds=0.02)
    places = []
    for place in interrupted_everywhere(clang_workers, lambda: read_units(requests("quick.cu", "hang.cu"), 2, limits)):
        assert eventually(lambda: children() <= before), place
        places.append(place)
    assert len(places) > 20


def test_a_library_that_is_not_there_is_one_error_and_no_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("clang", "clang.cindex"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ClangMissing, match=r"clang is not installed; install the package libclang, .*opwalker\[clang\]"
    ):
        read_units(requests("a.cu"))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    (found,) = read_units([UnitRequest(str(tmp_path), "gone.cu", ("-x", "c++"))])
    assert found.unread == "clang cannot read it with these flags"
