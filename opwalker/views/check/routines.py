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

#: What gives an instruction an order.
_ORDERED = Regex(r"""\.["\s]*(?:acquire|release|acq_rel|relaxed|volatile)\b""")
#: What shares a variable, and what an access by C++ with an order, or to another device's memory, has in its text.
_SHARED = Regex(r"volatile|atomic")
_OTHERS = Regex(r"volatile|peer|remote|other|sg|signals|ptrs|bufs")
_LOOPS = ("while", "do", "for")
_WORD = Regex(r"[A-Za-z_]\w*")
#: A member, or a variable, that is declared volatile and holds a whole number.
_VOLATILE = Regex(
    r"\bvolatile\s+(?:u?int(?:32|64)?_t|unsigned|int|FlagType|flag_t|uint)\s*\*?\s*(\w+)"
    r"\s*(?:\[[^\]]*\])*\s*(?:\[[^\]]*\])*;"
)
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
    launch, the names in the types of their variables, the numbers of those that may access memory with an order, and
    ``(name, line)`` of what the file declares volatile."""

    calls: frozenset[str]
    launches: frozenset[str]
    types: frozenset[str]
    ordered: tuple[int, ...]
    volatile: tuple[tuple[str, int], ...]
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

    def volatile(self) -> dict[str, tuple[str, int]]:
        """What is declared volatile, with ``(file, line)`` of the first of each name."""
        out: dict[str, tuple[str, int]] = {}
        for path, outline in self._outlines.items():
            for name, line in outline.volatile:
                out.setdefault(name, (path, line))
        return out

    def ordered(self) -> Iterator[Routine]:
        """The functions that may access memory with an order, or that of a peer, by their own statements."""
        return (one for path, outline in self._outlines.items() for one in self._some(path, outline.ordered))

    def naming(self, names: Collection[str]) -> Iterator[Routine]:
        """The functions that call something of some names, and perhaps others."""
        wanted = frozenset(names)
        words = [name.encode("utf-8", "surrogateescape") for name in sorted(wanted)]
        for path, outline in self._outlines.items():
            if not wanted.isdisjoint(outline.calls):
                packed = (bytes(one) for one in self._packed(path))
                yield from self._some(path, [at for at, one in enumerate(packed) if any(word in one for word in words)])

    def _some(self, path: str, numbers: Sequence[int]) -> Iterator[Routine]:
        """Some functions of a file by their numbers."""
        if path in self._decoded:
            yield from (self._decoded[path][number] for number in numbers)
        elif numbers:
            packed = self._packed(path)
            yield from (msgspec.msgpack.decode(packed[number], type=Routine) for number in numbers)

    def _packed(self, path: str) -> tuple[msgspec.Raw, ...]:
        return msgspec.msgpack.decode(self._outlines[path].routines, type=tuple[msgspec.Raw, ...])


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
        tuple(number for number, one in enumerate(routines) if _is_ordered(one)),
        tuple((found[1], text.count("\n", 0, found.start()) + 1) for found in _VOLATILE.finditer(text)),
        msgspec.Raw(msgspec.msgpack.encode(routines)),
    )


def _is_ordered(routine: Routine) -> bool:
    """Whether a function may access memory with an order, or that of a peer, by its own statements."""
    return any("volatile" in one.type for one in routine.parameters) or any(
        (one.kind == "asm" and _ORDERED.search(one.text))
        or any(_SHARED.search(made.type + (made.value or "")) for made in one.declares)
        or any(_OTHERS.search(assigned.target) for assigned in one.assigns)
        or (one.kind in _LOOPS and _OTHERS.search(one.text))
        or (one.kind == "return" and "volatile" in one.text)
        or any("atomic" in call.name or "atomic" in (call.receiver or "") for call in one.calls)
        for one in routine.walk()
    )


_shared: Any = None


def _file(path: str) -> bytes:
    """Runs in a child process, which was forked with the reader at hand."""
    return _shared.file(path)
