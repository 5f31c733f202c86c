"""One file's text.

In: a root and a ``FileEntry``. Out: a ``SourceFile``; whatever is wrong with the file is a problem in it and never an
exception. Line ends stay as they are, so that offsets are true. It does not judge what the text means: an encoding
declared inside a Python file is not looked at.
"""

from __future__ import annotations

import os
import stat
from hashlib import blake2b

from opwalker.model.source import FileEntry, Problem, SourceFile
from opwalker.source.discover import MAX_FILE_BYTES

_DIGEST_BYTES = 16

#: O_NOFOLLOW: links were settled by discovery. O_NONBLOCK: a pipe that took a file's place must not hang the reader.
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

#: Control characters that text holds: tab, line feed, vertical tab, form feed, carriage return, escape.
_TEXT_CONTROLS = b"\t\n\x0b\x0c\r\x1b"
_CONTROLS = bytes(set(range(1, 32)) - set(_TEXT_CONTROLS))

#: More NULs than this, or more than one byte in a hundred, and a file is no text with a slip in it.
_MAX_STRAY_NULS = 3

_UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


class _Unreadable(Exception):
    """Why a file gave no bytes: becomes a problem of that kind."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(kind, message)


def read(root_path: str, entry: FileEntry) -> SourceFile:
    """Read ``entry`` below ``root_path``. Never raises for a bad file.

    ``digest`` is the blake2b-128 of the raw bytes in hex, and ``""`` where no bytes could be read at all.
    """
    path = os.path.join(root_path, entry.path)
    try:
        data, steady = _bytes(path, root_path)
        if not steady:
            data, steady = _bytes(path, root_path)
    except _Unreadable as error:
        return SourceFile(entry.path, "", entry.language, "", (error.problem,))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return SourceFile(entry.path, "", entry.language, "", (Problem("unreadable", reason.lower()),))
    text, problems = decode(data)
    if not steady:
        problems += (Problem("changed-while-read", "the file changed while it was read, twice"),)
    return SourceFile(entry.path, text, entry.language, blake2b(data, digest_size=_DIGEST_BYTES).hexdigest(), problems)


def decode(data: bytes) -> tuple[str, tuple[Problem, ...]]:
    """The text of ``data`` without a byte-order mark, and what was wrong with it. Binary data gives ``""``."""
    if b"\0" not in data:
        if data.isascii():
            return data.decode("ascii"), ()
        if not data.startswith(_UTF16):
            return _decode_bytes(data)
    if data.startswith(_UTF32):
        return _decode_wide(data, "utf-32")
    if data.startswith(_UTF16):
        return _decode_wide(data, "utf-16")
    return _decode_with_nuls(data)


def _decode_bytes(data: bytes) -> tuple[str, tuple[Problem, ...]]:
    """Data without NULs: UTF-8, else Latin-1 when it looks like text."""
    data = data.removeprefix(_UTF8_MARK)
    try:
        return data.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        if _mostly_controls(data):
            return "", (Problem("binary", "not text: control characters and no UTF-8"),)
        line, column = _place(data, error.start)
        return data.decode("latin-1"), (Problem("encoding", "not UTF-8, read as Latin-1", line, column),)


def _decode_wide(data: bytes, codec: str) -> tuple[str, tuple[Problem, ...]]:
    """UTF-16 or UTF-32 with a byte-order mark, which the codec takes off."""
    try:
        text = data.decode(codec)
        problems: tuple[Problem, ...] = ()
    except UnicodeDecodeError as error:
        text = data.decode(codec, "replace")
        if text.count("\N{REPLACEMENT CHARACTER}") * 100 > len(text):
            return "", (Problem("binary", f"not text: starts like {codec.upper()} and does not go on as such"),)
        line = data[: error.start].decode(codec, "ignore").count("\n") + 1
        problems = (Problem("encoding", f"damaged {codec.upper()}: unreadable characters replaced", line),)
    if "\0" in text:
        if text.count("\0") > _stray_limit(len(text)):
            return "", (Problem("binary", "not text: NUL characters"),)
        line = text.count("\n", 0, text.index("\0")) + 1
        problems += (Problem("nul-bytes", "NUL characters read as blanks", line),)
        text = text.replace("\0", " ")
    return text, problems


def _decode_with_nuls(data: bytes) -> tuple[str, tuple[Problem, ...]]:
    """Data with NULs and no byte-order mark: text with a slip in it, or binary."""
    count = data.count(b"\0")
    if count > _stray_limit(len(data)) or _mostly_controls(data):
        return "", (Problem("binary", "not text: NUL bytes"),)
    line, column = _place(data, data.index(b"\0"))
    many = "a NUL byte" if count == 1 else f"{count} NUL bytes"
    text, problems = _decode_bytes(data.replace(b"\0", b" "))
    return text, (Problem("nul-bytes", f"{many} read as blanks", line, column), *problems)


def _stray_limit(length: int) -> int:
    return max(_MAX_STRAY_NULS, length // 100)


def _mostly_controls(data: bytes) -> bool:
    """Whether more than one byte in fifty is a control character that no text holds."""
    return (len(data) - len(data.translate(None, _CONTROLS))) * 50 > len(data)


def _place(data: bytes, at: int) -> tuple[int, int]:
    """1-based line and byte column of an offset."""
    return data.count(b"\n", 0, at) + 1, at - (data.rfind(b"\n", 0, at) + 1) + 1


def _bytes(path: str, root_path: str) -> tuple[bytes, bool]:
    """The bytes of a file, and whether it held still meanwhile. Raises _Unreadable, OSError or ValueError."""
    try:
        handle = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise _Unreadable("unreadable", "the file vanished after it was listed") from None
    except OSError:
        # A link is read only when it still leads to a place inside the root.
        if not os.path.islink(path):
            raise
        target, real_root = os.path.realpath(path), os.path.realpath(root_path)
        if os.path.commonpath((target, real_root)) != real_root:
            raise _Unreadable("outside-root", "a link to a file outside the source") from None
        handle = os.open(target, _FLAGS)
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            raise _Unreadable("unreadable", "not a regular file")
        if before.st_size > MAX_FILE_BYTES:
            limit = MAX_FILE_BYTES // (1024 * 1024)
            raise _Unreadable("too-large", f"the file grew above the limit of {limit} MB")
        # One byte more than it should have: a file that grew is seen without reading all of what was added.
        data = _read_up_to(handle, before.st_size + 1)
        after = os.fstat(handle)
    finally:
        os.close(handle)
    steady = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and len(data) == before.st_size
    return data, steady


def _read_up_to(handle: int, size: int) -> bytes:
    data = os.read(handle, size)
    if len(data) >= size - 1:
        return data
    parts = [data]
    left = size - len(data)
    while data and left:
        data = os.read(handle, left)
        parts.append(data)
        left -= len(data)
    return b"".join(parts)
