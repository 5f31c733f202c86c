"""Comes in: a result as nested steps, groups and rows of styled spans. Goes out: lines of spans, laid out for a width.

Knows nothing of colours or terminals (``paint`` does) and nothing of what is shown (``text`` does). A width of None is
a pipe: nothing is wrapped. Whatever the width, no text is cut: a line that is too long goes on below, indented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from opwalker.serve.voice import one_line

#: A piece of text and the name of its style (``""`` for none).
Span = tuple[str, str]
Spans = tuple[Span, ...]

#: The style of a blank at which a paragraph rather breaks than elsewhere.
JOINT = "joint"

#: Cells of a column wider than this do not push the column out: they overflow, and the rest of the row follows.
COLUMN_CAP = 44
#: A last column keeps being wrapped under itself down to this width; below it the row flows as one paragraph.
LAST_COLUMN = 28
LABEL_WIDTH = 15
#: Labels stand in their own column only where this many columns are left for both.
ROOM_FOR_LABELS = 70
GAP = 2

_WORD = re.compile(r"\s+|\S+")
_BREAKABLE = re.compile(r".*?(?:[/,(<|]+|::|$)")


class Row(Struct, frozen=True):
    """Cells side by side, ``indent`` columns in. Rows that follow each other in one group share their columns."""

    cells: tuple[Spans, ...]
    indent: int = 0


class Group(Struct, frozen=True):
    """Rows under a label: beside it where there is room, below it where there is not."""

    label: str
    rows: tuple[Row, ...]


class Step(Struct, frozen=True):
    """A step of the reading: a title, the facts that belong to it, and the steps inside it."""

    title: Spans
    groups: tuple[Group, ...] = ()
    steps: tuple[Step, ...] = ()


class Section(Struct, frozen=True):
    """A part of the page: a heading, rows, paragraphs, labelled groups and a tree of steps, in that order."""

    heading: Spans
    rows: tuple[Row, ...] = ()
    paragraphs: tuple[Spans, ...] = ()
    groups: tuple[Group, ...] = ()
    steps: tuple[Step, ...] = ()


class Page(Struct, frozen=True):
    """Sections from top to bottom, with an empty line between them."""

    sections: tuple[Section, ...]


class Guides(Struct, frozen=True):
    """The strokes that tie a step to the steps inside it. All four are equally wide."""

    branch: str = "├─ "
    last: str = "└─ "
    bar: str = "│  "
    blank: str = "   "


ASCII_GUIDES = Guides("|- ", "`- ", "|  ", "   ")


def cells(text: str) -> int:
    """Columns that ``text`` takes on a terminal: wide characters count two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def width_of(spans: Spans) -> int:
    """Columns that the spans take side by side."""
    return sum(cells(text) for text, _ in spans)


def lay_out(page: Page, width: int | None, guides: Guides = Guides()) -> list[Spans]:
    """The page as lines of spans, each at most ``width`` columns (None: as long as they come)."""
    lines: list[Spans] = []
    for number, section in enumerate(page.sections):
        if number:
            lines.append(())
        lines.extend(_section(section, width, guides))
    return lines


def flow(first: Spans, rest: Spans, text: Spans, width: int | None) -> Iterator[Spans]:
    """One paragraph: ``first`` stands before its first line, ``rest`` before the others.

    It breaks at joints where it can: what stands between two of them goes on a line of its own before it is cut.
    """
    text = tuple((one_line(part), style) for part, style in text)
    if width is None or width_of(first + text) <= width:
        yield _joined(first + text)
        return
    most = max(width - width_of(rest), 8)
    line, room, empty = list(first), width - width_of(first), True
    for chunk in _chunks(text):
        size = width_of(chunk)
        together = room < size <= most and not empty
        for word, style in chunk if size <= most else _words(chunk, most):
            size = cells(word)
            if not empty and (together or (size > room and not word.isspace())):
                yield _joined(tuple(line))
                line, room, empty, together = list(rest), most, True, False
            if empty and word.isspace():
                continue
            line.append((word, style))
            room -= size
            empty = False
    yield _joined(tuple(line))


def _chunks(text: Spans) -> Iterator[Spans]:
    """The paragraph cut at its joints; a joint is a chunk of its own."""
    chunk: list[Span] = []
    for span in text:
        if span[1] == JOINT:
            yield tuple(chunk)
            yield (span,)
            chunk = []
        else:
            chunk.append(span)
    yield tuple(chunk)


def _words(text: Spans, most: int) -> Iterator[Span]:
    """Words and the blanks between them; a word wider than ``most`` comes in pieces, cut where names are joined."""
    for part, style in text:
        for word in _WORD.findall(part):
            if word.isspace() or cells(word) <= most:
                yield word, style
                continue
            for piece in _BREAKABLE.findall(word):
                while cells(piece) > most:
                    cut = _fitting(piece, most)
                    yield piece[:cut], style
                    piece = piece[cut:]
                if piece:
                    yield piece, style


def _fitting(text: str, most: int) -> int:
    """How many characters of ``text`` fit into ``most`` columns, at least one."""
    count = used = 0
    for char in text:
        used += cells(char)
        if used > most:
            break
        count += 1
    return max(count, 1)


