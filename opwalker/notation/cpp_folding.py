"""Arithmetic on whole numbers inside C++ expressions, worked out as C++ does it: ``n + 2 * 3`` is ``n + 6``.

In: an ``Expr``. Out: one with the same value. Nothing that a type could change is worked out: no negative numbers, no
results beyond an ``int``, no division by zero.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from opwalker.notation.cpp_expression import Expr


def folded(expr: Expr) -> Expr:
    """The tree with arithmetic on whole numbers worked out as C++ does it, ``min`` and ``max`` of them included."""
    if not expr.parts:
        return expr
    expr = replace(expr, parts=tuple(folded(part) for part in expr.parts))
    numbers = [_whole(part) for part in (expr.parts[1:] if expr.kind == "call" else expr.parts)]
    if len(numbers) != 2 or None in numbers:
        return expr
    left, right = numbers
    if expr.kind == "call" and expr.parts[0].text in ("min", "max", "std::min", "std::max"):
        return _number((min if expr.parts[0].simple == "min" else max)(left, right))
    if expr.kind != "binary" or expr.text not in ("+", "-", "*", "/", "%") or (expr.text in "/%" and right <= 0):
        return expr
    found = {"+": left + right, "-": left - right, "*": left * right}.get(expr.text)
    if found is None:
        found = left // right if expr.text == "/" else left % right
    # Beyond the range of an int the type of the operands would count.
    return _number(found) if 0 <= found < 2**31 else expr


def _whole(expr: Expr) -> int | None:
    return int(expr.text) if expr.kind == "number" and re.fullmatch(r"[1-9]\d*|0", expr.text) else None


def _number(value: int) -> Expr:
    return Expr("number", str(value))
