"""Synchronisation in a note: every point with its order, scope and what it protects; structures made of flags.

In: a walk. Out: a section, None where nothing synchronises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from opwalker.model.notes import Block, Cell, Code, NoteSection, Run, Statement, Statements, Table, Text
from opwalker.model.walk import FlagStruct, Span, SyncPoint, Walk
from opwalker.views.notes.words import cell, code, codes, line, listed, marked, statement


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
    verb = _verb(point)
    if point.flag:
        held = (", the member ", code(point.member)) if point.member else ()
        below.append(statement("It works on " if verb else "The flag is ", code(point.flag), *held, "."))
    if point.value:
        name, equals, value = point.value.partition(" = ")
        stored = (code(name), ", which is ", code(value)) if equals and name.isidentifier() else (code(point.value),)
        below.append(statement(f"It {verb or 'stores'} ", *stored, "."))
    if point.spins:
        below.append(statement("A loop waits here."))
    if point.threads:
        below.append(statement("Done where ", codes(point.threads), "."))
    if point.under:
        below.append(statement("Only compiled where ", codes(point.under), " holds."))
    if point.condition:
        below.append(statement("Under ", code(f"#if {point.condition}"), "."))
    if point.protects:
        below.append(statement("Protects: ", marked(point.protects, _touched(point.protects)), "."))
    if point.through:
        below.append(statement("Through ", code(point.through), ".", at=[point.at]))
    return statement(*parts, ".", at=[line(point.file, point.line)], below=below)


#: What an atomic operation does with its value.
_VERBS = {
    "add": "adds",
    "inc": "counts up to",
    "sub": "subtracts",
    "dec": "counts down from",
    "max": "keeps the greater of that and",
    "min": "keeps the smaller of that and",
    "and": "joins with and",
    "or": "joins with or",
    "xor": "joins with xor",
    "exch": "stores",
    "cas": "stores, where nothing else was stored before,",
}


def _verb(point: SyncPoint) -> str | None:
    """What an atomic operation does with its value, as its words say; None for what is none."""
    if point.kind not in ("atomic", "reduction"):
        return None
    found = re.search(r"\((\w+)\)", point.means or "")
    return _VERBS.get(found[1], "combines it with") if found else "combines it with"


def _touched(protects: str) -> list[str]:
    """The names in ``before it: reads a, b; after it: writes c``, and in ``a, b`` alone."""
    if not re.search(r"\b(?:reads|writes|passes on) ", protects):
        return protects.split(", ")
    found = re.findall(r"(?:reads|writes|passes on) (.+?)(?=, (?:reads|writes|passes on) |;|$)", protects)
    return [name for names in found for name in names.split(", ")]


def _struct(one: FlagStruct) -> list[Block]:
    at = Span(one.file, one.line, one.end_line)
    said = statement("Flags are members of ", code(one.name), ".", at=[at])
    blocks: list[Block] = [Statements((said,))]
    if one.comment:
        blocks[0] = Statements((said, statement("Why, in the words of the comment above it:")))
        blocks.append(Code(one.comment, "text"))
    rows = tuple(
        (
            Cell(code(member.name), line(one.file, member.line)),
            Cell(code(member.type)),
            cell(f"{member.alignment} bytes" if member.alignment else ""),
            Cell(_uses(member.stored_in)),
            Cell(_uses(member.loaded_in)),
            cell((Run(member.comment),) if member.comment else ""),
        )
        for member in one.members
    )
    return [*blocks, Table(("Member", "type", "aligned to", "stored in", "loaded in", "comment"), rows)]


def _uses(uses: Sequence[str]) -> Text:
    """``f: release_store`` as words."""
    parts = [use.rpartition(": ") for use in uses]
    return listed([(*code(name), Run(f" ({how.replace('_', ' ')})")) for name, _, how in parts])
