"""Which conditions follow, by numbers, from others that hold beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.notation.cpp_expression import parse_expression
from opwalker.views.implied import implied


def left(conditions: list[str]) -> list[str]:
    gone = implied([parse_expression(one) for one in conditions])
    return [one for number, one in enumerate(conditions) if number not in gone]


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        (["n >= 32", "n >= 64", "n < 512"], ["n >= 64", "n < 512"]),
        (["n < 120", "n < 100 || n >= 120", "n == 89"], ["n == 89"]),
        (["n < 120", "n >= 100 && n < 120"], ["n >= 100 && n < 120"]),
        (["n > 8", "n != 3"], ["n > 8"]),
        (["n > 8", "n != 9"], ["n > 8", "n != 9"]),
        (["n > 8", "m > 9"], ["n > 8", "m > 9"]),  # another subject
        (["n > 8", "n > m"], ["n > 8", "n > m"]),  # no number
        (["n > 8", "n > 8"], ["n > 8"]),
        (["n > 8", "n < 4"], ["n > 8", "n < 4"]),  # a contradiction is left as it is
        (["f(x) > 8", "f(x) > 4"], ["f(x) > 8"]),
        (["n > 8 || m > 2", "n > 9"], ["n > 8 || m > 2", "n > 9"]),  # of two subjects
    ],
)
def test_what_follows_from_the_rest_is_left_out(conditions: list[str], kept: list[str]) -> None:
    assert left(conditions) == kept


TESTS = st.builds(lambda op, number: f"n {op} {number}", st.sampled_from("== != < <= > >=".split()), st.integers(0, 9))
CONDITIONS = st.builds(
    lambda parts, op: f" {op} ".join(parts), st.lists(TESTS, min_size=1, max_size=3), st.sampled_from(["&&", "||"])
)


@given(st.lists(CONDITIONS, min_size=1, max_size=4))
def test_what_is_left_allows_the_same_numbers(conditions: list[str]) -> None:
    def allowed(found: list[str]) -> list[int]:
        python = [one.replace("&&", "and").replace("||", "or") for one in found]
        return [n for n in range(-2, 13) if all(eval(one, {"n": n}) for one in python)]

    assert allowed(left(conditions)) == allowed(conditions)
