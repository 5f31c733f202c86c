"""What is done with one file, and the loop of a worker process around it.

In: ``FileEntry``, the extractors of its language, a function that reads it. Out: ``Extracted``: its digest and, encoded
as msgpack, its facts. Any exception of an extractor becomes a problem of its file; running out of memory ends the
process (the parent, ``facts.workers``, decides what that means). Extractors run nowhere else.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import signal
import struct
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.facts.registry import MESSAGE_LENGTH, PROBLEM, Extractor, problem_name
from opwalker.model.source import FileEntry, Problem, SourceFile

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

try:
    import resource
except ImportError:  # not on Windows: then there is no limit on memory
    resource = None

#: Problems that may be gone at the next look although size and time of the file are the same.
_PASSING = frozenset(("unreadable", "changed-while-read"))

#: A file this young may change again without a change of size or time: clocks of file systems tick this slowly.
_TICK_NS = 20_000_000

#: Exit status of a worker that ran out of memory.
OUT_OF_MEMORY = 77

#: How many times longer than it computes a file may take by the clock.
BUSY = 4

#: What a worker writes before each file is the file's number in the list of tasks; this means "no file".
IDLE = 0xFFFFFFFF
MARK = struct.Struct("<I")


class Limits(Struct, frozen=True):
    """Bounds of one file: ``seconds`` of computing, bytes of ``memory`` beyond a worker's first, and ``file_bytes``.

    By the clock a worker has ``BUSY`` times as long: on a busy machine that is what computing may take.
    """

    seconds: float = 20.0
    memory: int = 2 << 30
    file_bytes: int = 64 << 20


class Made(Struct, frozen=True):
    """Facts of one kind, as the store takes them. ``names`` are ``(name, kind)`` and include the file's problems."""

    kind: str
    blob: bytes
    names: tuple[tuple[str, str], ...]


class Extracted(Struct, frozen=True):
    """What came of one file. ``digest`` is that of its content, or a made-up one where the content could not be read.

    ``made`` holds the facts that were not there before. ``passing`` is true when the file must be looked at again even
    if its size and time stay the same.
    """

    entry: FileEntry
    digest: str
    made: tuple[Made, ...] = ()
    passing: bool = False


class Hint(Struct, frozen=True):
    """What a file is read again for: ``names``, and its encoded facts for fewer names, if its digest is still this."""

    names: frozenset[str]
    digest: str
    known: bytes | None


class Job(Struct, frozen=True):
    """What to do with each file.

    ``reader`` names a function ``f(root_path, entry) -> SourceFile``. ``kept`` are, by kind, the digests whose facts
    are there already. With ``hints``, by path, all files have one, and the extractors are those of a ``Round``.
    """

    root_path: str
    reader: str
    extractors: Mapping[str, tuple[Extractor, ...]]
    kept: Mapping[str, frozenset[str] | set[str]]
    limits: Limits
    hints: Mapping[str, Hint] = field(default_factory=dict)

    def read(self, entry: FileEntry) -> tuple[SourceFile, bool]:
        """The file with a digest that is never empty, and whether it must be looked at again."""
        if entry.size > self.limits.file_bytes:
            message = f"{entry.size:,} bytes are above the limit of {self.limits.file_bytes:,}"
            source = SourceFile(entry.path, "", entry.language, "", (Problem("too-large", message),))
        else:
            source = load(self.reader)(self.root_path, entry)
        passing = 0 <= time.time_ns() - entry.mtime_ns < _TICK_NS
        kinds = {problem.kind for problem in source.problems}
        if not source.digest:
            passing = True
            problems = hashlib.blake2b(repr(source.problems).encode(), digest_size=16).hexdigest()
            source = replace(source, digest=f"unread-{problems}")
        elif not _PASSING.isdisjoint(kinds):
            # Facts of a half-written file must not be found again under the digest of a whole one.
            passing = True
            source = replace(source, digest=f"{source.digest}-passing")
        return source, passing

    def missing(self, source: SourceFile) -> list[Extractor]:
        """The extractors whose facts of this content are not there yet."""
        row = self.extractors.get(source.language, ())
        return [extractor for extractor in row if source.digest not in self.kept.get(extractor.kind, ())]

    def extract(self, source: SourceFile, passing: bool, entry: FileEntry) -> Extracted:
        """Run the extractors. Raises MemoryError when the memory is at its end."""
        hint = self.hints.get(entry.path)
        made = tuple(_made(extractor, source, hint) for extractor in self.missing(source))
        return Extracted(entry, source.digest, made, passing)

    def give_up(self, entry: FileEntry, problem: Problem) -> Extracted:
        """The outcome for a file whose extraction cannot be carried through: facts that hold the problem alone."""
        source, passing = self.read(entry)
        hint = self.hints.get(entry.path)
        made = tuple(_failed(extractor, source, problem, hint) for extractor in self.missing(source))
        return Extracted(entry, source.digest, made, passing)


class CannotLoad(Exception):
    """A function that the registry names cannot be imported: every file would meet this."""


