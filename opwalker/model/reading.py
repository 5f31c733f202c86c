"""What a walk stops at besides functions and kernels: synchronisation, patterns; a start that is no op."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SyncPoint:
    """A point where threads, streams or devices wait for each other, and what it protects."""

    kind: str
    text: str
    protects: str | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class PatternRef:
    """A known pattern that the walk passes."""

    id: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What is walked where it is no op: ``kind`` is ``file``, ``function``, ``class`` or ``kernel``."""

    kind: str
    name: str
    file: str
    line: int
    end_line: int
