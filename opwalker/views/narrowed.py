"""Conditions said with what others around them fix: ``n <= 4 || n <= 8 && m < 9`` where ``n`` is 8 is ``m < 9``.

In: the conditions that hold at a place, and its body. Out: the same conditions, the decided parts left out. What
contradicts stays as it is written: whether a place is ever reached is ``views/unreachable.py``'s to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.notation.comparisons import COMPARISONS
from opwalker.notation.cpp_expression import Expr, changed


def narrowed(conditions: Sequence[Expr], body: Body) -> list[Expr]:
    """The conditions, each with the numbers that the others fix put in and what that decides left out."""
    fixed = {name: number for name, number in map(_fixes, conditions) if name and _stays(name, body)}
    out = []
    for condition in conditions:
        if not fixed or _fixes(condition)[0] in fixed:
            out.append(condition)
            continue
        found = _decided(_with(condition, fixed))
        if isinstance(found, Expr):
            # Only what was decided is left out: a condition that keeps all its parts is told as it is written.
            out.append(found if found != _with(condition, fixed) else condition)
        elif not found:
            out.append(condition)
    return out


def _fixes(condition: Expr) -> tuple[str, int]:
    """``n == 8``: the name and the number; an empty name for anything else."""
    if condition.kind == "binary" and condition.text == "==" and condition.parts[0].kind == "name":
        number = _whole(condition.parts[1])
        if number is not None:
            return condition.parts[0].text, number
    return "", 0


def _stays(name: str, body: Body) -> bool:
    if body.assigns.get(name):
        return False
    moved = rf"(?:\+\+|--)\s*{re.escape(name)}\b|\b{re.escape(name)}\s*(?:\+\+|--)|(?<![&\w)\]])&\s*{re.escape(name)}\b"
    return not re.search(moved, body.expanded.full)


def _with(condition: Expr, fixed: dict[str, int]) -> Expr:
    """The names that are compared with a number, as the numbers that they are."""

    def put(node: Expr) -> Expr | None:
        if node.kind == "binary" and node.text in COMPARISONS:
            left, right = node.parts
            if left.kind == "name" and left.text in fixed and _whole(right) is not None:
                return replace(node, parts=(Expr("number", str(fixed[left.text])), right))
        return None

    return changed(condition, put)


def _decided(expr: Expr) -> Expr | bool:
    if expr.kind == "binary" and expr.text in COMPARISONS:
        numbers = [_whole(part) for part in expr.parts]
        return expr if None in numbers else COMPARISONS[expr.text](*numbers)
    if expr.kind == "unary" and expr.text == "!":
        found = _decided(expr.parts[0])
        return expr if isinstance(found, Expr) else not found
    if expr.kind != "binary" or expr.text not in ("&&", "||"):
        return expr
    left, right = (_decided(part) for part in expr.parts)
    ends = expr.text == "||"
    if left is ends or right is ends:
        return ends
    if isinstance(left, bool):
        return right
    if isinstance(right, bool):
        return left
    return replace(expr, parts=(left, right))


def _whole(expr: Expr) -> int | None:
    return int(expr.text) if expr.kind == "number" and re.fullmatch(r"[1-9]\d*|0", expr.text) else None
