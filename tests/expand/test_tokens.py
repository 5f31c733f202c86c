"""Preprocessing tokens: cut as a preprocessor cuts, spelled back as they stood, each at its own offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.expand.tokens import spell, tokenize
from tests.facts.fragments import texts


def cut(text: str) -> list[str]:
    return [token.text for token in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a+b", ["a", "+", "b"]),
        ("a ## b #c", ["a", "##", "b", "#", "c"]),
        ("k<<<1, 2>>>(x)", ["k", "<<<", "1", ",", "2", ">>>", "(", "x", ")"]),
        ("a::b->c.d", ["a", "::", "b", "->", "c", ".", "d"]),
        ("1.5e-3f 0xFFu 1'000'000 .5 1e+5", ["1.5e-3f", "0xFFu", "1'000'000", ".5", "1e+5"]),
        ("x...", ["x", "..."]),
        ('"a \\" b" \'\\\'\' u8"c" L"d"', ['"a \\" b"', "'\\''", 'u8"c"', 'L"d"']),
        ('R"(a " b)" R"x()" )x"', ['R"(a " b)"', 'R"x()" )x"']),
        ("a<=b>=c==d!=e&&f||g", ["a", "<=", "b", ">=", "c", "==", "d", "!=", "e", "&&", "f", "||", "g"]),
        ("i++ + ++j", ["i", "++", "+", "++", "j"]),
        ("@`\\", ["@", "`", "\\"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_tokens(text: str, wanted: list[str]) -> None:
    assert cut(text) == wanted


def test_words_and_spaces() -> None:
    tokens = tokenize("  a1 +b_2  'c'\n3")
    assert [(t.text, t.word, t.space) for t in tokens] == [
        ("a1", True, True),
        ("+", False, True),
        ("b_2", True, False),
        ("'c'", False, True),
        ("3", False, True),
    ]


def test_offsets_count_from_the_base() -> None:
    text = "ab  cd"
    assert [(t.pos, t.expansion) for t in tokenize(text, 100, 7)] == [(100, 7), (104, 7)]
    assert all(t.hidden == frozenset(("A",)) for t in tokenize(text, hidden=frozenset(("A",))))


@given(text=texts())
def test_every_token_stands_at_its_offset(text: str) -> None:
    at = 0
    for token in tokenize(text):
        assert text.startswith(token.text, token.pos)
        assert text[at : token.pos].strip() == ""
        assert token.space == (token.pos > at)
        at = token.pos + len(token.text)
    assert text[at:].strip() == ""


@given(text=st.text(alphabet='ab1 .+-<>:#"()\n', max_size=40))
def test_spelling_and_cutting_come_to_the_same(text: str) -> None:
    tokens = tokenize(text)
    assert [t.text for t in tokenize(spell(tokens))] == [t.text for t in tokens]


def test_white_space_becomes_one_blank() -> None:
    assert spell(tokenize("a  \n b+c")) == "a b+c"
    assert spell(tokenize("  a")) == "a"
