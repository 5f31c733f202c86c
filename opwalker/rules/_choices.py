"""Whether a selection covers all that its value can be: read by the rule about selections without a last branch.

In: the statement of a chain of ``if``s or of a ``switch``, with its surroundings. Out: whether checks before it, the
callers, the value's type or the way it was made leave nothing for which there is no branch.
"""

from __future__ import annotations

import re

from opwalker.model.check import CheckedTree
from opwalker.model.statements import Routine, Statement
from opwalker.rules._above import asked_above
from opwalker.rules._launches import Point, locals_of_point
from opwalker.rules._values import checks_before, limits, terms_of
from opwalker.rules._writes import alternatives

_COMPARED = re.compile(r"(\w[\w.]*(?:->\w+)*)\s*==\s*([\w:]+)")
_ROUNDS = re.compile(r"(?i)pow(?:er)?_?(?:of_?)?(?:2|two)|bit_ceil")


def nothing_left(tree: CheckedTree, routine: Routine, point: Point) -> bool:
    """Whether no value is known to be left without a branch."""
    one = point.statement
    return (
        _decided(point, one)
        or _decided_above(tree, routine, one)
        or _all_of_an_enumeration(tree, one)
        or _powers_of_two(point, one)
        or _chosen_here(tree, routine, point, one)
    )


def _decided(point: Point, one: Statement) -> bool:
    """Whether an earlier check leaves no other value."""
    asked = terms_of(one.text, {})
    checks = list(checks_before(point.before, point.around, point.statement))
    if any(terms_of(text, {}) & asked and ("==" if holds else "!=") in text for text, holds, _ in checks):
        return True
    numbers = sorted(int(value) for value in _values(one)[1] if value.isdigit())
    if len(numbers) < 3 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return False
    # A number after the other has a branch, and something keeps the value below a last one.
    made = terms_of(one.text, locals_of_point(point))
    return any(True for text, holds, _ in checks for _ in limits(text, holds, made))


def _decided_above(tree: CheckedTree, routine: Routine, one: Statement) -> bool:
    """Whether what is chosen by came in as a parameter, or in one, and every caller has checked it."""
    asked = {term for term in terms_of(one.text, {}) if "(" not in term}
    return bool(asked) and any(asked_above(tree, routine, term) for term in asked)


def _values(one: Statement) -> tuple[str, tuple[str, ...]]:
    """What a chain or a ``switch`` asks for by equality alone, and what it is compared with; else empty."""
    if one.kind == "switch":
        return one.text.strip("() "), tuple(held.text.strip() for held in one.body if held.kind == "case" and held.text)
    values: list[str] = []
    asked = ""
    while True:
        found = _COMPARED.fullmatch(one.text.strip("() "))
        if found is None or asked not in ("", found[1]):
            return "", ()
        asked = found[1]
        values.append(found[2])
        if len(one.orelse) != 1 or one.orelse[0].kind != "if":
            return asked, tuple(values)
        one = one.orelse[0]


def _all_of_an_enumeration(tree: CheckedTree, one: Statement) -> bool:
    """Whether there is a branch for each member of an enumeration."""
    _, values = _values(one)
    parts = [value.rsplit("::", 1) for value in values]
    if not parts or any(len(part) < 2 for part in parts) or len({part[0] for part in parts}) > 1:
        return False
    named = {part[1] for part in parts}
    return any(members and set(members) <= named for members in tree.enumerations(parts[0][0]))


def _chosen_here(tree: CheckedTree, routine: Routine, point: Point, one: Statement) -> bool:
    """Whether the value was chosen among those that have a branch: by a choice or assignments of the routine, or by a
    function of the source that returns nothing else."""
    asked, values = _values(one)
    branches = {_last(text) for text in values}
    chosen = {_last(text) for text in alternatives(locals_of_point(point).get(asked, ""))}
    if len(chosen) > 1 and chosen <= branches:
        return True
    assigned = {_last(a.value) for held in routine.walk() for a in held.assigns if a.target.strip() == asked}
    return (len(assigned) > 1 and assigned <= branches) or _returned(tree, routine, point, asked) <= branches


def _returned(tree: CheckedTree, routine: Routine, point: Point, asked: str) -> set[str]:
    """The numbers that a function returns which a local is initialised by; what is in no branch where it is none."""
    for one in (*point.before, *point.around):
        for call in one.calls if any(d.name == asked for d in one.declares) else ():
            for target in tree.targets(routine, call):
                returns = [held.text for held in target.walk() if held.kind == "return"]
                texts = [text for returned in returns for text in alternatives(returned)]
                return {number for text in texts for number in re.findall(r"\b\d+\b", text) or ("?",)}
    return {"?"}


def _last(text: str) -> str:
    return text.rsplit("::", 1)[-1].strip("() {}")


def _powers_of_two(point: Point, one: Statement) -> bool:
    """Whether the branches are for powers of two, and the value is rounded to one: what is left may be nothing."""
    asked, values = _values(one)
    numbers = [int(value) for value in values if value.isdigit()]
    if len(numbers) < max(len(values), 2) or any(number & (number - 1) for number in numbers):
        return False
    known = locals_of_point(point)
    return any(_ROUNDS.search(known.get(term, "")) for term in terms_of(asked, known))
