"""Which instances the host can never launch: what leads to a launch contradicts what is known of a value.

In: the environment of a mention (one instance). Out: ``Never`` with the contradiction, or None: it may run, or nobody
knows. Only what holds on every run counts: branches and checks that the launch stands behind, and what a value is made
from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.environment import Environment
from opwalker.expand.frames import Frame
from opwalker.expand.instances import InstanceReader
from opwalker.model.body import CallFact
from opwalker.model.reach import KernelRef, LaunchSite, Never, Reach
from opwalker.model.walk import Unreachable
from opwalker.notation.cpp_expression import Expr, negated, parse_expression, print_expression
from opwalker.notation.regex import Regex
from opwalker.views.branches import Branches
from opwalker.views.checks import Demand, demands_of
from opwalker.views.known_values import Contradiction, Known
from opwalker.views.value_names import ValueNames

#: Instances judged in one walk, calls on the way to one, and ways of a call, before nothing more is said.
_MAX_JUDGED, _MAX_CALLERS, _MAX_WAYS = 4000, 8, 8
#: Checks that are there in every build and do not return where what they test is false.
_RAISING = Regex(
    r"(?:STD_)?TORCH_CHECK\w*|TORCH_INTERNAL_ASSERT|TVM_FFI_(?:I?CHECK)(?:_[A-Z]{2})?|AT_ASSERT\w*|AT_CHECK"
)
_ENDS = Regex(r"\bbreak\s*;\s*\}*\s*\Z")
_LABEL = Regex(r"\s*case\b[^{};]*:\s*")


class _Condition(Struct, frozen=True):
    """A condition of a body that holds at a place of it. ``relates`` where it may say more once other conditions are
    known: it offers a choice, or compares two values that vary."""

    expr: Expr
    offset: int
    line: int
    told: str
    relates: bool


class _Fact(Struct, frozen=True):
    """A condition that holds, in the environment that it is written in."""

    condition: _Condition
    environment: Environment


class _Ground(Struct, frozen=True):
    """What is known where a function is entered, or behind checks of it. ``relations`` are conditions that may say more
    once other values are known, each with the keys that it is about; ``relies`` the numbers of the functions for which
    it counts that nobody else calls them."""

    known: Known
    relations: tuple[tuple[_Fact, frozenset[tuple]], ...] = ()
    relies: frozenset[int] = frozenset()


class Judge:
    """Judges the instances of one walk."""

    def __init__(self) -> None:
        self._names = ValueNames()
        self._read: dict[int, tuple[Body, Branches, list[tuple[Demand, list[int]]]]] = {}
        self._held: dict[tuple[int, int], tuple[tuple[_Condition, ...], tuple[_Condition, ...]]] = {}
        self._entered: dict[int, list[_Ground] | Never] = {}
        self._checked: dict[tuple, list[_Ground] | Never] = {}
        self._left = _MAX_JUDGED

    def __call__(self, environment: Environment, reader: InstanceReader) -> Never | None:
        """Why a place can never be reached; None where it can, or where that is not known."""
        self._left -= 1
        if self._left < 0:
            return None
        checks, inner = self._facts(environment, environment.offset)
        told: Never | None = None
        grounds = self._grounds(environment, checks, reader)
        if isinstance(grounds, Never):
            return grounds
        for ground in grounds:
            told = self._never(inner, ground)
            if told is None:
                return None
        if told is not None and told.relies:
            # What this function says alone counts whoever calls it.
            told = self._never([*checks, *inner], _Ground(Known(self._names))) or told
        return told

    # -- what is known ------------------------------------------------------------------------------------------------

    def _grounds(
        self, environment: Environment, checks: list[_Fact], reader: InstanceReader, depth: int = 0
    ) -> list[_Ground] | Never:
        """What is known behind the checks of a body: one for each way to enter it that the checks let through."""
        frame = environment.frame
        number = frame.number if frame is not None else 0
        place = (number, id(environment.body), *(fact.condition.offset for fact in checks))
        found = self._checked.get(place)
        if found is None:
            found = self._entries(frame, reader, depth) if frame is not None else [_Ground(Known(self._names))]
            if not isinstance(found, Never):
                found = _left([self._behind(entry, checks) for entry in found])
            self._checked[place] = found
        return found

    def _entries(self, frame: Frame, reader: InstanceReader, depth: int) -> list[_Ground] | Never:
        """What is known where a function is entered: one for each way to get there; nothing where they are many. A
        function that is entered by no way is never entered."""
        nothing = [_Ground(Known(self._names))]
        if frame.caller is None or depth >= _MAX_CALLERS:
            return nothing
        held = self._entered.get(frame.number)
        if held is not None:
            return held
        self._entered[frame.number] = nothing
        outer, body, call = frame.caller
        found: list[_Ground | Never] = []
        environments = list(islice(reader.environments(body, outer, call.start), _MAX_WAYS + 1))
        if len(environments) > _MAX_WAYS:
            return nothing
        for around in environments:
            checks, inner = self._facts(around, call.start)
            before = self._grounds(around, checks, reader, depth + 1)
            ways = [before] if isinstance(before, Never) else [self._behind(b, inner) for b in before]
            found += (replace(way, relies=way.relies | {frame.number}) for way in ways)
            if len(found) > _MAX_WAYS:
                return nothing
        self._entered[frame.number] = _left(found) if found else nothing
        return self._entered[frame.number]

    def _behind(self, ground: _Ground, facts: list[_Fact]) -> _Ground | Never:
        """What is known where conditions hold besides; why they cannot where that is so."""
        known = ground.known.copy()
        told = self._never(facts, ground, known)
        if told is not None:
            return told
        relations = tuple(
            (fact, self._names.keys(fact.condition.expr, fact.environment))
            for fact in facts
            if fact.condition.relates and not self._names.settles(fact.condition.expr, fact.environment)
        )
        return _Ground(known, (*ground.relations, *relations), ground.relies)

    @staticmethod
    def _never(facts: Sequence[_Fact], ground: _Ground, known: Known | None = None) -> Never | None:
        """Why conditions cannot hold behind a ground; where they can, what they say is taken into ``known``, which is
        what is known there."""
        known = ground.known.copy() if known is None else known
        told = _contradicted(facts, known)
        if told is None:
            # What is known now may decide a condition from before.
            again = [fact for fact, keys in ground.relations if keys & known.touched]
            told = _contradicted([*again, *facts], known.copy()) if again else None
        if told is None:
            return None
        fact, why = told
        return Never(why, fact.environment.body.path, fact.condition.line, ground.relies)

    # -- what holds ---------------------------------------------------------------------------------------------------

    def _facts(self, environment: Environment, offset: int) -> tuple[list[_Fact], list[_Fact]]:
        """What holds at an offset of a body: the checks that are the same for all its instances, and the rest."""
        body = environment.body
        branches, checks = self._conditions(body, offset)
        inner: dict[tuple[int, str], _Fact] = {}
        outside: dict[tuple[int, str], _Fact] = {}
        read = [held for held in body.enclosing_lambdas(offset) if environment.choices.get(held.start) is not None]
        for held in read:
            # A lambda runs where it is called: what holds there holds in it.
            start = getattr(environment.choices[held.start], "start", None)
            if start is not None and not held.start <= start < held.end:
                for held_facts, facts in zip((outside, inner), self._facts(environment.at(start), start), strict=True):
                    held_facts.update({(f.condition.offset, f.condition.told): f for f in facts})
        for one in (*checks, *branches):
            within = any(held.body[0] <= one.offset < held.body[1] for held in read)
            alone = within or one in branches
            (inner if alone else outside).setdefault((one.offset, one.told), _Fact(one, environment.at(one.offset)))
        return list(outside.values()), list(inner.values())

    def _conditions(self, body: Body, offset: int) -> tuple[tuple[_Condition, ...], tuple[_Condition, ...]]:
        """The branches around an offset, outermost first, and the checks before it, whatever is looked for."""
        key = (id(body), offset)
        if key not in self._held:
            held = self._read.get(id(body))
            if held is None:
                branches = Branches(body)
                held = self._read[id(body)] = (body, branches, _passed(body, branches))
            _, branches, passed = held
            self._held[key] = (tuple(_around(body, branches, offset)), tuple(_before(body, branches, passed, offset)))
        return self._held[key]


def _left(ways: Sequence[_Ground | Never]) -> list[_Ground] | Never:
    """The ways that lead on; where none does, why."""
    open_ = [way for way in ways if isinstance(way, _Ground)]
    if open_:
        return open_
    closed = [way for way in ways if isinstance(way, Never)]
    # It counts for all of them together who calls the functions on the way.
    return replace(closed[0], relies=frozenset().union(*(way.relies for way in closed)))


def _contradicted(facts: Sequence[_Fact], known: Known) -> tuple[_Fact, str] | None:
    """The first condition that contradicts what is known, and why."""
    for again in (False, True):
        for fact in facts:
            if not again or fact.condition.relates:
                try:
                    known.hold(fact.condition.expr, fact.environment, fact.condition.told)
                except Contradiction as contradiction:
                    return fact, str(contradiction)
    return None


def unreachable(references: Sequence[KernelRef], reach: Reach) -> tuple[Unreachable, ...]:
    """The instances that none of the mentions launches. What depends on who calls a function does not count for one
    that is called in several ways, or where the walk was cut off."""
    if reach.truncated or any(not reference.certain for reference in references):
        return ()
    reached: set[str] = set()
    never: dict[str, Never] = {}
    for reference in references:
        told = {text: why for text, why in reference.never if not why.relies & reach.again}
        reached.update(text for text in reference.instances if text not in told)
        never.update(told)
    return tuple(
        Unreachable(text, why.reason, why.line, why.path) for text, why in sorted(never.items()) if text not in reached
    )


def _around(body: Body, branches: Branches, offset: int) -> Iterator[_Condition]:
    """The branches and ternaries that an offset stands in."""
    seen: set[tuple[str, int]] = set()
    for inner in branches.chain(branches.innermost(offset)):
        made = _own(body, branches, inner)
        if made is not None and (made.told, made.offset) not in seen:
            seen.add((made.told, made.offset))
            if made.expr.kind != "raw" and not _falls_in(body, inner):
                yield made
    for condition, taken, other in body.facts.ternaries:
        for (start, end), turned in ((taken, False), (other, True)):
            if start <= offset < end:
                expr = parse_expression(body.text(condition))
                yield _condition(body, negated(expr) if turned else expr, condition[0])


def _own(body: Body, branches: Branches, number: int) -> _Condition | None:
    """What a block itself is entered by; None where that is nothing."""
    held: dict[int, _Condition | None] = body.kept.setdefault("conditions of blocks", {})
    if number not in held:
        guard = branches.guard(number)
        held[number] = _condition(body, guard.condition, guard.offset) if guard is not None else None
    return held[number]


def _before(
    body: Body, branches: Branches, passed: Sequence[tuple[Demand, list[int]]], offset: int
) -> Iterator[_Condition]:
    """What the checks demand that have been passed wherever an offset is reached."""
    within = set(branches.chain(branches.innermost(offset)))
    for demand, around in passed:
        # A check of some builds alone turns nothing away in the others.
        if demand.offset < offset and within.issuperset(around) and body.only_where(demand.offset, offset) == ():
            yield _condition(body, demand.condition, demand.offset, "the check ")


def refused(body: Body, site: LaunchSite, kernel: str) -> tuple[str, int] | None:
    """Why a launch through a variable never starts a kernel that it can hold, and the line: a check before it raises
    where it does (``if (kernel == none) { TORCH_CHECK(false); }``). ``kernel`` is a simple name."""
    name = site.expression.strip("&() ")
    if not re.fullmatch(r"[A-Za-z_]\w*", name) or site.copies:
        return None
    branches = Branches(body)
    within = set(branches.chain(branches.innermost(site.at)))
    for demand, around in _passed(body, branches):
        if demand.offset < site.at and within.issuperset(around) and body.only_where(demand.offset, site.at) == ():
            changed = any(demand.offset < one.start < site.at for one in body.assigns_at(name, site.at))
            if not changed and _differ(demand.condition) == {name, kernel}:
                told = _condition(body, demand.condition, demand.offset, "the check ").told
                return f"{told} raises before", body.use_line(demand.offset)
    return None


def _differ(condition: Expr) -> set[str]:
    """The two names that a condition says differ, without qualifiers; nothing for any other condition."""
    if condition.kind != "binary" or condition.text != "!=":
        return set()
    sides = [part.parts[0] if part.kind == "unary" and part.text == "&" else part for part in condition.parts]
    return {side.text.rsplit("::", 1)[-1] for side in sides} if all(side.kind == "name" for side in sides) else set()


def _condition(body: Body, expr: Expr, offset: int, what: str = "") -> _Condition:
    line = body.use_line(offset)
    return _Condition(expr, offset, line, f"{what}{print_expression(expr)} (:{line})", _relates(expr))


def _relates(expr: Expr) -> bool:
    if expr.kind == "binary" and expr.text in ("||", "&&"):
        return expr.text == "||" or any(_relates(part) for part in expr.parts)
    return expr.kind == "binary" and all(part.kind != "number" and "::" not in part.text for part in expr.parts)


def _passed(body: Body, branches: Branches) -> list[tuple[Demand, list[int]]]:
    """The checks of a body, each with the branches around it: it has been passed by whatever stands in all of these.

    What always raises is no check of its own: the branches that lead to it are, and they stand further out.
    """
    out = []
    calls: dict[int, CallFact] = {}
    for call in body.facts.calls:
        calls.setdefault(call.start, call)
    for demand in demands_of(body):
        number = branches.innermost(demand.offset)
        call = calls.get(demand.offset)
        if call is not None and not _RAISING.fullmatch(call.simple):
            continue
        if call is None or body.text(call.arguments[0]) in ("false", "0"):
            number = branches.failed(number)[1]
        out.append((demand, branches.chain(number)))
    return out


@lru_cache(maxsize=1024)
def _falls_in(body: Body, number: int) -> bool:
    """Whether a case may be entered from the one above it."""
    blocks = body.facts.blocks
    if blocks[number].kind != "case":
        return False
    before = [n for n in range(number) if blocks[n].kind == "case" and blocks[n].parent == blocks[number].parent]
    for other in reversed(before):
        text = body.expanded.full[blocks[other].start : blocks[other].end]
        if not _LABEL.fullmatch(text):
            return not _ENDS.search(text) and not any(e.block == other for e in body.facts.exits)
    return False
