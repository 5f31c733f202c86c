"""A reading note: a page of statements about one op, each with its place in the source, before it has any form.

The Markdown notes and the web pages are made from the same ``Note``. Text is a tuple of runs; a run may be code.
"""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.places import SourceInfo, Span


class Run(Struct, frozen=True):
    """A piece of text; ``style`` is ``""``, ``"code"`` or ``"strong"``."""

    text: str
    style: str = ""


Text = tuple[Run, ...]


class Statement(Struct, frozen=True):
    """One thing that a reader learns, where it stands in the source, and what follows from it, one level below."""

    text: Text
    at: tuple[Span, ...] = ()
    below: tuple[Statement, ...] = ()


class Statements(Struct, frozen=True):
    """A list of statements in reading order. ``fold`` is what is shown of a list that a reader opens when it is wanted;
    empty for one that is always shown."""

    items: tuple[Statement, ...]
    fold: str = ""


class Cell(Struct, frozen=True):
    """A cell of a table: text, and the place that it links to, if any."""

    text: Text
    at: Span | None = None


class Table(Struct, frozen=True):
    """Rows of cells under a head; ``fold`` as for statements."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    fold: str = ""


class Code(Struct, frozen=True):
    """Text that is shown as it is, with its language (``"cpp"``, ``"text"``)."""

    text: str
    language: str = ""


class Node(Struct, frozen=True):
    """A step of a path: ``kind`` is ``python``, ``op``, ``host``, ``dispatch``, ``kernel`` or ``end``."""

    id: str
    kind: str
    label: str
    at: Span | None = None


class Edge(Struct, frozen=True):
    """One step leads to another; ``label`` says how."""

    start: str
    end: str
    label: str = ""


class Diagram(Struct, frozen=True):
    """The way from Python to the kernels. ``alt`` says it in words."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    alt: str


class Figure(Struct, frozen=True):
    """The layout of a tensor: its name, the documented dimensions, and the row-major stride of each, in elements."""

    name: str
    dims: tuple[str, ...]
    strides: tuple[str, ...]


Block = Statements | Table | Code | Diagram | Figure


class NoteSection(Struct, frozen=True):
    """A part of the note. ``lead`` is a sentence before its blocks."""

    id: str
    title: str
    blocks: tuple[Block, ...] = ()
    lead: Text = ()


class Note(Struct, frozen=True):
    """The reading note of one op (or of what else was walked); ``kernels`` and ``gaps`` say how many it tells of."""

    name: str
    kind: str
    source: SourceInfo
    summary: Text
    sections: tuple[NoteSection, ...]
    kernels: int = 0
    gaps: int = 0


class IndexEntry(Struct, frozen=True):
    """A line of the table of contents."""

    name: str
    file: str
    summary: Text
    kernels: int
    gaps: int


class NotesWritten(Struct, frozen=True, kw_only=True):
    """The answer to ``notes``: what was written where, relative to the folder; ``kept`` had a reader's own text."""

    format: int = 1
    source: SourceInfo
    folder: str
    written: tuple[str, ...]
    unchanged: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
