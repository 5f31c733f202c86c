"""The conditions that a place of a kernel, or of a function that it calls, stands under, as code.

In: a reader of values and a place in its body. Out: conditions of the branches around it and of the returns before it,
in a loop also of what goes on with its next pass.
Parameters of a helper are shown as what they are given. What a kernel turns threads away by at its start is left out:
it is told of the threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from opwalker.expand.bodies import Body
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.value_bounds import leaving_at
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import Number, Pointer, shown
from opwalker.model.body import ExitFact
from opwalker.notation.cpp_expression import Expr, changed, name, negated, parse_expression, print_expression, terms
from opwalker.notation.regex import Regex
from opwalker.views.branches import Guard, needed
from opwalker.views.returns import Returns
from opwalker.views.short_circuit import tested_before

#: A value that stands for a parameter in a condition is at most so long.
_SHORT = 60
#: Operators that give a number, which a condition compares with zero.
_ARITHMETIC = frozenset("% & + - * / | ^ >> <<".split())
_SAME = Regex(r"(?:std::)?is_same_v<(\w+), [\w:]+>")
_NAME = Regex(r"(?<![\w.:>])[A-Za-z_]\w*")
#: Before a condition that a helper tests of its own.
_OWN = "\0"
_BARE_RETURN = Regex(r"\{?\s*return\s*;\s*\}?\Z")


class _Passed(Returns):
    """The branches of one body with what leaves it, or a pass of a loop in it, early."""

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        going_on = {one.condition: leaving_at(body, one) for one in body.accesses.leaves if one.kind == "continue"}
        for number, block in enumerate(self._blocks if going_on else ()):
            if block.condition in going_on and block.kind.startswith("if"):
                start = going_on[block.condition]
                self._out.setdefault(number, []).append(ExitFact("continue", start, start, None, number))
        if going_on:
            self._left, self._holds, self._places = {}, {}, {}


class Conditions:
    """Reads conditions; the branches of each body are read once."""

    def __init__(self) -> None:
        self._branches: dict[tuple, Returns] = {}

    def of(self, reader: ValueReader, at: int) -> tuple[str, ...]:
        """The conditions that a place stands under, outermost first."""
        body = reader.body
        branches = self._of(body)
        block = branches.innermost(at)
        past = [one for one in branches.past(block, at) if not _only_returns(reader, one)]
        around = branches.around(block)
        texts = [_condition(reader, one.condition, at) for one in needed([*past, *around])]
        for one in around:
            if one.condition.kind == "raw" and one.block >= 0:
                held = body.facts.blocks[one.block]
                text = body.written(held.condition) if held.condition is not None else ""
                texts.append(f"!({text})" if held.kind.startswith("else") else text)
        return tuple(text for text in dict.fromkeys(texts) if text not in ("true", "1", ""))

    def at_run_time(self, reader: ValueReader, at: int) -> tuple[str, ...]:
        """The conditions of a place that are tested when the kernel runs, outermost first; of a place in a helper those
        that speak of nothing but what the helper is given, and others with a mark (``is_own``)."""
        cut = self._cut(reader, at)
        short = (_condition(reader, parse_expression(one), at) for one in tested_before(reader.body.expanded.text, at))
        texts = (one for one in (*self.of(reader, at), *short) if one not in cut and not _SAME.search(one))
        return (*_told(reader, texts), *(one for one in _told(reader, cut) if is_own(one)))

    def compiled(self, reader: ValueReader, at: int) -> tuple[str, ...]:
        """The conditions that a place is compiled under, outermost first: those of ``if constexpr`` around it."""
        return tuple(one for one in _told(reader, self._cut(reader, at)) if not is_own(one))

    def _cut(self, reader: ValueReader, at: int) -> tuple[str, ...]:
        branches = self._of(reader.body)
        blocks = reader.body.facts.blocks
        around = branches.around(branches.innermost(at))
        constant = [one for one in around if one.block >= 0 and blocks[one.block].kind.endswith("constexpr")]
        texts = [_condition(reader, one.condition, at) for one in needed(constant) if one.condition.kind != "raw"]
        same = {one[1] for text in texts if (one := _SAME.fullmatch(text))}
        # Of one type, that it is no other one goes without saying.
        return tuple(
            t for t in dict.fromkeys(texts) if not (t[0] == "!" and (o := _SAME.fullmatch(t[1:])) and o[1] in same)
        )

    def _of(self, body: Body) -> Returns:
        found = self._branches.get(body.key)
        if found is None:
            found = self._branches[body.key] = _Passed(body)
        return found

    def chosen(self, reader: ValueReader, at: int, base: str) -> str | None:
        """The condition of the ``c ? a : b`` that an access to ``base`` stands in one side of alone."""
        body = reader.body
        for condition, yes, no in reversed(body.facts.ternaries):
            sides = [start <= at < end for start, end in (yes, no)]
            if not any(sides):
                continue
            other = body.text(no if sides[0] else yes)
            if re.search(rf"\b{re.escape(base)}\b", other):
                return None
            tested = parse_expression(body.text(condition).strip())
            return _condition(reader, tested if sides[0] else negated(tested), at) if tested.kind != "raw" else None
        return None


def is_own(condition: str) -> bool:
    """Whether a condition is one that a helper tests of its own, in terms that its caller does not have."""
    return condition.startswith(_OWN)


def tests_more(conditions: Iterable[str]) -> bool:
    """Whether conditions of helpers are among some that are told nowhere."""
    held = set(conditions)
    return any(is_own(one) and one.removeprefix(_OWN) not in held for one in held)


def joined(conditions: Iterable[str]) -> str:
    """Conditions that all hold, as one expression; empty for none. A helper's own are left out."""
    parts = [one for one in dict.fromkeys(conditions) if not is_own(one)]
    if len(parts) < 2:
        return "".join(parts)
    return " && ".join(f"({one})" if terms(parse_expression(one), "||")[1:] else one for one in parts)


