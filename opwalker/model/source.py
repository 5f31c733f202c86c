"""What the source stage hands on: a root, the files below it, and one file's text."""

from __future__ import annotations

from msgspec import Struct

#: Languages that a file can be read as. ``"cuda"`` and ``"cpp"`` share one reader.
LANGUAGES = ("cuda", "cpp", "python", "cmake", "toml", "yaml")


class SourceRoot(Struct, frozen=True):
    """A tree of source text that is ready on disk.

    ``path`` is absolute. ``name`` and ``version`` come from the package or the folder, ``revision`` from git.
    ``immutable`` is true for an unpacked archive in the cache: its files do not change behind our back. ``note`` is
    what a reader must know about it (a wheel that stands in for missing sources), or None.
    """

    path: str
    name: str
    version: str | None = None
    revision: str | None = None
    immutable: bool = False
    note: str | None = None


class FileEntry(Struct, frozen=True):
    """A file that discovery found. ``path`` is relative to the root, with ``/``; ``mtime_ns`` and ``size`` from
    stat."""

    path: str
    size: int
    mtime_ns: int
    language: str


class Problem(Struct, frozen=True):
    """A fault of one file that did not stop the command. ``line`` and ``column`` are 1-based, 0 when unknown.

    ``kind`` is a short stable word such as ``"unreadable"``, ``"binary"``, ``"too-large"``, ``"too-deep"``,
    ``"encoding"``, ``"bad-schema"``, ``"timeout"``, ``"worker-died"``, ``"changed-while-read"``.
    """

    kind: str
    message: str
    line: int = 0
    column: int = 0


class SourceFile(Struct, frozen=True):
    """One file's text. ``text`` is decoded, with its line ends as they stand; ``digest`` is of the raw bytes."""

    path: str
    text: str
    language: str
    digest: str
    problems: tuple[Problem, ...] = ()
