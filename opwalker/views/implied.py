"""Conditions that others say already, by numbers: ``n >= 32`` beside ``n >= 256``, ``n < 120 || n >= 130`` beside
``n == 89``.

In: conditions that all hold. Out: which of them follow from the rest. Only comparisons of one subject with whole
numbers are looked at; whether conditions contradict each other is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.notation.comparisons import COMPARISONS
from opwalker.notation.cpp_expression import Expr, print_expression, terms
from opwalker.notation.tensor_expression import whole

_FAR = 1 << 62


def implied(conditions: Sequence[Expr]) -> set[int]:
    """The places of the conditions that follow from those that are left."""
    subjects = [_subject(one) for one in conditions]
    gone: set[int] = set()
    for number, condition in enumerate(conditions):
        subject = subjects[number]
        if subject is None:
            continue
        rest = [c for n, c in enumerate(conditions) if n != number and n not in gone and subjects[n] == subject]
        low, high = _range(rest)
        if (low, high) != (-_FAR, _FAR) and low <= high:
            ends = {low, high, *(at + by for at in _numbers(condition) for by in (-1, 0, 1) if low <= at + by <= high)}
            if all(_at(condition, value) for value in ends):
                gone.add(number)
    return gone


def _subject(condition: Expr) -> str | None:
    """What all comparisons of a condition compare with whole numbers."""
    found = {_compared(one) for part in terms(condition, "||") for one in terms(part, "&&")}
    return found.pop() if len(found) == 1 else None


def _compared(test: Expr) -> str | None:
    if test.kind != "binary" or test.text not in COMPARISONS or whole(test.parts[1]) is None:
        return None
    return print_expression(test.parts[0])


def _range(conditions: Sequence[Expr]) -> tuple[int, int]:
    """The whole numbers that conditions without a choice allow; what they leave out within that is not looked at."""
    low, high = -_FAR, _FAR
    for condition in conditions:
        if condition.text == "||":
            continue
        for test in terms(condition, "&&"):
            number = whole(test.parts[1]) if test.kind == "binary" else None
            if number is None:
                continue
            if test.text in ("==", ">=", ">"):
                low = max(low, number + (test.text == ">"))
            if test.text in ("==", "<=", "<"):
                high = min(high, number - (test.text == "<"))
    return low, high


def _numbers(condition: Expr) -> list[int]:
    tests = [one for part in terms(condition, "||") for one in terms(part, "&&")]
    return [number for one in tests if (number := whole(one.parts[1])) is not None]


def _at(condition: Expr, value: int) -> bool:
    """Whether a condition on one subject holds for a value of it."""
    if condition.text in ("||", "&&"):
        sides = [_at(part, value) for part in condition.parts]
        return any(sides) if condition.text == "||" else all(sides)
    number = whole(condition.parts[1])
    return number is not None and COMPARISONS[condition.text](value, number)
