"""Entries by name, of short lists and of long ones."""

from __future__ import annotations

import pytest
from msgspec import Struct

from opwalker.link.by_name import FEW, ByName


class Entry(Struct, frozen=True):
    name: str
    line: int


@pytest.mark.parametrize("count", [0, 5, FEW, FEW + 1, 40 * FEW])
def test_long_lists_give_what_short_ones_give(count: int) -> None:
    held = ByName()
    entries = tuple(Entry(f"f{number % 50}", number) for number in range(count))
    for name in ("f0", "f7", "f49", "g"):
        assert held.of(entries, name) == [entry for entry in entries if entry.name == name]


def test_lists_of_the_same_length_are_told_apart() -> None:
    held = ByName()
    lists = [tuple(Entry(f"f{number}", which) for number in range(FEW + 1)) for which in range(200)]
    assert [held.of(one, "f3")[0].line for one in lists] == list(range(200))
