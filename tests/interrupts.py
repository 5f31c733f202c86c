"""Interrupts at chosen lines, and the processes that are left when one has come."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType

#: A line of a module: ``(function, line)``.
Place = tuple[str, int]


def interrupted_everywhere(module: ModuleType, act: Callable[[], object]) -> Iterator[Place]:
    """Calls ``act`` again and again, with an interrupt at each line of ``module`` in turn; gives the line each time.

    The signal is a real one: where interrupts are held back it waits. Which lines are reached may depend on what other
    processes have done meanwhile, and a line that is not reached this time is left out.
    """
    for place in sorted(_interrupted_at(None, module, act)):
        if place in _interrupted_at(place, module, act):
            yield place


def _interrupted_at(place: Place | None, module: ModuleType, act: Callable[[], object]) -> set[Place]:
    """The lines that are reached, up to an interrupt at ``place``."""
    reached: set[Place] = set()

    def trace(frame: FrameType, event: str, _: object) -> Callable | None:
        if frame.f_code.co_filename != module.__file__:
            return None
        at = (frame.f_code.co_name, frame.f_lineno)
        if event == "line" and at not in reached:
            reached.add(at)
            if at == place:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        assert place is not None
    finally:
        sys.settrace(before)
    return reached


def children() -> set[int]:
    """Processes whose parent this one is, zombies not counted."""
    return _processes(1, os.getpid())


def group(leader: int) -> set[int]:
    """Processes of a group, zombies not counted."""
    return _processes(2, leader)


def _processes(field: int, number: int) -> set[int]:
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[field]) == number and fields[0] != "Z":
                found.add(int(folder.name))
    return found


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it holds in the end; how long that takes says something of the machine alone."""
    end = time.monotonic() + 300
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()
