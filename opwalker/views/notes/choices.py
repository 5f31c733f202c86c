"""Dispatch in a note: what is decided at run time, in order, what each branch binds or calls, what raises, and which
instances of each kernel that compiles and why.

In: one implementation. Out: a section, None where nothing is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from math import prod

from msgspec.structs import replace

from opwalker.model.axis import Axis, AxisOrigin
from opwalker.model.notes import Block, Cell, NoteSection, Run, Statement, Statements, Table, Text
from opwalker.model.walk import Branching, Dispatch, DispatchFailure, DispatchRow, Implementation, Launch, Span
from opwalker.notation.outermost import bare_names
from opwalker.views.notes.words import an, both, code, codes, condition, count, line, marked, message, some, statement

#: More rows or instances than this are folded.
_ROWS = 12
#: Places of one template parameter's values that are told, and groups of values by another parameter.
_PLACES, _GIVEN = 4, 6


def dispatch_section(chosen: Implementation) -> NoteSection | None:
    """The choices in source order, then the instances of each kernel."""
    blocks: list[Block] = []
    names = [one.name for one in chosen.host.parameters] if chosen.host else []
    seen: set[tuple[object, ...]] = set()
    for use in chosen.dispatch:
        rows = tuple((row.under, row.values) for row in use.rows)
        key = (use.macro, use.on, use.axes, rows, tuple((one.words, one.message) for one in use.fails))
        if key in seen:
            where = _where(use.under, names)
            said = statement(code(use.macro), " again, on the same", *where, ".", at=[line(use.file, use.line)])
            blocks.append(Statements((said,)))
            continue
        seen.add(key)
        blocks += _dispatch(use, names)
    for choice in chosen.branches:
        blocks += _branching(choice, names)
    by_kernel: dict[str, list[Launch]] = {}
    for launch in chosen.launches:
        by_kernel.setdefault(launch.kernel, []).append(launch)
    for kernel, launches in by_kernel.items():
        blocks += _instances(kernel, launches)
    return NoteSection("dispatch", "Dispatch and instances", tuple(blocks)) if blocks else None


def _dispatch(use: Dispatch, names: Sequence[str]) -> Iterator[Block]:
    several = len(use.axes) > 1 or "," in (use.binds or "")
    below = []
    if use.on and use.on_value:
        below.append(statement("There, ", code(use.on), " is ", code(use.on_value), "."))
    for number, axis in enumerate(use.axes if len(use.axes) > 1 else ()):
        binds = (", and binds ", codes(axis.binds)) if axis.binds else ()
        word = "First it tests " if not number else "Then "
        below.append(statement(word, code(axis.on), " for ", codes(axis.tests, "or"), *binds, "."))
    counts = [len(axis.tests) for axis in use.axes]
    if len(counts) > 1 and prod(counts) == len(use.rows):
        below.append(statement(f"That makes {' × '.join(map(str, counts))} = {len(use.rows)} branches."))
    below += _failures(use.fails, [*names, use.on or ""])
    on = (" on ", code(use.on)) if use.on and len(use.axes) < 2 else ()
    binds = (" binds ", code(use.binds)) if use.binds else ()
    to = (" to ", codes(use.values, "or")) if use.values and not several else ()
    at = [line(use.file, use.line), use.defined_at]
    where = _where(use.under, names)
    yield Statements((statement("The macro ", code(use.macro), *on, *binds, *to, *where, ".", at=at, below=below),))
    if several and use.rows:
        yield _rows(use.rows, use.binds or "binds", use.defined_at.file if use.defined_at else None, names)


def _where(under: Sequence[str], names: Sequence[str]) -> tuple[str | Text, ...]:
    """Under which conditions a choice is made at all."""
    return (", where ", condition(both(under), names)) if under else ()


def _rows(rows: Sequence[DispatchRow], head: str, file: str | None, names: Sequence[str]) -> Table:
    cells = tuple(
        (Cell(condition(both(row.under) or "otherwise", names)), Cell(some(row.values, 6, ","))) for row in rows
    )
    return Table(("Where", head), cells, f"{len(rows)} branches" if len(rows) > _ROWS else "")


def _failures(fails: Sequence[DispatchFailure], names: Sequence[str]) -> list[Statement]:
    out = []
    for one in fails:
        unless = (" unless ", condition(one.words, names)) if one.words else ()
        said = _failing(one.message) if one.message else ()
        out.append(statement("It raises", *unless, *said, ".", at=[line(one.file, one.line)]))
    return out


def _failing(text: str) -> tuple[str | Text, ...]:
    """The message; a macro that only takes the name of what failed says no more than that."""
    if re.fullmatch(r'"\w+"', text):
        return (", naming ", code(text.strip('"')))
    return (": ", message(text))


def _branching(choice: Branching, names: Sequence[str]) -> Iterator[Block]:
    on = (" on ", code(choice.on)) if choice.on else ()
    yield Statements(
        (
            statement(
                an(choice.kind), " ", code(choice.kind), *on, " in ", code(choice.function), " chooses what is called",
                *_where(choice.under, names), ".",
                at=[line(choice.file, choice.line)], below=_failures(choice.fails, [*names, choice.on]),
            ),
        )
    )  # fmt: skip
    if choice.rows:
        # Which instance of a kernel is called, another choice within the branch says.
        rows = [replace(row, values=tuple(bare_names(row.values))) for row in choice.rows]
        yield _rows(rows, "calls", choice.file, names)


def _instances(kernel: str, launches: Sequence[Launch]) -> Iterator[Block]:
    instances = tuple(dict.fromkeys(one for launch in launches for one in launch.instances))
    complete = all(launch.complete for launch in launches)
    if instances == ("",):
        yield Statements((statement(code(kernel), " is no template."),))
        return
    below = [_axis(axis, launches) for axis in _axes(launches)]
    below += _never(launches)
    if complete:
        head = statement(code(kernel), f" is compiled in {count(len(instances), 'instance')}.", below=below)
    else:
        why = next((launch.why_incomplete for launch in launches if launch.why_incomplete), None)
        known = f" is compiled in {count(len(instances), 'known instance')}, perhaps more: "
        head = statement(code(kernel), known, marked(why or "an argument could not be enumerated"), ".", below=below)
    yield Statements((head,))
    if instances:
        fold = f"{count(len(instances), 'instance')} of {kernel}"
        yield Statements(tuple(statement(code(f"<{one}>")) for one in instances), fold)


def _axes(launches: Sequence[Launch]) -> list[Axis]:
    """The template parameters of a kernel over all its launches: values and their places put together."""
    out: dict[str, Axis] = {}
    for axis in (axis for launch in launches for axis in launch.axes):
        held = out.get(axis.parameter)
        if held is None:
            out[axis.parameter] = axis
            continue
        values = tuple(dict.fromkeys((*held.values, *axis.values)))
        origins = tuple(dict.fromkeys((*held.origins, *axis.origins)))
        same = held.depends_on == axis.depends_on and held.given == axis.given
        out[axis.parameter] = Axis(
            axis.parameter, values, origins, held.depends_on if same else "*", held.given if same else ()
        )
    return list(out.values())


_WHY = {
    "macro": "from the macro ",
    "switch": "from a switch on ",
    "argument": "written as ",
    "local": "from the constant ",
    "deduced": "from the type of ",
    "default": "the default ",
    "computed": "worked out from ",
    "instantiation": "from the explicit instantiation ",
}


def _axis(axis: Axis, launches: Sequence[Launch]) -> Statement:
    """A template parameter: its values and, a place each, where they come from."""
    groups: dict[tuple[object, ...], list[AxisOrigin]] = {}
    for origin in axis.origins:
        groups.setdefault(_source(origin, axis), []).append(origin)
    named = code(axis.parameter) if axis.parameter else (Run("A parameter without a name"),)
    values = some(axis.values, 8, "or")
    below = []
    # A condition that no other value stands under tells nothing where others come from elsewhere.
    branches = all(origin.kind == "branch" for origin in axis.origins)
    told = {case for case, found in _by_case(axis).items() if len(found) == 1} if branches else set()
    for origins in list(groups.values())[:_PLACES]:
        own = tuple(dict.fromkeys(value for one in origins for value in one.values))
        why = _why(origins, axis, told)
        below.append(statement(some(own, 4, "or"), ": ", *why, *_apart(why, axis, origins, launches), ".",
                               at=_places(origins)))  # fmt: skip
    if len(groups) > _PLACES:
        below.append(statement(f"And {count(len(groups) - _PLACES, 'more place')}."))
    if not axis.origins:
        below.append(statement("Where its values come from was not followed."))
    given = list(_given(axis))
    if len(groups) == 1:
        origins = next(iter(groups.values()))
        first = origins[0]
        if len(axis.values) == 1 and first.kind in ("branch", "switch"):
            # No branch decides a value that is the same in all of them.
            on = (" of the switch on ", code(first.text)) if first.kind == "switch" else ()
            return statement(named, " is ", values, " in every branch", *on, " that leads here.", at=_places(origins))
        why = _why(origins, axis, told)
        return statement(named, " is ", values, ", ", *why, ".", at=_places(origins), below=given)
    return statement(named, " is ", values, ".", below=[*below, *given])


def _source(origin: AxisOrigin, axis: Axis) -> tuple[object, ...]:
    """What makes places one: a switch in which a value is always the same is apart from the others on the same."""
    return (origin.kind, origin.text, *(origin.values if _is_steady(origin, axis) else ()))


def _is_steady(origin: AxisOrigin, axis: Axis) -> bool:
    """Whether a switch gives one of several values, whatever it finds."""
    at = (origin.kind, origin.text, origin.file, origin.line)
    same = {value for one in axis.origins if (one.kind, one.text, one.file, one.line) == at for value in one.values}
    return origin.kind == "switch" and len(same) == 1 < len(axis.values)


def _apart(
    why: Sequence[str | Text], axis: Axis, origins: Sequence[AxisOrigin], launches: Sequence[Launch]
) -> tuple[str | Text, ...]:
    """The conditions of the launches with values from some places that no other launch of the kernel stands under;
    told where the places themselves say nothing."""
    if not _is_steady(origins[0], axis) and why != _UNDECIDED:
        return ()
    places = {(one.kind, one.file, one.line) for one in origins}
    sides: tuple[list[Launch], list[Launch]] = ([], [])
    for launch in launches:
        if not {one.instance for one in launch.unreachable}.issuperset(launch.instances):
            own = [one for part in launch.axes if part.parameter == axis.parameter for one in part.origins]
            sides[any((one.kind, one.file, one.line) in places for one in own)].append(launch)
    others, here = sides
    if not here or not others:
        return ()
    common = [one for one in here[0].conditions if all(one in launch.conditions for launch in here)]
    found = [one for one in common if not any(one in launch.conditions for launch in others)]
    return (", where ", condition(both(found))) if found else ()


def _by_case(axis: Axis) -> dict[str, set[str]]:
    """The values that stand under each condition of a branch."""
    out: dict[str, set[str]] = {}
    for origin in axis.origins:
        for value, case in zip(origin.values, origin.cases, strict=False):
            out.setdefault(case, set()).add(value)
    return out


#: Of a value whose conditions others share.
_UNDECIDED = ("written in a branch",)


def _why(origins: Sequence[AxisOrigin], axis: Axis, told: Set[str]) -> tuple[str | Text, ...]:
    """Where values come from; of a branch the conditions ``told``, under which no other value stands."""
    kind, text = origins[0].kind, origins[0].text
    if kind != "branch":
        if _is_steady(origins[0], axis):
            return ("in every branch of the switch on ", code(text), " that leads here")
        return (_WHY.get(kind, ""), code(text))
    cases = tuple(dict.fromkeys(case for one in origins for case in one.cases))
    if not cases or not set(cases) <= told:
        return _UNDECIDED
    if all(otherwise := [re.fullmatch(r"!\((.*)\)", case, re.DOTALL) for case in cases]):
        # Of a chain, what stands in the last `else` needs more than the last condition to fail.
        return ("written in the ", code("else"), " of ", some([one[1] for one in otherwise], 3, "or"))
    return ("written under ", some(cases, 3, "or"))


def _places(origins: Sequence[AxisOrigin]) -> list[Span]:
    return list(dict.fromkeys(line(one.file, one.line) for one in origins))[:3]


def _given(axis: Axis) -> Iterator[Statement]:
    """Which values occur with which of the parameter that this one depends on."""
    if axis.depends_on and axis.depends_on != "*" and 1 < len(axis.given) <= _GIVEN:
        for one in axis.given:
            when, values = some(one.when, 4, "or"), some(one.values, 6, "or")
            yield statement("With ", code(axis.depends_on), " = ", when, ": ", values, ".")
    elif axis.depends_on:
        yield statement("Not every combination with the parameters before it occurs.")


def _never(launches: Sequence[Launch]) -> list[Statement]:
    """Instances that are compiled and that no launch of the kernel ever starts, by the reason."""
    reasons: dict[tuple[str, str, int], list[str]] = {}
    started: set[str] = set()
    for launch in launches:
        started.update(set(launch.instances) - {one.instance for one in launch.unreachable})
    for launch in launches:
        for one in launch.unreachable:
            if one.instance not in started:
                reasons.setdefault((one.reason, one.file, one.line), []).append(one.instance)
    if not reasons:
        return []
    below = []
    for (reason, file, number), found in reasons.items():
        names = [f"<{one}>" if one else launches[0].kernel for one in dict.fromkeys(found)]
        below.append(statement(some(names, 2), ": ", marked(reason), ".", at=[Span(file, number, number)]))
    total = len({one for found in reasons.values() for one in found})
    return [statement(f"{total:,} of them can never run:", below=below)]
