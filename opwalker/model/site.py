"""The answer to ``site``."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.places import SourceInfo


class SiteWritten(Struct, frozen=True, kw_only=True):
    """A site that was written to ``folder``; ``bytes`` is the size of all its files."""

    format: int = 1
    source: SourceInfo
    folder: str
    files: int
    bytes: int
