"""Index arithmetic as a reader gets it."""

from __future__ import annotations

import pytest

from opwalker.expand.values import shown
from opwalker.notation.polynomial import call, load, poly, quotient, symbol

N, B, PRIMED = symbol("n"), symbol("b"), symbol("n'")

SHOWN = [
    (quotient(N + B - 1, B), "((b + n - 1) / b)"),
    (quotient(N + 15, poly(16)), "((n + 15) / 16)"),
    (quotient(N + 15, poly(16)) * 16, "16 * ((n + 15) / 16)"),
    (quotient(N - 1, B), "((n - 1) / b)"),
    (quotient(N, B) + 1, "(n / b) + 1"),
    (quotient(N + B - 1, B) * 2 + 1, "2 * ((n - 1) / b) + 3"),
    (quotient(N + B - 1, B) + N, "((b + n - 1) / b) + n"),
    (call("min", quotient(N + B - 1, B), poly(3)), "min(((b + n - 1) / b), 3)"),
    (load("table", quotient(N + 7, poly(8))), "table[((n + 7) / 8)]"),
    (quotient(call("max", quotient(N + 7, poly(8)), B), poly(4)), "(max(((n + 7) / 8), b) / 4)"),
    (PRIMED + 1, "n + 1"),
    (PRIMED + N, "n + n'"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_numbers_are_shown_as_sources_write_them(value, text) -> None:
    assert shown(value) == text
