"""Launches in a note: grid, block and shared memory followed back to sizes, what is set besides, and how each is
reached; ends that are no launch.

In: one implementation. Out: a section.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from opwalker.model.notes import Block, Cell, NoteSection, Run, Statement, Statements, Table, Text
from opwalker.model.walk import CaseFact, Implementation, Launch, LaunchAttribute, NamedValue, Span, Terminal
from opwalker.views.axes import split_arguments
from opwalker.views.notes.launches import LaunchGroup, launch_groups
from opwalker.views.notes.words import (
    both,
    cell,
    code,
    codes,
    condition,
    held_statements,
    line,
    marked,
    say,
    statement,
)

_ENDS = {
    "library": "Calls the library function ",
    "torch": "Calls back into torch by ",
    "host": "No device work was found in ",
}
_MEMORY = (
    (r"get|query|granularity", "Asks about memory by "),
    (r"cpy|copy|batchasync", "Copies memory by "),
    (r"set(?:d\d+)?(?:async)?\Z", "Sets memory by "),
    (r"access|advise|prefetch", "Says how memory is used by "),
    (r"free|release|unmap|destroy|delete|unregister", "Gives memory back by "),
    (r"alloc|reserve|create|empty|zeros|ones|full|map|register", "Takes memory by "),
)
#: More launches than this in one table are folded.
_ROWS = 8
#: A template argument that stands for a name is at most so long.
_SHORT = 40
#: A condition that the argument of a macro makes true at compile time: it asks for nothing.
_HOLDS = "true"


def launch_section(chosen: Implementation) -> NoteSection | None:
    """Each launch once, launches of one text together; then the ends."""
    names = [one.name for one in chosen.host.parameters] if chosen.host else []
    blocks: list[Block] = []
    for group in launch_groups(chosen.launches):
        blocks += _launch(group, names)
    if chosen.terminals:
        blocks.append(Statements(tuple(_ends(chosen.terminals, names))))
    return NoteSection("launch", "Launch", tuple(blocks)) if blocks else None


def _launch(group: LaunchGroup, names: Sequence[str]) -> Iterator[Block]:
    first = group.first
    below = [
        *_extent("Grid", "blocks", first.grid, first.grid_resolved, first.grid_cases, names),
        *_extent("Block", "threads", first.block, first.block_resolved, first.block_cases, names),
        *_extent("Dynamic shared memory", "bytes", first.shared, first.shared_resolved, first.shared_cases, names),
        *(_named(one, names) for one in first.names),
        *(_attribute("Before it, the kernel's attribute ", one, names) for one in first.shared_opt_in),
        *(_attribute("Launch attribute ", one, names) for one in first.attributes),
    ]
    if first.cooperative:
        below.append(statement("Cooperative: all blocks run at once, so that the whole grid can wait for itself."))
    if first.stream:
        below.append(statement("Stream: ", code(first.stream_resolved or first.stream), "."))
    if first.compiled and first.compiled != first.condition:
        below.append(statement("Compiled under ", code(f"#if {first.compiled}"), "."))
    if first.condition:
        below.append(statement("Compiled under ", code(f"#if {first.condition}"), "."))
    alone = len(group.launches) == 1
    if alone and first.never_runs:
        below.append(statement("It never runs: ", _never(first, names), "."))
    elif alone and _is_conditional(first):
        at = list(dict.fromkeys(line(first.file, one.line) for one in first.under)) if not first.macros else []
        below.append(statement("It runs where ", _tested(first, names), ".", at=at))
    if alone and first.loops:
        below.append(statement("It stands in a loop, and is launched in each pass of ", codes(first.loops), "."))
    if first.macros:
        word = "macro" if len(first.macros) == 1 else "macros"
        below.append(statement(f"Written by the {word} ", codes(first.macros), "."))
    reached = [step.function for step in first.path]
    if len(reached) > 1:
        below.append(statement("Reached through ", _arrows(reached), "."))
    said = statement(code(_spelt(group)), f" by {_style(first.style)}.", at=group.places[:4], below=below)
    yield Statements((said,))
    if not alone:
        files = {(launch.used_at or Span(launch.file, launch.line, launch.line)).file for launch in group.launches}
        folders = len({file.rsplit("/", 1)[-1] for file in files}) < len(files)
        rows = tuple(_row(launch, names, folders) for launch in group.launches)
        fold = f"{len(rows)} launches" if len(rows) > _ROWS else ""
        yield Table(("Stands at", "template arguments", "runs where", "instances"), rows, fold)


def _extent(
    word: str, unit: str, written: str | None, resolved: str | None, cases: Sequence[CaseFact], names: Sequence[str]
) -> Iterator[Statement]:
    """An extent followed back to sizes, as it is written where that says more, and its cases."""
    if not written:
        return
    if (resolved or written) == "0":
        yield statement(f"{word}: none.")
        return
    below = []
    for one in cases:
        when = (" where ", condition(both(one.under), names)) if one.under else (" otherwise",)
        below.append(statement(code(one.value), *when, "."))
    unit = unit.removesuffix("s") if (resolved or written) == "1" else unit
    if resolved is None or resolved == written:
        yield statement(f"{word}: ", code(written), f" {unit}." if resolved else ".", below=below)
    else:
        yield statement(f"{word}: ", code(resolved), f" {unit}, written ", code(written), ".", below=below)


def _named(fact: NamedValue, names: Sequence[str]) -> Statement:
    if not fact.cases and " or " in fact.value:
        passed = codes(fact.value.split(" or "), "or")
        return statement("There, ", code(fact.name), " is what the call passes: ", passed, ", in the caller's names.")
    if fact.filled:
        return statement("There, ", code(fact.name), " is what ", code(fact.value), " writes to it.")
    if not fact.cases:
        return statement("There, ", code(fact.name), " is ", code(fact.value), ".")
    parts: list[str | Text] = ["There, ", code(fact.name), " is "]
    for number, one in enumerate(fact.cases):
        parts += [", else " if number else "", code(one.value)]
        if one.under:
            parts += [" where ", condition(both(one.under), names)]
    return statement(*parts, ".")


def _attribute(word: str, fact: LaunchAttribute, names: Sequence[str]) -> Statement:
    value = (" is ", code(fact.value)) if fact.value else ()
    under = (", where ", condition(both(fact.under), names)) if fact.under else ()
    return statement(word, code(fact.id), *value, *under, ".")


def _is_conditional(launch: Launch) -> bool:
    return any(one != _HOLDS for one in launch.conditions) if launch.conditions else bool(launch.under)


def _tested(launch: Launch, names: Sequence[str]) -> Text:
    if launch.conditions:
        return condition(both(one for one in launch.conditions if one != _HOLDS), names)
    return codes([one.condition for one in launch.under])


def _row(launch: Launch, names: Sequence[str], folders: bool) -> tuple[Cell, ...]:
    """One launch of several; ``folders`` where files of one name stand in several folders."""
    place = launch.used_at or Span(launch.file, launch.line, launch.line)
    arguments = code(f"<{', '.join(_meant(launch))}>") if launch.template_arguments else ()
    known = "" if launch.complete else " known"
    where = f"{place.file if folders else place.file.rsplit('/', 1)[-1]}:{place.line}"
    return (
        Cell(code(where), place),
        Cell(arguments),
        _when(launch, names),
        cell(f"{len(launch.instances):,}{known}"),
    )


def _meant(launch: Launch) -> list[str]:
    """The template arguments as written; what a name of a macro or launcher always means there, as that."""
    found = [arguments for one in launch.instances if len(arguments := split_arguments(one))]
    columns = [set(column) for column in zip(*found, strict=False)] if launch.complete else []
    out = []
    for number, text in enumerate(launch.template_arguments):
        values = columns[number] if number < len(columns) else ()
        value = next(iter(values)) if len(values) == 1 else ""
        out.append(value if value and len(value) <= _SHORT and text.isidentifier() else text)
    return out


def _when(launch: Launch, names: Sequence[str]) -> Cell:
    """Where a launch runs; that it never does where its conditions contradict each other."""
    if launch.never_runs:
        return Cell((*say("**never**: "), *_never(launch, names)))
    loops = statement(*_looped(launch.loops)).text
    return Cell((*(_tested(launch, names) if _is_conditional(launch) else say("always")), *loops))


def _never(launch: Launch, names: Sequence[str]) -> Text:
    return marked("; ".join(dict.fromkeys(one.reason for one in launch.unreachable)), names)


def _spelt(group: LaunchGroup) -> str:
    """The kernel with its template arguments; those that differ between the launches of a group read ``…``."""
    kernel = group.first.kernel
    rows = [tuple(_meant(launch)) for launch in group.launches]
    if not rows[0] or group.instances == ("",):
        return kernel
    if len({len(row) for row in rows}) > 1:
        return f"{kernel}<…>"
    found = [arguments for one in group.instances if len(arguments := split_arguments(one)) >= len(rows[0])]
    compiled = [set(column) for column in zip(*found, strict=False)]
    columns = []
    for number, column in enumerate(zip(*rows, strict=True)):
        # Written out for the first of several instances, an argument does not stand for the others.
        first_of_many = number < len(compiled) and len(compiled[number]) > 1 and column[0] in compiled[number]
        columns.append("…" if len(set(column)) > 1 or first_of_many else column[0])
    return f"{kernel}<{', '.join(columns)}>"


def _style(style: str) -> str:
    plain = style.removeprefix("macro:")
    return {"triple_chevron": "`<<<…>>>`"}.get(plain, f"`{plain}`")


def _arrows(functions: Iterable[str]) -> Text:
    out: Text = ()
    for function in functions:
        out = (*out, *((Run(" → "),) if out else ()), *code(function))
    return out


def _ends(ends: Sequence[Terminal], names: Sequence[str]) -> list[Statement]:
    """Ends by what they are: the same call at several places under the same conditions once."""
    by_name: dict[tuple[object, ...], list[Terminal]] = {}
    for end in ends:
        by_name.setdefault((end.kind, end.name, end.under, end.loops, end.text, end.compiled), []).append(end)
    out = []
    for found in by_name.values():
        end = found[0]
        word = _memory(end.name) if end.kind == "memory" else _ENDS.get(end.kind, f"Ends ({end.kind}) in ")
        where = (", where ", condition(both(end.under), names)) if end.under else ()
        where += (", under ", code(f"#if {end.compiled}")) if end.compiled else ()
        at = [line(one.file, one.line) for one in found]
        told = [one for fact in end.held for one in held_statements([fact], end.file, names)]
        said = statement(word, code(end.text or end.name), *where, *_looped(end.loops), ".", at=at[:4], below=told)
        out.append(said)
    return out


def _looped(loops: Sequence[str]) -> tuple[str | Text, ...]:
    return (", in each pass of ", codes(loops)) if loops else ()


def _memory(name: str) -> str:
    """What a function of the memory interface does, by its name."""
    return next((words for pattern, words in _MEMORY if re.search(pattern, name, re.IGNORECASE)), "Calls ")
