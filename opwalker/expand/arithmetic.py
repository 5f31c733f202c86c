"""Arithmetic on constants as C++ does it: promotions, common types, casts.

In: constants with canonical types. Out: constants. What has no value (a division by zero) gives None.
"""

from __future__ import annotations

import math

from opwalker.expand.terms import INTEGERS, SIZES, ConstTerm
from opwalker.notation.comparisons import COMPARISONS

BINARY = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_RANK = ("bool", "int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "double")


def promoted(kind: str) -> str:
    """The type that an operand is computed in."""
    return kind if kind in _RANK and kind != "bool" else "double" if kind == "float" else "int"


def common(left: str, right: str) -> str:
    """The type that two operands are computed in."""
    if "double" in (left, right) or "float" in (left, right):
        return "double"
    return max(promoted(left), promoted(right), key=_RANK.index)


def apply(operator: str, left: ConstTerm, right: ConstTerm) -> ConstTerm | None:
    """A binary operation; None where it has no value."""
    a, b = left.value, right.value
    if operator in COMPARISONS:
        return ConstTerm(int(COMPARISONS[operator](a, b)), "bool")
    if operator in ("&&", "||"):
        return ConstTerm(int(bool(a) and bool(b) if operator == "&&" else bool(a) or bool(b)), "bool")
    kind = common(left.type, right.type)
    if operator in ("/", "%"):
        if not b:
            return None
        if kind == "double":
            return ConstTerm(a / b, kind)
        quotient = abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
        return wrapped(quotient if operator == "/" else int(a) - quotient * int(b), kind)
    if operator in ("<<", ">>"):
        x, y = int(a), int(b)
        if not 0 <= y < 64:
            return None
        return wrapped(x << y if operator == "<<" else x >> y, promoted(left.type))
    if operator in ("&", "|", "^"):
        x, y = int(a), int(b)
        return wrapped({"&": x & y, "|": x | y, "^": x ^ y}[operator], kind)
    return wrapped({"+": a + b, "-": a - b, "*": a * b}[operator], kind)


def wrapped(value: int | float, kind: str) -> ConstTerm:
    """A value in a type: unsigned ones wrap around."""
    if kind.startswith("unsigned") and kind in SIZES and not isinstance(value, float):
        value &= (1 << (8 * SIZES[kind])) - 1
    return ConstTerm(value, kind)


def cast(term: ConstTerm, kind: str) -> ConstTerm:
    """A constant converted to a type."""
    if kind == "bool":
        return ConstTerm(int(bool(term.value)), "bool")
    if kind in ("float", "double"):
        return ConstTerm(float(term.value), "double")
    value = int(term.value)
    if kind.startswith("unsigned") and kind in SIZES:
        value &= (1 << (8 * SIZES[kind])) - 1
    elif kind in ("signed char", "char", "short", "int", "long", "long long"):
        bits = 8 * SIZES[kind]
        value &= (1 << bits) - 1
        value -= (1 << bits) if value >> (bits - 1) else 0
    return ConstTerm(value, kind)


def fold(name: str, values: list[ConstTerm]) -> ConstTerm:
    """``min``, ``max``, ``abs``, ``gcd`` or ``lcm`` of constants."""
    kind = values[0].type
    numbers = [v.value for v in values]
    if name in ("min", "max"):
        return ConstTerm(min(numbers) if name == "min" else max(numbers), kind)
    whole = [int(n) for n in numbers]
    if name == "abs":
        return ConstTerm(abs(whole[0]), kind)
    return ConstTerm(math.gcd(*whole) if name == "gcd" else math.lcm(*whole), kind)


def limit(kind: str, name: str) -> ConstTerm | None:
    """What ``std::numeric_limits`` of a canonical type has under a name; None for what is no integer constant."""
    if kind in ("float", "double"):
        known = {"is_signed": 1, "is_integer": 0, "is_specialized": 1}
        return ConstTerm(known[name], "bool") if name in known else None
    if kind not in INTEGERS:
        return None
    signed = not kind.startswith("unsigned") and kind != "bool"
    digits = 1 if kind == "bool" else SIZES[kind] * 8 - signed
    least = -(1 << digits) if signed else 0
    bounds = {"max": (1 << digits) - 1, "min": least, "lowest": least}
    if name in bounds:
        return ConstTerm(bounds[name], kind)
    if name == "digits":
        return ConstTerm(digits)
    truths = {"is_signed": signed, "is_integer": True, "is_exact": True, "is_specialized": True}
    return ConstTerm(int(truths[name]), "bool") if name in truths else None
