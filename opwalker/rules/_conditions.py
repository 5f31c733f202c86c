"""Preprocessor conditions of registrations against each other: read by the rules about entries that some build lacks.

In: the condition that something stands under, and those of what it needs. Out: the condition, as text, under which the
first is there and none of the others; None where there is no such one, or where it cannot be told.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from opwalker.notation.condition_parse import parse_condition
from opwalker.notation.condition_terms import TRUE, condition_text, conjoin, disjoin, names_of, negate
from opwalker.notation.conditions import evaluate

_MOST_NAMES = 6


def uncovered(condition: str | None, needed: Iterable[str | None]) -> str | None:
    """Where what stands under ``condition`` is alone; a condition of None always holds."""
    there = parse_condition(condition) if condition else TRUE
    held = disjoin(parse_condition(one or "1") for one in needed)
    wanted = conjoin((there, negate(held)))
    names = sorted(names_of(wanted))
    if not names or len(names) > _MOST_NAMES:
        return None
    for chosen in itertools.product((False, True), repeat=len(names)):
        defines = dict.fromkeys(itertools.compress(names, chosen), "1")
        absent = frozenset(names) - defines.keys()
        # A name that is compared with a number decides nothing here: such a condition is unknown, and stays out.
        if evaluate(there, defines, absent) and evaluate(held, defines, absent) is False:
            return condition_text([wanted])
    return None
