"""Variables that are changed after their declaration: whether, where, and what they are worth behind a change.

In: a body with its accesses. Out: for a variable at an offset, its value where every change on the way is certain to
have been made, else the key under which it stands for itself: two uses with one key see the same value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opwalker.expand.bodies import Body
from opwalker.expand.values import Number, Pointer, Several, Unread, Value, combined, moved
from opwalker.model.access import Change, Loop
from opwalker.model.body import Block, LocalFact
from opwalker.notation.cpp_expression import negated, parse_expression, print_expression
from opwalker.notation.polynomial import Poly, poly

if TYPE_CHECKING:
    from opwalker.expand.value_reader import ValueReader

_OPERATORS = {"+=": "+", "-=": "-", "*=": "*", "/=": "/", "%=": "%", "<<=": "<<", ">>=": ">>", "&=": "&"}
_MAX_OPTIONS = 4
_GUARD = r"\b{}\s*(?:<|>|<=|>=)|(?:<|>|<=|>=)\s*{}\b"


class Changes:
    """The changes of one body, by variable."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._by_name: dict[str, list[Change]] = {}
        for change in body.accesses.changes:
            self._by_name.setdefault(change.target, []).append(change)
        self._loops = body.accesses.loops
        self._conditions: str | None = None

    def any_of(self, name: str) -> bool:
        """Whether a variable, or a part of it, is changed anywhere."""
        part = re.compile(rf"{re.escape(name)}\s*(?:\.|\[|->|\Z)")
        return any(part.match(target) for target in self._by_name)

    def is_guarded(self, name: str) -> bool:
        """Whether a condition compares a variable."""
        if self._conditions is None:
            facts = self._body.accesses
            spans = [b.condition for b in self._body.facts.blocks if b.condition] + [
                one.condition for one in facts.leaves
            ]
            spans += [loop.condition for loop in facts.loops if loop.condition]
            self._conditions = " ; ".join(self._body.expanded.text[a:b] for a, b in spans)
        word = re.escape(name)
        return bool(re.search(_GUARD.format(word, word), self._conditions))

    def _of(self, name: str, local: LocalFact | None) -> list[Change]:
        """The changes to the variable that a local declares (None: a parameter)."""
        found = []
        for change in self._by_name.get(name, ()):
            meant = [f for f in self._body.locals_at(name, change.start) if f.start <= change.start]
            if (meant[-1].start if meant else -1) == (local.start if local is not None else -1):
                found.append(change)
        return found

    def after(self, name: str, local: LocalFact | None, at: int) -> bool:
        """Whether a variable is changed at an offset or behind it."""
        return any(c.start >= at for c in self._of(name, local))

    def _counted(self, name: str, local: LocalFact | None, at: int) -> list[Change]:
        """Changes that stand before an offset; a loop's step is not before its condition and body."""
        steps = [
            loop.update for loop in self._loops if loop.update and loop.start <= at < loop.end and at >= loop.update[0]
        ]
        return [
            c for c in self._of(name, local) if c.start < at and not any(step[0] <= c.start < step[1] for step in steps)
        ]

    def key(self, name: str, local: LocalFact | None, at: int) -> tuple:
        """What tells two values of one variable apart: the changes before, and the loop around that changes it."""
        around = [
            loop.start
            for loop in self._loops
            if loop.start <= at < loop.end and any(loop.start <= c.start < loop.end for c in self._of(name, local))
        ]
        return len(self._counted(name, local, at)), min(around, default=-1)

    def loop_of(self, name: str, local: LocalFact | None, at: int) -> Loop | None:
        """The ``for`` loop around an offset that steps a variable, if only that loop's step changes it within."""
        for loop in sorted(self._loops, key=lambda one: one.start, reverse=True):
            if loop.update is None or not loop.start <= at < loop.end:
                continue
            inside = [c for c in self._of(name, local) if loop.start <= c.start < loop.end]
            stepped = [c for c in inside if loop.update[0] <= c.start < loop.update[1]]
            started = [c for c in inside if loop.init and loop.init[0] <= c.start < loop.init[1]]
            if stepped:
                return loop if len(stepped) + len(started) == len(inside) else None
        return None

    def of_loop(self, name: str, local: LocalFact, at: int) -> bool:
        """Whether a variable is a loop's counter at an offset."""
        return self.loop_of(name, local, at) is not None

    def applied(self, reader: ValueReader, name: str, local: LocalFact | None, start: Value, at: int) -> Value | None:
        """The value at an offset with the changes before it made; None where a change may or may not be made."""
        changes = self._of(name, local)
        if not changes:
            return start
        for loop in self._loops:
            if _anew(loop, local) or not loop.start <= at < loop.end:
                continue
            if any(loop.start <= c.start < loop.end for c in changes):
                return None
        before = [c for c in changes if _made_before(c, at) and not self._apart(c.start, at)]
        # What is certainly set anew does not depend on what was before.
        anew = [n for n, c in enumerate(before) if c.operator == "=" and self._certain(c, local, at)]
        value = start
        for change in before[anew[-1] if anew else 0 :]:
            if not self._certain(change, local, at):
                return None
            made = self._made(reader, change, value)
            if isinstance(made, Unread):
                return made if isinstance(value, Unread) else None
            value = made
        return value

    def chosen(self, reader: ValueReader, local: LocalFact, at: int) -> Value:
        """A pointer that branches set, each of them once: one of several addresses."""
        changes = [c for c in self._of(local.name, local) if _made_before(c, at)]
        later = [c for c in self._of(local.name, local) if not _made_before(c, at)]
        options: list[tuple[str, Pointer]] = []
        for change in changes:
            if change.operator != "=" or change.value is None or later or self._looped(change, at):
                return Unread(f"the pointer `{local.name}` is moved")
            made = reader.pointer(reader.span(change.value))
            if not isinstance(made, Pointer):
                return made
            options.append((self._branch(change, at), made))
        if len(options) == 1 and not options[0][0]:
            return options[0][1]
        if not options or len(options) > _MAX_OPTIONS or len({under for under, _ in options}) != len(options):
            return Unread(f"the pointer `{local.name}` is set in several ways")
        return Several(tuple(options))

    def set_by_branches(self, reader: ValueReader, local: LocalFact, at: int) -> tuple[tuple[str, Poly], ...]:
        """The numbers that branches give a variable without a value of its own, each with its branch; nothing where
        that is not all that happens to it."""
        changes = self._of(local.name, local)
        if local.value is not None or not 1 < len(changes) <= _MAX_OPTIONS:
            return ()
        out: dict[str, Poly] = {}
        for change in changes:
            plain = change.operator == "=" and change.value is not None and _made_before(change, at)
            if not plain or self._looped(change, at):
                return ()
            made, under = reader.span(change.value), self._branch(change, at)
            if not isinstance(made, Number) or not under or under in out:
                return ()
            out[under] = made.poly
        return tuple((_positive(under), value) for under, value in out.items())

    def _looped(self, change: Change, at: int) -> bool:
        return any(one.start <= change.start < one.end and not one.start <= at < one.end for one in self._loops)

    def _apart(self, one: int, other: int) -> bool:
        """Whether two offsets stand in the two branches of one ``if``."""
        blocks = [b for b in self._body.facts.blocks if b.condition and b.kind.startswith(("if", "else"))]
        sides = [[b for b in blocks if b.start <= at < b.end] for at in (one, other)]
        return any(
            a.condition == b.condition and a.parent == b.parent and a.kind[:2] != b.kind[:2]
            for a in sides[0]
            for b in sides[1]
        )

    def _branch(self, change: Change, at: int) -> str:
        """The condition of the innermost branch that a change stands in and an offset does not."""
        found = ""
        for block in self._body.facts.blocks:
            if block.start <= change.start < block.end and not block.start <= at < block.end and block.condition:
                text = self._body.text(block.condition)
                found = f"!({text})" if block.kind.startswith("else") else text
        return found

    def _certain(self, change: Change, local: LocalFact | None, at: int) -> bool:
        """Whether a change has been made once the offset is reached: its block holds the offset, and no loop."""
        within = (loop for loop in self._loops if loop.start <= change.start < loop.end)
        if not all(_anew(loop, local) and loop.start <= at < loop.end for loop in within):
            return False
        return all(
            block.start <= at < block.end or self._compiled_with(block, at)
            for block in self._body.facts.blocks
            if block.start <= change.start < block.end
        )

    def _compiled_with(self, block: Block, at: int) -> bool:
        """Whether a block is compiled wherever what stands at an offset is: both are cut by the same condition."""
        if not block.kind.endswith("constexpr") or block.condition is None:
            return False
        text = self._body.text(block.condition)
        return any(
            other.start <= at < other.end and other.kind == block.kind and self._body.text(other.condition) == text
            for other in self._body.constexpr_blocks
        )

    @staticmethod
    def _made(reader: ValueReader, change: Change, value: Value) -> Value:
        if change.value is None:
            other: Value = Number(poly(1))
            operator = "+" if change.operator == "++" else "-"
        else:
            other = reader.span(change.value)
            if change.operator == "=":
                return other
            operator = _OPERATORS.get(change.operator, "")
        if isinstance(value, Unread) or isinstance(other, Unread) or not operator:
            return Unread(f"`{change.target}` is changed")
        if isinstance(value, Number) and isinstance(other, Number):
            return combined(operator, value.poly, other.poly)
        return moved(operator, value, other)


def _positive(condition: str) -> str:
    """A condition as code, that of an ``else`` (``!(a == b)``) without the sign."""
    opposite = condition.startswith("!(") and condition.endswith(")")
    expr = parse_expression(condition[2:-1] if opposite else condition)
    return print_expression(negated(expr) if opposite else expr)


def _anew(loop: Loop, local: LocalFact | None) -> bool:
    """Whether a variable is another one in each pass of a loop."""
    return local is not None and loop.body[0] <= local.start < loop.body[1]


def _made_before(change: Change, at: int) -> bool:
    """Whether a change stands before an offset; in its own new value it has not been made."""
    return change.start < at and not (change.value is not None and change.value[0] <= at < change.value[1])
