"""Layout facts put together: accesses of one way as one fact, and what a caller has to hold to.

In: facts of single accesses, with what holds at each; comparisons of indexes with documented shapes. Out: facts as a
reader is told them.
"""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.model.access import Access
from opwalker.model.layout import LayoutFact
from opwalker.views.index_compare import Comparison
from opwalker.views.kernel_conditions import either, joined, tests_more


def as_passed(access: Access, written: bool, read: bool) -> Access:
    """An access to an element that a function is passed, as what that function does with it."""
    return Access(access.kind, access.start, access.end, access.base, access.index, written, read, 0)


def kind_of(access: Access) -> str:
    """How an element is accessed, in words."""
    if not access.written and not access.read:
        return "passed on"
    return "read, write" if access.written and access.read else "write" if access.written else "read"


def way_of(fact: LayoutFact) -> tuple:
    """What tells two ways of addressing apart: within a helper, everything but the innermost coordinate."""
    if fact.verdict == "not_decided" or not fact.through:
        return fact.parameter, fact.computed, fact.verdict, fact.through, fact.reason, fact.under
    return fact.parameter, fact.under, fact.coordinates[:-1], fact.verdict, fact.through, fact.line, fact.width


def one_way(found: list[tuple[LayoutFact, tuple[str, ...]]]) -> list[LayoutFact]:
    """Facts of one way as one: the shortest index stands for the others, under what holds at all of them. What is read
    under other conditions than it is written under is told apart."""
    kinds = dict.fromkeys(kind for fact, _ in found for kind in fact.access.split(", "))
    order = [kind for kind in ("read", "write", "passed on") if kind in kinds]
    of_kind = {kind: [one for one in found if kind in one[0].access.split(", ")] for kind in order}
    held = {kind: either([conditions for _, conditions in of_kind[kind]]) for kind in order}
    where = {kind: (joined(conditions), tests_more(conditions)) for kind, conditions in held.items()}
    out = []
    for condition in dict.fromkeys(where.values()):
        told = [kind for kind in order if where[kind] == condition]
        facts = list(dict.fromkeys(fact for kind in told for fact, _ in of_kind[kind]))
        shortest = min(facts, key=lambda f: (len(f.computed), f.computed))
        widths = dict.fromkeys(fact.width or "1 element" for fact in facts)
        width = None if tuple(widths) == ("1 element",) else " or ".join(widths)
        lines = sorted({fact.line for fact in facts})
        said, more = condition
        at_all = (one for one in held[told[0]] if said)
        under = joined((*((shortest.under,) if shortest.under else ()), *at_all)) or None
        also_at, access = tuple(lines[1:]), ", ".join(told)
        out.append(
            replace(shortest, access=access, width=width, under=under, line=lines[0], also_at=also_at, tests_more=more)
        )
    return out


def requirements(tensor: str, names: tuple[str, ...], made: Comparison) -> tuple[str, ...]:
    """What a caller has to hold to: the dimensions whose strides are not passed lie densely."""
    if made.verdict not in ("equal", "equal_with_strides"):
        return ()
    passed = {p.first for p in made.parts if p.passed}
    if not passed:
        return (f"{tensor} is contiguous",) if len(names) > 1 else ()
    dense = [name for number, name in enumerate(names) if number not in passed]
    if dense and dense == list(names[len(names) - len(dense) :]):
        return (f"{tensor} is contiguous from dimension {dense[0]} on",)
    return (f"{tensor} is contiguous in {', '.join(dense)}",) if dense else ()
