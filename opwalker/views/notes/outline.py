"""What a file or a class holds, in a note: what to read first, in order; methods, who overrides them, where it is made.

In: the outline of a file or the view of a class. Out: blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwalker.model.notes import Block, Cell, Statement, Statements, Table
from opwalker.model.walk import ClassView, Entry, MethodFact, OutlineItem, Span, UseFact
from opwalker.views.notes.words import cell, code, codes, line, marked, some, statement

_PARTS = (
    ("entry point", "Entry points"),
    ("host function", "Host functions"),
    ("kernel", "Kernels"),
    ("device function", "Device code"),
    ("class", "Classes"),
    ("global", "Globals"),
)
#: More items of a kind than this are folded.
_ITEMS = 20


def outline_blocks(items: Sequence[OutlineItem], entry: Entry | None) -> tuple[Block, ...]:
    """One table a kind of thing, in the order in which a file is best read."""
    blocks: list[Block] = []
    for kind, title in _PARTS:
        found = [one for one in items if one.kind == kind]
        if found and entry is not None:
            rows = tuple(_item(one, entry.file) for one in found)
            blocks.append(Table((title, "lines", "what is said of it"), rows, _fold(title, rows)))
    return tuple(blocks)


def _fold(title: str, rows: Sequence[object]) -> str:
    return f"{title}: {len(rows)}" if len(rows) > _ITEMS else ""


def _item(one: OutlineItem, file: str) -> tuple[Cell, ...]:
    said = []
    if one.ops:
        said.append(("bound to ", some(one.ops, 6)))
    if one.why:
        said.append((marked(one.why),))
    said += [(marked(text),) for text in one.notes]
    if one.used_by and one.kind != "entry point":
        said.append(("launched by " if one.kind == "kernel" else "used by ", some(one.used_by, 6)))
    if one.condition:
        said.append(("under ", code(f"#if {one.condition}")))
    parts = []
    for number, piece in enumerate(said):
        parts += ["; ", *piece] if number else [*piece]
    at = Span(file, one.line, one.end_line)
    return (Cell(code(one.name), at), cell(f"{one.line}-{one.end_line}"), Cell(statement(*parts).text))


def class_blocks(view: ClassView) -> tuple[Block, ...]:
    """Bases and what derives, data, methods with their overriders, where objects are made and deleted."""
    blocks: list[Block] = [Statements(tuple(_head(view)))]
    if view.members:
        rows = tuple((Cell(code(one.function), line(one.file, one.line)), Cell(code(one.text))) for one in view.members)
        blocks.append(Table(("Data", "type"), rows, _fold("Data", rows)))
    if view.methods:
        blocks.append(Statements(tuple(_method(one) for one in view.methods)))
    return tuple(blocks)


def _head(view: ClassView) -> Iterator[Statement]:
    at = [Span(view.file, view.line, view.end_line)]
    template = (", a template over ", code(view.template)) if view.template else ()
    yield statement(code(view.name), f" is a {view.kind} of this source", *template, ".", at=at)
    if view.bases:
        yield statement("It derives from ", codes(view.bases), ".")
    for one in view.derived:
        yield statement(code(one.name), " derives from it.", at=[line(one.file, one.line)])
    for word, uses in (("It is made by ", view.constructed), ("It is deleted by ", view.deleted)):
        yield from (_use(word, one) for one in uses)


def _use(word: str, one: UseFact) -> Statement:
    inside = (" in ", code(one.function)) if one.function else ()
    return statement(word, code(one.text), *inside, ".", at=[line(one.file, one.line)])


def _method(one: MethodFact) -> Statement:
    kind = ", pure virtual" if one.pure else ", virtual" if one.virtual else ""
    at = [line(one.file, one.line)]
    if one.body_at is not None:
        at.append(line(one.body_at.file, one.body_at.line))
    below = [
        statement("Overridden by ", code(other.function), ".", at=[line(other.file, other.line)])
        for other in one.overridden_by
    ]
    return statement(code(one.signature), f"{kind}.", at=at, below=below)
