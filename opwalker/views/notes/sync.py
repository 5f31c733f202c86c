"""Synchronisation in a note: every point with its order, scope and what it protects; structures made of flags.

In: a walk. Out: a section, None where nothing synchronises.
"""

from __future__ import annotations

from opwalker.model.notes import Block, Cell, Code, NoteSection, Statement, Statements, Table
from opwalker.model.walk import FlagStruct, Span, SyncPoint, Walk
from opwalker.views.notes.words import cell, code, codes, line, statement


def synchronisation_section(walk: Walk) -> NoteSection | None:
    """Where threads, streams or devices wait for each other."""
    if not walk.synchronisation and not walk.flags:
        return None
    blocks: list[Block] = []
    if walk.synchronisation:
        blocks.append(Statements(tuple(_point(point) for point in walk.synchronisation)))
    for one in walk.flags:
        blocks += _struct(one)
    return NoteSection("synchronisation", "Synchronisation points", tuple(blocks))


def _point(point: SyncPoint) -> Statement:
    parts = [f"{point.kind.replace('_', ' ').capitalize()}: ", code(point.text)]
    if point.means and point.means.replace(" ", "_") != point.kind:
        parts.append(f", {point.means}")
    if point.function:
        parts += [", in ", code(point.function)]
    below = []
    if point.flag:
        held = (", the member ", code(point.member)) if point.member else ()
        below.append(statement("The flag is ", code(point.flag), *held, "."))
    if point.value:
        below.append(statement("It stores ", code(point.value), "."))
    if point.spins:
        below.append(statement("A loop waits here."))
    if point.under:
        below.append(statement("Only compiled where ", codes(point.under), " holds."))
    if point.condition:
        below.append(statement("Under ", code(f"#if {point.condition}"), "."))
    if point.protects:
        below.append(statement(f"Protects: {point.protects}."))
    if point.through:
        below.append(statement("Through ", code(point.through), ".", at=[point.at]))
    return statement(*parts, ".", at=[line(point.file, point.line)], below=below)


def _struct(one: FlagStruct) -> list[Block]:
    at = Span(one.file, one.line, one.end_line)
    blocks: list[Block] = [Statements((statement("Flags are members of ", code(one.name), ".", at=[at]),))]
    if one.comment:
        blocks.append(Code(one.comment, "text"))
    rows = tuple(
        (
            Cell(code(member.name), line(one.file, member.line)),
            Cell(code(member.type)),
            cell(f"{member.alignment} bytes" if member.alignment else ""),
            cell("; ".join(member.stored_in)),
            cell("; ".join(member.loaded_in)),
        )
        for member in one.members
    )
    return [*blocks, Table(("Member", "type", "aligned to", "stored in", "loaded in"), rows)]
