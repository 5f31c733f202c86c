"""Python operators on values of build scripts.

In: an operator and two values. Out: the result, or that it cannot be computed. Sizes are bounded: a script is not
trusted.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from opwalker.link.build_py_paths import joined_path, percent_format
from opwalker.link.build_py_values import (
    Choice,
    Map,
    PathText,
    Ref,
    Seq,
    Unknown,
    as_text,
    elements_of,
    is_plain,
    truth_of,
)
from opwalker.link.build_values import MARK

MAX_TEXT = 20_000
MAX_ELEMENTS = 5_000
_BIG = 10**12


class _Uncomputed:
    """The result of an operation on what is not known."""


UNCOMPUTED = _Uncomputed()

_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def operate(op: ast.operator, left: Any, right: Any) -> Any:
    """``left op right``, or UNCOMPUTED."""
    if isinstance(left, PathText) and isinstance(op, ast.Div):
        return PathText(joined_path([left, right]))
    if isinstance(left, Seq) and isinstance(right, Seq):
        return _combine(op, left, right)
    if isinstance(left, str) and isinstance(op, ast.Mod):
        return percent_format(left, right)
    texts = isinstance(left, str), isinstance(right, str)
    if isinstance(op, ast.Add) and any(texts) and not isinstance(left, Seq) and not isinstance(right, Seq):
        return (as_text(left) + as_text(right))[:MAX_TEXT]
    numbers = all(isinstance(value, (int, float)) and abs(value) < _BIG for value in (left, right))
    if numbers and type(op) in _ARITHMETIC:
        try:
            return _ARITHMETIC[type(op)](left, right)
        except (ArithmeticError, TypeError):
            return UNCOMPUTED
    return UNCOMPUTED


def _combine(op: ast.operator, left: Seq, right: Seq) -> Any:
    if isinstance(op, ast.Add):
        return Seq((*left.items, *right.items)[:MAX_ELEMENTS], left.kind)
    values = {element.value for element in right.items if not element.guard}
    if isinstance(op, ast.Sub):
        return Seq(tuple(element for element in left.items if element.value not in values), left.kind)
    if isinstance(op, ast.BitAnd):
        return Seq(tuple(element for element in left.items if element.value in values), left.kind)
    if isinstance(op, ast.BitOr):
        known = {element.value for element in left.items if not element.guard}
        return Seq((*left.items, *(e for e in right.items if e.value not in known)), left.kind)
    return UNCOMPUTED


def subscripted(owner: Any, key: Any) -> Any:
    """``owner[key]``, or UNCOMPUTED; a list of three bounds is a slice."""
    if isinstance(key, list):
        if any(bound is not None and not isinstance(bound, int) for bound in key):
            return UNCOMPUTED
        if isinstance(owner, Seq):
            return Seq(owner.items[slice(*key)], owner.kind)
        return owner[slice(*key)] if isinstance(owner, str) and MARK not in owner else UNCOMPUTED
    if isinstance(owner, Map):
        return owner.store[key] if is_plain(key) and key in owner.store else UNCOMPUTED
    if not isinstance(key, int):
        return UNCOMPUTED
    if isinstance(owner, Seq) and not any(element.guard for element in owner.items):
        return owner.items[key].value if -len(owner.items) <= key < len(owner.items) else UNCOMPUTED
    if isinstance(owner, str) and MARK not in owner and -len(owner) <= key < len(owner):
        return owner[key]
    return UNCOMPUTED


def compared(op: ast.cmpop, left: Any, right: Any) -> bool | None:
    """The truth of a comparison, None if it is not known."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        return _is(left, right, isinstance(op, ast.Is))
    if isinstance(op, (ast.In, ast.NotIn)):
        found = contains(right, left)
        return None if found is None else found is isinstance(op, ast.In)
    if isinstance(left, Seq) and isinstance(right, Seq):
        left, right = _constants(left), _constants(right)
        if left is None or right is None:
            return None
    elif not (is_plain(left) and is_plain(right)):
        unequal = isinstance(op, (ast.Eq, ast.NotEq)) and (left is None or right is None)
        return _is(left, right, isinstance(op, ast.Eq)) if unequal else None
    try:
        return _COMPARISONS[type(op)](left, right)
    except TypeError:
        return None


def _constants(value: Seq) -> list[Any] | None:
    if any(element.guard or not is_plain(element.value) for element in value.items):
        return None
    return [element.value for element in value.items]


def _is(left: Any, right: Any, positive: bool) -> bool | None:
    if left is None and right is None:
        return positive
    if left is None or right is None:
        other = right if left is None else left
        known = not isinstance(other, (Unknown, Ref, Choice)) or truth_of(other) is True
        return (not positive) if known else None
    return (left is right) is positive if isinstance(left, bool) and isinstance(right, bool) else None


def contains(container: Any, wanted: Any) -> bool | None:
    """``wanted in container``"""
    if isinstance(container, str) and isinstance(wanted, str):
        return None if MARK in container or MARK in wanted else wanted in container
    if isinstance(container, Map):
        return wanted in container.store if is_plain(wanted) else None
    elements = elements_of(container)
    if elements is None or not is_plain(wanted):
        return None
    if any(element.value == wanted and not element.guard for element in elements):
        return True
    return None if any(element.guard or not is_plain(element.value) for element in elements) else False
