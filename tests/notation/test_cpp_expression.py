"""C++ expressions: what they are read as, that printing them gives an equal tree, and what is no expression."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.notation.cpp_expression import (
    BINDING,
    Expr,
    changed,
    name,
    negated,
    parse_expression,
    print_expression,
    terms,
    walk,
)
from opwalker.notation.cpp_folding import folded


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("std::min(a*b, 512)", "std::min(a * b, 512)"),
        ("((a))", "a"),
        ("not (a and b.c()) or a not_eq b", "!(a && b.c()) || a != b"),
        ("x bitand compl y", "x & ~y"),
        ("android == notes", "android == notes"),
        ("n == 1 or n == 2", "n == 1 || n == 2"),
        ("(a + b) * c", "(a + b) * c"),
        ("a + (b * c)", "a + b * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("a / (b / c)", "a / (b / c)"),
        ("x ? 1 : (y ? 2 : 3)", "x ? 1 : y ? 2 : 3"),
        ("(x ? 1 : 2) + 1", "(x ? 1 : 2) + 1"),
        ("weight->size( - 1 )", "weight->size(-1)"),
        ("t . data_ptr<scalar_t>()", "t.data_ptr<scalar_t>()"),
        ("static_cast<int64_t>(n) / 2", "static_cast<int64_t>(n) / 2"),
        ("(int) n + 1", "(int)n + 1"),
        ("(n) - 1", "n - 1"),
        ("(void*)p", "(void*)p"),
        ("a < b && c > d", "a < b && c > d"),
        ("a && b || c", "(a && b) || c"),
        ("!(a || b)", "!(a || b)"),
        ("std::is_same<T, float>::value", "std::is_same<T, float>::value"),
        ("a >> 2", "a >> 2"),
        ("sizeof( float ) * 2", "sizeof(float) * 2"),
        ("dim3{a, 1}", "dim3{a, 1}"),
        ("s.sizes()[0]", "s.sizes()[0]"),
        ('"a"  "b"', '"a" "b"'),
        ("- -a", "- -a"),
    ],
)
def test_text_and_back(text: str, shown: str) -> None:
    assert print_expression(parse_expression(text)) == shown
    assert parse_expression(shown) == parse_expression(text)


@pytest.mark.parametrize(
    "text", ["", "8 or 16", "n or n - m", "[&] { return 1; }", "int x", "a b", "a +", "f(", "new T(1)", "a; b", "1 2"]
)
def test_what_is_no_expression_keeps_its_text(text: str) -> None:
    assert parse_expression(text) == Expr("raw", text)


def test_names_keep_their_template_arguments_and_a_simple_part() -> None:
    found = parse_expression("ns::pack<T, 4>::size")
    assert (found.kind, found.text, found.simple) == ("name", "ns::pack<T, 4>::size", "size")
    assert parse_expression("x.data_ptr<float>()").parts[0].simple == "data_ptr"


@pytest.mark.parametrize(
    ("text", "opposite"),
    [
        ("a == b", "a != b"),
        ("a < b", "a >= b"),
        ("!a", "a"),
        ("a", "!a"),
        ("a && !b", "!a || b"),
        ("true", "false"),
    ],
)
def test_the_opposite_of_a_condition(text: str, opposite: str) -> None:
    assert print_expression(negated(parse_expression(text))) == opposite
    assert negated(negated(parse_expression(text))) == parse_expression(text)


def test_parts_exchanged_and_chains_taken_apart() -> None:
    expr = parse_expression("a && b && (c || a)")
    assert [print_expression(t) for t in terms(expr, "&&")] == ["a", "b", "c || a"]
    swapped = changed(expr, lambda node: name("x") if node == name("a") else None)
    assert print_expression(swapped) == "x && b && (c || x)"
    assert sum(1 for node in walk(expr) if node == name("a")) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1024 + 32 - 1) / 32 * 32", "1024"),
        ("std::min(256, 1024)", "256"),
        ("n + 2 * 3", "n + 6"),
        ("7 % 0", "7 % 0"),
        ("3 - 4", "3 - 4"),
        ("65536 * 65536", "65536 * 65536"),
        ("1.5 * 2", "1.5 * 2"),
        ("0x10 * 2", "0x10 * 2"),
        ("f(2, 3)", "f(2, 3)"),
    ],
)
def test_whole_numbers_worked_out(text: str, value: str) -> None:
    assert print_expression(folded(parse_expression(text))) == value


names = st.sampled_from(["a", "n", "ns::k", "x_1", "pack<T>::size"]).map(name)
numbers = st.sampled_from(["0", "1", "512", "0x10", "1.5f"]).map(lambda text: Expr("number", text))


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    operators = st.sampled_from([o for o in BINDING if o != "="])
    return st.one_of(
        st.tuples(operators, inner, inner).map(lambda t: Expr("binary", t[0], t[1:])),
        st.tuples(inner, inner, inner).map(lambda t: Expr("ternary", "", t)),
        st.tuples(st.sampled_from(["!", "-", "~", "*"]), inner).map(lambda t: Expr("unary", t[0], (t[1],))),
        st.tuples(names, st.lists(inner, max_size=3)).map(lambda t: Expr("call", "", (t[0], *t[1]))),
        st.tuples(inner, st.sampled_from([".size", "->dim"])).map(lambda t: Expr("member", t[1], (t[0],))),
        st.tuples(inner, inner).map(lambda t: Expr("index", "", t)),
        inner.map(lambda e: Expr("cast", "static_cast<int>", (e,))),
        st.lists(inner, max_size=3).map(lambda items: Expr("braces", "", tuple(items))),
    )


@given(st.recursive(st.one_of(names, numbers), _grown, max_leaves=12))
def test_printing_and_reading_gives_the_same_tree(expr: Expr) -> None:
    assert parse_expression(print_expression(expr)) == expr


@given(st.text(alphabet="abn01.<>()[]{}?:&|!=+-*/,\" '", max_size=40))
def test_any_text_is_read(text: str) -> None:
    found = parse_expression(text)
    assert found.kind == "raw" or parse_expression(print_expression(found)) == found
