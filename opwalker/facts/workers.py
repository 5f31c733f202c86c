"""Runs extraction over many files in worker processes, so that one bad file costs one file.

In: ``FileEntry`` rows and a ``Job``. Out: one ``Extracted`` a file, in no particular order. A worker that dies, hangs
or runs out of memory is replaced; its file gets facts that hold the problem ``worker-died``, ``timeout`` or ``memory``.
What is done with one file stands in ``facts.workers_job``. Nothing is written here.

An executor of the standard library does not do: it gives up as a whole when one worker dies.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
import time
import warnings
from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from opwalker.errors import InternalError
from opwalker.facts.workers_job import (
    BUSY,
    IDLE,
    MARK,
    OUT_OF_MEMORY,
    CannotLoad,
    Extracted,
    Job,
    Made,
    decode,
    serve,
)
from opwalker.model.source import FileEntry, Problem

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

#: Bounds of a batch: large enough that sending it costs nothing, small enough that both ends stay busy.
_BATCH_FILES = 48
_BATCH_BYTES = 384 << 10

#: So few files are read in this process, when each is small and shallow: starting another takes longer.
_INLINE_FILES = 3
_INLINE_BYTES = 1 << 20
_INLINE_DEPTH = 200

#: Workers that die before they take up a file, one after another, until the whole is given up.
_MOST_FALSE_STARTS = 4

#: How processes start. Elsewhere forking is not safe: system libraries keep threads of their own.
_START = "fork" if sys.platform == "linux" else "spawn"

#: ``(files done, files in all)``.
Progress = Callable[[int, int], None]


def extract_all(
    tasks: Sequence[FileEntry],
    job: Job,
    *,
    jobs: int | None = None,
    risky: Collection[str] = (),
    progress: Progress | None = None,
) -> Iterator[Extracted]:
    """Do ``job`` for every task, with ``jobs`` workers (default: one for each processor that this process may use).

    ``risky`` are paths whose facts are never made in this process. The iterator must be closed when it is left early.
    Raises InternalError when workers cannot be started at all or the job names a function that is not there.
    """
    pooled: Sequence[FileEntry] = tasks
    done = 0
    if len(tasks) <= _INLINE_FILES:
        pooled = []
        for entry in tasks:
            found = _inline(entry, job, entry.path in risky)
            if found is None:
                pooled.append(entry)
                continue
            done += 1
            yield found
            if progress:
                progress(done, len(tasks))
    if pooled:
        with _Pool(pooled, job, jobs or processors()) as pool:
            for found in pool.run():
                yield found
                done += 1
                if progress:
                    progress(done, len(tasks))


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _TooLong(BaseException):
    """Not an Exception, so that no extractor takes it for one of its own."""


def _inline(entry: FileEntry, job: Job, risky: bool) -> Extracted | None:
    """The outcome for a file that may be read in this process, or None for one that a worker should read."""
    # Only the main thread can be stopped from outside when a file takes too long.
    if entry.size > _INLINE_BYTES or threading.current_thread() is not threading.main_thread():
        return None
    try:
        source, passing = job.read(entry)
        if job.missing(source) and (risky or _depth(source.text) > _INLINE_DEPTH):
            return None
        with _time_limit(job.limits.seconds):
            return job.extract(source, passing, entry)
    except _TooLong:
        return job.give_up(entry, _timeout(job))
    except CannotLoad as error:
        raise InternalError(str(error)) from error
    except MemoryError:
        return None


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise _TooLong

    def as_before() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    before = signal.getsignal(signal.SIGALRM)
    # Twice, so that neither the timer nor what answers it stays behind where an interrupt comes in between.
    try:
        try:
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, seconds)
            yield
        finally:
            as_before()
    finally:
        as_before()


def _depth(text: str) -> int:
    """How deeply brackets nest, strings and comments not told from code: a bound for judging risk."""
    deepest = depth = 0
    for bracket in re.findall(r"[()\[\]{}]", text):
        depth = depth + 1 if bracket in "([{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


class _Worker:
    """One process, the numbers of the tasks that it has, and how long it has been at the one it is at."""

    def __init__(self, pool: _Pool) -> None:
        import multiprocessing

        context = multiprocessing.get_context(_START)
        self.connection, theirs = context.Pipe()
        self.marks, their_marks = context.Pipe(duplex=False)
        os.set_blocking(self.marks.fileno(), False)
        others: list[Connection] = []
        if _START == "fork":
            others = [end for worker in (*pool.workers, self) for end in (worker.connection, worker.marks)]
        self.process = context.Process(
            target=serve, args=(theirs, their_marks, pool.job, pool.tasks, others), daemon=True
        )
        self.process.start()
        theirs.close()
        their_marks.close()
        self.batches: deque[list[int]] = deque()
        self.at = IDLE
        self.seconds = 0.0
        self.used = False

    def send(self, batch: list[int]) -> None:
        self.used = True
        self.batches.append(batch)
        # A worker that has died meanwhile is noticed where answers are read.
        with contextlib.suppress(OSError):
            self.connection.send_bytes(array("I", batch))

    def look(self, passed: float) -> None:
        """Take in the marks; ``passed`` are the seconds since the last look."""
        try:
            data = os.read(self.marks.fileno(), 1 << 16)
        except (BlockingIOError, OSError):
            data = b""
        if data:
            self.at = MARK.unpack(data[-MARK.size :])[0]
            self.seconds = 0.0
        elif self.at != IDLE:
            self.seconds += passed

    def end(self) -> int | None:
        """Kill the process if it still runs; gives its exit status."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.connection.close()
        self.marks.close()
        return self.process.exitcode


