"""What has been tested where an operand of ``&&`` or ``||`` is reached: ``p != nullptr && p[i] < 0`` reads ``p[i]``
where ``p != nullptr``.

In: text of an expression or statement, and a place in it. Out: what holds there, as code, outermost first. What is said
of ``?:`` is left to its own facts.
"""

from __future__ import annotations

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
    at, depth = end - 1, 0
    while at >= begin:
        char = text[at]
        if char in _CLOSED:
            depth += 1
        elif char in _OPEN:
            if not depth:
                return at + 1, False
            depth -= 1
        elif not depth:
            if char in ";{}":
                return at + 1, True
            assigns = char == "=" and text[at + 1 : at + 2] != "=" and text[at - 1 : at] not in _COMPARED
            if char in ",?" or assigns or (char == ":" and ":" not in (text[at - 1 : at], text[at + 1 : at + 2])):
                return at + 1, False
        at -= 1
    return begin, True


def _outside(text: str, begin: int, start: int) -> int:
    """The bracket around what begins at a place, -1 for none: what stands before it in the same brackets is passed."""
    at, depth = start - 1, 0
    while at >= begin:
        char = text[at]
        if char in _CLOSED:
            depth += 1
        elif char in _OPEN:
            if not depth:
                return at
            depth -= 1
        elif char in ";{}" and not depth:
            return -1
        at -= 1
    return -1


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
