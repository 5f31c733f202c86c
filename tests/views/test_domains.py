"""Sets and bounds of integers: whatever two values give is in what their domains give."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.views.domains import ANY, Domain, combined, compared, divisors, greatest, least, of

SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_}
COMPARED = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
small = st.integers(-40, 40)


@st.composite
def around(draw, value: int) -> Domain:
    """A domain that has a value."""
    if draw(st.booleans()):
        return of({value, *draw(st.sets(small, max_size=4))})
    low = draw(st.none() | st.integers(value - 9, value))
    high = draw(st.none() | st.integers(value, value + 9))
    return Domain(None, low, high, frozenset(draw(st.sets(small, max_size=2)) - {value}))


@given(st.data(), small, small, st.sampled_from([*SIGNS, "/", "%"]))
def test_results_are_in_the_domain(data, a, b, sign):
    one, two = data.draw(around(a)), data.draw(around(b))
    if sign in ("/", "%"):
        if b == 0:
            return
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        result = quotient if sign == "/" else a - quotient * b
    else:
        result = SIGNS[sign](a, b)
    assert combined(sign, one, two).has(result)
    assert least(one, two).has(min(a, b)) and greatest(one, two).has(max(a, b))
    assert one.joined(two).has(a) and one.joined(two).has(b)


@given(st.data(), small, small, st.sampled_from(list(COMPARED)))
def test_what_compares_so_is_left(data, a, b, sign):
    bound = data.draw(around(b))
    if COMPARED[sign](a, b):
        assert compared(sign, bound).has(a)


@given(st.data(), small)
def test_what_is_in_both_stays(data, a):
    one, two = data.draw(around(a)), data.draw(around(a))
    both = one.met(two)
    assert both.has(a) and not both.is_empty
    assert all(one.has(v) and two.has(v) for v in range(-60, 60) if both.has(v))


@given(st.integers(1, 3000), st.integers(-100000, 100000))
def test_a_greatest_common_divisor_divides(a, b):
    assert divisors(a).has(math.gcd(a, b)) or b == 0


@pytest.mark.parametrize(
    ("domain", "words", "empty"),
    [
        (of((4, 1, 2)), "1, 2 or 4", False),
        (of((7,)), "7", False),
        (of(()), "no value", True),
        (of(range(10)), "one of 10 values from 0 to 9", False),
        (Domain(None, 0), "at least 0", False),
        (Domain(None, None, 16), "at most 16", False),
        (Domain(None, 3, 5), "from 3 to 5", False),
        (Domain(None, 3, 2), "from 3 to 2", True),
        (Domain(None, 3, 4, frozenset((3, 4))), "from 3 to 4", True),
        (Domain(None, None, None, frozenset((0,))), "not 0", False),
        (ANY, "", False),
    ],
)
def test_in_words(domain, words, empty):
    assert (domain.told(), domain.is_empty) == (words, empty)


def test_the_largest_sets_are_bounds():
    made = of(range(10_000))
    assert (made.values, made.bounds) == (None, (0, 9999))
    assert divisors(1 << 30).has(1 << 29)
