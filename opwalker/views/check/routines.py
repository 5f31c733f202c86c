"""Every function of a tree as statements, read in parallel and kept by what each file's reading depends on.

In: a workbench, and a store of earlier answers. Out: routines by file, with an outline of each file that says what its
functions call before they are decoded. A file is read anew when it, or anything it includes, has changed.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from opwalker.expand.routines import RoutineReader
from opwalker.expand.workbench import Workbench
from opwalker.model.statements import Routine
from opwalker.notation.regex import Regex
from opwalker.views.check.reachable import reachable
from opwalker.views.ops import shown_condition

#: What gives an access to memory an order: an atomic, a volatile, a word in an instruction (``ld.acquire``).
_ORDERED = Regex(
    r"atomic|memory_order|\bvolatile\b(?!\s*\()|\.(?:acquire|release|acq_rel|relaxed|volatile|sc|seq_cst|mmio)\b"
)
_WORD = Regex(r"[A-Za-z_]\w*")
#: Below this many files to read, worker processes cost more than they save.
FEW = 12


class Kept(Struct, frozen=True):
    """How answers are kept: ``find`` and ``put`` by key, ``digest`` of a file's content."""

    find: Callable[[str], bytes | None]
    put: Callable[[str, bytes], None]
    digest: Callable[[str], str]
    about: str


class Outline(Struct, frozen=True):
    """What is known of a file's functions before they are decoded: the last parts of the names that they call and
    launch, the names in the types of their variables, and whether they, or anything else in the file, access memory
    with an order."""

    calls: frozenset[str]
    launches: frozenset[str]
    types: frozenset[str]
    ordered: bool
    routines: msgspec.Raw


class Routines:
    """The functions of a source by file, each file decoded when it is asked for."""

    def __init__(self, outlines: Mapping[str, Outline]) -> None:
        self._outlines = dict(sorted(outlines.items()))
        self._decoded: dict[str, tuple[Routine, ...]] = {}

    def of(self, path: str) -> tuple[Routine, ...]:
        """The functions of a file."""
        if path not in self._decoded:
            outline = self._outlines.get(path)
            found = msgspec.msgpack.decode(outline.routines, type=tuple[Routine, ...]) if outline is not None else ()
            self._decoded[path] = found
        return self._decoded[path]

    def all(self) -> tuple[Routine, ...]:
        """Every function, in path and line order."""
        return tuple(routine for path in self._outlines for routine in self.of(path))

    def calling(self, name: str) -> Iterator[str]:
        """The files that call something of a name."""
        return (path for path, outline in self._outlines.items() if name in outline.calls)

    def matching(self, name: re.Pattern[str]) -> Iterator[str]:
        """The files that call something whose name begins like that."""
        return (path for path, outline in self._outlines.items() if any(map(name.match, outline.calls)))

    def declaring(self, name: str) -> Iterator[str]:
        """The files that declare a local variable whose type has a name in it."""
        return (path for path, outline in self._outlines.items() if name in outline.types)

    def launching(self, name: str) -> Iterator[str]:
        """The files that launch something of a name."""
        return (path for path, outline in self._outlines.items() if name in outline.launches)

    def ordered(self) -> Iterator[str]:
        """The files that access memory with an order."""
        return (path for path, outline in self._outlines.items() if outline.ordered)


def read_routines(workbench: Workbench, kept: Kept, jobs: int, without: Collection[str] = frozenset()) -> Routines:
    """The routines of every file that the build reads, those of some files left out."""
    index = workbench.index
    out: dict[str, Outline] = {}
    missing: list[tuple[str, str]] = []
    for path in sorted(set(index.paths).difference(without)):
        # Files that include each other have one state between them.
        key = f"outlines|{kept.about}|{path}|{_state(workbench, path, kept.digest)}"
        blob = kept.find(key)
        found = _decoded(blob) if blob is not None else None
        if found is None:
            missing.append((path, key))
        else:
            out[path] = found
    for path, key, blob in _read(workbench, missing, jobs):
        kept.put(key, blob)
        out[path] = msgspec.msgpack.decode(blob, type=Outline)
    return Routines(out)


def _state(workbench: Workbench, path: str, digest: Callable[[str], str]) -> str:
    """A digest of a file and all that it includes."""
    state = hashlib.blake2b(digest_size=12)
    for one in sorted({path, *workbench.index.closure(path)}):
        state.update(f"{one}:{digest(one)};".encode("utf-8", "surrogateescape"))
    return state.hexdigest()


def _decoded(blob: bytes) -> Outline | None:
    try:
        return msgspec.msgpack.decode(blob, type=Outline)
    except msgspec.MsgspecError:
        return None


def _read(workbench: Workbench, missing: Sequence[tuple[str, str]], jobs: int) -> list[tuple[str, str, bytes]]:
    if jobs < 2 or len(missing) < FEW or "fork" not in multiprocessing.get_all_start_methods():
        reader = _Reader(workbench)
        return [(path, key, reader.file(path)) for path, key in missing]
    # What comes from the store is loaded here: a child process must not share the parent's connection.
    for path, _ in missing:
        workbench.index.closure(path)
    global _shared
    _shared = _Reader(workbench)
    try:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            blobs = pool.map(_file, [path for path, _ in missing], chunksize=4)
    finally:
        _shared = None
    return [(path, key, blob) for (path, key), blob in zip(missing, blobs, strict=True)]


class _Reader:
    def __init__(self, workbench: Workbench) -> None:
        self._index = workbench.index
        unit = workbench.unit()
        self._resolver = unit.resolver
        self._reader = RoutineReader(workbench.files, unit.macros, unit.device_macros)

    def file(self, path: str) -> bytes:
        """The routines of one file, packed."""
        facts = self._index.facts(path)
        out = []
        for function in facts.functions if facts is not None else ():
            if not function.body_end or not self._resolver.is_read(path, function):
                continue
            condition = shown_condition(facts.conditions[function.condition])
            out.append(self._reader.read(path, function, path, condition))
        return msgspec.msgpack.encode(_outline(reachable(out, self._index.store.text), self._index.store.text(path)))


def _outline(routines: Sequence[Routine], text: str) -> Outline:
    statements = [one for routine in routines for one in routine.walk()]
    return Outline(
        frozenset(call.simple for one in statements for call in one.calls),
        frozenset(launch.simple for one in statements for launch in one.launches),
        frozenset(word for one in statements for made in one.declares for word in _WORD.findall(made.type)),
        any(_ORDERED.search(held) for held in (text, *(one.text for one in statements))),
        msgspec.Raw(msgspec.msgpack.encode(routines)),
    )


_shared: Any = None


def _file(path: str) -> bytes:
    """Runs in a child process, which was forked with the reader at hand."""
    return _shared.file(path)
