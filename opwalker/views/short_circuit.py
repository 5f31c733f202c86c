"""What has been tested where an operand of ``&&`` or ``||`` is reached: ``p != nullptr && p[i] < 0`` reads ``p[i]``
where ``p != nullptr``.

In: text of an expression or statement, and a place in it. Out: what holds there, as code, outermost first. What is said
of ``?:`` is left to its own facts.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.notation.cpp_expression import negated, parse_expression, print_expression
from opwalker.notation.regex import Regex

_OPEN, _CLOSED = "([", ")]"
#: A name or keyword that an operand does not begin with.
_LEAD = Regex(r"\s*(?:return\b|co_return\b|case\b|else\b)\s*")
#: Where ``=`` assigns.
_COMPARED = frozenset("=<>!")
#: Text that is looked back through.
_FAR = 2000


def tested_before(text: str, at: int) -> tuple[str, ...]:
    """What the operands before a place say, by the order in which they are looked at."""
    out: list[str] = []
    begin, end = max(0, at - _FAR), at
    while end > begin:
        start, closed = _level(text, begin, end)
        out = [*_operands(text[start:end]), *out]
        if closed:
            return tuple(dict.fromkeys(out))
        end = _outside(text, begin, start)
    return tuple(dict.fromkeys(out))


def _level(text: str, begin: int, end: int) -> tuple[int, bool]:
    """Where the operands begin that a place is the last of, within its brackets; whether a statement begins there."""
    for at, char in _outward(text, begin, end):
        if char in ";{}":
            return at + 1, True
        assigns = char == "=" and text[at + 1 : at + 2] != "=" and text[at - 1 : at] not in _COMPARED
        if char in _OPEN or char in ",?" or assigns:
            return at + 1, False
        if char == ":" and ":" not in (text[at - 1 : at], text[at + 1 : at + 2]):
            return at + 1, False
    return begin, True


def _outside(text: str, begin: int, start: int) -> int:
    """The bracket around what begins at a place, -1 for none: what stands before it in the same brackets is passed."""
    return next((at if char in _OPEN else -1 for at, char in _outward(text, begin, start) if char in "([;{}"), -1)


def _outward(text: str, begin: int, end: int) -> Iterator[tuple[int, str]]:
    """Characters before a place in the brackets around it, the last first, up to the one that opens them."""
    depth = 0
    for at in range(end - 1, begin - 1, -1):
        char = text[at]
        if char in _CLOSED:
            depth += 1
        elif char in _OPEN and depth:
            depth -= 1
        elif not depth:
            yield at, char
            if char in _OPEN:
                return


def _operands(text: str) -> list[str]:
    """What the operands before the last one say: those of the last ``&&`` hold, those before a ``||`` do not."""
    sides = _split(_LEAD.sub("", text, count=1) if _LEAD.match(text) else text, "||")
    found = [(one, True) for one in sides[:-1]] + [(one, False) for one in _split(sides[-1], "&&")[:-1]]
    out = []
    for one, failed in found:
        expr = parse_expression(one.strip())
        if one.strip() and expr.kind != "raw":
            out.append(print_expression(negated(expr) if failed else expr))
    return out


def _split(text: str, operator: str) -> list[str]:
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        char = text[at]
        depth += (char in "([{") - (char in ")]}")
        # ``T&&`` is a reference.
        if not depth and text.startswith(operator, at) and (operator == "||" or text[at - 1 : at] in (*" \n)]",)):
            parts.append(text[start:at])
            at += 1
            start = at + 1
        at += 1
    return [*parts, text[start:]]
