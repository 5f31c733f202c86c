"""How values and rows of facts stand in the store's tables: text, blobs, names, and the digest of a tree.

In and out: Python values and what SQLite keeps of them. Transactions, and what to do in trouble, are ``link.store``'s.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

#: ``(digest, kind, producer, blob, ((name, kind of name), …))``.
FactsRow = tuple[str, str, str, bytes, Sequence[tuple[str, str]]]

#: The rest of a question for the facts in use that hold names of a kind: by kind, then the producers.
LIVE = (
    "FROM has CROSS JOIN facts ON facts.id = has.fact"
    " CROSS JOIN files ON files.digest = facts.digest WHERE has.kind = ?"
)

#: SQLite takes at least this many values in one statement.
_MOST_VALUES = 900


def tree_digest(digests: Mapping[str, str]) -> str:
    """The digest over all ``{path: content digest}``, in whatever order they stand."""
    rows = "".join(f"{path}\0{digest}\n" for path, digest in sorted(digests.items()))
    return hashlib.sha256(rows.encode("utf-8", "surrogateescape")).hexdigest()


def stamps_of(db: sqlite3.Connection, kind: str, producer: str, language: str) -> dict[str, str]:
    """``{path: stamp of its facts}`` for every file in a language that has facts of this kind, in order of paths."""
    sql = (
        "SELECT files.path, facts.stamp FROM files CROSS JOIN facts ON facts.digest = files.digest"
        " WHERE facts.kind = ? AND facts.producer = ? AND files.language = ? ORDER BY files.path"
    )
    return {text_of(path): stamp for path, stamp in db.execute(sql, (kind, producer, language))}


def stamps_digest(stamps: Mapping[str, str]) -> str:
    """A digest of all paths and stamps: equal digests, equal facts."""
    rows = "\n".join(f"{path}\0{stamp}" for path, stamp in sorted(stamps.items()))
    return hashlib.blake2b(rows.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def noted(db: sqlite3.Connection, key: str, text: str) -> str:
    """The text, noted under a key for the whole tree. Call in a transaction."""
    db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, text))
    return text


def stamps_key(kind: str, producer: str, language: str) -> str:
    """The note that keeps a digest of the stamps of a kind of facts; it counts for as long as it is there."""
    return f"stamps|{kind}|{language}|{producer}"


def note_stamps(db: sqlite3.Connection, kind: str, producer: str, language: str) -> str:
    """The digest of the stamps of a kind of facts, noted. Call in a transaction."""
    which = (kind, producer, language)
    return noted(db, stamps_key(*which), stamps_digest(stamps_of(db, *which)))


def forget_stamps(db: sqlite3.Connection, kinds: Iterable[str] = (), languages: Iterable[str] | None = ()) -> None:
    """Drop the notes of stamps of some kinds of facts and of files in some languages (None: in any). Call in a
    transaction."""
    kinds, languages = frozenset(kinds), None if languages is None else frozenset(languages)
    for (key,) in db.execute("SELECT key FROM meta WHERE key GLOB 'stamps|*'").fetchall():
        _, kind, language, _ = key.split("|", 3)
        if kind in kinds or languages is None or language in languages:
            db.execute("DELETE FROM meta WHERE key = ?", (key,))


def sealed(blob: bytes) -> bytes:
    """A blob with its checksum before it."""
    # SQLite notices a damaged page of a table, but not a damaged byte within a blob.
    return zlib.crc32(blob).to_bytes(4, "little") + blob


def unsealed(blob: bytes) -> bytes | None:
    """The blob that was sealed, or None when it is damaged."""
    body = blob[4:]
    return body if zlib.crc32(body) == int.from_bytes(blob[:4], "little") else None


def stamp_of(blob: bytes) -> str:
    """A digest of encoded facts: equal stamps, equal facts, whatever text they were read from."""
    return hashlib.blake2b(blob, digest_size=8).hexdigest()


def value_digest(value: object) -> str:
    """A digest of a value that can be encoded: equal digests, equal values."""
    return hashlib.blake2b(msgspec.msgpack.encode(value), digest_size=16).hexdigest()


def bound(text: str) -> str | bytes:
    """Text as SQLite takes it: a file name that is not UTF-8 goes as its bytes."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")
    return text


