"""The nouns of ``patterns``: a page of the catalogue, its query, and what a search finds."""

from __future__ import annotations

from msgspec import Struct, field

from opwalker.model.places import SourceInfo


class Condition(Struct, frozen=True):
    """One demand on a field: ``operator`` is ``~`` or ``!~`` (``value`` is a regular expression that is searched for,
    its named groups are captures), ``=`` or ``!=`` (``value`` is the whole text)."""

    field: str
    operator: str
    value: str


class Demand(Struct, frozen=True):
    """A line of a query. ``role``: ``find`` says what a hit is, ``in`` what the function around it is, ``with`` and
    ``without`` what else stands, or does not stand, in that function. All conditions hold together."""

    role: str
    subject: str
    conditions: tuple[Condition, ...]


class Clause(Struct, frozen=True):
    """One way for a pattern to be there: its first demand is the ``find``."""

    demands: tuple[Demand, ...]


class PatternExample(Struct, frozen=True):
    """A file of an example; ``marked`` are the lines that carry the section's mark, from 1."""

    name: str
    language: str
    text: str
    marked: tuple[int, ...]


class Pattern(Struct, frozen=True):
    """A page. A pattern is found where one of the clauses of its query holds; ``next`` are ids of other patterns."""

    id: str
    title: str
    tags: tuple[str, ...]
    next: tuple[str, ...]
    what: str
    problem: str
    look: str
    query: tuple[Clause, ...]
    matches: tuple[PatternExample, ...]
    misses: tuple[PatternExample, ...]


class PatternHit(Struct, frozen=True):
    """A place where a pattern is. ``captures`` are the named groups of its query, ``ops`` those whose path enters the
    function (or, of a macro or a type, enters a function that names it)."""

    id: str
    title: str
    file: str
    line: int
    end_line: int
    text: str
    captures: dict[str, str] = field(default_factory=dict)
    ops: tuple[str, ...] = ()


class PatternSearch(Struct, frozen=True, kw_only=True):
    """The answer to ``patterns search``, hits by pattern in the catalogue's order, then by place."""

    format: int = 1
    source: SourceInfo
    hits: tuple[PatternHit, ...]
    searched: tuple[str, ...] = ()


class PatternInfo(Struct, frozen=True):
    """A pattern as a list shows it."""

    id: str
    title: str
    tags: tuple[str, ...]
    what: str


class PatternList(Struct, frozen=True, kw_only=True):
    """The answer to ``patterns list``."""

    format: int = 1
    patterns: tuple[PatternInfo, ...]


class PatternPage(Struct, frozen=True, kw_only=True):
    """The answer to ``patterns show``: the page, and its text as it is kept."""

    format: int = 1
    pattern: Pattern
    page: str


class PatternQuestion(Struct, frozen=True):
    """What a search is narrowed to: ids, tags, words of the hit or the page, one op, folders or files."""

    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    text: str | None = None
    op: str | None = None
    paths: tuple[str, ...] = ()
