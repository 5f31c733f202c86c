"""The host side of a note: shapes and layout, ownership and lifetimes, dispatch, launches.

In: one implementation of a walk. Out: sections of statements, each with its place.
"""

from __future__ import annotations

from collections.abc import Iterable

from opwalker.model.notes import Block, Figure, NoteSection, Statement, Statements, Text
from opwalker.model.walk import CheckFact, Host, Implementation, Span, Walk
from opwalker.views.notes.launches import LaunchGroup, launch_groups
from opwalker.views.notes.layout import is_drawable, strides
from opwalker.views.notes.words import code, codes, count, line, listed, statement


def shapes_section(chosen: Implementation) -> NoteSection | None:
    """What is documented and read of shapes, strides and contiguity, with a figure of each documented layout."""
    host = chosen.host
    if host is None:
        return None
    statements: list[Statement] = []
    figures: list[Block] = []
    for parameter in host.parameters:
        if parameter.shape_text:
            statements.append(
                statement(code(parameter.name), " is ", code(parameter.shape_text), ".", at=[parameter.shape_span])
            )
        if parameter.shape and is_drawable(parameter.shape):
            figures.append(Figure(parameter.name, parameter.shape, strides(parameter.shape)))
    for size in host.sizes:
        name = (code(size.name), " = ") if size.name else ()
        kept = (" (64 bits kept in ", code(size.type), ")") if size.narrowed and size.type else ()
        statements.append(statement(*name, code(size.value), *kept, ".", at=[line(host.file, size.line)]))
    for stride in host.strides:
        name = (code(stride.name), " = ") if stride.name else ()
        kept = (" (64 bits kept in ", code(stride.type), ")") if stride.narrowed and stride.type else ()
        statements.append(
            statement(*name, code(stride.value), *kept, ": read, not assumed.", at=[line(host.file, stride.line)])
        )
    for made in host.contiguous_calls:
        statements.append(
            statement(code(made.tensor), " is made contiguous, by a copy.", at=[line(host.file, made.line)])
        )
    if not statements and not figures:
        return None
    return NoteSection("shapes", "Shapes and layout", (Statements(tuple(statements)), *figures))


def ownership_section(walk: Walk, chosen: Implementation) -> NoteSection | None:
    """Checks, device guard, stream, and what is allocated, freed and called back."""
    statements: list[Statement] = []
    host = chosen.host
    if host is not None:
        statements += [_check(host, check) for check in host.checks]
        for guard in host.guards:
            of = (" for ", code(guard.of)) if guard.of else ()
            statements.append(
                statement("Switches the device by ", code(guard.type), *of, ".", at=[line(host.file, guard.line)])
            )
        if not host.guards and chosen.launches:
            statements.append(statement("No device guard was found in the host function."))
        for stream in host.streams:
            at = [line(host.file, stream.line)]
            statements.append(statement("Work goes to the stream ", code(stream.value), ".", at=at))
    own = walk.ownership
    for word, facts in (("Allocates", own.allocations), ("Frees", own.frees), ("Calls back", own.callbacks)):
        statements += [statement(f"{word} ", code(f.text), ".", at=[line(f.file, f.line)]) for f in facts]
    if not statements:
        return None
    return NoteSection("ownership", "Checks, ownership and lifetimes", (Statements(tuple(statements)),))


def _check(host: Host, check: CheckFact) -> Statement:
    at = [line(host.file, check.line)]
    if check.condition == "false":
        said = (": ", code(check.message)) if check.message else ()
        return statement("Fails there", *said, ".", at=at)
    said = (", else ", code(check.message)) if check.message else ()
    return statement("Requires ", code(check.condition), *said, ".", at=at)