def text_of(value: str | bytes) -> str:
    """The text that ``bound`` was given."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def put_rows(db: sqlite3.Connection, rows: Sequence[FactsRow], replace: bool) -> None:
    """Insert facts and their names; those that are there stay, or with ``replace`` go before. Call in a transaction."""
    if replace:
        _drop(db, rows)
    forget_stamps(db, {kind for _, kind, *_ in rows})
    names: list[tuple[str, str | bytes, int | None]] = []
    has: set[tuple[str, int | None]] = set()
    for digest, kind, producer, blob, defined in rows:
        put = db.execute(
            "INSERT OR IGNORE INTO facts(digest, kind, producer, stamp, blob) VALUES(?, ?, ?, ?, ?)",
            (digest, kind, producer, stamp_of(blob), sealed(blob)),
        )
        if put.rowcount and defined:
            fact = put.lastrowid
            names += [(name_kind, bound(name), fact) for name, name_kind in defined]
            has |= {(name_kind, fact) for _, name_kind in defined}
    db.executemany("INSERT OR IGNORE INTO names VALUES(?, ?, ?)", names)
    db.executemany("INSERT OR IGNORE INTO has VALUES(?, ?)", sorted(has))


def _drop(db: sqlite3.Connection, rows: Sequence[FactsRow]) -> None:
    sql = "SELECT id FROM facts WHERE kind = ? AND producer = ? AND digest = ?"
    found = (db.execute(sql, (kind, producer, digest)).fetchone() for digest, kind, producer, *_ in rows)
    old = [row[0] for row in found if row]
    for start in range(0, len(old), _MOST_VALUES):
        part = old[start : start + _MOST_VALUES]
        marks = ", ".join("?" * len(part))
        db.execute(f"DELETE FROM names WHERE fact IN ({marks})", part)
        db.execute(f"DELETE FROM has WHERE fact IN ({marks})", part)
        db.execute(f"DELETE FROM facts WHERE id IN ({marks})", part)


def drop_others(db: sqlite3.Connection, needed: str, values: Sequence[str]) -> None:
    """Drop the facts of which the condition ``needed`` does not hold, with their names. Call in a transaction."""
    db.execute(f"DELETE FROM facts WHERE NOT ({needed})", values)
    db.execute("DELETE FROM names WHERE fact NOT IN (SELECT id FROM facts)")
    db.execute("DELETE FROM has WHERE fact NOT IN (SELECT id FROM facts)")


def drop_oldest(db: sqlite3.Connection, most: int, most_bytes: int) -> tuple[int, int]:
    """Drops answers where there are too many, down to seven eighths; gives how many more, and how many bytes more,
    there is room for. Of the answers to one question (what stands before the first ``|`` of a key) earlier ones go
    before the last one, then those that were used longest ago: each edit leaves answers that nothing asks for again."""
    number, size = db.execute("SELECT count(*), total(size) FROM results").fetchone()
    room = (most - number, most_bytes - int(size))
    rows = db.execute("SELECT key, size FROM results ORDER BY used DESC, key").fetchall() if min(room) < 0 else []
    again: Counter[str] = Counter()
    ranked = []
    for key, size in rows:
        question = key.partition("|")[0]
        ranked.append((again[question], len(ranked), key, size))
        again[question] += 1
    held = [(key, size) for _, _, key, size in sorted(ranked)]
    spare = (most // 8, most_bytes // 8) if min(room) < 0 else (0, 0)
    while room[0] < spare[0] or room[1] < spare[1]:
        key, size = held.pop()
        db.execute("DELETE FROM results WHERE key = ?", (key,))
        room = (room[0] + 1, room[1] + size)
    return room
