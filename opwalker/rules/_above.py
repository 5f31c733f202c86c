"""What callers do with a value before they hand it on: read by rules about values that come in as parameters.

In: a routine and a parameter of it, or a member of one (``params.width``). Out: whether every caller compares what the
value is made of with something, and whether every caller hands over something narrow. A member's value is looked for
where the caller, or what it calls with the object, stores it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from opwalker.model.check import CallSite, CheckedTree
from opwalker.model.statements import Routine
from opwalker.rules._launches import points
from opwalker.rules._ranges import known_values
from opwalker.rules._values import checks_before, terms_of

_DEEPEST = 4
#: A condition that keeps a value within bounds.
BOUNDS = re.compile(r"[<>=]=|<|>")


def asked_above(tree: CheckedTree, routine: Routine, name: str, depth: int = 0) -> bool:
    """Whether every caller of a routine compares what ``name`` is made of before the call; false where none is seen."""
    root, _, member = name.replace("->", ".").partition(".")
    place = _place(routine, root)
    sites = tree.callers(routine) if place is not None and depth < _DEEPEST else ()
    return bool(sites) and all(_asked_at(tree, site, place, member, depth) for site in sites)


def _asked_at(tree: CheckedTree, site: CallSite, place: int, member: str, depth: int) -> bool:
    caller, call = site.caller, site.call
    if place >= len(call.arguments):
        return False
    given = call.arguments[place].strip("&* ")
    known = known_values(caller)
    made = set(stored(tree, caller, given, member)) if member else terms_of(given, known)
    for point in points(caller.statements):
        if call in point.statement.calls:
            for condition, _, _ in checks_before(point.before, point.around, point.statement):
                if BOUNDS.search(condition) and terms_of(condition, {}) & made:
                    return True
    return asked_above(tree, caller, f"{given}.{member}" if member else given, depth + 1)


def stored(tree: CheckedTree, routine: Routine, held: str, member: str, depth: int = 0) -> Iterator[str]:
    """The terms that a routine, or what it hands the object to, stores in a member, as the routine names them."""
    if depth >= _DEEPEST:
        return
    known = known_values(routine)
    wanted = re.compile(rf"{re.escape(held)}\s*(?:\.|->)\s*{re.escape(member)}\Z")
    for one in routine.walk():
        for assigned in one.assigns:
            if wanted.match(assigned.target):
                yield from terms_of(assigned.value, known)
        for call in one.calls:
            place = next((at for at, given in enumerate(call.arguments) if given.strip("&* ") == held), None)
            for target in tree.targets(routine, call) if place is not None else ():
                if place >= len(target.parameters) or target is routine:
                    continue
                for term in stored(tree, target, target.parameters[place].name, member, depth + 1):
                    at = _place(target, re.split(r"\.|->", term, maxsplit=1)[0])
                    if at is not None and at < len(call.arguments):
                        yield from terms_of(call.arguments[at], known)


def every_caller(
    tree: CheckedTree, routine: Routine, name: str, fits: Callable[[Routine, str, int], bool], depth: int = 0
) -> bool:
    """Whether what every caller hands over for a parameter fits: ``fits(caller, argument, line)``, there or above."""
    place = _place(routine, name)
    sites = tree.callers(routine) if place is not None and depth < _DEEPEST else ()
    return bool(sites) and all(
        place < len(site.call.arguments)
        and (
            fits(site.caller, site.call.arguments[place], site.call.line)
            or every_caller(tree, site.caller, site.call.arguments[place].strip(), fits, depth + 1)
        )
        for site in sites
    )


def settled_above(
    tree: CheckedTree, routine: Routine, terms: set[str], settles: Callable[[str, bool, set[str]], bool], depth: int = 0
) -> bool:
    """Whether every call of a routine stands behind a check that settles what its parameters among ``terms`` are:
    ``settles(condition, holds, terms)`` is asked with what the arguments are made of, there or above."""
    places = [at for at, one in enumerate(routine.parameters) if one.name in terms]
    sites = tree.callers(routine) if places and depth < _DEEPEST else ()
    return bool(sites) and all(_settled_at(tree, site, places, settles, depth) for site in sites)


def _settled_at(
    tree: CheckedTree, site: CallSite, places: list[int], settles: Callable[[str, bool, set[str]], bool], depth: int
) -> bool:
    known, given = known_values(site.caller), site.call.arguments
    passed = {term for at in places if at < len(given) for term in terms_of(given[at], known)}
    for point in points(site.caller.statements):
        if site.call in point.statement.calls:
            checks = checks_before(point.before, point.around, point.statement)
            if any(settles(condition, holds, passed) for condition, holds, _ in checks):
                return True
    return settled_above(tree, site.caller, passed, settles, depth + 1)


def _place(routine: Routine, name: str) -> int | None:
    return next((at for at, one in enumerate(routine.parameters) if one.name == name), None)
