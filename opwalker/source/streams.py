"""A compressed file as one forward-only stream of bytes, with limits that a decompression bomb runs into.

In: an open file and its format. Out: ``BoundedStream``, which ``tarfile`` can read from. It knows nothing of members;
what stands in the stream is for ``archive`` to judge.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from opwalker.errors import InputError

#: No archive may unpack to more than this.
MAX_TOTAL_BYTES = 4 * 1024**3
#: Nor to more than this many times its own size, once it is past the size below which no harm is done.
MAX_RATIO = 200
RATIO_FREE_BYTES = 64 * 1024**2
#: No single read is larger: ``tarfile`` reads extended headers whole, and a forged one may claim gigabytes.
MAX_READ_BYTES = 64 * 1024**2

#: Decoding xz needs its dictionary in memory; the strongest preset needs 65 MB.
_XZ_MEMORY = 256 * 1024**2

_IN = 256 * 1024
_OUT = 1024 * 1024

#: First bytes of each compressed format.
MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00", "bzip2": b"BZh"}


class Damaged(Exception):
    """The stream cannot be decoded, ends early, or is used in a way that a sound archive never needs."""


class Readable(Protocol):
    """An open file, as far as it is needed here."""

    def read(self, size: int, /) -> bytes: ...


class _Decompressor(Protocol):
    """What bz2 and lzma objects share."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


class _Gunzip:
    """zlib's object in the shape of the other two."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = 0) -> bytes:
        out = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        # A full output may have more behind it even when all input is taken.
        self.needs_input = len(out) < max_length
        return out


def _maker(kind: str) -> tuple[Callable[[], _Decompressor], type[Exception]]:
    """What makes a decompressor of this kind, and the error that it raises on damaged data."""
    if kind == "gzip":
        return _Gunzip, zlib.error
    if kind == "bzip2":
        import bz2

        return bz2.BZ2Decompressor, OSError
    import lzma

    return lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY), lzma.LZMAError


def _plain(file: Readable) -> Iterator[bytes]:
    while data := file.read(_OUT):
        yield data


def _inflated(file: Readable, kind: str) -> Iterator[bytes]:
    """Decompressed pieces of at most 1 MiB. Raises Damaged."""
    make, failure = _maker(kind)
    magic = MAGIC[kind]
    data = file.read(_IN)
    while data.startswith(magic):
        decompressor = make()
        while not decompressor.eof:
            if decompressor.needs_input and not data:
                data = file.read(_IN)
                if not data:
                    raise Damaged("the file ends too soon")
            try:
                piece = decompressor.decompress(data, _OUT)
            except failure as error:
                raise Damaged(str(error)) from error
            data = b""
            if piece:
                yield piece
        # Another stream may follow (pigz, bgzip), or padding; anything else behind the end is left alone, as gzip does.
        data = decompressor.unused_data
        if len(data) < _IN:
            data += file.read(_IN)
        data = data.lstrip(b"\0")


class BoundedStream:
    """Bytes of a file, decompressed, from the front to the back; ``seek`` only goes forward.

    ``kind`` is ``"gzip"``, ``"xz"``, ``"bzip2"`` or ``"plain"``; ``packed_bytes`` the size of the file. Raises
    ``Damaged`` and, past a limit, InputError. ``last_read`` is what the latest ``read`` gave: the header block that
    stopped ``tarfile`` can be looked at again.
    """

    def __init__(self, file: Readable, kind: str, packed_bytes: int) -> None:
        self._pieces = _plain(file) if kind == "plain" else _inflated(file, kind)
        self._allowed = allowed_bytes(packed_bytes)
        self._piece = b""
        self._at = 0
        self._position = 0
        self._produced = 0
        self.last_read = b""

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> int:
        left = position - self._position
        if left < 0:
            raise Damaged("a header points backwards")
        while left:
            step = min(left, len(self._piece) - self._at)
            if not step and not self._advance():
                break
            self._at += step
            self._position += step
            left -= step
        return self._position

    def read(self, size: int) -> bytes:
        if not 0 <= size <= MAX_READ_BYTES:
            raise InputError(f"it holds a header of {size} bytes, which no sound archive does")
        end = self._at + size
        if end <= len(self._piece):
            data = self._piece[self._at : end]
            self._at = end
        else:
            parts = [self._piece[self._at :]]
            left = size - len(parts[0])
            self._at = len(self._piece)
            while left and self._advance():
                part = self._piece[:left]
                self._at = len(part)
                left -= len(part)
                parts.append(part)
            data = b"".join(parts)
        self._position += len(data)
        self.last_read = data
        return data

    def drain(self) -> None:
        """Read to the end, so that checksums behind the data are compared."""
        while self._advance():
            pass

    def _advance(self) -> bool:
        try:
            self._piece = next(self._pieces, b"")
        except OSError as error:
            raise Damaged(f"cannot be read: {error.strerror or error}") from error
        self._at = 0
        self._produced += len(self._piece)
        if self._produced > self._allowed:
            raise bomb(self._allowed)
        return bool(self._piece)


def allowed_bytes(packed_bytes: int) -> int:
    """How much an archive of ``packed_bytes`` may unpack to."""
    return min(MAX_TOTAL_BYTES, max(RATIO_FREE_BYTES, packed_bytes * MAX_RATIO))


def bomb(allowed: int) -> InputError:
    """The error for an archive that unpacks to more than it may."""
    return InputError(f"it unpacks to more than {allowed // 1024**2} MB, which looks like a decompression bomb")
