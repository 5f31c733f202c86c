"""How single values stand in the store's tables: text, blobs, and the digest of a tree.

In and out: Python values and what SQLite keeps of them. No table is read or written here.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping


def tree_digest(digests: Mapping[str, str]) -> str:
    """The digest over all ``{path: content digest}``, in whatever order they stand."""
    whole = hashlib.sha256()
    for path, digest in sorted(digests.items()):
        whole.update(f"{path}\0{digest}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def sealed(blob: bytes) -> bytes:
    """A blob with its checksum before it."""
    # SQLite notices a damaged page of a table, but not a damaged byte within a blob.
    return zlib.crc32(blob).to_bytes(4, "little") + blob


def unsealed(blob: bytes) -> bytes | None:
    """The blob that was sealed, or None when it is damaged."""
    body = blob[4:]
    return body if zlib.crc32(body) == int.from_bytes(blob[:4], "little") else None


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
