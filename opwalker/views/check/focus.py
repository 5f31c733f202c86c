"""What of a source the findings about a change can come from: the functions and ops that rules have to look at.

In: a tree, and the lines that were changed. Out: routines and ops. A finding belongs to a change when it, or a step
that it rests on, lies on a changed line. So a function counts that holds such a line, and as far as a rule's findings
spread, whatever it leads to, and whatever leads to it. A changed line outside of all functions concerns those that name
what is declared there (a macro, a class, a function), or every function of the files that read it where that is not
known. What a function is compared with is looked for in the whole source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from opwalker.model.check import Draft, Finding, Spread
from opwalker.model.ops import Op
from opwalker.model.statements import Routine
from opwalker.source.changes import Changes
from opwalker.views.check.standing import Standing, naming_any, standing

if TYPE_CHECKING:
    from opwalker.views.check.tree import Place, Tree

    Concerned = tuple[Sequence[Routine], Sequence[Op]]

#: How far below its first line a definition in a binding or a Python function may still be changed.
_LONGEST = 60
#: How far above a declaration its comment may begin.
_ABOVE = 40


class Focus:
    """What of a tree findings about a change can come from, by how far they spread (``model.check.Spread``)."""

    def __init__(self, tree: Tree, changes: Changes) -> None:
        self._tree = tree
        self._changes = changes
        self._changed, self._loose = _changed(tree, changes)
        self._known: dict[str, Concerned] = {}

    def of(self, spread: Spread) -> Concerned:
        """The routines and the ops that findings of such a spread can come from, in the tree's order."""
        if spread not in self._known:
            tree, held = self._tree, self._held(spread)
            files = sorted({file for file, _ in held})
            routines = [one for file in files for one in tree.routines_in(file) if place_of(one) in held]
            entered = {name for place in held for name in tree.entries.get(place, ())}
            ops = [op for op in tree.every_op if op.name in self._named or op.name in entered]
            self._known[spread] = routines, ops
        return self._known[spread]

    def steps_alone(self, one: Draft) -> bool:
        """Whether a draft is about the change by what it rests on, and not by its own place."""
        return touched(self._changes, one) and not touched(self._changes, replace(one, related=()))

    def _held(self, spread: Spread) -> Mapping[Place, Routine]:
        own = {place_of(one): one for one in self._changed}
        if spread == "own":
            return own
        if spread == "named":
            return own | {place_of(one): one for one in self._naming}
        if spread == "up":
            return self._below
        return self._above if spread == "down" else self._below | self._above

    @cached_property
    def _naming(self) -> list[Routine]:
        return [caller for one in self._changed for caller in self._tree.naming(one)]

    @cached_property
    def _below(self) -> dict[Place, Routine]:
        return reached(self._changed, self._tree.following)

    @cached_property
    def _above(self) -> dict[Place, Routine]:
        return reached([*self._changed, *self._naming], self._tree.leading)

    @cached_property
    def _named(self) -> frozenset[str]:
        """The ops that are named, or may be declared, by what was changed."""
        held = (
            op.name
            for op in self._tree.every_op
            if _names(op, self._changes) or (self._loose and _declares(self._tree, op, self._loose))
        )
        return frozenset(held)


def touched(changes: Changes, one: Finding | Draft) -> bool:
    """Whether a finding, or a step of what it rests on, lies on a changed line."""
    places = [(one.file, one.line, one.end_line or one.line), *((at.file, at.line, at.line) for at in one.related)]
    return any(first <= end and line <= last for file, line, end in places for first, last in changes.get(file, ()))


def place_of(routine: Routine) -> Place:
    """What a routine is known by."""
    return routine.file, routine.line


def reached(start: Iterable[Routine], steps: Callable[[Routine], Iterable[Routine]]) -> dict[Place, Routine]:
    """What routines lead to by some steps, themselves among it."""
    out = {place_of(one): one for one in start}
    pending = list(out.values())
    while pending:
        for one in steps(pending.pop()):
            if place_of(one) not in out:
                out[place_of(one)] = one
                pending.append(one)
    return out


def _changed(tree: Tree, changes: Changes) -> tuple[list[Routine], Changes]:
    """The routines that hold a changed line, and those that name what is declared on one which stands in none; and the
    changes of the files that have such a line, or a comment there."""
    out: list[Routine] = []
    wide: Changes = {}
    loose: Changes = {}
    named: dict[str, Standing] = {}
    for file, ranges in changes.items():
        inside = tree.routines_in(file)
        out += [one for one in inside if any(first <= one.end_line and one.line <= last for first, last in ranges)]
        if file in tree.compiled:
            found = standing(tree, file, inside, ranges)
            out += found.routines
            wide |= {file: ranges} if found.wide else {}
            loose |= {file: ranges} if found.comment else {}
            named |= {file: found} if found.names and not found.wide else {}
    out += (one for file in tree.including(wide) for one in tree.routines_in(file))
    out += naming_any(tree, named)
    return out, loose


def _names(op: Op, changes: Changes) -> bool:
    """Whether what names an op is changed: a definition, a registration, a fake, a caller in Python."""
    return any(
        first <= one.line + _LONGEST and one.line <= last
        for one in (*op.defs, *op.impls, *op.fake, *op.python)
        for first, last in changes.get(one.file, ())
    )


def _declares(tree: Tree, op: Op, changes: Changes) -> bool:
    """Whether a changed line may declare what an op is bound to."""
    names = {one.function.rsplit("::", 1)[-1] for one in op.impls if one.function}
    return any(
        first <= one.line + _LONGEST and one.line <= last + _ABOVE
        for name in names
        for file, one in tree.functions(name)
        for first, last in changes.get(file, ())
    )
