"""Index arithmetic: polynomials against numbers, and the rule of quotients and remainders."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwalker.notation.polynomial import (
    Poly,
    call,
    canonical,
    poly,
    quotient,
    remainder,
    replace,
    same,
    split,
    symbol,
    value_of,
)

A, B, C, X = (symbol(name) for name in "abcx")
NAMES = "abcx"

#: A polynomial together with a function that works it out from numbers, without polynomials.
Built = tuple[Poly, "object"]


def leaves():
    numbers = st.integers(0, 5).map(lambda n: (poly(n), lambda env, n=n: n))
    names = st.sampled_from(NAMES).map(lambda n: (symbol(n), lambda env, n=n: env[n]))
    return st.one_of(numbers, names)


def grown(inner):
    def added(pair):
        (p, f), (q, g) = pair
        return p + q, lambda env: f(env) + g(env)

    def multiplied(pair):
        (p, f), (q, g) = pair
        return p * q, lambda env: f(env) * g(env)

    def divided(pair):
        (p, f), divisor = pair
        return quotient(p, divisor[0]), lambda env: f(env) // divisor[1](env)

    def left_over(pair):
        (p, f), divisor = pair
        return remainder(p, divisor[0]), lambda env: f(env) % divisor[1](env)

    pairs = st.tuples(inner, inner)
    divisors = st.one_of(
        st.integers(1, 6).map(lambda n: (poly(n), lambda env, n=n: n)),
        st.sampled_from(NAMES).map(lambda n: (symbol(n), lambda env, n=n: env[n])),
        st.sampled_from(["ab", "bx"]).map(
            lambda n: (symbol(n[0]) * symbol(n[1]), lambda env, n=n: env[n[0]] * env[n[1]])
        ),
    )
    uneven = st.tuples(inner, divisors)
    return st.one_of(pairs.map(added), pairs.map(multiplied), uneven.map(divided), uneven.map(left_over))


EXPRESSIONS = st.recursive(leaves(), grown, max_leaves=8)
VALUES = st.fixed_dictionaries({name: st.integers(1, 40) for name in NAMES})


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, VALUES)
def test_a_polynomial_is_worth_what_its_expression_is(built, values) -> None:
    made, function = built
    assert value_of(made, lambda atom: values[atom.name]) == function(values)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, VALUES)
def test_the_canonical_form_has_the_same_value_and_no_remainder(built, values) -> None:
    made = canonical(built[0])
    assert value_of(made, lambda atom: values[atom.name]) == built[1](values)
    assert all(atom.kind != "remainder" for atom in made.all_atoms())
    assert canonical(made) == made


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, EXPRESSIONS, st.lists(VALUES, min_size=6, max_size=6))
def test_what_is_called_the_same_is_the_same(left, right, tries) -> None:
    if same(left[0], right[0]):
        assert all(left[1](values) == right[1](values) for values in tries)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, st.sampled_from(["a", "2x", "bx", "3"]), VALUES)
def test_a_split_adds_up(built, divisor, values) -> None:
    by = {"a": A, "2x": 2 * X, "bx": B * X, "3": poly(3)}[divisor]
    whole, rest = split(built[0], by)
    assert whole * by + rest == built[0]
    assert value_of(whole * by + rest, lambda atom: values[atom.name]) == built[1](values)


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, EXPRESSIONS, VALUES)
def test_a_symbol_can_be_replaced_by_an_expression(built, inner, values) -> None:
    made = replace(built[0], lambda atom: inner[0] + 1 if atom.name == "a" else None)
    assert value_of(made, lambda atom: values[atom.name]) == built[1]({**values, "a": inner[1](values) + 1})


def test_what_a_symbol_is_replaced_by_is_not_replaced_again() -> None:
    assert replace(quotient(A, poly(2)), lambda atom: 2 * A + 1 if atom.name == "a" else None) == A


SAME = [
    (X * quotient(A, X) + remainder(A, X), A),
    (quotient(A, X) * X * B + remainder(A, X) * B, A * B),
    ((A + B) * (A + B), A * A + 2 * A * B + B * B),
    (quotient(quotient(A, B), C), quotient(A, B * C)),
    (quotient(A * X + B * X, X), A + B),
    (remainder(A * X + B, X), remainder(B, X)),
    (quotient(A * X + B, X), A + quotient(B, X)),
    (remainder(remainder(A, X), X), remainder(A, X)),
    (quotient(remainder(A, X), X), poly(0)),
    (quotient(poly(17), poly(5)) + remainder(poly(17), poly(5)), poly(5)),
]
DIFFERENT = [
    (X * quotient(A, X), A),
    (A * B + C, A * C + B),
    (quotient(A, X) * B, quotient(A * B, X)),
    (call("min", A, B), call("min", B, A)),
    (A, A + 1),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_the_same(left, right) -> None:
    assert same(left, right)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_not_the_same(left, right) -> None:
    assert not same(left, right)


TEXTS = [
    (A * B * C + X, "a * b * c + x"),
    (poly(0), "0"),
    (2 * A - 3, "2 * a - 3"),
    (-A + B, "-a + b"),
    (quotient(A + 1, B) * X + remainder(A, poly(8)), "((a + 1) / b) * x + (a % 8)"),
    (call("min", A, poly(4)) * A * A, "a * a * min(a, 4)"),
    (call("[>>]", poly(65536), A + B) * 2, "2 * (65536 >> (a + b))"),
    (call("[|]", A, call("[&]", B, X)), "(a | (b & x))"),
]


@pytest.mark.parametrize(("made", "text"), TEXTS, ids=[t for _, t in TEXTS])
def test_it_is_printed_as_c_writes_it(made, text) -> None:
    assert str(made) == text
