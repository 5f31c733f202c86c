"""Import statements on one line, text to value."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.model.python import PyImport
from opwalker.notation.python_imports import parse_import

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,4}", fullmatch=True).filter(str.isidentifier)
MODULES = st.lists(NAMES, min_size=1, max_size=3).map(".".join)


@pytest.mark.parametrize(
    ("statement", "bound"),
    [
        ("import a.b as c, d", [PyImport("a.b", None, "c", 0, 0), PyImport("d", None, "d", 0, 0)]),
        ("import a.b", [PyImport("a.b", None, "a.b", 0, 0)]),
        ("from . import a", [PyImport("", "a", "a", 1, 0)]),
        ("from ..x.y import a as b, c,", [PyImport("x.y", "a", "b", 2, 0), PyImport("x.y", "c", "c", 2, 0)]),
        ("from x import *", [PyImport("x", "*", "*", 0, 0)]),
        ("from x", []),
        ("import", []),
        ("x = 1", []),
    ],
)
def test_what_a_statement_binds(statement: str, bound: list[PyImport]) -> None:
    assert list(parse_import(statement)) == bound


@given(st.integers(0, 3), MODULES, st.lists(st.tuples(NAMES, st.none() | NAMES), min_size=1, max_size=4))
def test_as_python_reads_it(level: int, module: str, names: list[tuple[str, str | None]]) -> None:
    listed = ", ".join(name + (f" as {alias}" if alias else "") for name, alias in names)
    statement = f"from {'.' * level}{module} import {listed}"
    try:
        (node,) = ast.parse(statement).body
    except SyntaxError:  # a keyword among the names
        return
    assert isinstance(node, ast.ImportFrom)
    expected = [(node.module, one.name, one.asname or one.name, node.level) for one in node.names]
    assert [(one.module, one.name, one.alias, one.level) for one in parse_import(statement)] == expected
