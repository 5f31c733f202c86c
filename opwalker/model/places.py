"""A place in the source, what a link that could not be made says, and which source is spoken of."""

from __future__ import annotations

from msgspec import Struct


class Span(Struct, frozen=True):
    """A place in the source: ``line`` to ``end_line``, 1-based, both included."""

    file: str
    line: int
    end_line: int


class Gap(Struct, frozen=True):
    """A link that could not be made: what kind of link, where, and why."""

    kind: str
    span: Span | None
    reason: str


class SourceInfo(Struct, frozen=True):
    """Which source an answer is about; ``revision`` is git's."""

    name: str
    version: str | None = None
    revision: str | None = None
