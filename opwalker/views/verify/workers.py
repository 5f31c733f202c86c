"""Worker processes for trials: each runs one built library, or several to compare, and is ended when a case takes too
long.

In: subjects and trials of theirs. Out: an outcome for each, also where the process crashed or hung: then the next trial
gets a new process. What a kernel does to its process costs one case.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from functools import cache
from multiprocessing.context import BaseContext

from opwalker.model.verify import TOO_LATE
from opwalker.views.verify.trial import Outcome, Subject, Trial, serve

#: Seconds that a process may take to start: it imports torch and makes a CUDA context.
STARTING = 180.0


@cache
def _context(emulated: bool) -> BaseContext:
    """Processes are forked from a server that has imported what each of them needs."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["opwalker.views.verify.on_cpu" if emulated else "opwalker.views.verify.on_gpu", "opwalker.views.verify.trial"]
    )
    return context


def outcomes(
    subjects: Sequence[Subject], trials: Sequence[Trial], deadline: float, until: float = math.inf
) -> Iterator[Outcome]:
    """The outcome of each trial, in order, as it comes. ``deadline`` is in seconds for one trial; what is not done at
    ``until``, on the monotonic clock, is not run. One process has all subjects, and a trial says which it is about.
    The caller may stop early: then the process is ended."""
    context = _context(subjects[0].emulated)
    process = connection = None
    try:
        for trial in trials:
            if time.monotonic() >= until:
                yield Outcome(not_run=TOO_LATE)
                continue
            if process is None:
                connection, theirs = context.Pipe()
                process = context.Process(target=serve, args=(tuple(subjects), theirs), daemon=True)
                process.start()
                theirs.close()
                begun = _answer(process, connection, min(STARTING, max(0.0, until - time.monotonic())))
                if begun is not None:
                    yield Outcome(not_run=begun.not_run or begun.reasons[0], ends=True)
                    process = _ended(process)
                    continue
            connection.send(trial)
            left = until - time.monotonic()
            outcome = _answer(process, connection, min(deadline, left))
            if outcome.seconds < 0 and left < deadline and time.monotonic() >= until:
                outcome = Outcome(not_run=TOO_LATE, seconds=-1.0)
            yield outcome
            if not process.is_alive() or outcome.seconds < 0 or outcome.ends:
                process = _ended(process)
    finally:
        if process is not None:
            _ended(process)


def _answer(process: multiprocessing.Process, connection, seconds: float) -> Outcome | None:
    """What the process answers; an outcome of ours with negative ``seconds`` where it does not."""
    try:
        if connection.poll(seconds):
            return connection.recv()
    except (EOFError, OSError):
        process.join(10)
        return Outcome(reasons=(f"the process ended: {_ending(process.exitcode)}",), seconds=-1.0)
    return Outcome(reasons=(f"nothing came back within {seconds:g} s: it hangs",), seconds=-1.0)


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    reasons = {"SIGILL": "a memory access that is not aligned", "SIGSEGV": "an access outside of memory"}
    return f"{name}, {reasons[name]}" if name in reasons else name


def _ended(process: multiprocessing.Process) -> None:
    process.kill()
    process.join(10)
