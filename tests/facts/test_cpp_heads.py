"""Brackets, commas, parameter lists and heads: the small readers that every stage uses."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.facts.cpp_brackets import angle_pairs, last_word, match_angle, match_bracket, split_commas
from opwalker.facts.cpp_heads import parse_function, parse_parameters, strip_templates


def pieces(text: str, angles: bool = True) -> list[str]:
    return [text[a:b].strip() for a, b in split_commas(text, angles=angles)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("a", ["a"]),
        ("a, b", ["a", "b"]),
        ("a,", ["a", ""]),
        (", a", ["", "a"]),
        ("f(a, b), [c, d], {e, f}", ["f(a, b)", "[c, d]", "{e, f}"]),
        ("A<b, c>, d", ["A<b, c>", "d"]),
        ("A<B<c, d>, e>::f, g", ["A<B<c, d>, e>::f", "g"]),
        ("a < b, c > d", ["a < b, c > d"]),
        ("a < b, c", ["a < b", "c"]),
        ("a << 2, b", ["a << 2", "b"]),
        ("f<a, 3>(b, c), d", ["f<a, 3>(b, c)", "d"]),
        ("A<f(b, c), d>, e", ["A<f(b, c), d>", "e"]),
        ("[](int a, int b) { return a, b; }, c", ["[](int a, int b) { return a, b; }", "c"]),
        ("p->q, r", ["p->q", "r"]),
        ("A<int (*)(int, int)>, b", ["A<int (*)(int, int)>", "b"]),
    ],
)
def test_split_commas(text: str, parts: list[str]) -> None:
    assert pieces(text) == parts


def test_split_commas_without_angles_cuts_like_a_preprocessor() -> None:
    assert pieces("A<b, c>, f(d, e)", angles=False) == ["A<b", "c>", "f(d, e)"]


@given(parts=st.lists(st.sampled_from(("a", "f(a, b)", "A<b, c>", "{1, 2}", "x[i, j]", "p->q", "1.5f")), min_size=1))
def test_parts_come_back_from_their_join(parts: list[str]) -> None:
    assert pieces(", ".join(parts)) == parts


@given(text=st.text(alphabet="(){}[]<>,ab ", max_size=30))
def test_split_commas_covers_its_text(text: str) -> None:
    spans = split_commas(text)
    assert all(0 <= a <= b <= len(text) for a, b in spans)
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert text[end:start] == ","


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("<a>", "a"),
        ("<a<b>, c>(d)", "a<b>, c"),
        ("<a<b<c>>>", "a<b<c>>"),
        ("<(a > b), c> d", "(a > b), c"),
        ("<decltype(p->q())>", "decltype(p->q())"),
        ("<auto (*f)(int) -> int>", "auto (*f)(int) -> int"),
        ("<>", ""),
        ("<a, { b > c }>", "a, { b > c }"),
    ],
)
def test_match_angle(text: str, inside: str) -> None:
    assert text[1 : match_angle(text, 0) - 1] == inside


@pytest.mark.parametrize("text", ["<a", "<a; b>", "<(a>", "<a } b>"])
def test_an_angle_that_does_not_close_before_the_statement_ends(text: str) -> None:
    assert match_angle(text, 0) == -1


@given(st.text(alphabet="<>()a,;-= ", max_size=24))
def test_all_angles_at_once_as_one_by_one(inside: str) -> None:
    text = f"<{inside}"
    pairs = angle_pairs(text, 0)
    assert pairs.get(0, -1) == match_angle(text, 0)
    assert all(match_angle(text, at) == close for at, close in pairs.items())



@pytest.mark.parametrize(
    ("text", "end"),
    [("(a)", 3), ("(a(b)[c]{d}) e", 12), ("{ a; }", 6), ("((a)", -1), ("(", -1), ("[a] b", 3)],
)
def test_match_bracket(text: str, end: int) -> None:
    assert match_bracket(text, 0) == end


def test_match_bracket_stays_within_its_end() -> None:
    assert match_bracket("(a) (b)", 4, 6) == -1
    assert match_bracket("(a) (b)", 4, 7) == 7


@pytest.mark.parametrize(
    ("text", "word"),
    [("int abc", "abc"), ("a::b  \n ", "b"), ("a(", None), ("a1", "a1"), ("12", None), ("_x", "_x"), ("", None)],
)
def test_last_word(text: str, word: str | None) -> None:
    start, end = last_word(text)
    assert (text[start:end] if start >= 0 else None) == word


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("", []),
        ("void", []),
        ("int a", [("int", "a", None)]),
        ("int", [("int", "", None)]),
        ("unsigned int", [("unsigned int", "", None)]),
        ("const T& a = T()", [("const T&", "a", "T()")]),
        ("int a[3], float b[]", [("int[3]", "a", None), ("float[]", "b", None)]),
        ("void (*f)(int, int)", [("void (*)(int, int)", "f", None)]),
        ("const int (&a)[N]", [("const int (&)[N]", "a", None)]),
        ("std::map<int, int> m, int n = 3", [("std::map<int, int>", "m", None), ("int", "n", "3")]),
        ("Args&&... args", [("Args&&...", "args", None)]),
        ("T* __restrict__ p", [("T* __restrict__", "p", None)]),
        ("bool b = a <= c", [("bool", "b", "a <= c")]),
        ("[[maybe_unused]] int a", [("int", "a", None)]),
        ("std::function<void(int)> f = nullptr", [("std::function<void(int)>", "f", "nullptr")]),
        ("const char*", [("const char*", "", None)]),
        ("ns::T", [("ns::T", "", None)]),
        ("struct S* s", [("struct S*", "s", None)]),
        ("A<b == c> x", [("A<b == c>", "x", None)]),
    ],
)
def test_parse_parameters(text: str, parameters: list) -> None:
    assert [(t, n, d) for t, n, d, _, _ in parse_parameters(text, 0, len(text))] == parameters


@pytest.mark.parametrize(
    ("text", "rest", "template", "bare"),
    [
        ("void f()", "void f()", None, False),
        ("template <int N> void f()", " void f()", "int N", False),
        ("template <class T> template <class U> void f()", " void f()", "class T, class U", False),
        ("template <> template <class U> void f()", " void f()", "class U", False),
        ("template <> void f()", " void f()", "", False),
        ("template void f<int>()", "void f<int>()", None, True),
        ("template <class T> requires A<T> void f()", " void f()", "class T", False),
        ("template <class T>\n  requires (A<T> && B<T>) void f()", " void f()", "class T", False),
        ("template <class T, class U = A<T>> void f()", " void f()", "class T, class U = A<T>", False),
    ],
)
def test_strip_templates(text: str, rest: str, template: str | None, bare: bool) -> None:
    at, found, without = strip_templates(text)
    assert (text[at:], found, without) == (rest, template, bare)


@pytest.mark.parametrize(
    "text",
    [
        "int x = f(3)",
        "return f(3)",
        "else f(3)",
        "a.b(c)",
        "p->q(c)",
        "if (x)",
        "while (f(x))",
        "static_assert(sizeof(int) == 4)",
        "int x",
        "new T(3)",
        "decltype(f(x)) y",
        "alignas(16) int x",
        "f(a",
    ],
)
def test_heads_that_are_no_function(text: str) -> None:
    assert parse_function(text, None) is None


def test_only_a_constructor_may_do_without_a_return_type() -> None:
    assert parse_function("S(int a)", "S").name == "S"
    assert parse_function("~S()", "S").name == "~S"
    assert parse_function("S(int a)", None) is None
    assert parse_function("A::S::S(int a)", None).qualifiers == ("A", "S")
