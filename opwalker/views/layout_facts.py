"""Layout facts put together: accesses of one way as one fact, and what a caller has to hold to.

In: facts of single accesses, with what holds at each; comparisons of indexes with documented shapes. Out: facts as a
reader is told them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.values import Pointer, Several, Value, shown
from opwalker.model.access import Access
from opwalker.model.layout import LayoutFact, UntoldFact
from opwalker.notation.polynomial import Atom, Poly, of_atom
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
    if fact.verdict in ("not_decided", "undocumented") or not fact.through:
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


def untold_of(body: Body, silent: Iterable[str], cut: Mapping[str, int], ended: bool) -> tuple[UntoldFact, ...]:
    """What is not told of pointers that a kernel is given: those of ``silent`` that it names, and how many more ways
    there are of others; ``ended``: only the first accesses were looked at."""
    out = [UntoldFact(name, ways) for name, ways in cut.items()]
    pointers = {p.name for p in body.function.parameters if "*" in p.type} if body.function is not None else set()
    for name in pointers.intersection(silent):
        if found := re.search(rf"(?<![\w.>]){re.escape(name)}\b", body.expanded.text):
            out.append(UntoldFact(name, None, body.use_line(found.start())))
    out.sort(key=lambda one: (one.line, one.parameter))
    return (*out, *((UntoldFact("", None),) if ended else ()))


def options_of(value: Value) -> tuple[tuple[str, Pointer], ...]:
    """The addresses that a value can be, each with its branch."""
    if isinstance(value, Several):
        return value.options
    return (("", value),) if isinstance(value, Pointer) else ()


def choices_of(values: tuple[Value, ...]) -> Iterator[tuple[str | None, tuple[Value, ...]]]:
    """Arguments with one branch chosen at a time."""
    branches = dict.fromkeys(under for v in values if isinstance(v, Several) for under, _ in v.options)
    if not branches:
        yield None, values
    for branch in branches:
        yield branch, tuple(dict(v.options).get(branch, v) if isinstance(v, Several) else v for v in values)


def unplaced(offset: Poly, tensor: str, placed: dict[Atom, int]) -> str | None:
    """What an index is made with that is a stride of the tensor, but not known of which of its dimensions."""
    of_tensor = re.compile(rf"(?<!\w){re.escape(tensor)}(?:\.|->)stride\(")
    texts = (shown(of_atom(atom)) for atom in sorted(offset.atoms()) if atom not in placed)
    return next((text for text in texts if of_tensor.search(text)), None)
