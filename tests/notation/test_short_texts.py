"""Answers for short texts are kept, those for long ones are not."""

from __future__ import annotations

import pytest

from opwalker.notation.short_texts import LONGEST, kept_if_short


@pytest.mark.parametrize(("length", "read"), [(0, 1), (LONGEST, 1), (LONGEST + 1, 2)])
def test_how_often_a_text_is_read(length: int, read: int) -> None:
    seen: list[tuple[str, int]] = []

    @kept_if_short
    def count(text: str, number: int = 1) -> int:
        seen.append((text, number))
        return len(text) + number

    text = "x" * length
    assert [count(text, 2), count(text, 2)] == [length + 2] * 2
    assert seen == [(text, 2)] * read
    assert count(text, 3) == length + 3
    assert len(seen) == read + 1
