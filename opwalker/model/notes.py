"""A reading note: a page of statements about one op, each with its place in the source, before it has any form.

The Markdown notes and the web pages are made from the same ``Note``. Text is a tuple of runs; a run may be code.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from opwalker.model.places import SourceInfo, Span


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text; ``style`` is ``""``, ``"code"`` or ``"strong"``."""

    text: str
    style: str = ""


Text = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a reader learns, where it stands in the source, and what follows from it, one level below."""

    text: Text
    at: tuple[Span, ...] = ()
    below: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Statements:
    """A list of statements in reading order. ``fold`` is what is shown of a list that a reader opens when it is wanted;
    empty for one that is always shown."""

    items: tuple[Statement, ...]
    fold: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: text, and the place that it links to, if any."""

    text: Text
    at: Span | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a head; ``fold`` as for statements."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    fold: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is shown as it is, with its language (``"cpp"``, ``"text"``)."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A step of a path: ``kind`` is ``python``, ``op``, ``host``, ``dispatch``, ``kernel`` or ``end``."""

    id: str
    kind: str
    label: str
    at: Span | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """One step leads to another; ``label`` says how."""

    start: str
    end: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Diagram:
    """The way from Python to the kernels. ``alt`` says it in words."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    alt: str


@dataclass(frozen=True, slots=True)
class Figure:
    """The layout of a tensor: its name, the documented dimensions, and the row-major stride of each, in elements."""

    name: str
    dims: tuple[str, ...]
    strides: tuple[str, ...]


Block = Statements | Table | Code | Diagram | Figure


@dataclass(frozen=True, slots=True)
class NoteSection:
    """A part of the note. ``lead`` is a sentence before its blocks."""

    id: str
    title: str
    blocks: tuple[Block, ...] = ()
    lead: Text = ()


@dataclass(frozen=True, slots=True)
class Note:
    """The reading note of one op (or of what else was walked); ``kernels`` and ``gaps`` say how many it tells of."""

    name: str
    kind: str
    source: SourceInfo
    summary: Text
    sections: tuple[NoteSection, ...]
    kernels: int = 0
    gaps: int = 0


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A line of the table of contents."""

    name: str
    file: str
    summary: Text
    kernels: int
    gaps: int


@dataclass(frozen=True, slots=True)
class NotesWritten:
    """The answer to ``notes``: what was written where, relative to the folder; ``kept`` had a reader's own text."""

    format: int = field(default=1, kw_only=True)
    source: SourceInfo
    folder: str
    written: tuple[str, ...]
    unchanged: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
