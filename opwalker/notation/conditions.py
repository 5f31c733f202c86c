"""Preprocessor conditions: the door to reading, joining and printing them, and what holds in a build.

In: a ``Cond`` (``parse_condition``, ``parse_directive``, ``branch_condition``, ``conjoin``) and the macros of a build.
Out: ``evaluate``'s True, False, or None for unknown. Nothing is guessed: a name that the build does not tell is
unknown, and so is whatever stands in an ``Opaque`` atom.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Set

from opwalker.notation.condition_parse import parse_condition, parse_directive
from opwalker.notation.condition_terms import (
    FALSE,
    TRUE,
    Binary,
    Choice,
    Cond,
    Defined,
    Junction,
    Name,
    Number,
    Opaque,
    Unary,
    branch_condition,
    condition_text,
    conjoin,
    disjoin,
    names_of,
    negate,
    print_condition,
)

__all__ = [
    "FALSE",
    "TRUE",
    "Binary",
    "Choice",
    "Cond",
    "Defined",
    "Junction",
    "Name",
    "Number",
    "Opaque",
    "Unary",
    "branch_condition",
    "condition_text",
    "conjoin",
    "disjoin",
    "evaluate",
    "names_of",
    "negate",
    "parse_condition",
    "parse_directive",
    "print_condition",
]

#: Operators whose value is known when both operands are, and never fails.
_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
}
#: A macro's text may name other macros this many levels deep; beyond, it is unknown.
_LEVELS = 8


def evaluate(
    cond: Cond,
    defines: Mapping[str, str | None],
    undefined: Set[str] | Callable[[str], bool] = frozenset(),
) -> bool | None:
    """Whether the condition holds: True, False, or None for unknown (Kleene's logic).

    ``defines`` gives each defined macro its text; None is ``-DX`` without a value, which compilers take for 1. A name
    in ``undefined`` (or for which it returns true) is not defined and counts as 0. Any other name is unknown.
    """
    is_undefined = undefined if callable(undefined) else undefined.__contains__
    value = _Evaluation(defines, is_undefined).value(cond)
    return None if value is None else value != 0


class _Evaluation:
    """One build's view: the value of a condition as an integer, None for unknown."""

    def __init__(self, defines: Mapping[str, str | None], is_undefined: Callable[[str], bool]) -> None:
        self._defines = defines
        self._is_undefined = is_undefined
        self._level = 0
        self._known: dict[str, int | None] = {}

    def value(self, cond: Cond) -> int | None:
        if isinstance(cond, Defined):
            return 1 if cond.name in self._defines else 0 if self._is_undefined(cond.name) else None
        if isinstance(cond, Name):
            return self._name(cond.name)
        if isinstance(cond, Number):
            return cond.value
        if isinstance(cond, Unary):
            operand = self.value(cond.operand)
            return None if operand is None else _signed(cond.operator, operand)
        if isinstance(cond, Junction):
            return self._junction(cond)
        if isinstance(cond, Binary):
            left, right = self.value(cond.left), self.value(cond.right)
            return None if left is None or right is None else _combined(cond.operator, left, right)
        if isinstance(cond, Choice):
            test = self.value(cond.test)
            if test is not None:
                return self.value(cond.then if test else cond.otherwise)
            then, otherwise = self.value(cond.then), self.value(cond.otherwise)
            return then if then == otherwise else None
        return None

    def _name(self, name: str) -> int | None:
        if name in self._known:
            return self._known[name]
        if name in self._defines:
            return self._macro(name, self._defines[name])
        if name in ("true", "false"):
            return int(name == "true")
        return 0 if self._is_undefined(name) else None

    def _macro(self, name: str, text: str | None) -> int | None:
        if text is None:
            return 1
        if self._level >= _LEVELS:
            return None
        # Unknown until it is known: a macro whose text names itself stays so.
        self._known[name] = None
        self._level += 1
        self._known[name] = self.value(parse_condition(text))
        self._level -= 1
        return self._known[name]

    def _junction(self, cond: Junction) -> int | None:
        """One term may decide (0 for ``&&``, anything else for ``||``) while others are unknown."""
        deciding = cond.operator == "||"
        unknown = False
        for term in cond.terms:
            value = self.value(term)
            if value is None:
                unknown = True
            elif bool(value) == deciding:
                return int(deciding)
        return None if unknown else int(not deciding)


def _signed(sign: str, operand: int) -> int:
    return int(not operand) if sign == "!" else -operand if sign == "-" else ~operand if sign == "~" else operand


def _combined(sign: str, left: int, right: int) -> int | None:
    if sign in _OPERATORS:
        return int(_OPERATORS[sign](left, right))
    if sign in ("<<", ">>"):
        if not 0 <= right < 64:
            return None
        return left << right if sign == "<<" else left >> right
    if right == 0:
        return None
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if sign == "/" else left - quotient * right
