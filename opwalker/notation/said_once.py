"""Parts of a condition that go without saying beside others: ``n != 1`` beside ``n == 2``.

In: the parts of a chain of ``&&`` or ``||``. Out: those that are left. Only comparisons of one thing with constants are
looked at; ``without_truths`` leaves out what is written as ``true`` or ``false``. Parts that contradict each
other are all left.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from opwalker.notation.comparisons import COMPARISONS
from opwalker.notation.cpp_expression import Expr, negated, parse_expression, print_expression
from opwalker.notation.tensor_expression import scalar_type, whole


def said_once(parts: Sequence[Expr], operator: str) -> list[Expr]:
    """The parts without those that go without saying beside the others: ``n != 1 && n == 2`` is ``n == 2``, and
    ``n != 1 || n == 2`` is ``n != 1``."""
    parts = [_turned(part) for part in parts]
    # What decides, and what one of its kind says of another constant.
    decides, other = ("==", "!=") if operator == "&&" else ("!=", "==")
    values: dict[str, set[str]] = {}
    for part in parts:
        if part.kind == "binary" and part.text == decides and is_constant(part.parts[1]):
            values.setdefault(print_expression(part.parts[0]), set()).add(_meant(part.parts[1]))

    def goes(part: Expr) -> bool:
        if part.kind != "binary" or part.text not in COMPARISONS or part.text == decides:
            return False
        held = values.get(print_expression(part.parts[0]), set())
        if len(held) != 1 or not is_constant(part.parts[1]):
            return False
        if part.text == other:
            return _meant(part.parts[1]) not in held
        number, limit = (whole(parse_expression(text)) for text in (*held, _meant(part.parts[1])))
        known = number is not None and limit is not None
        return operator == "&&" and known and COMPARISONS[part.text](number, limit)

    return [part for part in parts if not goes(part)]


def truth_of(expr: Expr) -> bool | None:
    """What a condition says that is written out as ``true``, ``0`` and their like; None for any other."""
    if expr.kind == "unary" and expr.text == "!":
        inner = truth_of(expr.parts[0])
        return None if inner is None else not inner
    if expr.kind == "name":
        return {"true": True, "false": False}.get(expr.text)
    number = whole(expr) if expr.kind == "number" else None
    return None if number is None else bool(number)


def without_truths(expr: Expr) -> Expr:
    """A condition without what is written out as true or false and changes nothing: ``true && c`` and ``false || c``
    are ``c``."""
    if expr.kind != "binary" or expr.text not in ("&&", "||"):
        return expr
    neutral = expr.text == "&&"
    parts = [without_truths(part) for part in expr.parts]
    kept = [part for part in parts if truth_of(part) is not neutral]
    if len(kept) == len(parts):
        return replace(expr, parts=tuple(parts)) if tuple(parts) != expr.parts else expr
    return kept[0] if kept else parts[0]


def _meant(constant: Expr) -> str:
    """A constant as text, each type spelt in one way."""
    return scalar_type(constant) or print_expression(constant)


def _turned(part: Expr) -> Expr:
    """A negated comparison as the opposite one."""
    inner = part.parts[0] if part.kind == "unary" and part.text == "!" else None
    return negated(inner) if inner is not None and inner.kind == "binary" and inner.text in COMPARISONS else part


def is_constant(expr: Expr) -> bool:
    """Whether a value is written out: a number, a text, a scalar type."""
    if expr.kind == "binary":
        return all(is_constant(part) for part in expr.parts)
    return whole(expr) is not None or expr.kind == "string" or scalar_type(expr) is not None
