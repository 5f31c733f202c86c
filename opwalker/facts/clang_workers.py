"""Reads translation units with clang in worker processes: one that crashes, hangs or grows costs its unit alone.

In: unit requests. Out: a ``ClangUnit`` for each, in the same order; a unit that could not be read says why in
``unread``. A process serves one unit: clang keeps what it has once allocated.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec

from opwalker.facts import clang_library
from opwalker.facts.clang_unit import read_unit
from opwalker.facts.workers import ended, processors, starting
from opwalker.facts.workers_job import BUSY, Limits, settle
from opwalker.model.clang import ClangUnit, UnitRequest

#: Bounds of one unit, in seconds of computing: all of torch's headers take 12 of them, and 1.3 GB.
LIMITS = Limits(seconds=120.0, memory=6 << 30)

try:
    import resource
except ImportError:  # not on Windows: then the clock alone bounds a unit
    resource = None

#: The longest message of a fault, in characters.
_MESSAGE = 200

#: How processes start; elsewhere forking is not safe.
_START = "fork" if sys.platform == "linux" else "spawn"

#: ``(units done, units in all)``.
Progress = Callable[[int, int], None]


def read_units(
    requests: Sequence[UnitRequest],
    jobs: int | None = None,
    limits: Limits = LIMITS,
    progress: Progress | None = None,
) -> list[ClangUnit]:
    """The units of the requests. Raises ``ClangMissing`` where the library is not there or cannot be loaded."""
    clang_library.stamp()
    running: dict[Connection, tuple[int, Any, float]] = {}
    done: dict[int, ClangUnit] = {}
    waiting = list(range(len(requests)))
    most = max(1, min(jobs or processors(), len(requests)))
    try:
        while waiting or running:
            while waiting and len(running) < most:
                number = waiting.pop(0)
                # An interrupt comes before or after: what has started is known, and ended below.
                with starting():
                    connection, process = _start(requests[number], limits)
                    running[connection] = (number, process, time.monotonic() + BUSY * limits.seconds)
            for connection in wait(list(running), timeout=0.1):
                number, process, _ = running[connection]
                done[number] = _received(requests[number], limits, connection, process)
                del running[connection]
            for connection, (number, process, until) in list(running.items()):
                if time.monotonic() > until:
                    process.kill()
                    _end(connection, process)
                    done[number] = _unread(requests[number], _too_long(limits))
                    del running[connection]
            if progress:
                progress(len(done), len(requests))
    finally:
        for connection, (_, process, _) in running.items():
            process.kill()
            _end(connection, process)
    return [done[number] for number in range(len(requests))]


def _start(request: UnitRequest, limits: Limits) -> tuple[Connection, Any]:
    import multiprocessing

    context = multiprocessing.get_context(_START)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(request, limits, theirs), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _serve(request: UnitRequest, limits: Limits, connection: Connection) -> None:
    settle(limits)
    if resource is not None:
        with contextlib.suppress(OSError, ValueError):
            whole = math.ceil(limits.seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    try:
        answer: ClangUnit | str = read_unit(request)
    except clang_library.ClangMissing as error:
        answer = str(error)
    except MemoryError:
        answer = _unread(request, f"needs more than {limits.memory >> 20} MiB to be read")
    except RecursionError:
        answer = _unread(request, "nested too deeply to be read")
    except Exception as error:
        # A fault of ours, and still one of this unit only.
        answer = _unread(request, f"reading it failed with {type(error).__name__}: {error}"[:_MESSAGE])
    connection.send_bytes(msgspec.msgpack.encode(answer))
    connection.close()
    # Nothing that clang holds is worth being taken apart.
    os._exit(0)


def _received(request: UnitRequest, limits: Limits, connection: Connection, process: Any) -> ClangUnit:
    try:
        data = connection.recv_bytes()
    except (EOFError, OSError):
        status = _end(connection, process)
        if status == -getattr(signal, "SIGXCPU", 0):
            return _unread(request, _too_long(limits))
        return _unread(request, f"the process that read it {ended(status)}")
    _end(connection, process)
    answer = msgspec.msgpack.decode(data, type=ClangUnit | str)
    if isinstance(answer, str):
        raise clang_library.ClangMissing(answer)
    return answer


def _too_long(limits: Limits) -> str:
    return f"not read within {limits.seconds:g} seconds"


def _unread(request: UnitRequest, why: str) -> ClangUnit:
    return ClangUnit(request.path, unread=why)


def _end(connection: Connection, process: Any) -> int | None:
    with contextlib.suppress(OSError):
        connection.close()
    if process.is_alive():
        process.join(timeout=1.0)
    if process.is_alive():
        process.kill()
    process.join()
    return process.exitcode
