"""Qualified names and scopes as text: what of them counts when names are compared.

In: a name as written, a scope as facts give it. Out: the same without template arguments, without anonymous and inline
namespaces. Nothing is looked up.
"""

from __future__ import annotations

import functools

from opwalker.facts.cpp_brackets import without_angles

ANONYMOUS = "(anonymous namespace)"


@functools.lru_cache(maxsize=1 << 15)
def strip_arguments(text: str) -> str:
    """A qualified name without template arguments: ``A<B>::f<C>`` to ``A::f``."""
    return "".join(without_angles(text).split())


def visible(scope: tuple[str, ...]) -> tuple[str, ...]:
    """A scope as names see it: anonymous namespaces are not part of it."""
    return tuple([part for part in scope if part != ANONYMOUS]) if ANONYMOUS in scope else scope


def without_inlined(scope: tuple[str, ...], inlined: frozenset[tuple[str, ...]]) -> tuple[str, ...]:
    """A scope, or the qualifiers that are written for one, without the inline namespaces in it."""
    ends = {one[-1] for one in inlined}
    if ends.isdisjoint(scope):
        return scope
    return tuple(
        part
        for number, part in enumerate(scope)
        if part not in ends or not any(_fits(one, scope[: number + 1]) for one in inlined)
    )


def _fits(whole: tuple[str, ...], written: tuple[str, ...]) -> bool:
    """Whether a qualified name can be meant by what is written of it."""
    return visible(whole)[-len(written) :] == written or written[-len(whole) :] == whole


def same_text(text: str, other: str) -> bool:
    """Whether two texts say the same: but for blanks, or but for scopes that one names around what both mean."""
    one, two = (" ".join(t.split()).removeprefix("::") for t in (text, other))
    shorter, longer = sorted((one, two), key=len)
    return shorter == longer or (longer.endswith(f"::{shorter}") and longer.replace("::", "").isidentifier())
