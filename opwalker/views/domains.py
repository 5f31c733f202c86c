"""What an integer of the host can be: a set of values, or bounds with values taken out.

In: constants and other domains. Out: domains. Nothing here wraps around: overflow is no way to another value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import cached_property

from msgspec import Struct

#: Sets that grow beyond this become bounds.
_MAX_VALUES = 512
_MAX_LISTED = 6


class Domain(Struct, frozen=True, dict=True):
    """``values`` where they can be listed (then the rest says nothing), else ``low`` to ``high`` (None: no bound)
    without ``excluded``."""

    values: frozenset[int] | None = None
    low: int | None = None
    high: int | None = None
    excluded: frozenset[int] = frozenset()

    @cached_property
    def bounds(self) -> tuple[int | None, int | None]:
        """The least and the greatest value, None where there is no bound."""
        if self.values is None:
            return self.low, self.high
        return (min(self.values), max(self.values)) if self.values else (0, -1)

    @property
    def is_empty(self) -> bool:
        """Whether no value is left."""
        if self.values is not None:
            return not self.values
        if self.low is None or self.high is None:
            return False
        if self.low > self.high:
            return True
        count = self.high - self.low + 1
        return count <= len(self.excluded) and all(self.low + n in self.excluded for n in range(count))

    @property
    def only(self) -> int | None:
        """The one value that is left, if it is one."""
        return next(iter(self.values)) if self.values is not None and len(self.values) == 1 else None

    @property
    def says_something(self) -> bool:
        """Whether any value is ruled out."""
        return self.values is not None or self.low is not None or self.high is not None or bool(self.excluded)

    def has(self, value: int) -> bool:
        """Whether a value is possible."""
        if self.values is not None:
            return value in self.values
        low, high = self.bounds
        return (low is None or value >= low) and (high is None or value <= high) and value not in self.excluded

    def met(self, other: Domain) -> Domain:
        """What is in both."""
        if self is other or not other.says_something:
            return self
        if not self.says_something:
            return other
        if self.values is not None:
            return Domain(frozenset(v for v in self.values if other.has(v)))
        if other.values is not None:
            return other.met(self)
        low = max((b for b in (self.low, other.low) if b is not None), default=None)
        high = min((b for b in (self.high, other.high) if b is not None), default=None)
        return Domain(None, low, high, self.excluded | other.excluded)

    def joined(self, other: Domain) -> Domain:
        """What is in either."""
        if self.values is not None and other.values is not None:
            return of(self.values | other.values)
        (a, b), (c, d) = self.bounds, other.bounds
        return Domain(
            None, None if a is None or c is None else min(a, c), None if b is None or d is None else max(b, d)
        )

    def mapped(self, other: Domain, change: Callable[[int, int], int | None]) -> Domain | None:
        """The results for all pairs of listed values; None where they cannot be listed."""
        if self.values is None or other.values is None or len(self.values) * len(other.values) > _MAX_VALUES:
            return None
        found = [change(a, b) for a in self.values for b in other.values]
        return None if None in found else of(v for v in found if v is not None)

    def told(self) -> str:
        """In words: ``1, 2 or 4``, ``at most 16``, ``at least 0``, ``not 3``; empty where nothing is known."""
        if self.values is not None:
            listed = [str(v) for v in sorted(self.values)]
            if len(listed) > _MAX_LISTED:
                return f"one of {len(listed)} values from {listed[0]} to {listed[-1]}"
            return " or ".join(filter(None, (", ".join(listed[:-1]), listed[-1]))) if listed else "no value"
        if self.low is not None and self.high is not None:
            return f"from {self.low} to {self.high}"
        if self.low is not None:
            return f"at least {self.low}"
        if self.high is not None:
            return f"at most {self.high}"
        return f"not {', '.join(str(v) for v in sorted(self.excluded))}" if self.excluded else ""


ANY = Domain()
TRUTH = Domain(frozenset((0, 1)))


def of(values: Iterable[int]) -> Domain:
    """Exactly these values; bounds where they are many."""
    found = frozenset(values)
    if len(found) > _MAX_VALUES:
        return Domain(None, min(found), max(found))
    return Domain(found)


def divisors(number: int) -> Domain:
    """What divides a positive number."""
    if not 0 < number <= 1 << 20:
        return Domain(None, 1, number if number > 0 else None)
    return of(d for d in range(1, min(number, 1 << 20) + 1) if number % d == 0)


def least(one: Domain, two: Domain) -> Domain:
    """``std::min`` of both."""
    mapped = one.mapped(two, min)
    if mapped is not None:
        return mapped
    (a, b), (c, d) = one.bounds, two.bounds
    high = min((bound for bound in (b, d) if bound is not None), default=None)
    return Domain(None, None if a is None or c is None else min(a, c), high)


def greatest(one: Domain, two: Domain) -> Domain:
    """``std::max`` of both."""
    mapped = one.mapped(two, max)
    if mapped is not None:
        return mapped
    (a, b), (c, d) = one.bounds, two.bounds
    low = max((bound for bound in (a, c) if bound is not None), default=None)
    return Domain(None, low, None if b is None or d is None else max(b, d))


def _quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def _rest(a: int, b: int) -> int | None:
    whole = _quotient(a, b)
    return None if whole is None else a - whole * b


_EXACT: dict[str, Callable[[int, int], int | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": _rest,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


def combined(sign: str, one: Domain, two: Domain) -> Domain:
    """The result of an operator of C++ on integers; ANY where nothing can be said."""
    if sign not in _EXACT:
        return ANY
    mapped = one.mapped(two, _EXACT[sign])
    if mapped is not None:
        return mapped
    (a, b), (c, d) = one.bounds, two.bounds
    if sign == "+":
        return Domain(None, None if a is None or c is None else a + c, None if b is None or d is None else b + d)
    if sign == "-":
        return Domain(None, None if a is None or d is None else a - d, None if b is None or c is None else b - c)
    if sign == "%" and two.only is not None and two.only > 0:
        return Domain(None, 0 if a is not None and a >= 0 else 1 - two.only, two.only - 1)
    if sign == "&" and (only := two.only if two.only is not None else one.only) is not None and only >= 0:
        return Domain(None, 0, only)
    by = two.only
    if by is not None and by > 0 and sign in ("*", "/"):
        change = _EXACT[sign]
        return Domain(None, None if a is None else change(a, by), None if b is None else change(b, by))
    return ANY


def compared(sign: str, bound: Domain) -> Domain:
    """What a value can be that compares so with one of ``bound``."""
    low, high = bound.bounds
    if sign == "==":
        return bound
    if sign == "!=":
        return Domain(None, None, None, frozenset((bound.only,))) if bound.only is not None else ANY
    if sign == "<":
        return Domain(None, None, None if high is None else high - 1)
    if sign == "<=":
        return Domain(None, None, high)
    if sign == ">":
        return Domain(None, None if low is None else low + 1, None)
    return Domain(None, low, None)
