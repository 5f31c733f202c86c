"""A device function with the functions of the tree that it calls, read once: events, assembly, and where they lead.

In: a kernel or device function and the unit it is read in. Out: ``Reading`` values. A call of a function that only
touches what it is given (``st_flag(p, v)``) is an event of the caller: that is where the flag is named. Calls that fit
several definitions are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.device_names import device_function
from opwalker.expand.frames import unit_of
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.types import TypeReader
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.assembly import AsmFact
from opwalker.model.body import CallFact
from opwalker.notation.cpp_expression import Expr, changed, parse_expression, print_expression
from opwalker.views.ops import shown_condition
from opwalker.views.spinning import waits_at
from opwalker.views.sync_events import WAITS, Event, assembly_of, events_of, plain_stores, root_of, type_text, under_of

#: Functions that one kernel's reading enters, and how deep its calls are followed.
MAX_FUNCTIONS = 150
MAX_DEPTH = 7
#: A function that only passes an access on has few events.
_FEW = 6
#: Readings kept before they are let go.
_MOST_KEPT = 400
#: Overloads of one name that are looked at together, and that are told by their number.
_OVERLOADS = 8
_MANY = 80


class Reading(Struct):
    """One function. ``events`` are its own and those of accessors it calls, in source order; ``calls`` are the other
    functions of the tree that it calls, each with its call; ``several`` the calls that can mean several overloads."""

    candidate: Candidate
    body: Body
    events: list[Event] = field(default_factory=list)
    calls: list[tuple[CallFact, Reading]] = field(default_factory=list)
    assembly: list[AsmFact] = field(default_factory=list)
    accessor: bool = False
    several: list[tuple[CallFact, tuple[Candidate, ...]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The function's qualified name."""
        return self.candidate.function.qualified_name

    def all(self) -> Iterator[Reading]:
        """The function and all below it, each once, callers first."""
        seen: set[tuple[str, int]] = set()
        pending = [self]
        while pending:
            one = pending.pop(0)
            if one.candidate.key not in seen:
                seen.add(one.candidate.key)
                yield one
                pending += [inner for _, inner in one.calls]


def reached_assembly(reading: Reading) -> tuple[AsmFact, ...]:
    """The inline assembly of a function and of all below it. What is compiled in only where a call is stands under the
    preprocessor conditions of that call too: of several ways to it, under those that all of them share."""
    terms: dict[tuple, tuple[str, ...]] = {reading.candidate.key: ()}
    pending = [reading]
    while pending:
        one = pending.pop(0)
        for call, inner in one.calls:
            key = inner.candidate.key
            way = dict.fromkeys((*terms[one.candidate.key], *one.body.condition_at(call.start)))
            made = tuple(term for term in terms.get(key, way) if term in way)
            if terms.get(key) != made:
                terms[key] = made
                pending.append(inner)
    out = []
    for one in reading.all():
        around = terms[one.candidate.key]
        for fact in one.assembly:
            own = (fact.condition,) if fact.condition else ()
            out.append(replace(fact, condition=shown_condition((*around, *own))) if around else fact)
    return tuple(out)


class _Own(Struct, frozen=True):
    """What a function says by itself: kept, whichever kernel reaches it."""

    body: Body
    events: tuple[Event, ...]
    assembly: tuple[AsmFact, ...]
    calls: tuple[tuple[CallFact, tuple[Candidate, ...]], ...]


