"""Texts of the files on a walk, blanked once and kept, and the conditions that hold in them for one build.

``Configuration`` is the build: macros known to be set, macros known not to be set. Everything else is unknown, and then
both branches count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.facts.cpp_text import Blanked, Conditionals, Group, blank
from opwalker.link.index import Index
from opwalker.model.cpp import MacroEvent
from opwalker.model.statements import MacroUse
from opwalker.notation.conditions import evaluate, parse_condition


class Configuration(Struct, frozen=True):
    """One build: ``defines`` maps set macros to their value text (None for none), ``undefined`` are known unset.
    ``closed`` says that the build files were read: a macro that neither they nor the source nor a library sets is
    unset. ``passes`` are the macros of each pass of the device compiler, one for an architecture; without, what is
    particular to an architecture is unknown. ``units`` are the macros that single files are compiled with, by path;
    ``flagged`` those that something is compiled with, which files is not known: they may be set."""

    build: str = "cuda"
    defines: Mapping[str, str | None] = field(default_factory=dict)
    undefined: frozenset[str] = frozenset()
    closed: bool = False
    passes: tuple[Mapping[str, str | None], ...] = ()
    units: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    flagged: frozenset[str] = frozenset()

    def of_pass(self, name: str, number: int) -> tuple[bool | None, str | None]:
        """As ``state``, for the macros that differ between the passes of the device compiler."""
        macros = self.passes[number]
        return (True, macros[name]) if name in macros else (False, None)

    def state(self, name: str) -> tuple[bool | None, str | None]:
        """``(True, value)``, ``(False, None)``, or ``(None, None)`` when the build says nothing of the name."""
        if name in self.defines:
            return True, self.defines[name]
        if name in self.undefined:
            return False, None
        return None, None


class _States(Mapping):
    """A mapping over a state function, in the form that conditions are evaluated against."""

    def __init__(self, state: Callable[[str], tuple[bool | None, str | None]]) -> None:
        self._state = state

    def __contains__(self, name: object) -> bool:
        return self._state(str(name))[0] is True

    def __getitem__(self, name: str) -> str | None:
        known, value = self._state(name)
        if known is not True:
            raise KeyError(name)
        return value

    def get(self, name, default=None):
        known, value = self._state(name)
        return value if known is True else default

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def holds(terms: tuple[str, ...], state: Callable[[str], tuple[bool | None, str | None]]) -> bool | None:
    """Whether all ``terms`` hold: False as soon as one is false, None when nothing is false but something unknown."""
    result: bool | None = True
    states = _States(state)
    for term in terms:
        value = evaluate(parse_condition(term), states, lambda name: state(name)[0] is False)
        if value is False:
            return False
        if value is None:
            result = None
    return result


@lru_cache(maxsize=48)
def _blanked(text: str) -> Blanked:
    """A text without comments: workbenches of one tree open the same files."""
    return blank(text)


class FileView:
    """A file's text and its conditional structure."""

    __slots__ = ("path", "blanked", "conditionals", "active")

    def __init__(self, path: str, text: str, made: tuple[tuple[str, int], ...] = ()) -> None:
        self.path = path
        whole = "\n".join((text, *(piece for piece, _ in made)))
        self.blanked: Blanked = _blanked(whole)
        if made:
            # Behind the end of the file stands what macros made, each piece on the line of the macro's use.
            starts = []
            at = len(text) + 1
            for piece, line in made:
                starts.append((at, line))
                at += len(piece) + 1
            self.blanked = replace(self.blanked, made=tuple(starts))
        self.conditionals = Conditionals(self.blanked)
        self.active: dict[int, bool | None] = {}


