"""What ``std::visit`` calls its visitor with: every combination of what its variants can hold.

In: a call at a place. Out: types of arguments, one tuple for each call of the visitor; None where they are not known.
"""

from __future__ import annotations

from itertools import product
from math import prod

from opwalker.expand.environment import Environment
from opwalker.expand.shapes import shape
from opwalker.expand.terms import Unknown
from opwalker.model.body import CallFact

_VISITS = frozenset(("visit", "std::visit", "::std::visit", "cuda::std::visit"))
#: Combinations that are told apart.
_MOST = 2000


def is_visit(call: CallFact, position: int) -> bool:
    """Whether an argument of a call is a visitor."""
    return position == 0 and call.name in _VISITS and len(call.arguments) > 1


def visited(environment: Environment, call: CallFact) -> list[tuple[str, ...]] | None:
    """The types that a visitor is called with."""
    held: list[tuple[str, ...]] = []
    for span in call.arguments[1:]:
        try:
            found = shape(environment.type_of(environment.body.text(span)).text)
        except Unknown:
            return None
        if found.name.rsplit("::", 1)[-1] != "variant" or not found.arguments or "*" in found.marks:
            return None
        held.append(found.arguments)
    return list(product(*held)) if prod(map(len, held)) <= _MOST else None