class DeviceReader:
    """Reads device functions of one unit. What a function says is read once; what it leads to is put together anew for
    each kernel, so that no answer depends on what was asked before."""

    def __init__(self, workbench: Workbench, unit: Unit) -> None:
        self._workbench = workbench
        self._unit = unit
        self._types = TypeReader(workbench.index)
        self._own: dict[tuple[str, int, str], _Own] = {}
        self._made: dict[tuple[str, int, str], Reading | None] = {}

    @classmethod
    def of(cls, workbench: Workbench, unit: Unit) -> DeviceReader:
        """The reader of a unit: what it has read is kept with the unit."""
        found = unit.kept.get("device")
        if found is None:
            found = unit.kept["device"] = cls(workbench, unit)
        return found

    def kernel(self, candidate: Candidate, root: str) -> Reading:
        """A kernel, or any function that is a start."""
        self._made = {}
        if len(self._own) > _MOST_KEPT:
            self._own.clear()
        return self._read(candidate, root, 0)

    def _read(self, candidate: Candidate, root: str, depth: int) -> Reading:
        key = (*candidate.key, root)
        self._made[key] = None  # what calls itself is not followed
        own = self._own_of(candidate, root)
        reading = Reading(candidate, own.body, list(own.events), [], list(own.assembly))
        for call, named in own.calls:
            candidates = _fitting(call, own.body, named)
            if len(candidates) > _OVERLOADS:
                reading.several.append((call, candidates))
                continue
            found = [inner for one in candidates if (inner := self._called(one, root, depth)) is not None]
            inner = found[0] if len(found) == 1 == len(candidates) else _alike(found) if found else None
            if inner is None and len(candidates) > 1:
                reading.several.append((call, candidates))
            if inner is not None:
                reading.calls.append((call, inner))
                if inner.accessor:
                    reading.events += _lifted(inner, call, own.body, self._condition(inner.candidate, candidate))
        reading.events += plain_stores(own.body, reading.events)
        reading.events.sort(key=lambda event: event.start)
        reading.accessor = _is_accessor(reading)
        self._made[key] = reading
        return reading

    def _condition(self, inner: Candidate, outer: Candidate) -> tuple[str, ...]:
        """The preprocessor conditions that a function stands under and its caller does not."""
        terms, around = (
            self._workbench.index.declared(one.path).conditions[one.function.condition] for one in (inner, outer)
        )
        return tuple(term for term in terms if term not in around)

    def _own_of(self, candidate: Candidate, root: str) -> _Own:
        key = (*candidate.key, root)
        if key not in self._own:
            body = self._unit.bodies.of(candidate, root, device=True)
            calls = [(call, self.candidates(call, body)) for call in body.facts.calls]
            self._own[key] = _Own(
                body,
                tuple(events_of(body)),
                tuple(assembly_of(body, candidate.function.qualified_name)),
                tuple((call, found) for call, found in calls if found),
            )
        return self._own[key]

    def _called(self, candidate: Candidate, root: str, depth: int) -> Reading | None:
        inner_root = unit_of(self._workbench.index, candidate, root)
        key = (*candidate.key, inner_root)
        if key in self._made:
            return self._made[key]
        if len(self._made) >= MAX_FUNCTIONS or depth >= MAX_DEPTH:
            return None
        return self._read(candidate, inner_root, depth + 1)

    def candidates(self, call: CallFact, body: Body) -> tuple[Candidate, ...]:
        """The definitions that a call can mean; none where they are a guess, or too many not to be."""
        names = self._workbench.index.names_of_kind("function")
        if call.simple not in names:
            return ()
        context = Context(body.path, body.root, body.context.scope, body.context.usings, body.context.aliases)
        if call.receiver is None:
            if call.simple in body.locals:
                return ()
            found = device_function(
                self._workbench.index, self._unit.resolver, call.name, context, len(call.arguments)
            )
        else:
            kind = type_text(body, body.text(call.receiver), call.start)
            owner = self._types.class_name(kind, context) if kind else None
            if owner is None:
                return ()
            found = self._unit.resolver.method(call.simple, owner, context, len(call.arguments))
        names = {one.function.qualified_name for one in found.candidates}
        if found.loose or (len(found.candidates) > _OVERLOADS and len(names) > 1):
            return ()
        return found.candidates if len(found.candidates) <= _MANY else ()


