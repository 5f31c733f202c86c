"""Element types: bits to values and back, against known codes and numpy's own half."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.views.verify.numbers import TYPES, decode, encode, spacing

FLOATS = [name for name, one in TYPES.items() if one.kind == "float"]


@pytest.mark.parametrize(
    ("dtype", "value", "code"),
    [
        ("bfloat16", 1.0, 0x3F80),
        ("bfloat16", 1.0 + 2**-8, 0x3F80),  # a tie goes to the even neighbour
        ("bfloat16", 1.0 + 3 * 2**-8, 0x3F82),
        ("bfloat16", 1.0 + 2**-8 + 2**-30, 0x3F81),  # rounded once: through float32 it would be the tie
        ("bfloat16", 1e39, 0x7F80),
        ("bfloat16", -0.0, 0x8000),
        ("float8_e4m3fn", 448.0, 0x7E),
        ("float8_e4m3fn", 464.1, 0x7E),
        ("float8_e4m3fn", 1e9, 0x7E),
        ("float8_e4m3fn", -(2.0**-9), 0x81),
        ("float8_e4m3fn", 2.0**-10, 0x00),
        ("float8_e4m3fn", 3 * 2.0**-10, 0x02),
        ("float8_e5m2", 1e9, 0x7C),
        ("float16", 65519.0, 0x7BFF),
        ("float16", 65520.0, 0x7C00),
        ("int32", -3, 0xFFFFFFFD),
        ("bool", True, 1),
    ],
)
def test_codes(dtype: str, value: float, code: int) -> None:
    assert int(encode(np.array([value]), TYPES[dtype])[0]) == code


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_every_code_comes_back(dtype: str) -> None:
    of = TYPES[dtype]
    codes = np.arange(1 << (8 * of.bytes)).astype(of.raw)
    values = decode(codes, of)
    known = ~np.isnan(values)
    assert known.sum() >= len(codes) * 0.96
    assert np.array_equal(encode(values, of)[known], codes[known])


@given(st.lists(st.floats(width=64, allow_nan=False), min_size=1, max_size=50))
def test_half_is_numpys(values: list[float]) -> None:
    with np.errstate(over="ignore"):
        assert np.array_equal(encode(np.array(values), TYPES["float16"]), np.array(values, np.float16).view(np.uint16))


@pytest.mark.parametrize("dtype", FLOATS)
def test_spacing_is_the_step_to_the_next_number(dtype: str) -> None:
    of = TYPES[dtype]
    for value in (1.0, 1.5, 0.75, 2.0**-5):
        step = float(spacing(np.array([value]), of)[0])
        raw = encode(np.array([value]), of)
        assert decode(raw + of.raw.type(1), of)[0] - value == step
