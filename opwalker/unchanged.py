"""Whether what an answer was read from still says the same, and where its lines have gone.

In: the ``Trace`` of an answer, and the C++ files that have changed since, each with its facts and its text then and
now. Out: for each file, where its lines are now; or None where anything that the answer was read from has changed, or
may have. What is compared are facts and texts, never what was made of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cached_property, partial
from typing import Any

from msgspec import Struct

from opwalker.facts.cpp_lines import Lines, read_lines
from opwalker.link.moved import Move
from opwalker.link.traced import INCLUDES, Span, Trace
from opwalker.model.cpp import CppFacts, Function

#: What files declare, by field of their facts.
_BY_NAME = (
    "functions", "macros", "classes", "enums", "aliases", "variables", "invocations", "instantiations",
    "declared_classes",
)  # fmt: skip
#: Fields that say where something stands.
_PLACES = frozenset("offset end body_offset line start_line end_line body_start body_end".split())
#: Kinds of the store's table of names that no lookup by name goes by.
_OTHER_NAMES = frozenset(("named", "code", "problem"))
_LINES = ("line", "start_line", "end_line")


class Version(Struct, frozen=True):
    """One state of a file: ``names`` are all ``(name, kind)`` that a lookup finds in it."""

    facts: CppFacts
    text: str
    names: frozenset[tuple[str, str]]


class Change:
    """A file that has changed: compared as far as is asked for, each comparison once."""

    def __init__(self, path: str, then: Version, now: Version) -> None:
        self.path = path
        self._then = then
        self._now = now

    @cached_property
    def names(self) -> frozenset[tuple[str, str]]:
        """The names that came or went."""
        return frozenset(row for row in self._then.names ^ self._now.names if row[1] not in _OTHER_NAMES)

    @cached_property
    def includes(self) -> bool:
        """Whether the file includes something else."""
        then, now = ([one.target for one in version.facts.includes] for version in (self._then, self._now))
        return then != now

    @cached_property
    def _stretch(self) -> tuple[int, int]:
        """What of the earlier text has changed: the rest before and behind it is the same."""
        then, now = self._then.text, self._now.text
        most = min(len(then), len(now))
        front = _longest(most, lambda length: then[:length] == now[:length])
        back = _longest(most - front, lambda length: then[len(then) - length :] == now[len(now) - length :])
        return front, len(then) - back

    def spans(self, then: Iterable[Span]) -> tuple[Span, ...]:
        """Where spans of the earlier text are now; one that what has changed begins or ends in holds all of that."""
        begin, end = self._stretch
        further = len(self._now.text) - len(self._then.text)
        return tuple(
            (
                a if a <= begin else a + further if a >= end else begin,
                b if b <= begin else max(b, end) + further,
            )
            for a, b in then
        )

    @cached_property
    def _blank(self) -> bool:
        """Whether nothing but blanks has changed."""
        begin, end = self._stretch
        now = self._now.text[begin : len(self._now.text) - len(self._then.text) + end]
        return not (now.strip() or self._then.text[begin:end].strip())

    @cached_property
    def moved(self) -> Move | None:
        """Where lines are now, if nothing else has changed."""
        return _move(read_lines(self._then.text), read_lines(self._now.text))

    def looked_up(self, asked: Set[str], exact: bool) -> Move | None:
        """Where the lines of what some names mean in the file are now, if it is the same; ``exact`` wants it to stand
        at the same places."""
        moves: dict[int, int | None] = {}
        for kind in _BY_NAME:
            then = [one for one in getattr(self._then.facts, kind) if one.name in asked]
            now = [one for one in getattr(self._now.facts, kind) if one.name in asked]
            if len(then) != len(now):
                return None
            for before, after in zip(then, now, strict=True):
                if self._said(self._then, before) != self._said(self._now, after):
                    return None
                if exact and before != after:
                    return None
                for old, new in _lines_of(before, after):
                    moves[old] = new if moves.get(old, new) == new else None
        return moves.get

    def but_unread(self, spans: Iterable[Span], near: bool, asked: Set[str]) -> Move | None:
        """Where lines are now, if nothing has changed but what was not read of functions: of those looked up by name,
        what stands within, if it is in none of the spans; of others, all. Where ``near``, any that owns something was
        read."""
        from opwalker.facts.cpp_unread import ALL, HEAD, NOTHING, unread

        spans = tuple(spans)
        begin, end = self._stretch
        if any(a < begin and end < b for a, b in spans) and not self._blank:
            return None
        entered = {
            key
            for key, function in _numbered(self._then.facts)
            if any(a < function.body_end and function.offset < b for a, b in spans)
        }
        sides = []
        for version, read in ((self._then, spans), (self._now, ())):
            keys = {id(function): key for key, function in _numbered(version.facts)}

            def what(function: Function, version: Version = version, keys: dict = keys) -> int:
                if keys[id(function)] in entered:
                    return ALL
                if near and _owns(version.text[function.offset : function.body_end]):
                    return ALL
                return HEAD if function.name in asked else NOTHING

            left = unread(version.facts, version.text, what, read)
            if left is None:
                return self.moved
            sides.append((version, left, read_lines(version.text, left)))
        (_, gone, then), (_, come, now) = sides
        if then.digest != now.digest or self._then.facts.conditions != self._now.facts.conditions:
            return None
        before, after = self._kept(self._then, gone), self._kept(self._now, come)
        if len(before) != len(after):
            return None
        for (one, said), (other, is_said) in zip(before, after, strict=True):
            if said != is_said or any(then.number(old) != now.number(new) for old, new in _lines_of(one, other)):
                return None
        return _move(then, now)

    def _kept(self, version: Version, left: list[tuple[int, int]]) -> list[tuple[Any, tuple]]:
        """What a file declares on other lines than those left out, in order."""
        out = []
        for kind in (*_BY_NAME, "includes"):
            for one in getattr(version.facts, kind):
                if not any(first <= one.line <= last for first, last in left):
                    out.append((one, (kind, self._said(version, one))))
        return out

    @staticmethod
    def _said(version: Version, entry: Any) -> tuple:
        """What an entry says, wherever it stands."""
        out: list[Any] = []
        for name in entry.__struct_fields__:
            value = getattr(entry, name)
            if name == "condition":
                out.append(version.facts.conditions[value])
            elif name == "parameters" and value and not isinstance(value[0], str):
                out.append(tuple((p.type, p.name, p.default) for p in value))
            elif name not in _PLACES:
                out.append(value)
        return (*out, bool(getattr(entry, "body_end", 0)))


def moves_of(
    trace: Trace,
    changes: Iterable[Change],
    made: Mapping[str, str],
    made_names: Callable[[str], Set[str]],
    exact: bool = False,
) -> dict[str, Move] | None:
    """Where the lines of each changed file are now, as far as an answer with ``trace`` is about them; None where it may
    be another one. ``made`` stands for what macros make now, by file, ``made_names`` gives the names of it; with
    ``exact`` nothing that the answer was read from may have moved."""
    asked, whole, parts, then = set(trace.asked), set(trace.whole), dict(trace.parts), dict(trace.made)
    if then.get("") != made.get(""):
        return None
    for path in {path for path in {*then, *made} if path and then.get(path) != made.get(path)}:
        if path in whole or path in parts or not asked.isdisjoint(made_names(path)):
            return None
    told = asked.union(trace.met)
    kinds = set(trace.kinds)
    moves: dict[str, Move] = {}
    for change in changes:
        path = change.path
        if change.names and trace.any_name:
            return None
        if any(name in told or kind in kinds for name, kind in change.names):
            return None
        if INCLUDES in kinds and change.includes:
            return None
        if path in whole or path in parts:
            # Places behind the end of the file stand for what macros make in it.
            if exact or path in then or path in made:
                return None
            move = change.moved if path in whole else change.but_unread(parts[path], path in trace.near, asked)
        else:
            move = change.looked_up(asked, exact)
        if move is None:
            return None
        moves[path] = move
    return moves


def _numbered(facts: CppFacts) -> Iterator[tuple[tuple[str, int], Function]]:
    """Functions by name and number among those of the name."""
    counts: dict[str, int] = {}
    for function in facts.functions:
        number = counts[function.name] = counts.get(function.name, -1) + 1
        yield (function.name, number), function


def _owns(text: str) -> bool:
    from opwalker.facts.cpp_text import blank
    from opwalker.notation.families import owns

    return owns(blank(text).code)


def _lines_of(then: Any, now: Any) -> Iterator[tuple[int, int]]:
    for name in _LINES:
        if hasattr(then, name):
            yield getattr(then, name), getattr(now, name)


def _longest(most: int, holds: Callable[[int], bool]) -> int:
    """The greatest number up to ``most`` for which something holds that holds for all smaller ones."""
    return bisect_left(range(1, most + 1), True, key=lambda length: not holds(length))


def _move(then: Lines, now: Lines) -> Move | None:
    return partial(_now, then, now) if then.digest == now.digest else None


def _now(then: Lines, now: Lines, line: int) -> int | None:
    """Where a line of a file is that has changed in nothing but where its lines stand."""
    number = then.number(line)
    return now.line(number) if number is not None else None