def _fitting(call: CallFact, body: Body, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """The overloads that take what a call passes, as far as the declared types of its arguments tell."""
    left = candidates
    for number, span in enumerate(call.arguments):
        if len(left) < 2:
            break
        given = _bare_type(type_text(body, body.text(span), call.start))
        fits = [
            c for c in left
            if number < len(c.function.parameters) and _bare_type(c.function.parameters[number].type) == given
        ]  # fmt: skip
        left = tuple(fits) if given and fits else left
    return left


def _bare_type(text: str) -> str:
    return " ".join(re.sub(r"\b(?:const|volatile|__restrict__|__restrict)\b|[*&]|\[[^\]]*\]", " ", text).split())


def _alike(readings: list[Reading]) -> Reading | None:
    """One reading for overloads that do the same to what they are given, but for its type; None where they differ."""
    first = readings[0]
    if len(readings) < 2 or not all(one.accessor for one in readings):
        return None
    said = {tuple((e.kind, e.order, e.scope, e.condition) for e in one.events) for one in readings}
    if len(said) != 1:
        return None
    events = []
    for number, event in enumerate(first.events):
        texts = [one.events[number].text.split(".") for one in readings]
        shared = [parts[0] for parts in zip(*texts, strict=False) if len(set(parts)) == 1]
        means = re.sub(r" of \d+ bytes?", "", event.means)
        events.append(replace(event, text=".".join(shared) or event.text, means=means))
    return replace(first, events=events)


def _is_accessor(reading: Reading) -> bool:
    """Whether a function only touches memory that it is given the address of."""
    function = reading.candidate.function
    if "global" in function.flags or not 0 < len(reading.events) <= _FEW:
        return False
    names = {p.name for p in function.parameters}
    addressed = [e for e in reading.events if e.address is not None]
    if not addressed or any(e.kind.endswith("barrier") or e.kind == "barrier" for e in reading.events):
        return False
    return all(_root_parameter(reading.body, e) in names for e in addressed) and not any(
        not inner.accessor and inner.events for _, inner in reading.calls
    )


def _root_parameter(body: Body, event: Event) -> str | None:
    """The parameter that an event's address begins with, through locals that hold it."""
    text = event.address or ""
    for _ in range(3):
        root = root_of(text)
        held = body.locals_at(root, event.start) if root else []
        values = [f for f in held if f.value is not None]
        if not values:
            return root
        text = _argument(body.text(values[-1].value))
    return None


def _argument(text: str) -> str:
    """The address that is turned into another form: ``__cvta_generic_to_shared(p)`` is about ``p``."""
    expr = parse_expression(text)
    while expr.kind == "call" and len(expr.parts) == 2:
        expr = expr.parts[1]
    while expr.kind == "cast":
        expr = expr.parts[0]
        if expr.kind == "call" and len(expr.parts) == 2:
            expr = expr.parts[1]
    return print_expression(expr)


def _lifted(inner: Reading, call: CallFact, body: Body, condition: tuple[str, ...]) -> Iterator[Event]:
    """An accessor's events as those of its caller, in terms of what it passes; ``condition`` is what it alone stands
    under. A value that it works out itself is not said."""
    given = {
        p.name: parse_expression(body.text(span))
        for p, span in zip(inner.candidate.function.parameters, call.arguments, strict=False)
    }

    def put(text: str | None, event: Event) -> str | None:
        if text is None:
            return None
        expr = parse_expression(text)
        if expr.kind == "name" and expr.text not in given:
            root = _root_parameter(inner.body, event)
            expr = Expr("name", root) if root is not None else expr
        return print_expression(changed(expr, lambda n: given.get(n.text) if n.kind == "name" else None))

    for number, event in enumerate(inner.events):
        asked = put(event.address, event) if "load" in event.kind else None
        yield replace(
            event,
            address=put(event.address, event),
            value=put(event.value, event) if _is_given(event.value, inner, given) else None,
            start=call.start + number,
            line=body.use_line(call.start),
            under=(*under_of(body, call.start), *event.under),
            condition=tuple(dict.fromkeys((*body.condition_at(call.start), *condition, *event.condition))),
            spins=(WAITS.search(event.kind) is not None and waits_at(body, call.start, call.end, asked)) or event.spins,
            at=event.at or (inner.candidate.path, event.line),
            through=event.through or inner.name,
        )


def _is_given(text: str | None, inner: Reading, given: Mapping[str, Expr]) -> bool:
    """Whether a value is made of parameters alone, and none of the function's own variables."""
    return not any(name in inner.body.locals and name not in given for name in words_in(text or ""))


def words_in(text: str) -> set[str]:
    """The identifiers of a text."""
    return set(re.findall(r"[A-Za-z_]\w*", text))
