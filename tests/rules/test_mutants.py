"""Negated conditions are noticed by examples; what makes and judges them does so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mutants import mutants, shortened, survivors

SOURCE = """def run(a, b, c):
    if a and (b or c):
        return [one for one in a if one]
"""


def turned(old: str, new: str) -> str:
    assert SOURCE.count(old) == 1
    return SOURCE.replace(old, new).rstrip("\n")


def test_each_condition_is_negated() -> None:
    assert sorted(mutants(SOURCE)) == sorted([
        (2, "not (a and (b or c))", turned("if a and (b or c):", "if not (a and (b or c)):")),
        (2, "not (a)", turned("if a and", "if not a and")),
        (2, "not (b or c)", turned("and (b or c)", "and (not (b or c))")),
        (2, "not (b)", turned("(b or c)", "(not b or c)")),
        (2, "not (c)", turned("(b or c)", "(b or not c)")),
        (3, "not (one)", turned("if one]", "if not one]")),
    ])  # fmt: skip


def test_each_of_several_is_left_out() -> None:
    assert sorted((line, text) for line, text, _ in shortened(SOURCE)) == [
        (2, "without a"), (2, "without b"), (2, "without b or c"), (2, "without c"), (3, "without one"),
    ]  # fmt: skip
    assert (3, "without one", turned(" if one]", "]")) in shortened(SOURCE)


@pytest.mark.parametrize(("name", "users"), [("guard-unnamed", ["guard-unnamed"]), ("_guards", ["guard-unnamed"])])
def test_examples_notice(name: str, users: list[str], tmp_path: Path) -> None:
    """Of a rule all; of what it shares with others what it uses."""
    total, alive = survivors(name, users, tmp_path, tmp_path / "cache")
    assert total > 3
    assert (len(alive) == 0) == (name == "guard-unnamed")
    assert len(alive) < total
