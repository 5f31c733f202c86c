"""Where the store of facts lies on disk, and how it is opened, made and made anew.

In: a cache folder and a source root. Out: an open SQLite connection with the tables in place, and one line to say when
it is not the one that was there before. What stands in the tables is the business of ``link.store``.

A store that is made anew gets a new file name (``NAME-HASH.2.sqlite`` after ``NAME-HASH.1.sqlite``): another process
may have the old one open, and SQLite's side files (``-wal``, ``-shm``) go by name, so a name is never used twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import time
from pathlib import Path

from msgspec import Struct

from opwalker.model.source import SourceRoot

#: Raised whenever the tables or what their columns mean change; a store of another edition is made anew.
EDITION = "4"

#: Pages that may gather in the write-ahead log before they are copied into the database (64 MiB): a copy waits for the
#: disk, and a first index of a large library should wait once, when it closes.
_LOG_PAGES = 16384

# Blobs stand last in their rows: what stands behind one is read with it.
_TABLES = """
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files(
    path PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, language TEXT NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS files_by_digest ON files(digest);
CREATE TABLE IF NOT EXISTS facts(
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL, kind TEXT NOT NULL, producer TEXT NOT NULL, stamp TEXT NOT NULL,
    blob BLOB NOT NULL, UNIQUE(kind, producer, digest)
);
CREATE TABLE IF NOT EXISTS names(
    kind TEXT NOT NULL, name NOT NULL, fact INTEGER NOT NULL, PRIMARY KEY(kind, name, fact)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS has(kind TEXT NOT NULL, fact INTEGER NOT NULL, PRIMARY KEY(kind, fact)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results(key TEXT PRIMARY KEY, size INTEGER NOT NULL, used REAL NOT NULL, blob BLOB NOT NULL);
"""

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_REFUSED = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)

_BAD_READS = (
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
)


class UnusableStore(Exception):
    """A store file that is there and cannot be used. ``str()`` is the reason, fit to stand after "the store …"."""


class Opened(Struct, frozen=True):
    """An open store: ``path`` is None when it lives in memory; ``line`` is what the user should know, or None."""

    connection: sqlite3.Connection
    path: Path | None
    line: str | None


def is_busy(error: sqlite3.Error) -> bool:
    """True when another process held the store for longer than the time-out."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _BUSY


def is_refused(error: sqlite3.Error) -> bool:
    """True when the disk or its permissions refused a write, so that the tables themselves are in order."""
    code = getattr(error, "sqlite_errorcode", 0)
    return (code & 0xFF) in _REFUSED or (code & 0xFF == sqlite3.SQLITE_IOERR and code not in _BAD_READS)


def open_file(root: SourceRoot, cache: Path, timeout: float) -> Opened:
    """Open the newest store of ``root`` below ``cache``, making it where there is none or it cannot be used.

    ``timeout`` is in seconds. Never fails: a cache folder that cannot be written gives a store in memory.
    """
    stem = _stem(root)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        generation = max(_generations(cache, stem), default=0)
    except OSError as error:
        return _in_memory(f"the cache folder {cache} cannot be used ({error.strerror or error})")
    line = None
    if generation:
        path = _path(cache, stem, generation)
        try:
            return Opened(connect(path, timeout), path, None)
        except UnusableStore as error:
            line = f"the store of facts {error} and is made anew"
        except sqlite3.OperationalError as error:
            return _without_writing(path, cache, error)
    return _make(cache, stem, generation + 1, timeout, line)


def make_anew(path: Path, timeout: float, reason: str) -> Opened:
    """Put an empty store in the place of the one at ``path``, which is removed. ``reason`` as in ``UnusableStore``."""
    stem, generation = path.name.rsplit(".", 2)[:2]
    return _make(
        path.parent,
        stem,
        int(generation) + 1,
        timeout,
        f"the store of facts {reason} and is made anew",
    )


def copy_to_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    """All that is committed in ``connection``, in memory. Raises sqlite3.Error when it cannot be read."""
    memory = _memory()
    try:
        connection.backup(memory)
    except sqlite3.Error:
        memory.close()
        raise
    return memory


def empty_in_memory() -> sqlite3.Connection:
    """An empty store with its tables, in memory."""
    memory = _memory()
    _create(memory)
    return memory


def _stem(root: SourceRoot) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", root.name)[:60].strip("-") or "source"
    return f"{name}-{hashlib.sha256(os.fsencode(os.path.abspath(root.path))).hexdigest()[:16]}"


def _path(cache: Path, stem: str, generation: int) -> Path:
    return cache / f"{stem}.{generation}.sqlite"


def _generations(cache: Path, stem: str) -> list[int]:
    with os.scandir(cache) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(stem)]
    found = (re.fullmatch(re.escape(stem) + r"\.(\d+)\.sqlite", name) for name in names)
    return [int(match[1]) for match in found if match]


def _make(cache: Path, stem: str, generation: int, timeout: float, line: str | None) -> Opened:
    path = _path(cache, stem, generation)
    try:
        opened = Opened(connect(path, timeout), path, line)
    except (UnusableStore, sqlite3.Error) as error:
        return _in_memory(f"the cache folder {cache} cannot be written ({error})")
    for old in _generations(cache, stem):
        if old < generation:
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(f"{_path(cache, stem, old)}{suffix}")
    return opened


def _in_memory(reason: str) -> Opened:
    return Opened(empty_in_memory(), None, f"{reason}: facts are kept for this run only")


def _memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """Open or create the file. Raises UnusableStore for a bad one, OperationalError where the disk refuses."""
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        edition = _edition(connection)
        if edition is None:
            _create_with_log(connection, timeout)
            edition = _edition(connection)
        if edition != EDITION:
            raise UnusableStore("was written by another edition of opwalker")
    except sqlite3.Error as error:
        connection.close()
        if is_refused(error):
            raise
        if is_busy(error):
            raise UnusableStore("has been locked by another process for too long") from None
        raise UnusableStore("was damaged") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _edition(connection: sqlite3.Connection) -> str | None:
    """The edition of the tables, or None for a database that has none yet: new, or being made by another process."""
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        return None
    row = connection.execute("SELECT value FROM meta WHERE key = 'edition'").fetchone()
    return row[0] if row else ""


def _create_with_log(connection: sqlite3.Connection, timeout: float) -> None:
    # Turning the log on does not wait for another process that does the same, so the waiting is done here.
    end = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
    _create(connection)


def _create(connection: sqlite3.Connection) -> None:
    # One transaction: a process that is killed here leaves a database without tables, which counts as new.
    connection.executescript(
        f"BEGIN IMMEDIATE; {_TABLES} INSERT OR IGNORE INTO meta VALUES('edition', '{EDITION}'); COMMIT;"
    )


def _without_writing(path: Path, cache: Path, error: sqlite3.OperationalError) -> Opened:
    """The facts of a store in a folder that cannot be written: copied to memory, so that they still save work."""
    reason = f"the cache folder {cache} cannot be written ({error})"
    options = ["mode=ro"]
    wal = Path(f"{path}-wal")
    # "immutable" passes the log over, so it is right only where there is nothing in the log.
    with contextlib.suppress(OSError):
        if not wal.exists() or wal.stat().st_size == 0:
            options.append("mode=ro&immutable=1")
    for option in options:
        with contextlib.suppress(sqlite3.Error):
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?{option}", uri=True, isolation_level=None)
            with contextlib.closing(connection):
                if _edition(connection) == EDITION:
                    return Opened(
                        copy_to_memory(connection),
                        None,
                        f"{reason}: facts are kept for this run only",
                    )
    return _in_memory(reason)
