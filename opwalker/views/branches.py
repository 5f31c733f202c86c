"""What holds where a statement stands: the conditions of the branches around it, as expressions.

In: a body. Out: ``Guard`` lists, outermost first. A loop and a lambda say nothing about values; whether a condition can
hold at all is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.owners import lineage
from opwalker.model.body import Block, LocalFact
from opwalker.notation.check_words import in_words
from opwalker.notation.cpp_expression import Expr, negated, parse_expression, print_expression, terms
from opwalker.notation.regex import Regex
from opwalker.notation.said_once import truth_of
from opwalker.notation.some_builds import in_some_builds, is_of_some_builds
from opwalker.views.implied import implied
from opwalker.views.ops import shown_condition

_ELSE_IF = Regex(r"else\s+if\b")
_ONCE = Regex(r"do\b.*\bwhile\s*\(\s*(?:0|false)\s*\)\s*;?", re.DOTALL)
_LEAVES = Regex(r"\breturn\b[^;{}]*;\s*\}?\s*\Z")
#: Blocks around one another of which is kept which they are.
_KEPT = 400
_LABEL_ALONE = Regex(r"\s*(?:case\b[^{};]*|default\s*):\s*\Z")


class Guard(Struct, frozen=True):
    """A condition that holds in a branch. ``offset`` is where it is tested, ``own`` whether the function itself writes
    it and no macro does, ``block`` the branch."""

    condition: Expr
    offset: int
    own: bool
    block: int = -1


class Branches:
    """The branches of one body."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._blocks = body.facts.blocks
        self._guards: dict[int, Guard | None] = body.kept.setdefault(f"guards of {type(self).__name__}", {})
        self._chains: dict[int, list[int]] = body.kept.setdefault("chains of blocks", {})
        self._innermost: dict[int, int] = body.kept.setdefault("innermost blocks", {})

    def chain(self, number: int) -> list[int]:
        """A block and those around it, outermost first; nothing for -1. Not to be changed."""
        found = self._chains.get(number)
        if found is None:
            out: list[int] = []
            while number >= 0:
                out.append(number)
                number = self._blocks[number].parent
            found = out[::-1]
            if len(found) <= _KEPT:
                self._chains[found[-1] if found else -1] = found
        return found

    def holds(self, number: int, offset: int) -> bool:
        """Whether an offset lies in a block (-1: the whole body)."""
        return number < 0 or self._blocks[number].start <= offset < self._blocks[number].end

    def innermost(self, offset: int) -> int:
        """The innermost block around an offset, -1 for none."""
        found = self._innermost.get(offset)
        if found is None:
            found = -1
            for number, block in enumerate(self._blocks):
                if block.start <= offset < block.end:
                    found = number
            self._innermost[offset] = found
        return found

    def together(self, one: int, other: int) -> bool:
        """Whether two blocks can both run in one pass: they lie in no two branches of one choice."""
        # Two branches of one choice stand in the same block: they are where the ways to the blocks part.
        for a, b in zip(self.chain(one), self.chain(other), strict=False):
            if a != b:
                kinds = {self._blocks[a].kind.split(" ")[0], self._blocks[b].kind.split(" ")[0]}
                same = self._blocks[a].condition == self._blocks[b].condition
                return kinds != {"case"} and not (kinds == {"if", "else"} and same)
        return True

    def around(self, number: int, outer: int = -1) -> tuple[Guard, ...]:
        """What holds in a block, as far as it is tested inside the block ``outer``."""
        out: list[Guard] = []
        for inner in self.chain(number):
            if self.holds(inner, self._blocks[outer].start) if outer >= 0 else False:
                continue
            guard = self.guard(inner)
            if guard is not None:
                out.append(guard)
        return tuple(out)

    def plain(self, number: int) -> int:
        """A block, or the one around it where it is only the ``do { … } while (0)`` that macros wrap statements in."""
        while number >= 0 and self._blocks[number].kind == "loop":
            block = self._blocks[number]
            if not _ONCE.fullmatch(self._body.expanded.full[block.start : block.end]):
                break
            number = block.parent
        return number

    def loops(self, number: int, outer: int = -1) -> bool:
        """Whether a loop or lambda lies between a block and the block ``outer`` around it."""
        skip = set(self.chain(outer))
        return any(self._blocks[b].kind in ("loop", "lambda") for b in self.chain(number) if b not in skip)

    def failed(self, number: int, offset: int = -1) -> tuple[tuple[Expr, ...], int]:
        """For the last branch of a chain: what would have led into another one, and the block around the chain.

        ``if (a) … else if (b) … else HERE`` gives ``(a, b)``; a ``default`` its switch's cases; ``if (a) HERE`` gives
        ``(!a,)``. Where branches before ``offset`` in the same block have returned, what leads into one of them.
        Without a condition the first part is empty.
        """
        returned = self._returned(number, offset)
        if returned:
            return returned, number
        if number < 0:
            return (), -1
        block = self._blocks[number]
        if block.kind.startswith("else"):
            conditions: list[Expr] = []
            while block.kind.startswith("else"):
                conditions.insert(0, self._condition(block))
                parent = block.parent
                number, block = (
                    (parent, self._blocks[parent]) if self._continues(parent) else (parent, Block("", 0, 0, None, -1))
                )
            if number >= 0 and self._blocks[number].kind.startswith("else"):
                # A chain that stands in the last branch of another one on the same goes on with it.
                outer, around = self.failed(number)
                subjects = {_subject(part) for one in (*outer, *conditions) for part in terms(one, "||")}
                if outer and len(subjects) == 1 and "" not in subjects:
                    return (*outer, *conditions), around
            # Into a branch of `if (false)` nothing leads.
            return tuple([one for one in conditions if truth_of(one) is not False] or conditions), number
        if block.kind == "case":
            switch = self._switch(number)
            if switch < 0:
                return (), block.parent
            if block.condition is None:
                return tuple(self._tests(switch, number)), self._blocks[switch].parent
            guard = self.guard(number)
            return ((negated(guard.condition),) if guard else ()), self._blocks[switch].parent
        if block.kind.startswith("if"):
            return (negated(self._condition(block)),), block.parent
        return (), number

    def _returned(self, number: int, offset: int) -> tuple[Expr, ...]:
        """The conditions of the branches of a block that return before an offset."""
        full = self._body.expanded.full
        out = []
        for other in self._blocks:
            if other.parent != number or other.start >= offset or not other.kind.startswith("if"):
                continue
            leaves = _LEAVES.search(full, other.start, other.end) if other.condition is not None else None
            only = self._body.only_where(leaves.start(), offset) if leaves else None
            if leaves and only is not None:
                chain = self._chain_conditions(other)
                out += [in_some_builds(one, shown_condition(only) or "") for one in chain] if only else chain
        return tuple(out)

    def _chain_conditions(self, block: Block) -> list[Expr]:
        """The conditions of an ``if`` and of those that its ``else``s go on with, as far as each branch returns."""
        full = self._body.expanded.full
        out = [self._condition(block)]
        while True:
            other = next(
                (
                    n
                    for n, b in enumerate(self._blocks)
                    if b.kind.startswith("else") and b.condition == block.condition and b.parent == block.parent
                ),
                None,
            )
            if other is None or not self._continues(other):
                return out
            block = next(b for b in self._blocks if b.parent == other and b.kind.startswith("if"))
            if not _LEAVES.search(full[block.start : block.end]):
                return out
            out.append(self._condition(block))

    def _continues(self, number: int) -> bool:
        """Whether a block is an ``else`` that only holds the next ``if`` of its chain."""
        if number < 0 or not self._blocks[number].kind.startswith("else"):
            return False
        return bool(_ELSE_IF.match(self._body.expanded.full, self._blocks[number].start))

    def _condition(self, block: Block) -> Expr:
        if block.condition is None:
            return Expr("raw", "")
        written = parse_expression(self._body.written(block.condition).strip())
        if written.kind == "raw":
            written = parse_expression(self._body.text(block.condition).strip())
        return self.meant(written, block.condition[0])

    def meant(self, expr: Expr, offset: int, steps: int = 0) -> Expr:
        """A condition with its bare names said in full: an optional is given, a pointer is not null, a truth value
        that never changes is what it is made from, where that has words."""
        if expr.kind == "unary" and expr.text == "!":
            return negated(self.meant(expr.parts[0], offset, steps))
        if expr.kind == "binary" and expr.text in ("&&", "||"):
            return replace(expr, parts=tuple(self.meant(part, offset, steps) for part in expr.parts))
        if expr.kind != "name" or "::" in expr.text or steps > 4:
            return expr
        held = [f for f in self._body.locals_at(expr.text, offset) if f.type not in ("using", "namespace")]
        if len(held) == 1:
            kind, value = held[0].type, held[0].value
            if "bool" in kind.split() and value is not None and not self._body.assigns.get(expr.text):
                inner = self.meant(parse_expression(self._body.text(value)), held[0].start, steps + 1)
                return inner if in_words(inner) else expr
        else:
            function = self._body.function
            parameters = function.parameters if function is not None and not held else ()
            kind = next((p.type for p in parameters if p.name == expr.text), "")
        if "optional" in kind:
            return Expr("call", "", (Expr("member", ".has_value", (expr,)),))
        return Expr("binary", "!=", (expr, Expr("name", "nullptr"))) if kind.rstrip().endswith("*") else expr

    def guard(self, number: int) -> Guard | None:
        """The condition of one block itself; None for one that tests nothing."""
        if number not in self._guards:
            self._guards[number] = self._read_guard(number)
        return self._guards[number]

    def _read_guard(self, number: int) -> Guard | None:
        block = self._blocks[number]
        if block.kind == "case":
            return self._case_guard(number)
        if block.kind not in ("if", "else", "if constexpr", "else constexpr") or block.condition is None:
            return None
        condition = self._condition(block)
        if block.kind.startswith("else"):
            condition = negated(condition)
        return Guard(condition, block.condition[0], self._own(block), number)

    def _case_guard(self, number: int) -> Guard | None:
        block, switch = self._blocks[number], self._switch(number)
        if switch < 0 or self._blocks[switch].condition is None:
            return None
        at = (block.condition or self._blocks[switch].condition)[0]
        if block.condition is None:
            tests = self._tests(switch, number)
            return Guard(negated(_any(tests)), at, self._own(block), number) if tests else None
        tests = [self._test(switch, label) for label in (*self._fallen(switch, number), number)]
        return Guard(_any(tests), at, self._own(block), number)

    def _switch(self, number: int) -> int:
        parent = self._blocks[number].parent
        while parent >= 0 and self._blocks[parent].kind != "switch":
            if self._blocks[parent].kind in ("loop", "lambda"):
                return -1
            parent = self._blocks[parent].parent
        return parent

    def _tests(self, switch: int, without: int) -> list[Expr]:
        """The tests of all labels of a switch."""
        return [
            self._test(switch, number)
            for number, block in enumerate(self._blocks)
            if block.kind == "case" and block.condition is not None and number != without
            if self._switch(number) == switch
        ]

    def _test(self, switch: int, label: int) -> Expr:
        value = parse_expression(self._body.text(self._blocks[label].condition))
        return Expr("binary", "==", (self._condition(self._blocks[switch]), value))

    def _fallen(self, switch: int, number: int) -> list[int]:
        """Labels directly above a case, with no statement of their own."""
        full = self._body.expanded.full
        out: list[int] = []
        for other in range(number - 1, -1, -1):
            block = self._blocks[other]
            if block.kind != "case" or self._switch(other) != switch:
                continue
            if block.condition is None or not _LABEL_ALONE.match(full[block.start : block.end]):
                break
            out.insert(0, other)
        return out

    def _own(self, block: Block) -> bool:
        if block.condition is None:
            return not self._body.expanded.origin(block.start)[2]
        origin = self._body.expanded.origin
        return not origin(block.condition[0])[2] and not origin(block.start)[2]


