"""Blanking of C++ text: lengths, what stays, directives, the conditional structure and its terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.facts.cpp_text import Conditionals, blank
from tests.facts.fragments import texts

RAW = 'auto s = R"x(} { // " )" )x"; int after;'


def directives(text: str) -> list[tuple[str, str]]:
    return [(d.name, " ".join(d.body.split())) for d in blank(text).directives]


def branches(text: str) -> list[tuple[tuple[str, ...], str]]:
    """Every branch of a text: its terms and its text without surrounding blanks."""
    found = Conditionals(blank(text))
    return [
        (found.conditions[branch.condition], text[branch.start : branch.end].strip())
        for group in found.groups
        for branch in group.branches
    ]


@given(text=texts())
def test_blanked_texts_keep_their_length_and_line_ends(text: str) -> None:
    made = blank(text)
    assert len(made.code) == len(made.plain) == len(text)
    newlines = [at for at, char in enumerate(text) if char == "\n"]
    assert [at for at, char in enumerate(made.code) if char == "\n"] == newlines
    assert [at for at, char in enumerate(made.plain) if char == "\n"] == newlines
    assert all(a in (b, " ") for a, b in zip(made.code, text, strict=True)), "code only blanks"


@given(text=st.text(alphabet="/*\"'R(\\)\n#a ", max_size=40))
def test_any_mix_of_quotes_and_comments_is_blanked(text: str) -> None:
    made = blank(text)
    assert len(made.code) == len(made.plain) == len(text)
    Conditionals(made)


@given(text=texts())
def test_blanking_what_is_blanked_changes_nothing(text: str) -> None:
    code = blank(text).code
    assert blank(code).code == code


@given(text=texts())
def test_a_line_is_one_more_than_the_line_ends_before_it(text: str) -> None:
    made = blank(text)
    for at in range(0, len(text), 7):
        assert made.line(at) == text.count("\n", 0, at) + 1


@pytest.mark.parametrize(
    ("text", "code", "plain"),
    [
        ("a // b\nc", "a     \nc", "a     \nc"),
        ("a /* b\nc */ d", "a     \n     d", "a     \n     d"),
        ('f("a // b", 1)', 'f("a // b", 1)', 'f("      ", 1)'),
        ('f("a\\"b{", 1)', 'f("a\\"b{", 1)', 'f("     ", 1)'),
        ("c = '{';", "c = '{';", 'c = " ";'),
        ("c = '\\'';", "c = '\\'';", 'c = "  ";'),
        ("int n = 1'000'000;", "int n = 1'000'000;", "int n = 1'000'000;"),
        ("int n = 0xFF'FF; // x", "int n = 0xFF'FF;     ", "int n = 0xFF'FF;     "),
        ("a // b \\\n c\nd", "a       \n  \nd", "a       \n  \nd"),
        ("x = a /b/ c;", "x = a /b/ c;", "x = a /b/ c;"),
        ("// it's\nf('a');", "       \nf('a');", '       \nf(" ");'),
        ("a /* open", "a        ", "a        "),
    ],
)
def test_what_is_blanked(text: str, code: str, plain: str) -> None:
    made = blank(text)
    assert made.code == code
    assert made.plain == plain


def test_a_raw_string_is_one_string_whatever_stands_in_it() -> None:
    made = blank(RAW)
    assert made.code == RAW
    assert "}" not in made.plain and "{" not in made.plain
    assert made.plain.endswith(" int after;")


@pytest.mark.parametrize("prefix", ["u8", "L", "u", "U"])
def test_a_prefixed_raw_string_is_one_string(prefix: str) -> None:
    made = blank(f'auto s = {prefix}R"(// {{ " )"; int after;')
    assert "{" not in made.plain and made.plain.endswith("; int after;")


def test_a_string_that_is_never_closed_ends_with_its_line() -> None:
    made = blank('auto s = "abc {\nint x;\n#define A 1\n')
    assert "int x;" in made.plain
    assert directives('auto s = "abc {\nint x;\n#define A 1\n') == [("define", "A 1")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#define A 1\n", [("define", "A 1")]),
        ("  #  define A 1\n", [("define", "A 1")]),
        ("%:define A 1\n", [("define", "A 1")]),
        ("/* c */ #define A 1\n", [("define", "A 1")]),
        ("#define A 1 // c\n", [("define", "A 1")]),
        ("#define A /* ( */ 1\n", [("define", "A 1")]),
        ("#define A \\\n  1\n#undef A\n", [("define", "A 1"), ("undef", "A")]),
        ("#define A \\\r\n  1\r\n#undef A\r\n", [("define", "A 1"), ("undef", "A")]),
        ('#define A "//"\n', [("define", 'A "//"')]),
        ("// #define A 1\n", []),
        ("/*\n#define A 1\n*/\n", []),
        ("// \\\n#define A 1\n", []),
        ('auto s = R"(\n#define A 1\n)";\n', []),
        ("int x; # y\n", []),
        ("#\n#define A 1\n", [("", ""), ("define", "A 1")]),
    ],
)
def test_directives(text: str, found: list[tuple[str, str]]) -> None:
    assert directives(text) == found


def test_a_body_keeps_its_offsets_through_comments_and_continuations() -> None:
    text = "#define A(x) /* c */ x \\\n  + x // d\nint y;"
    directive = blank(text).directives[0]
    assert len(directive.body) == directive.end - directive.body_offset
    for at, char in enumerate(directive.body):
        assert char in (" ", "\n") or char == text[directive.body_offset + at]
    assert text[directive.end :] == "\nint y;"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#ifdef A\n1\n#endif\n", [(("defined(A)",), "1")]),
        ("#ifndef A\n1\n#else\n2\n#endif\n", [(("!defined(A)",), "1"), (("defined(A)",), "2")]),
        ("#ifdef A // why\n1\n#endif\n", [(("defined(A)",), "1")]),
        ("#if A /* x */ &&  B\n1\n#endif\n", [(("A && B",), "1")]),
        ("#if A && \\\n  B\n1\n#endif\n", [(("A && B",), "1")]),
        ("#if A\n1\n#else\n2\n#endif\n", [(("A",), "1"), (("!(A)",), "2")]),
        ("#if A\r\n1\r\n#else\r\n2\r\n#endif\r\n", [(("A",), "1"), (("!(A)",), "2")]),
        (
            "#if A\n1\n#elif B\n2\n#elif C\n3\n#else\n4\n#endif\n",
            [
                (("A",), "1"),
                (("!(A)", "B"), "2"),
                (("!(A)", "!(B)", "C"), "3"),
                (("!(A)", "!(B)", "!(C)"), "4"),
            ],
        ),
        (
            "#ifdef A\n1\n#elifdef B\n2\n#elifndef C\n3\n#endif\n",
            [
                (("defined(A)",), "1"),
                (("!defined(A)", "defined(B)"), "2"),
                (("!defined(A)", "!defined(B)", "!defined(C)"), "3"),
            ],
        ),
        (
            "#ifdef A\n#if B\n1\n#endif\n2\n#endif\n",
            [(("defined(A)",), "#if B\n1\n#endif\n2"), (("defined(A)", "B"), "1")],
        ),
    ],
)
def test_branches_and_their_terms(text: str, found: list[tuple[tuple[str, ...], str]]) -> None:
    assert branches(text) == found


GUARDS = [
    "#ifndef X_H\n#define X_H\n{}\n#endif\n",
    "#ifndef X_H\n#define X_H 1\n{}\n#endif // X_H\n",
    "#if !defined(X_H)\n#define X_H\n{}\n#endif\n",
    "// licence\n#pragma once\n#  ifndef X_H\n# define X_H\n{}\n#endif\n",
    "#include <a.h>\n#ifndef X_H\n#define X_H\n{}\n#endif\n",
]


@pytest.mark.parametrize("text", GUARDS)
def test_an_include_guard_is_no_condition(text: str) -> None:
    inside = text.format("#ifdef A\nint x;\n#endif")
    assert branches(inside) == [(("defined(A)",), "int x;")]
    found = Conditionals(blank(inside))
    assert found.conditions[found.at(inside.index("int x"))] == ("defined(A)",)


@pytest.mark.parametrize(
    "text",
    [
        "#ifndef X\n#define X 3\n#endif\nint x;\n",
        "#ifndef X\n#define X 3\n#else\n#define Y\n#endif\n",
        "#ifndef X\n#define Y\nint x;\n#endif\n",
        "#ifdef X\n#define X\nint x;\n#endif\n",
        "#ifndef X\n#undef X\nint x;\n#endif\n",
        "#ifndef X\n#define X\n#if Y\n#endif\n#endif\nint x;\n",
        "#ifndef X\n#define X\n#endif\nint x;\n#ifdef Y\n#endif\n",
        "int x;\n#ifndef X\n#include <a.h>\n#endif\n",
        "#pragma once\n#ifndef X\n#define X 3\n#endif\n#ifndef Y\n#define Y 4\n#endif\n",
        "#pragma once\n#ifndef X\n#define X\n#endif\n",
        "#pragma once\n#ifndef X\n#define X 3\n#define Y 4\n#endif\n",
    ],
)
def test_what_only_looks_like_a_guard_is_a_condition(text: str) -> None:
    assert branches(text)


def test_the_condition_at_each_place() -> None:
    text = "a\n#if P\nb\n#if Q\nc\n#endif\nd\n#else\ne\n#endif\nf\n"
    found = Conditionals(blank(text))
    held = {char: found.conditions[found.at(text.index(f"\n{char}\n") + 1)] for char in "bcdef"}
    assert held == {"b": ("P",), "c": ("P", "Q"), "d": ("P",), "e": ("!(P)",), "f": ()}
    assert found.conditions[found.at(0)] == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("#endif\nint x;\n", "#endif without #if"),
        ("int x;\n#else\n", "#else without #if"),
        ("#elif A\n", "#elif without #if"),
        ("#ifdef A\nint x;\n", "#if without #endif"),
    ],
)
def test_conditionals_that_do_not_pair_are_problems(text: str, problem: str) -> None:
    assert [words for words, _ in Conditionals(blank(text)).problems] == [problem]


def test_an_open_conditional_reaches_to_the_end() -> None:
    assert branches("#ifdef A\nint x;\n") == [(("defined(A)",), "int x;")]


def test_several_open_conditionals_all_reach_to_the_end() -> None:
    text = "#ifdef A\n1\n#ifdef B\n2\n"
    assert branches(text) == [(("defined(A)",), "1\n#ifdef B\n2"), (("defined(A)", "defined(B)"), "2")]


def test_an_else_belongs_to_the_innermost_conditional() -> None:
    text = "#if A\n#if B\n1\n#else\n2\n#endif\n#else\n3\n#endif\n"
    found = {piece: terms for terms, piece in branches(text)}
    assert (found["1"], found["2"], found["3"]) == (("A", "B"), ("A", "!(B)"), ("!(A)",))


def test_parents_come_before_their_children() -> None:
    text = "#if A\n#if B\n#endif\n#if C\n#endif\n#endif\n#if D\n#endif\n"
    found = Conditionals(blank(text))
    assert [found.conditions[condition][-1] for _, _, condition in found.branches()] == ["A", "B", "C", "D"]
