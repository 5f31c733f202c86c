"""Parts of a text on its outermost level."""

from __future__ import annotations

import pytest

from opwalker.notation.outermost import outermost


@pytest.mark.parametrize(
    ("text", "between", "parts"),
    [
        ("a + b", "+", ["a ", " b"]),
        ('"x, y", f(a, b), c', ",", ['"x, y"', " f(a, b)", " c"]),
        ('"a \\" + b" + [c + d]', "+", ['"a \\" + b" ', " [c + d]"]),
        ('log << "n << m" << n', "<<", ["log ", ' "n << m" ', " n"]),
        ("{a, b}", ",", ["{a, b}"]),
        ("", ",", [""]),
    ],
)
def test_parts(text: str, between: str, parts: list[str]) -> None:
    assert list(outermost(text, between)) == parts
