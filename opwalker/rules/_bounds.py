"""The most that a whole number is let be, as far as its text and the checks before it say: read by the rules about
the limits of a launch.

In: an expression, what the names in it are made of, and conditions that hold. Out: a number, or None where nothing
bounds it. Sizes are taken to be no less than 0, divisors no less than 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression, walk
from opwalker.rules._values import number_of

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_OPPOSITE = {">": "<=", ">=": "<", "!=": "=="}
_MIN = re.compile(r"(?:std::|::)?f?min(?:<.*>)?\Z")
_MAX = re.compile(r"(?:std::|::)?f?max(?:<.*>)?\Z")
_DEEPEST = 12


def opened(condition: str, known: Mapping[str, str]) -> str:
    """A condition, or what the variable that it is was set to."""
    plain = condition.strip()
    return known[plain].strip().removeprefix("=").strip() if plain in known else condition


class Bounds:
    """What is known at a place: ``known`` are initialisers by name, ``checks`` are ``(condition, holds, …)``."""

    def __init__(self, known: Mapping[str, str], checks: Iterable[tuple]) -> None:
        self._known = known
        self._limits: dict[str, list[int]] = {}
        for condition, holds, *_ in checks:
            for value, limit in self._compared(opened(condition, known), holds):
                self._limits.setdefault(value, []).append(limit)

    def most(self, text: str) -> int | None:
        """The most that an expression can be."""
        return self._most(_parsed(text), 0)

    def _compared(self, condition: str, holds: bool) -> Iterable[tuple[str, int]]:
        for found in walk(parse_expression(condition)):
            sign = found.text if found.kind == "binary" else ""
            sign = sign if holds else _OPPOSITE.get(sign, "")
            if sign not in _FLIPPED:
                continue
            for value, limit, held in ((*found.parts, sign), (*reversed(found.parts), _FLIPPED[sign])):
                number = number_of(print_expression(limit), self._known) if held in ("<", "<=", "==") else None
                if number is not None:
                    yield _plain(value), number - (held == "<")

    def _most(self, expr: Expr, depth: int) -> int | None:
        if depth > _DEEPEST:
            return None
        limits = self._limits.get(_plain(expr), [])
        worked = self._worked(expr, depth + 1)
        found = [*limits, *(() if worked is None else (worked,))]
        return min(found) if found else None

    def _worked(self, expr: Expr, depth: int) -> int | None:
        number = number_of(print_expression(expr), self._known)
        if number is not None:
            return number
        if expr.kind == "name" and expr.text in self._known:
            return self._most(_parsed(self._known[expr.text]), depth)
        if expr.kind in ("cast", "braces") and expr.parts:
            return self._most(expr.parts[-1], depth)
        if expr.kind == "ternary" and _is_least(expr):
            return _least([self._most(one, depth) for one in expr.parts[1:]])
        if expr.kind == "ternary":
            return _largest([self._most(one, depth) for one in expr.parts[1:]])
        if expr.kind == "call" and expr.parts and expr.parts[0].kind == "name":
            values = [self._most(one, depth) for one in expr.parts[1:]]
            if _MIN.match(expr.parts[0].text):
                return _least(values)
            return _largest(values) if _MAX.match(expr.parts[0].text) else None
        if expr.kind != "binary":
            return None
        left, right = (self._most(one, depth) for one in expr.parts)
        if expr.text in ("+", "*"):
            return None if left is None or right is None else left + right if expr.text == "+" else left * right
        if expr.text == "%":
            return None if right is None else right - 1
        if left is None or expr.text not in ("-", "/", "<<", ">>"):
            return None
        by = number_of(print_expression(expr.parts[1]), self._known)
        if by is None or by < 0:
            return None  # by what is not known: that it reaches this is not said
        if expr.text == "/":
            return left // by if by else None
        if expr.text == "-":
            return left - by
        return (left >> by if expr.text == ">>" else left << by) if by < 64 else None


def _parsed(text: str) -> Expr:
    made = parse_expression(text.strip().removeprefix("=").strip())
    while made.kind == "braces" and len(made.parts) == 1:
        made = made.parts[0]
    return made


def _is_least(expr: Expr) -> bool:
    """``a < b ? a : b``"""
    condition, *ways = expr.parts
    while condition.kind == "cast" and condition.parts:
        condition = condition.parts[-1]
    if condition.kind != "binary" or condition.text not in ("<", "<=", ">", ">="):
        return False
    sides = [_plain(one) for one in condition.parts]
    return [_plain(one) for one in ways] == (sides if condition.text[0] == "<" else sides[::-1])


def _plain(expr: Expr) -> str:
    while expr.kind == "cast" and expr.parts:
        expr = expr.parts[-1]
    return re.sub(r"\s", "", print_expression(expr))


def _largest(values: list[int | None]) -> int | None:
    return None if not values or any(one is None for one in values) else max(one for one in values if one is not None)


def _least(values: list[int | None]) -> int | None:
    return min((one for one in values if one is not None), default=None)
