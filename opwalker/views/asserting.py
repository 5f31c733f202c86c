"""Functions of the project's own that raise unless an argument holds: ``expect(n > 0, "n")`` demands ``n > 0`` there.

In: what was reached from a host function. Out: their names with the place of that argument. A function that demands
anything else as well is none: what it demands is told of itself.
"""

from __future__ import annotations

from opwalker.model.reach import Reach
from opwalker.notation.regex import Regex
from opwalker.views.checks import checks_of
from opwalker.views.way import Way

_BOOL = Regex(r"(?:const\s+)?bool(?:\s+const)?(?:\s*&)?\Z")


def asserting(way: Way, reach: Reach) -> dict[str, int]:
    """``{name: number of the argument}``; a name with several definitions counts where they agree."""
    found: dict[str, set[int | None]] = {}
    for path, function, _ in reach.functions:
        places = {p.name: n for n, p in enumerate(function.parameters) if p.name and _BOOL.match(p.type)}
        if not places:
            continue
        demanded = {check.condition for check in checks_of(way.body_of(path, function))}
        one = next(iter(demanded)) if len(demanded) == 1 else ""
        found.setdefault(function.name, set()).add(places.get(one))
    return {name: place for name, (place, *rest) in found.items() if place is not None and not rest}