def load(name: str) -> Any:
    """The object that ``package.module:name`` spells. Raises CannotLoad."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        raise CannotLoad(f"{name} cannot be loaded: {type(error).__name__}: {error}") from error


def _made(extractor: Extractor, source: SourceFile, hint: Hint | None) -> Made:
    function = load(extractor.function)
    start = _memory_peak()
    try:
        facts = function(source) if hint is None else function(source, hint.names, _known(extractor, source, hint))
        module = import_module(extractor.function.partition(":")[0])
        names = list(module.names(facts)) if hasattr(module, "names") else []
        problems = dict.fromkeys((*source.problems, *facts.problems))
        return _encoded(extractor.kind, facts, names, tuple(problems))
    except RecursionError:
        return _failed(extractor, source, Problem("too-deep", "nested too deeply to be read"), hint)
    except MemoryError:
        # Parsers report a full stack like this too; then hardly any memory has been used.
        if _memory_peak() - start > 64 << 20:
            raise
        return _failed(extractor, source, Problem("too-deep", "nested too deeply to be parsed"), hint)
    except Exception as error:
        # A fault of ours, and still one of this file only: the others go on, and this one is named.
        message = f"{extractor.kind} facts failed with {type(error).__name__}: {error} ({_place(error)})"
        return _failed(extractor, source, Problem("extractor-failed", message[:MESSAGE_LENGTH]), hint)


def _known(extractor: Extractor, source: SourceFile, hint: Hint) -> Any:
    if hint.known is None or hint.digest != source.digest:
        return None
    return msgspec.msgpack.decode(hint.known, type=load(extractor.facts))


def _failed(extractor: Extractor, source: SourceFile, problem: Problem, hint: Hint | None) -> Made:
    problems = (*source.problems, problem)
    # Read for all of these names in vain: it must not be asked for them again.
    watched = {} if hint is None else {"watched": tuple(sorted(hint.names))}
    return _encoded(extractor.kind, load(extractor.facts)(problems=problems, **watched), [], problems)


def _encoded(kind: str, facts: object, names: list[tuple[str, str]], problems: Sequence[Problem]) -> Made:
    names += [(problem_name(problem), PROBLEM) for problem in problems]
    # A literal may spell half a surrogate pair, which nothing that stores text takes.
    clean = tuple(pair if pair[0].isascii() else (pair[0].encode(errors="replace").decode(), pair[1]) for pair in names)
    return Made(kind, msgspec.msgpack.encode(facts), clean)


def _place(error: BaseException) -> str:
    """The innermost place of an exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "unknown place"


def _memory_peak() -> int:
    """The most memory that this process has had in use, in bytes; 0 where the system does not tell."""
    if resource is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


# -- the worker process ------------------------------------------------------------------------------------------------

#: ``(number of the task, digest, passing, ((kind, blob, names), …))``: one file on its way to the parent.
Wire = tuple[int, str, bool, tuple[tuple[str, bytes, tuple[tuple[str, str], ...]], ...]]

#: Encodes and decodes what a worker sends: a list of files, or the text of an error that every file would meet.
encode = msgspec.msgpack.Encoder().encode
decode: Callable[[bytes], list[Wire] | str] = msgspec.msgpack.Decoder(list[Wire] | str).decode


def serve(
    connection: Connection, marks: Connection, job: Job, tasks: Sequence[FileEntry], others: Sequence[Connection]
) -> None:
    """Read batches of task numbers from ``connection`` until it closes, and answer each with its files.

    ``others`` are the parent's ends of all pipes, which a forked child must not hold open.
    """
    for other in others:
        other.close()
    settle(job.limits)
    try:
        while True:
            numbers = array("I", connection.recv_bytes())
            answer = _answer(numbers, marks.fileno(), job, tasks)
            os.write(marks.fileno(), MARK.pack(IDLE))
            connection.send_bytes(answer)
            gc.collect()
    except (EOFError, OSError):
        return  # the parent has gone, or wants no more


def _answer(numbers: Sequence[int], marks: int, job: Job, tasks: Sequence[FileEntry]) -> bytes:
    done: list[Wire] = []
    for number in numbers:
        os.write(marks, MARK.pack(number))
        bound_computing(job.limits.seconds)
        try:
            found = job.extract(*job.read(tasks[number]), tasks[number])
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except CannotLoad as error:
            return encode(str(error))
        made = tuple((row.kind, row.blob, row.names) for row in found.made)
        done.append((number, found.digest, found.passing, made))
    bound_computing(0)
    return encode(done)


def bound_computing(seconds: float) -> None:
    """From now on this process may compute for that long, 0 for any time: then ``SIGPROF`` ends it."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def settle(limits: Limits) -> None:
    """Make this process one that may die: quiet, bounded, and the first to go when the machine runs out of memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    # What is here already stays; what an extractor makes is collected between batches.
    gc.disable()
    gc.freeze()
    if resource is None:
        return
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("600")
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm") as file:
            at_start = int(file.read().split()[0]) * resource.getpagesize()
        bound = at_start + limits.memory
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or bound < hard:
            resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
