"""What an answer was read from: what an index gave out, noted as finely as it was asked for.

In: what was asked. Out: ``Reads``, and the ``Trace`` that an answer is kept with; ``Declared`` and ``Names``, which
give out no more than is noted. Whether it all says the same in another state, ``opwalker.unchanged`` looks at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from msgspec import Struct

from opwalker.model.cpp import Alias, ClassDef, CppFacts, EnumDef, Include, MacroEvent, Variable

#: A stretch of a file's text, by offsets.
Span = tuple[int, int]

#: Names that an answer asked for: with more of them, any name that comes or goes counts.
MOST_NAMES = 30_000


class Trace(Struct, frozen=True):
    """What an answer was read from.

    ``files`` stands for the state of all C++ files then, ``made`` for what macros made in them, by file. ``whole`` are
    files of which anything may have been read; of ``parts`` it was all but functions, and the functions in the spans
    beside the path; in ``near`` of these, every function was looked at for whether it owns something. ``asked`` are
    the names that were looked up wherever they are, ``met`` those that were compared with all names of a kind, and
    ``kinds`` the kinds whose names were gone through. ``any_name`` says that there were too many of them to tell.
    """

    files: str
    made: tuple[tuple[str, str], ...] = ()
    whole: tuple[str, ...] = ()
    parts: tuple[tuple[str, tuple[Span, ...]], ...] = ()
    near: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    met: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    any_name: bool = False


#: Among the kinds of a trace: all includes of all files.
INCLUDES = "includes of any file"


class Declared(Struct, frozen=True):
    """What a file says but for functions, and for what macros make of it: fields of ``CppFacts``."""

    conditions: tuple[tuple[str, ...], ...] = ((),)
    includes: tuple[Include, ...] = ()
    macros: tuple[MacroEvent, ...] = ()
    classes: tuple[ClassDef, ...] = ()
    enums: tuple[EnumDef, ...] = ()
    aliases: tuple[Alias, ...] = ()
    variables: tuple[Variable, ...] = ()


class Reads:
    """What was read so far; the fields are those of ``Trace``. ``loaded`` are the files of which any fact was read."""

    def __init__(self) -> None:
        self.loaded: set[str] = set()
        self.whole: set[str] = set()
        self.parts: dict[str, set[Span]] = {}
        self.near: set[str] = set()
        self.asked: set[str] = set()
        self.met: set[str] = set()
        self.kinds: set[str] = set()
        self.any_name = False

    def part(self, path: str, start: int = 0, end: int = 0) -> None:
        """Note that a file's directives and declarations were read, and the functions in a span."""
        spans = self.parts.get(path)
        if spans is None:
            spans = self.parts[path] = set()
        if end > start:
            spans.add((start, end))

    def update(self, other: Reads | Trace) -> None:
        """Note whatever another one has noted."""
        self.whole.update(other.whole)
        for path, spans in other.parts.items() if isinstance(other, Reads) else other.parts:
            self.parts.setdefault(path, set()).update(spans)
        if isinstance(other, Reads):
            self.loaded |= other.loaded
        self.near.update(other.near)
        self.asked.update(other.asked)
        self.met.update(other.met)
        self.kinds.update(other.kinds)
        self.any_name |= other.any_name

    def trace(self, files: str, made: Iterable[tuple[str, str]]) -> Trace:
        """What an answer is kept with."""
        held = tuple(sorted(made))
        if self.any_name or len(self.asked) + len(self.met) > MOST_NAMES:
            # Told coarsely: whichever file gave anything, and all names.
            whole = tuple(sorted({*self.whole, *self.loaded, *self.parts}))
            return Trace(files, held, whole, any_name=True)
        parts = ((path, tuple(sorted(spans))) for path, spans in self.parts.items() if path not in self.whole)
        return Trace(
            files,
            held,
            tuple(sorted(self.whole)),
            tuple(sorted(parts)),
            tuple(sorted(self.near - self.whole)),
            tuple(sorted(self.asked)),
            tuple(sorted(self.met - self.asked)),
            tuple(sorted(self.kinds)),
        )


class Names(Set):
    """All names of some kinds. Which names it is compared with is noted; going through them notes the kinds."""

    __slots__ = ("_held", "_kinds", "_reads")

    def __init__(self, held: Set[str], kinds: tuple[str, ...], reads: Reads) -> None:
        self._held = held
        self._kinds = kinds
        self._reads = reads

    @classmethod
    def _from_iterable(cls, it: Iterable[str]) -> frozenset[str]:
        return frozenset(it)

    def __contains__(self, name: object) -> bool:
        self._reads.met.add(name)
        return name in self._held

    def __iter__(self) -> Iterator[str]:
        self._reads.kinds.update(self._kinds)
        return iter(self._held)

    def __len__(self) -> int:
        self._reads.kinds.update(self._kinds)
        return len(self._held)

    def __and__(self, names: Iterable[str]) -> Set[str]:
        if isinstance(names, Names):
            # What is of one kind alone has no say, until it is of the other too.
            few, many = sorted((self, names), key=lambda one: len(one._held))
            self._reads.kinds.update(few._kinds)
            self._reads.met.update(few._held)
            return frozenset(few._held & many._held)
        self._reads.met.update(names)
        return self._held & names if isinstance(names, (set, frozenset)) else self._held.intersection(names)

    __rand__ = __and__

    def __or__(self, other: Iterable[str]) -> Set[str]:
        if isinstance(other, Names):
            return Names(self._held | other._held, (*self._kinds, *other._kinds), self._reads)
        return frozenset(self) | frozenset(other)

    __ror__ = __or__

    def isdisjoint(self, names: Iterable[str]) -> bool:
        """Whether none of some names is one of them."""
        if isinstance(names, Names):
            names = frozenset(names)
        self._reads.met.update(names)
        return self._held.isdisjoint(names)


class NotedFacts:
    """A store of facts for those who read it without the index: whatever they read counts as a whole."""

    def __init__(self, facts, reads: Reads) -> None:
        self._facts = facts
        self._reads = reads

    def cpp_paths(self) -> Sequence[str]:
        """Every C++/CUDA file, sorted."""
        return self._facts.cpp_paths()

    def cpp_facts(self, path: str) -> CppFacts | None:
        """The facts of one file, None for a path that is not in the tree."""
        self._reads.whole.add(path)
        return self._facts.cpp_facts(path)

    def text(self, path: str) -> str:
        """The file's text."""
        self._reads.whole.add(path)
        return self._facts.text(path)

    def op_lists(self) -> Sequence[tuple[str, str]]:
        """The files that may list ops: every answer depends on all of them."""
        return self._facts.op_lists()

    def paths_of(self, name: str, kinds: Sequence[str]) -> Sequence[str]:
        """Files in which ``name`` is one of ``kinds``, sorted."""
        self._reads.asked.add(name)
        return self._facts.paths_of(name, kinds)

    def paths_with(self, kind: str) -> Sequence[str]:
        """Files that hold any name of a kind, sorted."""
        self._reads.kinds.add(kind)
        return self._facts.paths_with(kind)

    def names_of_kind(self, kind: str) -> Iterable[str]:
        """All names of a kind."""
        self._reads.kinds.add(kind)
        return self._facts.names_of_kind(kind)
