"""C++'s comparisons by their spelling, on numbers of Python."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
