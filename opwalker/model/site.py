"""The answer to ``site``."""

from __future__ import annotations

from dataclasses import dataclass, field

from opwalker.model.places import SourceInfo


@dataclass(frozen=True, slots=True)
class SiteWritten:
    """A site that was written to ``folder``; ``bytes`` is the size of all its files."""

    format: int = field(default=1, kw_only=True)
    source: SourceInfo
    folder: str
    files: int
    bytes: int