class _Pool:
    """The workers and what is left to do. Tasks go by their number in ``tasks``."""

    def __init__(self, tasks: Sequence[FileEntry], job: Job, jobs: int) -> None:
        # The largest first: then no worker is left alone with a large file at the end.
        self.tasks = sorted(tasks, key=lambda entry: -entry.size)
        self.job = job
        self.workers: list[_Worker] = []
        self._pending = deque(_batches(self.tasks, jobs))
        self._jobs = max(1, min(jobs, len(self._pending)))
        self._failures: Counter[int] = Counter()
        self._false_starts = 0
        self._poll = min(0.25, job.limits.seconds / 4)
        self._looked = time.monotonic()

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        with _without_interrupts():
            for worker in self.workers:
                worker.end()

    def run(self) -> Iterator[Extracted]:
        from multiprocessing.connection import wait

        while self._pending or any(worker.batches for worker in self.workers):
            self._hand_out()
            for connection in wait([worker.connection for worker in self.workers], self._poll):
                worker = next(worker for worker in self.workers if worker.connection is connection)
                try:
                    data = worker.connection.recv_bytes()
                except (EOFError, OSError):
                    yield from self._lost(worker, None)
                    continue
                yield from self._answered(worker, data)
            yield from self._overdue()

    def _hand_out(self) -> None:
        while len(self.workers) < self._jobs and self._pending:
            self._start(len(self.workers))
        for place, worker in enumerate(self.workers):
            if self._pending and not worker.batches:
                batch = self._pending.popleft()
                if worker.used and self._suspect(batch):
                    worker.end()
                    worker = self._start(place)
                worker.send(batch)
        # A second batch lies ready, so that a worker does not wait while this process writes.
        for worker in self.workers:
            enough = len(self._pending) > len(self.workers) and not self._suspect(self._pending[0])
            if enough and len(worker.batches) == 1 and not self._suspect(worker.batches[0]):
                worker.send(self._pending.popleft())

    def _start(self, place: int) -> _Worker:
        """A new worker at that place; an interrupt meets it there, never a process that nobody knows of."""
        with starting():
            self.workers[place : place + 1] = [_Worker(self)]
        return self.workers[place]

    def _suspect(self, batch: list[int]) -> bool:
        """Whether a batch holds a file that a worker died of: it is read alone, in a fresh worker."""
        return any(self._failures[number] for number in batch)

    def _answered(self, worker: _Worker, data: bytes) -> Iterator[Extracted]:
        answer = decode(data)
        if isinstance(answer, str):
            raise InternalError(answer)
        self._false_starts = 0
        worker.batches.popleft()
        worker.look(0.0)
        for number, digest, passing, made in answer:
            rows = tuple(Made(kind, blob, names) for kind, blob, names in made)
            yield Extracted(self.tasks[number], digest, rows, passing)

    def _overdue(self) -> Iterator[Extracted]:
        """End the workers that have been at one file for too long."""
        now = time.monotonic()
        # When this process was itself stopped for a while, so were the workers.
        passed = min(now - self._looked, 2 * self._poll)
        self._looked = now
        for worker in list(self.workers):
            worker.look(passed)
            if worker.at != IDLE and worker.seconds > BUSY * self.job.limits.seconds:
                yield from self._lost(worker, _timeout(self.job))

    def _lost(self, worker: _Worker, problem: Problem | None) -> Iterator[Extracted]:
        """Replace a worker. ``problem`` is None for one that died: then its file gets a second chance, alone."""
        worker.look(0.0)
        status = worker.end()
        if status == -getattr(signal, "SIGPROF", 0):
            problem = _timeout(self.job)
        self.workers.remove(worker)
        left = [number for batch in worker.batches for number in batch]
        culprit = worker.at
        if culprit not in left:
            self._false_starts += 1
            if self._false_starts >= _MOST_FALSE_STARTS:
                raise InternalError(f"worker processes cannot be run: {ended(status)}")
        else:
            left.remove(culprit)
            self._failures[culprit] += 1
            if problem is None and self._failures[culprit] < 2:
                self._pending.appendleft([culprit])
            else:
                yield self.job.give_up(self.tasks[culprit], problem or _death(status, self.job))
        if left:
            self._pending.appendleft(left)


def _batches(tasks: Sequence[FileEntry], jobs: int) -> Iterator[list[int]]:
    """Numbers of tasks in batches: of few bytes, of few files, and enough of them for all workers."""
    most_bytes = min(_BATCH_BYTES, sum(entry.size for entry in tasks) // (4 * jobs) + 1)
    most_files = min(_BATCH_FILES, len(tasks) // (4 * jobs) + 1)
    batch: list[int] = []
    size = 0
    for number, entry in enumerate(tasks):
        if batch and (size + entry.size > most_bytes or len(batch) >= most_files):
            yield batch
            batch, size = [], 0
        batch.append(number)
        size += entry.size
    if batch:
        yield batch


def _timeout(job: Job) -> Problem:
    return Problem("timeout", f"not read within {job.limits.seconds:g} seconds")


def _death(status: int | None, job: Job) -> Problem:
    if status == OUT_OF_MEMORY:
        return Problem("memory", f"needs more than {job.limits.memory >> 20} MiB to be read")
    return Problem("worker-died", f"the process that read it {ended(status)}")


def ended(status: int | None) -> str:
    """How a process ended, in words, by its exit status."""
    if status is not None and status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """Around the start of a process: it must not meet an interrupt before it has learned to ignore it."""
    with _without_interrupts(), warnings.catch_warnings():
        # Forking beside other threads is warned of; the child takes none of the locks that they may hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
