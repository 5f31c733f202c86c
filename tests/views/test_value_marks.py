"""Where a body may change a variable: every form of a change, found from where one may begin, as a search of the whole
text finds it."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opwalker.views.value_facts import NOTHING_KNOWN
from opwalker.views.value_marks import Marks

NAMES = ("x", "y", "x1", "_x", "xx", "a.x", "x[0]")
TOKENS = (*NAMES, "5x", *"&(),={};.[", " ", "\n", "++", "--", "+", "-", ">", ">>", "->", "tie(", "swap(", "std::tie(")
TEXTS = st.lists(st.sampled_from(TOKENS), max_size=40).map("".join)


def marks(text: str) -> Marks:
    body = SimpleNamespace(kept={}, expanded=SimpleNamespace(full=text), facts=SimpleNamespace(calls=()))
    return Marks(body, NOTHING_KNOWN)


def searched(name: str, text: str) -> list[int]:
    """Every change of a name, by one expression with all forms."""
    word = re.escape(name)
    counted = rf"(?:\+\+|--)\s*{word}\b|\b{word}\s*(?:\+\+|--)|[(,={{]\s*&\s*{word}\b(?!\s*[.\[(]|->)"
    read = rf">>\s*{word}\b\s*;|\btie\([^()]*\b{word}\b|\bswap\([^()]*\b{word}\b"
    return [match.start() for match in re.finditer(f"{counted}|{read}", text)]


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(NAMES))
@example("+++x; x ++ + ++ x", "x")
@example("f(&x, & y); tie(&x, y); >>>x;", "x")
def test_changes_are_found_as_by_a_search_of_the_whole_text(text: str, name: str) -> None:
    assert marks(text).of(name) == searched(name, text)


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("++x;", [0]),
        ("x --;", [0]),
        ("f(a, & x)", [3]),
        ("f(a, &x.b)", []),
        ("in >> x;", [3]),
        ("in >> x + 1;", []),
        ("std::tie(a, x) = f();", [5]),
        ("swap(x, y)", [0]),
        ("ax++; x == y; x + +y", []),
    ],
)
def test_each_form_of_a_change(text: str, offsets: list[int]) -> None:
    assert marks(text).of("x") == offsets
