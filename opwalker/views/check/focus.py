"""What of a source the findings about a change can come from: the functions and ops that rules have to look at.

In: a tree, and the lines that were changed. Out: routines and ops. A finding belongs to a change when it, or a step
that it rests on, lies on a changed line. So a function counts that holds such a line, whatever it leads to, and
whatever leads to it: steps go both ways. A changed line outside of all functions (a macro, a class, a declaration)
concerns every function of the files that read it. What a function is compared with is looked for in the whole source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from opwalker.model.check import Draft, Finding
from opwalker.model.ops import Op
from opwalker.model.statements import Routine
from opwalker.notation.regex import Regex
from opwalker.source.changes import Changes

if TYPE_CHECKING:
    from opwalker.views.check.tree import Place, Tree

#: How far below its first line a definition in a binding or a Python function may still be changed.
_LONGEST = 60
#: How far above a declaration its comment may begin, and how long the head of a function is before its name.
_ABOVE = 40
_HEAD = 8
#: What a comment says that excuses a finding on the next line.
_EXCUSE = "opwalker:"
_BLANK = Regex(r"\s*\Z")
_COMMENT = Regex(r"\s*(?://|/\*|\*)")


def concerned(tree: Tree, changes: Changes) -> tuple[list[Routine], list[Op]]:
    """The routines and the ops that a finding about a change can come from, in the tree's order."""
    changed, loose = _changed(tree, changes)
    above = [*changed, *(caller for one in changed for caller in tree.naming(one))]
    held = reached(changed, tree.following) | reached(above, tree.leading)
    files = sorted({file for file, _ in held})
    routines = [one for file in files for one in tree.routines_in(file) if place_of(one) in held]
    ops = [
        op
        for op in tree.every_op
        if _names(op, changes) or _enters(tree, op, held) or (loose and _declares(tree, op, loose))
    ]
    return routines, ops


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
    """The routines that hold a changed line, and those that read one which stands in none; and the changes of the files
    that have such a line, or a comment there."""
    out: list[Routine] = []
    wide: Changes = {}
    loose: Changes = {}
    for file, ranges in changes.items():
        inside = tree.routines_in(file)
        out += [one for one in inside if any(first <= one.end_line and one.line <= last for first, last in ranges)]
        if file in tree.compiled:
            below, code, comment = _outside(tree.text(file).split("\n"), inside, ranges)
            out += below
            wide |= {file: ranges} if code else {}
            loose |= {file: ranges} if code or comment else {}
    return [*out, *(one for file in tree.including(wide) for one in tree.routines_in(file))], loose


def _outside(
    lines: Sequence[str], inside: Sequence[Routine], ranges: Iterable[tuple[int, int]]
) -> tuple[list[Routine], bool, bool]:
    """Of the changed lines in no routine: the routines that their comments stand above, whether there is any code (an
    excuse is no less), and whether there is a comment that stands above something else than a directive."""
    covered = {at for one in inside for at in range(one.line, one.end_line + 1)}
    below: list[Routine] = []
    comment = False
    for first, last in ranges:
        for at in range(first, min(last, len(lines)) + 1):
            if at in covered or _BLANK.match(lines[at - 1]):
                continue
            if not _COMMENT.match(lines[at - 1]) or _EXCUSE in lines[at - 1]:
                return below, True, comment
            start = next((n for n in range(at + 1, len(lines) + 1) if not _is_apart(lines[n - 1])), len(lines) + 1)
            head = [one for one in inside if start <= one.line <= start + _HEAD]
            below += head[:1]
            comment |= not head and start <= len(lines) and not lines[start - 1].lstrip().startswith("#")
    return below, False, comment


def _is_apart(line: str) -> bool:
    return bool(_BLANK.match(line) or _COMMENT.match(line))


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


def _enters(tree: Tree, op: Op, held: Mapping[Place, Routine]) -> bool:
    return any(place_of(routine) in held for _, routine in tree.implementations(op))
