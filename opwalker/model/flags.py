"""Structures whose members synchronise: flags that threads, blocks or devices store and wait for."""

from __future__ import annotations

from msgspec import Struct


class FlagMember(Struct, frozen=True):
    """A member of such a structure. ``alignment`` is in bytes (None where nothing says), ``comment`` what stands beside
    it; ``stored_in`` and ``loaded_in`` are the functions that touch it, each with how (``"f: release_store"``)."""

    name: str
    type: str
    line: int
    alignment: int | None = None
    comment: str | None = None
    stored_in: tuple[str, ...] = ()
    loaded_in: tuple[str, ...] = ()


class FlagStruct(Struct, frozen=True):
    """The structure: where it is defined, the comment above it in the source's own words, its members in order."""

    name: str
    file: str
    line: int
    end_line: int
    comment: str | None = None
    members: tuple[FlagMember, ...] = ()
