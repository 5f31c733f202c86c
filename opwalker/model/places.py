"""A place in the source, what a link that could not be made says, and which source is spoken of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the source: ``line`` to ``end_line``, 1-based, both included."""

    file: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A link that could not be made: what kind of link, where, and why."""

    kind: str
    span: Span | None
    reason: str


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Which source an answer is about; ``revision`` is git's."""

    name: str
    version: str | None = None
    revision: str | None = None