def _joined(spans: Spans) -> Spans:
    """Neighbouring spans of one style joined, and no blanks at the end of the line."""
    joined: list[Span] = []
    for text, style in spans:
        if joined and joined[-1][1] == style:
            joined[-1] = (joined[-1][0] + text, style)
        elif text:
            joined.append((text, style))
    while joined and not joined[-1][0].strip():
        joined.pop()
    if joined:
        joined[-1] = (joined[-1][0].rstrip(), joined[-1][1])
    return tuple(joined)


def _section(section: Section, width: int | None, guides: Guides) -> Iterator[Spans]:
    if section.heading:
        yield from flow((), (("    ", ""),), section.heading, width)
    margin: Spans = (("  ", ""),)
    yield from _rows(section.rows, margin, margin, width)
    for paragraph in section.paragraphs:
        yield from flow(margin, (("      ", ""),), paragraph, width)
    yield from _groups(section.groups, margin, width)
    yield from _steps(section.steps, (), width, guides)


def _steps(steps: tuple[Step, ...], before: Spans, width: int | None, guides: Guides) -> Iterator[Spans]:
    for step in steps:
        last = step is steps[-1]
        here = before + ((guides.last if last else guides.branch, "guide"),)
        below = before + ((guides.blank if last else guides.bar, "guide"),)
        yield from flow(here, below + (("    ", ""),), step.title, width)
        inside = below + ((guides.bar if step.steps else guides.blank, "guide"),)
        yield from _groups(step.groups, inside, width)
        yield from _steps(step.steps, below, width, guides)
        if not last and (step.groups or step.steps):
            yield _joined(below)


def _groups(groups: tuple[Group, ...], margin: Spans, width: int | None) -> Iterator[Spans]:
    """Labels in a column of their own; in a narrow place they stand above their rows."""
    beside = width is None or width - width_of(margin) >= ROOM_FOR_LABELS
    for group in groups:
        if beside:
            label: Span = (group.label.ljust(LABEL_WIDTH), "label")
            yield from _rows(group.rows, margin + (label,), margin + ((" " * LABEL_WIDTH, ""),), width)
        elif _short(group, margin, width):
            yield from _rows(group.rows, margin + ((group.label + " " * GAP, "label"),), margin, width)
        else:
            yield _joined(margin + ((group.label, "label"),))
            yield from _rows(group.rows, margin + (("  ", ""),), margin + (("  ", ""),), width)


def _short(group: Group, margin: Spans, width: int | None) -> bool:
    """Whether there is one value, and it fits behind its label in a narrow place."""
    if width is None or len(group.rows) != 1 or len(group.rows[0].cells) != 1:
        return False
    return width_of(margin) + cells(group.label) + GAP + width_of(group.rows[0].cells[0]) <= width


def _rows(rows: tuple[Row, ...], first: Spans, rest: Spans, width: int | None) -> Iterator[Spans]:
    """Rows under each other. ``first`` stands before the first line of all, ``rest`` before the others.

    As many columns are aligned as there is room for; the cells to their right flow as one paragraph.
    """
    most = max((len(row.cells) for row in rows), default=1) - 1
    for count in range(most, -1, -1):
        merged = [_merged(row, count) for row in rows]
        columns = _columns(merged, count)
        room = (
            LAST_COLUMN if width is None else width - width_of(rest) - sum(column + GAP for column in columns if column)
        )
        if room >= min(LAST_COLUMN, max((width_of(row[-1]) for row in merged), default=0)):
            break
    for row, merged_cells in zip(rows, merged, strict=True):
        indent: Spans = ((" " * row.indent, ""),)
        yield from _row(merged_cells, columns, first + indent, rest + indent, width)
        first = rest


def _merged(row: Row, count: int) -> tuple[Spans, ...]:
    """The first ``count`` cells as they are, and all others joined into one."""
    joined: list[Span] = []
    for cell in row.cells[count:]:
        if joined and cell:
            joined.append((" " * GAP, JOINT))
        joined.extend(cell)
    return (*row.cells[:count], tuple(joined))


def _columns(rows: list[tuple[Spans, ...]], count: int) -> list[int]:
    """Widths of the first ``count`` columns; a cell above the cap is left to overflow."""
    widths = ([width_of(row[at]) for row in rows if at < len(row) - 1] for at in range(count))
    return [max((width for width in column if width <= COLUMN_CAP), default=0) for column in widths]


def _row(row: tuple[Spans, ...], columns: list[int], first: Spans, rest: Spans, width: int | None) -> Iterator[Spans]:
    line: list[Span] = []
    at = start = 0
    for cell, column in zip(row[:-1], columns, strict=False):
        if not column and not cell:
            continue
        line.extend(cell)
        at += width_of(cell)
        start += column + GAP
        pad = max(start - at, GAP)
        line.append((" " * pad, ""))
        at += pad
    hang = at if len(row) > 1 else 4
    if (
        width is not None
        and at + width_of(row[-1]) > width - width_of(rest)
        and hang + LAST_COLUMN > width - width_of(rest)
    ):
        yield from flow(first, rest + (("    ", ""),), tuple(line) + row[-1], width)
    else:
        yield from flow(first + tuple(line), rest + ((" " * hang, ""),), row[-1], width)
