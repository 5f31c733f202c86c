"""The layout of a documented shape: row-major strides, in elements.

In: the dimensions as written. Out: the stride of each as a product of those behind it. Nothing is claimed where a
dimension stands for any number of others.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.notation.regex import Regex

_SIMPLE = Regex(r"[\w.]+\Z")


def strides(dims: Sequence[str]) -> tuple[str, ...]:
    """Strides of ``dims`` from the first to the last; ``"?"`` before an ellipsis that hides how many follow."""
    out: list[str] = []
    product: list[str] | None = []
    for dim in reversed(dims):
        out.append("?" if product is None else _product(product))
        if dim in ("...", "*"):
            product = None
        elif product is not None:
            product = [dim, *product]
    return tuple(reversed(out))


def _product(factors: Sequence[str]) -> str:
    """``num_heads · (head_size/x) · x``; a factor 1 is left out."""
    shown = [factor if _SIMPLE.match(factor) else f"({factor})" for factor in factors if factor != "1"]
    return " · ".join(shown) or "1"


def is_drawable(dims: Sequence[str]) -> bool:
    """Whether a figure of the shape says more than its text: two dimensions or more, all of a known place."""
    return len(dims) >= 2 and "..." not in dims[1:] and "*" not in dims