def differs(body: Body, held: LocalFact) -> bool:
    """Whether one use of a macro makes a local of the name several times, with different values, a branch each: what is
    written behind it is compiled with each of them."""
    # The name may be the use's own argument; the value is the macro's.
    if held.value is None or not (use := lineage(body, held.value[0])):
        return False
    others = [one for one in body.locals.get(held.name, ()) if one.start != held.start and one.value is not None]
    return any(body.text(one.value) != body.text(held.value) and lineage(body, one.value[0]) == use for one in others)


def compiled_under(body: Body, offset: int, anchors: Sequence[int]) -> tuple[Guard, ...]:
    """The preprocessor condition under which a place stands while one of ``anchors`` may not, as a guard of the place;
    without any, while its function does not."""
    terms: dict[str, None] = {}
    for at in anchors or (0,):
        only = body.only_where(offset, at)
        terms.update(dict.fromkeys(body.only_where(offset, 0) or () if only is None else only))
    return (Guard(Expr("name", f"#if {shown_condition(tuple(terms))}"), offset, True),) if terms else ()


def needed(guards: Sequence[Guard]) -> list[Guard]:
    """The guards without those that others say more exactly: ``n != 1`` beside ``n == 2``, ``n > 0`` beside
    ``n > 8``. What holds in some builds alone says nothing of the others; where it goes without saying, it does in all
    of them."""
    open_ = [guard for guard in guards if is_of_some_builds(guard.condition)]
    if not open_:
        return _said_once(guards)
    sure = [guard for guard in guards if guard not in open_]
    kept = _said_once(sure)
    for guard in open_:
        plain = replace(guard, condition=guard.condition.parts[0])
        if plain in _said_once([*sure, plain]):
            kept.append(guard)
    return sorted(kept, key=guards.index)


