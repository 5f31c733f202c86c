"""Every function of a tree as statements, read in parallel and kept by what each file's reading depends on.

In: a workbench, and a store of earlier answers. Out: routines by file, with an outline of each file that says what its
functions call before they are decoded. A file is read anew when it has changed, or what a macro stands for that was
asked about on the way.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.routines import RoutineReader
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import Function
from opwalker.model.statements import Routine
from opwalker.notation.regex import Regex
from opwalker.views.check.ledger import Asked, Ledger, changed_names, holds_any, ledger_of, packed, stays
from opwalker.views.check.reachable import reachable
from opwalker.views.ops import shown_condition

T = TypeVar("T")

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
FEW = 8


class Kept(Struct, frozen=True):
    """How answers are kept: ``find`` and ``put`` by key; ``said`` is a digest of what a file says."""

    find: Callable[[str], bytes | None]
    put: Callable[[str, bytes], None]
    said: Callable[[str], str]
    about: str


class Outline(Struct, frozen=True):
    """What is known of a file's functions before they are decoded: the last parts of the names that they call and
    launch, the names in the types of their variables, the numbers of those that may access memory with an order, and
    ``(name, line)`` of what the file declares volatile. ``asked`` are the names that may stand for a macro, packed:
    first those that all of the file hangs on, then all those in each function."""

    calls: frozenset[str]
    launches: frozenset[str]
    types: frozenset[str]
    ordered: tuple[int, ...]
    volatile: tuple[tuple[str, int], ...]
    routines: msgspec.Raw
    asked: tuple[bytes, ...]


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

    def mentioning(self, path: str, names: Collection[str]) -> Iterator[Routine]:
        """The functions of a file that name any of some names, or use macros of these names; and perhaps others."""
        asked = self._outlines[path].asked if path in self._outlines else ()
        wanted = [packed((name,)) for name in sorted(names)]
        yield from self._some(path, [at for at, one in enumerate(asked[1:]) if holds_any(one, wanted)])

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
    blob = kept.find(f"ledger|{kept.about}")
    old = _decoded(blob, Ledger) if blob is not None else None
    new = ledger_of(workbench, kept.said, old)
    changed = changed_names(old, new) if old is not None else set()
    names = [packed((name,)) for name in sorted(changed)]
    out: dict[str, Outline] = {}
    missing: list[str] = []
    for path in sorted(set(workbench.index.paths).difference(without)):
        key = stays(old, new, path)
        blob = kept.find(key) if key is not None else None
        found = _decoded(blob, Outline) if blob is not None else None
        if found is None or (names and holds_any(b"".join(found.asked), names)):
            missing.append(path)
        else:
            out[path] = found
            new.files[path] = replace(new.files[path], key=key)
    for path, blob in _read(workbench, missing, jobs):
        # Each state of a file's functions has a key of its own: a ledger of another state of the tree holds still.
        key = f"outline:{path}|{kept.about}|{hashlib.blake2b(blob, digest_size=16).hexdigest()}"
        kept.put(key, blob)
        out[path] = msgspec.msgpack.decode(blob, type=Outline)
        new.files[path] = replace(new.files[path], key=key)
    if new != old:
        kept.put(f"ledger|{kept.about}", msgspec.msgpack.encode(new))
    return Routines(out)


def _decoded(blob: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.msgpack.decode(blob, type=kind)
    except msgspec.MsgspecError:
        return None


def _read(workbench: Workbench, missing: Sequence[str], jobs: int) -> list[tuple[str, bytes]]:
    if jobs < 2 or len(missing) < FEW or "fork" not in multiprocessing.get_all_start_methods():
        reader = _Reader(workbench)
        return [(path, reader.file(path)) for path in missing]
    # What comes from the store is loaded here: a child process must not share the parent's connection.
    for path in missing:
        workbench.index.closure(path)
    global _shared
    _shared = _Reader(workbench)
    try:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            return list(zip(missing, pool.map(_file, missing, chunksize=4), strict=True))
    finally:
        _shared = None


class _Reader:
    def __init__(self, workbench: Workbench) -> None:
        self._index = workbench.index
        self._files = workbench.files
        unit = workbench.unit()
        self._resolver = unit.resolver
        self._reader = RoutineReader(workbench.files, unit.macros, unit.device_macros)
        self._asked = Asked(workbench)

    def file(self, path: str) -> bytes:
        """The routines of one file, packed."""
        self._asked.begin()
        names = self._asked.in_heads(path)
        facts = self._index.facts(path)
        out, each = [], []
        for function in facts.functions if facts is not None else ():
            if not function.body_end or not self._resolver.is_read(path, function):
                continue
            names |= self._asked.names()
            self._asked.begin()
            condition = shown_condition(facts.conditions[function.condition])
            out.append(self._reader.read(path, function, path, condition))
            each.append(self._asked.names() | self._written(path, function))
            self._asked.begin()
        names |= self._asked.names()
        asked = (names | self._asked.behind(path, names.union(*each)), *each)
        routines = reachable(out, self._index.store.text)
        text = self._index.store.text(path)
        return msgspec.msgpack.encode(_outline(routines, text, tuple(packed(one) for one in asked)))

    def _written(self, path: str, function: Function) -> set[str]:
        """The names that a function is written with, whether they are read or not."""
        blanked = self._files.view(path).blanked
        text = blanked.code[blanked.line_starts[function.start_line - 1] : function.body_end]
        # The head may be what a macro makes.
        head = (function.qualified_name, function.return_type, function.template or "")
        parts = (part for one in function.parameters for part in (one.type, one.name, one.default or ""))
        return {word for told in (text, *head, *parts) for word in _WORD.findall(told)}


def _outline(routines: Sequence[Routine], text: str, asked: tuple[bytes, ...]) -> Outline:
    statements = [one for routine in routines for one in routine.walk()]
    return Outline(
        frozenset(call.simple for one in statements for call in one.calls),
        frozenset(launch.simple for one in statements for launch in one.launches),
        frozenset(word for one in statements for made in one.declares for word in _WORD.findall(made.type)),
        tuple(number for number, one in enumerate(routines) if _is_ordered(one)),
        tuple((found[1], text.count("\n", 0, found.start()) + 1) for found in _VOLATILE.finditer(text)),
        msgspec.Raw(msgspec.msgpack.encode(routines)),
        asked,
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