class Files:
    """Opens files of the tree by path, once."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._views: dict[str, FileView] = {}
        self._texts: dict[str, str] = {}
        self._made: dict[str, tuple[tuple[str, int], ...]] = {}
        self._numbers: dict[str, dict[tuple[int, str], int]] = {}

    def extend(self, path: str, made: tuple[tuple[str, int], ...]) -> None:
        """Let a file go on behind its end with ``(text, line)`` that macros make in it."""
        if made:
            self._made[path] = made
            self._views.pop(path, None)
            self._texts.pop(path, None)

    def view(self, path: str) -> FileView:
        """The view of a file."""
        self._index.reads.whole.add(path)
        return self._view(path)

    def part(self, path: str, start: int = 0, end: int = 0) -> FileView:
        """The view of a file, for one who looks at no functions but those in a span, at what stands above these, and at
        what is no function."""
        self._index.reads.part(path, start, end)
        return self._view(path)

    def _view(self, path: str) -> FileView:
        found = self._views.get(path)
        if found is None:
            text = self._texts.pop(path, None)
            text = self._index.part(path) if text is None else text
            found = self._views[path] = FileView(path, text, self._made.get(path, ()))
        return found

    def place(self, macro: MacroUse) -> tuple[str, int]:
        """The file and the line that a macro's text stands on."""
        if macro.number is None:
            return macro.file, macro.below
        held = [one.line for one in self._index.stored(macro.file).macros if one.name == macro.name]
        return macro.file, held[macro.number] + macro.below

    def number(self, path: str, event: MacroEvent) -> int | None:
        """Which of the definitions of its name in a file a definition is, from 0; None for one that is none of them."""
        if path not in self._numbers:
            facts, held = self._index.stored(path), Counter()
            found = self._numbers[path] = {}
            for one in facts.macros if facts is not None else ():
                found[one.offset, one.name] = held[one.name]
                held[one.name] += 1
        return self._numbers[path].get((event.offset, event.name))

    def plain(self, path: str, start: int, end: int) -> str:
        """What the file's ``plain`` text has in ``[start, end)``, a definition's body: the rest is not looked at."""
        if path not in self._views and path not in self._made:
            text = self._index.part(path, start, end) if path not in self._texts else self._texts[path]
            self._texts[path] = text
            self._index.reads.part(path, start, end)
            return blank(text[start:end]).plain
        return self.part(path, start, end).blanked.plain[start:end]

    def resolve_include(self, path: str, target: str) -> str | None:
        """The tree's file that an include means, None for one outside it."""
        return self._index.resolve_include(path, target)


def active_spans(
    view: FileView,
    start: int,
    end: int,
    truth: Callable[[tuple[str, ...], int], bool | None],
) -> list[tuple[int, int]]:
    """The parts of ``[start, end)`` that a build reads: directive lines dropped, branches that do not hold dropped.

    Where a condition is unknown, all its branches are read, unless they open or close blocks: then the first one is.
    """
    out: list[tuple[int, int]] = []
    dropped: list[tuple[int, int]] = []
    plain = view.blanked.plain
    conditions = view.conditionals.conditions
    for group in view.conditionals.groups:
        if group.end <= start or group.start >= end or (group.start <= start and group.end >= end):
            continue
        if dropped and dropped[-1][0] <= group.start < dropped[-1][1]:
            continue
        kept = False
        exclusive = len(group.branches) > 1 and _unbalanced(plain, group)
        for branch in group.branches:
            value = truth(conditions[branch.condition], group.start)
            if value is False or (kept and exclusive and value is None):
                dropped.append((branch.start, branch.end))
            else:
                kept = True
    for directive in view.blanked.directives:
        if start <= directive.offset < end:
            dropped.append((directive.offset, directive.end))
    dropped.sort()
    at = start
    for a, b in dropped:
        if a > at:
            out.append((at, min(a, end)))
        at = max(at, b)
        if at >= end:
            break
    if at < end:
        out.append((at, end))
    return out


def _unbalanced(plain: str, group: Group) -> bool:
    return any(
        plain.count(a, branch.start, branch.end) != plain.count(b, branch.start, branch.end)
        for branch in group.branches
        for a, b in ("{}", "()")
    )


def included_within(
    files: Files, view: FileView, start: int, end: int, truth: Callable[[tuple[str, ...], int], bool | None]
) -> list[tuple[int, int, str]]:
    """Files of the tree that a span includes in its midst: ``(offset, end of the line, path)``."""
    out: list[tuple[int, int, str]] = []
    for directive in view.blanked.directives:
        if directive.name != "include" or not start <= directive.offset < end:
            continue
        target = directive.body.strip().strip('"')
        terms = view.conditionals.conditions[view.conditionals.at(directive.offset)]
        found = files.resolve_include(view.path, target) if directive.body.strip().startswith('"') else None
        if found and found != view.path and truth(terms, directive.offset) is not False:
            out.append((directive.offset, directive.end, found))
    return out
