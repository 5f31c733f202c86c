"""Addresses in a note: the width of an access, and what the names in indexes hold."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from opwalker.model.layout import IndexName, LayoutFact
from opwalker.views.notes.addresses import address_statements, name_statements
from tests.views.notes_text import plain


def fact(width: str | None = None, names: tuple[IndexName, ...] = ()) -> LayoutFact:
    return LayoutFact("x", "x", "[n]", "lane * i", "equal", 7, "a.cu", "read", width=width, names=names)


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (None, "Read, at `lane * i`."),
        ("4 elements", "Read, at `lane * i`, 4 elements at a time."),
        ("lane elements", "Read, at `lane * i`, `lane` elements at a time."),
    ],
)
def test_how_much_one_access_moves(width: str | None, said: str) -> None:
    (one,) = address_statements([fact(width)])
    assert plain(one.below[0].text) == said


def test_what_names_hold_is_told_once_for_a_kernel() -> None:
    row = IndexName("row", "i / 4")
    side = IndexName("side", cases=(("left", "0"), ("!left", "n")))
    facts = [fact(names=(row, side)), fact(names=(row, IndexName("at", "2"))), fact(names=(IndexName("at", "3"),))]
    assert [plain(one.text) for one in name_statements(facts)] == [
        "`row` is `i / 4`.",
        "`side` is `0` where `left`, `n` where `!left`.",
    ]
    assert [plain(one.text) for one in name_statements(facts, {"row"})] == [
        "`side` is `0` where `left`, `n` where `!left`."
    ]


def test_what_is_said_of_a_condition_stands_outside_of_its_code() -> None:
    given = ("a % 4 == 0", "x.stride(0) == n (the host function does not check it)", "x.stride(0) == 2 (checked at :7)")
    (one,) = address_statements([replace(fact(), given=given)])
    assert [plain(below.text) for below in one.below[0].below] == [
        "Given that `a % 4 == 0`.",
        "Given that `x.stride(0) == n` (the host function does not check it).",
        "Given that `x.stride(0) == 2` (checked at :7).",
    ]
