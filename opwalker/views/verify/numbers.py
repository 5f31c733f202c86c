"""Element types as the device stores them: their bits to values and back, and how far apart neighbouring values lie.

In: raw unsigned integers, or numbers. Out: float64 (or int64) values, or raw integers, rounded to nearest with ties to
even. No tensor library is needed, so that a machine without one can check bfloat16 and fp8 results.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct


class ElementType(Struct, frozen=True):
    """An element type. ``exponent`` and ``mantissa`` are bits of a narrow float, 0 for what numpy itself stores;
    ``finite`` types have no infinity: what is too large becomes the largest value."""

    name: str
    bytes: int
    scalar_type: int
    kind: str = "float"
    exponent: int = 0
    mantissa: int = 0
    finite: bool = False

    @property
    def raw(self) -> np.dtype:
        """The unsigned integer of the same size."""
        return np.dtype(f"u{self.bytes}")


#: By torch's name; ``scalar_type`` is torch's number for it.
TYPES = {
    one.name: one
    for one in (
        ElementType("float32", 4, 6, exponent=8, mantissa=23),
        ElementType("float64", 8, 7),
        ElementType("float16", 2, 5, exponent=5, mantissa=10),
        ElementType("bfloat16", 2, 15, exponent=8, mantissa=7),
        ElementType("float8_e4m3fn", 1, 24, exponent=4, mantissa=3, finite=True),
        ElementType("float8_e5m2", 1, 23, exponent=5, mantissa=2),
        ElementType("uint8", 1, 0, "unsigned"),
        ElementType("int8", 1, 1, "signed"),
        ElementType("int32", 4, 3, "signed"),
        ElementType("int64", 8, 4, "signed"),
        ElementType("bool", 1, 11, "bool"),
    )
}

_LARGEST_E4M3 = 0x7E


def type_of_scalar(number: int) -> ElementType:
    """The element type that torch gives a number."""
    return next(one for one in TYPES.values() if one.scalar_type == number)


def decode(raw: np.ndarray, of: ElementType) -> np.ndarray:
    """Bits to values: float64 for floats, int64 for integers, bool for booleans."""
    if of.kind != "float":
        signed = raw.view(f"i{of.bytes}") if of.kind == "signed" else raw
        return signed != 0 if of.kind == "bool" else signed.astype(np.int64)
    if of.name in ("float32", "float64"):
        return raw.view(f"f{of.bytes}").astype(np.float64)
    return _table(of)[raw]


_TABLES: dict[str, np.ndarray] = {}


def _table(of: ElementType) -> np.ndarray:
    """The value of every code of a type of at most 16 bits."""
    if of.name not in _TABLES:
        code = np.arange(1 << (8 * of.bytes), dtype=np.int64)
        exponent = code >> of.mantissa & ((1 << of.exponent) - 1)
        mantissa = code & ((1 << of.mantissa) - 1)
        bias = (1 << (of.exponent - 1)) - 1
        steps = np.where(exponent == 0, mantissa, mantissa + (1 << of.mantissa)).astype(np.float64)
        value = np.ldexp(steps, np.maximum(exponent, 1) - bias - of.mantissa)
        if of.finite:
            value[(code & 0x7F) == 0x7F] = np.nan
        else:
            top = exponent == (1 << of.exponent) - 1
            value[top] = np.where(mantissa[top] == 0, np.inf, np.nan)
        _TABLES[of.name] = np.where(code >> (of.exponent + of.mantissa) == 1, -value, value)
    return _TABLES[of.name]


def encode(values: np.ndarray, of: ElementType) -> np.ndarray:
    """Values to bits, rounded to the nearest; a ``finite`` type is saturated."""
    if of.kind != "float":
        whole = np.asarray(values).astype(np.int64)
        return whole.astype(f"i{of.bytes}").view(of.raw) if of.kind == "signed" else whole.astype(of.raw)
    value = np.ascontiguousarray(values, dtype=np.float64)
    if of.name == "float64":
        return value.view(of.raw)
    if of.name == "float32":
        with np.errstate(over="ignore"):
            return value.astype(np.float32).view(of.raw)
    size = np.abs(value)
    known = np.isfinite(size)
    size = np.where(known, size, 0.0)
    bias = (1 << (of.exponent - 1)) - 1
    exponent = _exponent(size, of)
    code = ((exponent + bias - 1) << of.mantissa) + np.rint(np.ldexp(size, of.mantissa - exponent)).astype(np.int64)
    top = ((1 << of.exponent) - 1) << of.mantissa
    largest = _LARGEST_E4M3 if of.finite else top
    code = np.where(known, np.minimum(code, largest), largest)
    code = np.where(np.isnan(value), top | ((1 << of.mantissa) - 1), code)
    return (code | np.where(np.signbit(value), 1 << (of.exponent + of.mantissa), 0)).astype(of.raw)


def spacing(values: np.ndarray, of: ElementType) -> np.ndarray:
    """The distance between neighbouring numbers of a float type, around each value."""
    size = np.abs(np.asarray(values, dtype=np.float64))
    if of.name == "float64":
        return np.spacing(size)
    size = np.where(np.isfinite(size), size, 0.0)
    return np.ldexp(1.0, _exponent(size, of) - of.mantissa)


def _exponent(size: np.ndarray, of: ElementType) -> np.ndarray:
    """The power of two below each size, not less than that of the type's smallest normal number."""
    bias = (1 << (of.exponent - 1)) - 1
    _, exponent = np.frexp(size)
    return np.maximum(np.where(size == 0, 1 - bias, exponent.astype(np.int64) - 1), 1 - bias)
