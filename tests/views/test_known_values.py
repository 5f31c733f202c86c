"""What conditions say together: remembering how one was taken in changes nothing of what is known after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from opwalker.notation.cpp_expression import Expr, parse_expression
from opwalker.views.known_values import Contradiction, Known

#: Held as long as the tests run: what is remembered goes by which expression it is.
CONDITIONS = tuple(
    map(
        parse_expression,
        ("a > 2", "a < 4", "a == 1", "a != 3", "b == a", "b <= a", "a == 1 || a == 7", "b > 2 && a < 9", "!(b == 4)"),
    )
)
PLACE: Any = SimpleNamespace(body=None)


class Names:
    """Plain names and numbers, each a value of its own."""

    def __init__(self) -> None:
        self.taken: dict[tuple, list[Any]] = {}

    def place(self, expr: Expr, environment: Any) -> tuple:
        return (id(expr),)

    def key(self, expr: Expr, environment: Any) -> tuple | None:
        return (expr.text,) if expr.kind == "name" else None

    def constant(self, expr: Expr, environment: Any) -> int | None:
        return int(expr.text) if expr.kind == "number" else None

    def is_whole(self, expr: Expr, environment: Any) -> bool:
        return True

    def initialiser(self, name: str, environment: Any) -> None:
        return None

    def source(self, expr: Expr, environment: Any) -> None:
        return None


def taken_in(numbers: list[int], names: Any) -> tuple[list[str], dict, set, dict]:
    """What each condition says to those before it, and what is known in the end."""
    known = Known(names)
    said = []
    for number in numbers:
        try:
            known.hold(CONDITIONS[number], PLACE, f"condition {number}")
            said.append("")
        except Contradiction as contradiction:
            said.append(str(contradiction))
    return said, known._domains, known.touched, known._from


NUMBERS = st.lists(st.integers(0, len(CONDITIONS) - 1), max_size=8)


@settings(max_examples=200, deadline=None)
@given(st.lists(NUMBERS, max_size=8))
@example([[0, 1, 4], [2, 0], [4, 0, 4], [0, 4, 4]])
def test_a_condition_says_the_same_whether_it_is_remembered_or_not(walks: list[list[int]]) -> None:
    shared = Names()
    for numbers in walks:
        assert taken_in(numbers, shared) == taken_in(numbers, Names())


def test_a_condition_is_remembered_for_what_was_known_of_its_values() -> None:
    names = Names()
    for _ in range(3):
        taken_in([0, 1], names)
        taken_in([1], names)
    assert sorted(len(ways) for ways in names.taken.values()) == [1, 2]
