"""Whether two written shapes say the same: names of dimensions may differ, their number and order may not."""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.notation.shape_comment import parse_shape


def same_shape(ours: str, theirs: str) -> bool:
    """Whether two shape texts say the same, in one of the readings that each allows."""
    left, right = parse_shape(ours), parse_shape(theirs)
    if left is None or right is None:
        return False
    return any(_same(a, b) for a in left.alternatives for b in right.alternatives)


def _same(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    a, b = [_plain(dim) for dim in ours], [_plain(dim) for dim in theirs]
    for one, other in ((a, b), (b, a)):
        if one and one[0] == "..." and (not other or other[0] != "..."):
            one[:1] = other[: len(other) - len(one) + 1]
    if len(a) != len(b):
        return False
    return not any(
        x != y and (_moved(x, b) or _moved(y, a) or (x.isdigit() and y.isdigit())) for x, y in zip(a, b, strict=True)
    )


def _moved(dim: str, others: Sequence[str]) -> bool:
    """Whether a dimension stands elsewhere on the other side: then the order differs, not the name."""
    return not dim.isdigit() and dim in others


def _plain(dim: str) -> str:
    return "".join(dim.split()).replace("//", "/")