def _said_once(guards: Sequence[Guard]) -> list[Guard]:
    equal: dict[str, set[str]] = {}
    for guard in guards:
        tests = terms(guard.condition, "||")
        if len(subjects := {_subject(test) for test in tests}) == 1 and "" not in subjects:
            equal.setdefault(subjects.pop(), set()).update(print_expression(test.parts[1]) for test in tests)
    kept = [
        guard
        for guard in guards
        if guard.condition.kind != "raw"
        and truth_of(guard.condition) is not True
        and not all(_is_said(test, equal) for test in terms(guard.condition, "&&"))
    ]
    gone = implied([guard.condition for guard in kept]) if len(kept) > 1 else set()
    return [guard for number, guard in enumerate(kept) if number not in gone]


def _is_said(test: Expr, equal: dict[str, set[str]]) -> bool:
    """Whether an inequality follows from what its subject is known to equal."""
    if test.kind != "binary" or test.text != "!=" or test.parts[1].kind not in ("number", "name", "string"):
        return False
    values = equal.get(print_expression(test.parts[0]))
    return values is not None and print_expression(test.parts[1]) not in values


def _subject(test: Expr) -> str:
    """What an equality tests; empty for another condition."""
    return print_expression(test.parts[0]) if test.kind == "binary" and test.text == "==" else ""


def _any(tests: list[Expr]) -> Expr:
    out = tests[0]
    for test in tests[1:]:
        out = Expr("binary", "||", (out, test))
    return out


def any_of(tests: tuple[Expr, ...]) -> Expr:
    """The condition that one of several holds."""
    return _any(list(tests))