def dispatch_section(chosen: Implementation) -> NoteSection | None:
    """What is decided at run time, in order, and how many instances of each kernel that compiles."""
    statements = []
    for use in chosen.dispatch:
        on = (" on ", code(use.on)) if use.on else ()
        binds = (" binds ", code(use.binds)) if use.binds else ()
        to = (" to ", codes(use.values, "or")) if use.values else ()
        statements.append(
            statement(code(use.macro), *on, *binds, *to, ".", at=[Span(use.file, use.line, use.line), use.defined_at])
        )
    for kernel, groups in _by_kernel(chosen).items():
        instances = tuple(dict.fromkeys(one for group in groups for one in group.instances))
        why = next((group.why_incomplete for group in groups if group.why_incomplete), None)
        statements.append(_instances(kernel, instances, all(group.complete for group in groups), why))
    return NoteSection("dispatch", "Dispatch", (Statements(tuple(statements)),)) if statements else None


def _by_kernel(chosen: Implementation) -> dict[str, list[LaunchGroup]]:
    out: dict[str, list[LaunchGroup]] = {}
    for group in launch_groups(chosen.launches):
        out.setdefault(group.first.kernel, []).append(group)
    return out


def _instances(kernel: str, instances: tuple[str, ...], complete: bool, why: str | None) -> Statement:
    if instances == ("",):
        return statement(code(kernel), " is no template.")
    below = tuple(statement(code(one)) for one in instances)
    if complete:
        return statement(code(kernel), f" is compiled in {count(len(instances), 'instance')}.", below=below)
    known = f" is compiled in {len(instances):,} known instances, perhaps more: {why or 'unknown'}."
    return statement(code(kernel), known, below=below)


def launch_section(chosen: Implementation) -> NoteSection | None:
    """Grid, block, shared memory and stream of each launch, and how it is reached."""
    statements = [_launch(group) for group in launch_groups(chosen.launches)]
    for end in chosen.terminals:
        statements.append(_end(end.kind, end.name, line(end.file, end.line)))
    return NoteSection("launch", "Launch", (Statements(tuple(statements)),)) if statements else None


def _launch(group: LaunchGroup) -> Statement:
    first = group.first
    below = []
    for word, value in (
        ("Grid", first.grid), ("Block", first.block), ("Dynamic shared memory", first.shared), ("Stream", first.stream),
    ):  # fmt: skip
        if value:
            below.append(statement(f"{word}: ", code(value), "."))
    if first.under:
        below.append(
            statement("Under ", listed([code(one.condition) for one in first.under]), ".")
        )
    if first.macros:
        below.append(statement("Written by the macro ", codes(first.macros), f", used {_times(group)}."))
    reached = [step.function for step in first.path]
    if len(reached) > 1:
        below.append(statement("Reached through ", _arrows(reached), "."))
    return statement(
        code(_spelt(first.kernel, group)), f" by {_style(first.style)}.", at=group.places[:4], below=below
    )


def _times(group: LaunchGroup) -> str:
    return "once" if len(group.launches) == 1 else f"{len(group.launches)} times"


def _spelt(kernel: str, group: LaunchGroup) -> str:
    """The kernel with its template arguments; those that differ between the launches of a group read ``…``."""
    rows = [launch.template_arguments for launch in group.launches]
    if not rows[0]:
        return kernel
    if len({len(row) for row in rows}) > 1:
        return f"{kernel}<…>"
    columns = ("…" if len(set(column)) > 1 else column[0] for column in zip(*rows, strict=True))
    return f"{kernel}<{', '.join(columns)}>"


def _style(style: str) -> str:
    plain = style.removeprefix("macro:")
    return {"triple_chevron": "<<<…>>>"}.get(plain, plain)


def _arrows(functions: Iterable[str]) -> Text:
    out: Text = ()
    for function in functions:
        out = (*out, *(statement(" → ").text if out else ()), *code(function))
    return out


def _end(kind: str, name: str, at: Span) -> Statement:
    words = {
        "library": "Calls the library function ",
        "memory": "Copies, sets or allocates memory by ",
        "torch": "Calls back into torch by ",
        "host": "Does no device work in ",
    }
    return statement(words.get(kind, f"Ends ({kind}) in "), code(name), ".", at=[at])
