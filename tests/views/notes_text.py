"""The sentences of a note as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.notes import Note, Statement, Statements, Table, Text

_MARKS = {"code": "`{}`", "strong": "**{}**"}


def plain(text: Text) -> str:
    return "".join(_MARKS.get(run.style, "{}").format(run.text) if run.style else run.text for run in text)


def _said(items: tuple[Statement, ...], depth: int = 0) -> Iterator[str]:
    for item in items:
        yield "  " * depth + plain(item.text)
        yield from _said(item.below, depth + 1)


def section(note: Note, name: str) -> list[str]:
    """Every sentence and row of a section, what is folded included."""
    (found,) = [one for one in note.sections if one.id == name]
    out: list[str] = []
    for block in found.blocks:
        if isinstance(block, Statements):
            out += _said(block.items)
        elif isinstance(block, Table):
            out += [" | ".join(plain(cell.text) for cell in row) for row in block.rows]
    return out