def either(places: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What holds at one of several places, each with its conditions: what holds at all of them, and where two ways are
    left that are short to say, that one of the two does."""
    ways = list(dict.fromkeys(places))
    common = tuple(text for text in ways[0] if all(text in way for way in ways))
    left = [tuple(text for text in way if text not in common) for way in ways]
    if len(left) != 2 or not all(left):
        return common
    # a || (!a && b) says no more than a || b.
    first, second = (
        tuple(text for text in way if len(other) != 1 or not _opposite(text, other[0]))
        for way, other in (left, left[::-1])
    )
    if any(map(is_own, (*first, *second))):
        return (*common, _OWN) if first and second else common
    said = " || ".join(f"({joined(way)})" if len(way) > 1 else joined(way) for way in (first, second))
    return (*common, said) if first and second and len(said) <= 2 * _SHORT else common


def _opposite(one: str, other: str) -> bool:
    """Whether a condition says that another does not hold."""
    first, second = (parse_expression(text.removeprefix(_OWN)) for text in (one, other))
    return is_own(one) == is_own(other) and print_expression(negated(first)) == print_expression(second)


def _only_returns(reader: ValueReader, guard: Guard) -> bool:
    """Whether a branch of a kernel's own scope does nothing but return."""
    function = reader.body.function
    if function is None or "global" not in function.flags:
        return False
    block = reader.body.facts.blocks[guard.block]
    text = reader.body.expanded.full[block.start : block.end]
    return block.parent < 0 and bool(_BARE_RETURN.match(text.strip()))


def _told(reader: ValueReader, texts: Iterable[str]) -> tuple[str, ...]:
    """The conditions that say something to a reader of the kernel: of a helper's those of what it is given alone, and
    such parts of one that is several; the others with a mark."""
    if not reader.depth:
        return tuple(dict.fromkeys(texts))
    parts = dict.fromkeys(print_expression(part) for text in texts for part in terms(parse_expression(text), "&&"))
    return tuple(t if all(_is_given(reader, word) for word in _NAME.findall(t)) else f"{_OWN}{t}" for t in parts)


def _is_fixed(reader: ValueReader, word: str, at: int) -> bool:
    """Whether a local is a whole number that never changes."""
    held = [one for one in reader.body.locals_at(word, at) if one.start <= at]
    return bool(held) and re.search(r"\bconst(?:expr)?\b", held[-1].type) is not None and "bool" not in held[-1].type


def _is_given(reader: ValueReader, word: str) -> bool:
    """Whether a name in a condition of a helper means to its caller what it means to the helper."""
    function = reader.body.function
    own = {p.name for p in (*function.parameters, *template_parameters(function.template))} if function else set()
    if word in reader.body.locals or word not in own:
        return word not in reader.body.locals
    if "global" in function.flags:
        return True  # of a lambda in the kernel
    value = reader.bound.get(word)
    return shown(value.poly) == word if isinstance(value, Number) else isinstance(value, Pointer) and value.root == word


def _condition(reader: ValueReader, condition: Expr, at: int) -> str:
    """A condition as code, parameters of a helper as what they are given, constants of the body as their number."""

    def given(node: Expr) -> Expr | None:
        if node.kind == "name" and node.text in reader.body.locals:
            number = reader.name(node.text, at)
            known = number.poly.constant if isinstance(number, Number) and _is_fixed(reader, node.text, at) else None
            return Expr("number", str(known)) if known is not None and known >= 0 else None
        if node.kind != "name" or not reader.depth or node.text not in reader.bound or node.text in reader.body.locals:
            return None
        value = reader.bound[node.text]
        if isinstance(value, Number) and len(text := shown(value.poly)) <= _SHORT:
            return parse_expression(text)
        return name(value.root) if isinstance(value, Pointer) and not value.offset else None

    found = changed(condition, given)
    if found.kind == "unary" and found.text == "!" and found.parts[0].kind == "binary":
        if found.parts[0].text in _ARITHMETIC:
            found = Expr("binary", "==", (found.parts[0], Expr("number", "0")))
    return print_expression(found)
