"""The store of facts: what each file's facts are, which names they define, and answers that were given before.

In: rows of files (path, size, time, digest), encoded facts by content digest, and encoded answers. Out: the same, by
key and by name. The store does not know what a blob says, nor what a kind means; it reads no source.

Facts are kept by *content digest*, kind and producer (the digest of the code that made them): a renamed or doubled file
costs nothing, and facts of older code are never met. So facts must not depend on a file's path.

One file a source root, with SQLite's write-ahead log: many may read while one writes, every write is one transaction of
bounded size, and a process that is killed loses what it had not yet committed and nothing else.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from opwalker.errors import EnvironmentMissing, InternalError
from opwalker.link import store_file, store_rows
from opwalker.link.store_rows import LIVE, FactsRow, bound, sealed, text_of, tree_digest, unsealed
from opwalker.model.source import SourceRoot

#: ``(size in bytes, mtime in ns, language, digest)`` of a file.
FileRow = tuple[int, int, str, str]

#: Bounds of one write transaction, so that another process never waits long.
_ROWS_AT_ONCE = 2000
_BYTES_AT_ONCE = 8 << 20

#: Bounds of the cached answers; the ones not used for longest go first.
_MOST_RESULTS = 8192
_MOST_RESULT_BYTES = 64 << 20
#: A used answer is noted at most once in this many seconds: a reader should seldom write.
_USE_NOTED_AFTER = 3600.0

#: Facts whose files are looked up one by one.
_SINGLY = 24
#: Facts that no file needs are dropped when there are more of them than of needed ones, and at least this many.
_FEWEST_DROPPED = 256

T = TypeVar("T")


class StoreRebuilt(InternalError):
    """The store was found damaged while in use and has been made anew, empty: index again and repeat the question."""


class Store:
    """The facts of one source root. Not for use by several threads at once."""

    def __init__(self, opened: store_file.Opened, say: Callable[[str], None], timeout: float) -> None:
        self._say = say
        self._timeout = timeout
        self._producers: tuple[str, ...] = ()
        self._stamps: dict[tuple[str, str, str], dict[str, str]] = {}
        self._fact_paths: dict[int, list[str]] = {}
        self._files: tuple[object, dict[str, FileRow]] | None = None
        self._adopt(opened)

    @classmethod
    def open(
        cls,
        root: SourceRoot,
        cache: Path,
        say: Callable[[str], None],
        *,
        timeout: float = 10.0,
    ) -> Store:
        """Open the store of ``root`` in the folder ``cache``, making both where needed.

        A store that is damaged, locked for longer than ``timeout`` seconds or of another edition is made anew; where
        the folder cannot be written, facts are kept in memory. Either says exactly one line. Raises nothing.
        """
        return cls(store_file.open_file(root, cache, timeout), say, timeout)

    @property
    def path(self) -> Path | None:
        """The file on disk, or None for a store in memory."""
        return self._path

    def use_producers(self, producers: Iterable[str]) -> None:
        """From now on names come from facts of these producers alone (before: from all facts)."""
        self._producers = tuple(sorted(set(producers)))
        self._fact_paths.clear()

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def reopen(self) -> None:
        """In a process that was forked: go on with a connection of its own. The first one's is left as it is."""
        self._files = None
        self._others, self._db = self._db, store_file.connect(self._path, self._timeout)

    # -- files ---------------------------------------------------------------------------------------------------------

    def known(self) -> Mapping[str, FileRow]:
        """``{path: (size, mtime_ns, language, digest)}`` of every file, as it was when last read. Not to be changed."""
        # It counts what other processes have written.
        version = self._one("PRAGMA data_version")
        if self._files is None or self._files[0] != version:
            rows = self._query("SELECT path, size, mtime_ns, language, digest FROM files")
            self._files = (version, {text_of(row[0]): row[1:] for row in rows})
        return self._files[1]

    def paths(self, languages: Sequence[str]) -> list[str]:
        """The files in these languages, in order."""
        sql = f"SELECT path FROM files WHERE language IN ({', '.join('?' * len(languages))}) ORDER BY path"
        return [text_of(row[0]) for row in self._query(sql, languages)]

    def update_files(self, changed: Mapping[str, FileRow], removed: Iterable[str] = ()) -> None:
        """Put or replace the rows of ``changed`` and drop those of ``removed``. Facts must have been put before."""
        removed = tuple(removed)
        rows, gone = [(bound(path), *row) for path, row in changed.items()], [(bound(path),) for path in removed]
        version, known = self._files or (None, {})
        held = known.keys() & {*changed, *removed}
        languages = {row[2] for row in changed.values()} | {known[path][2] for path in held}

        def work(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO files VALUES(?, ?, ?, ?, ?)", rows)
            db.executemany("DELETE FROM files WHERE path = ?", gone)
            db.execute("DELETE FROM meta WHERE key = 'tree'")
            # Of files that are not known here, it is not known what they were before.
            store_rows.forget_stamps(db, languages=languages if self._files else None)

        if rows or gone:
            self._stamps.clear()
            self._write(work)
            in_order = not removed and changed.keys() <= held
            self._files = (version, {**known, **changed}) if in_order else None

    def digest_of(self, path: str) -> str | None:
        """The content digest of a file, or None for a path that is not known."""
        row = self._one("SELECT digest FROM files WHERE path = ?", (bound(path),))
        return row[0] if row else None

    def tree_digest(self) -> str:
        """The digest over all paths and content digests: equal trees have equal ones."""
        return self.note("tree") or self._write(
            lambda db: store_rows.noted(db, "tree", tree_digest({path: row[3] for path, row in self.known().items()}))
        )

    def languages(self) -> dict[str, int]:
        """``{language: number of files}``."""
        return dict(self._query("SELECT language, count(*) FROM files GROUP BY language ORDER BY language"))

    def mark_complete(self, producers: str, tree: str) -> None:
        """Note that every file of the tree with digest ``tree`` has all facts of ``producers`` (a digest of all)."""
        self.set_note("complete", f"{producers} {tree}")

    def is_complete(self, producers: str) -> bool:
        """True when ``mark_complete`` was called for ``producers`` and no file has changed in the store since."""
        marked = self.note("complete") or ""
        return marked.startswith(f"{producers} ") and marked == f"{producers} {self.tree_digest()}"

    def note(self, key: str) -> str | None:
        """A short text that was kept under ``key`` for the whole tree, or None."""
        row = self._one("SELECT value FROM meta WHERE key = ?", (key,))
        return row[0] if row else None

    def set_note(self, key: str, text: str) -> None:
        """Keep a short text under ``key`` for the whole tree."""
        self._write(lambda db: store_rows.noted(db, key, text))

    # -- facts ---------------------------------------------------------------------------------------------------------

    def put_facts(self, rows: Iterable[FactsRow], *, replace: bool = False) -> None:
        """Keep facts with the names that they define.

        Facts that are there already are left as they are, or with ``replace`` dropped for the new ones.
        """
        batch: list[FactsRow] = []
        size = 0
        for row in rows:
            for key in [key for key in self._stamps if key[0] == row[1]]:
                del self._stamps[key]
            batch.append(row)
            size += len(row[3])
            if len(batch) >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
                self._write(partial(store_rows.put_rows, rows=batch, replace=replace))
                batch, size = [], 0
        if batch:
            self._write(partial(store_rows.put_rows, rows=batch, replace=replace))

    def facts(self, digest: str, kind: str, producer: str) -> bytes | None:
        """The blob of one file's facts, or None where they are not kept."""
        sql = "SELECT blob FROM facts WHERE kind = ? AND producer = ? AND digest = ?"
        row = self._one(sql, (kind, producer, digest))
        return self._unsealed(row[0]) if row else None

    def facts_at(self, path: str, kind: str, producer: str) -> bytes | None:
        """The blob of the facts of the file at a path, or None where they are not kept."""
        sql = (
            "SELECT facts.blob FROM files CROSS JOIN facts ON facts.digest = files.digest"
            " WHERE files.path = ? AND facts.kind = ? AND facts.producer = ?"
        )
        row = self._one(sql, (bound(path), kind, producer))
        return self._unsealed(row[0]) if row else None

    def facts_by_path(self, kind: str, producer: str) -> Iterator[tuple[str, bytes]]:
        """``(path, blob)`` for every file that has facts of this kind, in order of paths."""
        sql = (
            "SELECT files.path, facts.blob FROM files CROSS JOIN facts ON facts.digest = files.digest"
            " WHERE facts.kind = ? AND facts.producer = ? ORDER BY files.path"
        )
        for path, blob in self._query(sql, (kind, producer)):
            yield text_of(path), self._unsealed(blob)

    def stamps(self, kind: str, producer: str, language: str) -> dict[str, str]:
        """As ``store_rows.stamps_of``. The same stamp means the same facts, also where the text is another. What other
        processes put there meanwhile shows after a write of this one."""
        key = (kind, producer, language)
        if key not in self._stamps:
            self._stamps[key] = self._read(lambda db: store_rows.stamps_of(db, *key))
        return self._stamps[key]

    def stamps_state(self, kind: str, producer: str, language: str) -> str:
        """A digest of the stamps as they are now, noted for as long as no write may change them."""
        which = (kind, producer, language)
        return self.note(store_rows.stamps_key(*which)) or self._write(lambda db: store_rows.note_stamps(db, *which))

    def digests_with_facts(self, kind: str, producer: str) -> set[str]:
        """The digests of all contents whose facts of this kind are kept."""
        sql = "SELECT digest FROM facts WHERE kind = ? AND producer = ?"
        return {row[0] for row in self._query(sql, (kind, producer))}

    def prune(self) -> int:
        """Drop facts that no file needs, when they outweigh the others; gives how many were dropped.

        Not needed are facts of contents that no file has, and facts of other producers (after ``use_producers``).
        """
        needed = "digest IN (SELECT digest FROM files)" + self._produced("facts")
        (count,) = self._one("SELECT count(*) FROM facts") or (0,)
        (live,) = self._one(f"SELECT count(*) FROM facts WHERE {needed}", self._producers) or (0,)
        dropped = count - live
        if dropped <= live or dropped < _FEWEST_DROPPED:
            return 0
        self._write(partial(store_rows.drop_others, needed=needed, values=self._producers))
        return dropped

    # -- names ---------------------------------------------------------------------------------------------------------

    def paths_of(self, name: str, name_kinds: Sequence[str]) -> list[str]:
        """The files whose facts define ``name`` as one of these kinds, in order."""
        marks = ", ".join("?" * len(name_kinds))
        sql = f"SELECT DISTINCT fact FROM names WHERE kind IN ({marks}) AND name = ?"
        facts = self._query(sql, (*name_kinds, bound(name)))
        return sorted({path for (fact,) in facts for path in self._paths_of_fact(fact)})

    def _paths_of_fact(self, fact: int) -> list[str]:
        """The files that have facts: thousands of names are asked for, of a few hundred facts."""
        if fact not in self._fact_paths:
            # One who asks for some asks for nearly all of their kind.
            which = "id = ?" if len(self._fact_paths) < _SINGLY else "kind = (SELECT kind FROM facts WHERE id = ?)"
            meant = f"files.digest = facts.digest{self._produced('facts')}"
            sql = f"SELECT id, path FROM facts LEFT JOIN files ON {meant} WHERE {which}"
            found: dict[int, list[str]] = {}
            for one, path in self._query(sql, (*self._producers, fact)):
                found.setdefault(one, []).extend(() if path is None else (text_of(path),))
            self._fact_paths.update(found)
        return self._fact_paths.get(fact, [])

    def paths_with(self, name_kind: str) -> list[str]:
        """The files whose facts define any name of this kind, in order."""
        sql = f"SELECT DISTINCT files.path {LIVE}{self._produced('facts')} ORDER BY files.path"
        return [text_of(row[0]) for row in self._query(sql, (name_kind, *self._producers))]

    def names_of_kind(self, name_kind: str, *, any_producer: bool = False) -> list[tuple[str, str]]:
        """``(name, path)`` for every name of this kind, in order; ``any_producer`` takes facts of older code too."""
        produced, producers = ("", ()) if any_producer else (self._produced("facts"), self._producers)
        # Joined here and not in SQL: a kind may have 100,000 names, and this is three times as fast.
        paths: dict[int, list[str]] = {}
        for fact, path in self._query(f"SELECT has.fact, files.path {LIVE}{produced}", (name_kind, *producers)):
            paths.setdefault(fact, []).append(text_of(path))
        rows = self._query("SELECT name, fact FROM names WHERE kind = ? ORDER BY name, fact", (name_kind,))
        found = [(text_of(name), path) for name, fact in rows if fact in paths for path in paths[fact]]
        return list(dict.fromkeys(sorted(found)))

    def distinct_names(self, name_kind: str) -> set[str]:
        """Every name of this kind, whatever file it stands in."""
        live = f"SELECT DISTINCT has.fact {LIVE}{self._produced('facts')}"
        facts = {fact for (fact,) in self._query(live, (name_kind, *self._producers))}
        rows = self._query("SELECT name, fact FROM names WHERE kind = ?", (name_kind,))
        return {name if type(name) is str else text_of(name) for name, fact in rows if fact in facts}

    # -- answers -------------------------------------------------------------------------------------------------------

    def result(self, key: str) -> bytes | None:
        """An answer that was kept under ``key``, or None."""
        row = self._one("SELECT blob, used FROM results WHERE key = ?", (key,))
        if row is None:
            return None
        blob = self._unsealed(row[0])
        if time.time() - row[1] > _USE_NOTED_AFTER:
            # A note that cannot be made is no reason to give up the file on disk.
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("UPDATE results SET used = ? WHERE key = ?", (time.time(), key))
        return blob

    def put_result(self, key: str, blob: bytes) -> None:
        """Keep an answer. The oldest answers go when there are too many; one that is too large is not kept."""
        if len(blob) > _MOST_RESULT_BYTES // 4:
            return

        def work(db: sqlite3.Connection) -> None:
            row = (key, len(blob), time.time(), sealed(blob))
            db.execute("INSERT OR REPLACE INTO results VALUES(?, ?, ?, ?)", row)
            # Counted only where what was counted last does not say that there is room.
            self._room = (self._room[0] - 1, self._room[1] - len(blob))
            if min(self._room) < 0:
                self._room = store_rows.drop_oldest(db, _MOST_RESULTS, _MOST_RESULT_BYTES)

        self._write(work, facts=False)

    # -- the file below ------------------------------------------------------------------------------------------------

    def _adopt(self, opened: store_file.Opened) -> None:
        self._db, self._path = opened.connection, opened.path
        self._room, self._files = (0, 0), None
        if opened.line:
            self._say(opened.line)

    def _produced(self, table: str) -> str:
        if not self._producers:
            return ""
        return f" AND {table}.producer IN ({', '.join('?' * len(self._producers))})"

    def _one(self, sql: str, values: Sequence[object] = ()) -> tuple | None:
        rows = self._query(sql, values)
        return rows[0] if rows else None

    def _query(self, sql: str, values: Sequence[object] = ()) -> list[tuple]:
        return self._read(lambda db: db.execute(sql, values).fetchall())

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._db)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _write(self, work: Callable[[sqlite3.Connection], T], *, facts: bool = True) -> T:
        """Run ``work``, which may change ``facts``, in one transaction. Where the disk refuses, go on in memory."""
        if facts:
            self._fact_paths.clear()
        try:
            return self._transaction(work)
        except sqlite3.Error as error:
            if not (store_file.is_refused(error) or store_file.is_busy(error)) or self._path is None:
                raise self._unreadable(error) from error
            self._go_on_in_memory(error)
        return self._transaction(work)

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            result = work(self._db)
            self._db.execute("COMMIT")
            return result
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def _go_on_in_memory(self, error: sqlite3.Error) -> None:
        try:
            memory = store_file.copy_to_memory(self._db)
        except sqlite3.Error as unreadable:
            raise self._unreadable(unreadable) from error
        self.close()
        line = f"the store of facts cannot be written ({error}): facts are kept for this run only"
        self._adopt(store_file.Opened(memory, None, line))

    def _unreadable(self, error: sqlite3.Error) -> Exception:
        """The exception to raise for ``error``; a damaged store has been made anew when this returns."""
        if isinstance(error, sqlite3.ProgrammingError):
            return error
        if store_file.is_busy(error):
            return EnvironmentMissing("the store of facts is locked by another process", "try again")
        return self._rebuild("was damaged")

    def _unsealed(self, blob: bytes) -> bytes:
        body = unsealed(blob)
        if body is None:
            raise self._rebuild("was damaged")
        return body

    def _rebuild(self, reason: str) -> StoreRebuilt:
        self.close()
        if self._path is None:
            line = f"the store of facts {reason} and is made anew"
            self._adopt(store_file.Opened(store_file.empty_in_memory(), None, line))
        else:
            self._adopt(store_file.make_anew(self._path, self._timeout, reason))
        return StoreRebuilt(f"the store of facts {reason} and was made anew", "run the command again")
