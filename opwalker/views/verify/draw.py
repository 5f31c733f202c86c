"""Fresh random inputs, the same for the same seed.

In: shapes and element types. Out: ``Array``s. Values have outliers and both signs, so that a result which is always
small, or never negative, does not pass for right.
"""

from __future__ import annotations

import numpy as np

from opwalker.views.verify.arrays import Array
from opwalker.views.verify.numbers import encode

#: Elements that are drawn one by one; a larger array repeats them. A prime, so that no row begins where another did.
_DRAWN = 4_000_037


class Draw:
    """A source of arrays."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def normal(self, shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> Array:
        """Normally distributed values; one in a hundred is eight times as large."""
        made = Array.empty(shape, dtype)
        count = min(made.view.size, _DRAWN)
        values = self._random.standard_normal(count, dtype=np.float32) * np.float32(scale)
        values = np.where(self._random.random(count, dtype=np.float32) < 0.01, values * 8, values)
        made.view[...] = np.resize(encode(values, made.type), shape)
        return made

    def uniform(self, shape: tuple[int, ...], dtype: str, low: float = 0.0, high: float = 1.0) -> Array:
        """Values of ``[low, high)``."""
        return Array.of(self._random.uniform(low, high, shape), dtype)

    def integers(self, shape: tuple[int, ...], dtype: str, low: int, high: int) -> Array:
        """Integers of ``[low, high)``, with repetitions."""
        return Array.of(self._random.integers(low, high, shape), dtype)

    def distinct(self, count: int, dtype: str, high: int) -> Array:
        """``count`` different integers of ``[0, high)``, in no order."""
        return Array.of(self._random.permutation(high)[:count], dtype)

    def values(self, values: object, dtype: str) -> Array:
        """Given values."""
        return Array.of(np.asarray(values), dtype)

    def output(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Memory full of poison, for an argument that the op fills."""
        return Array.empty(shape, dtype)

    def chance(self, probability: float, shape: tuple[int, ...]) -> np.ndarray:
        """Truth values, each true with a probability."""
        return self._random.random(shape) < probability
