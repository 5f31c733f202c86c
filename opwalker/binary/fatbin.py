"""Fat binaries: the device code that a library carries, for each architecture.

In: the bytes of a ``.nv_fatbin`` section. Out: ``Entry`` values: form, architecture, size, and the code, unpacked on
request. A fat binary is a header and entries one after another; each entry has a header of its own, whose flags say how
its code is packed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from importlib.util import find_spec

from msgspec import Struct

_MAGIC = 0xBA55ED50
#: Magic, version, header size, size of all entries.
_HEADER = struct.Struct("<IHHQ")
#: Kind, version, header size, size, packed size, (unused), minor, major, architecture, name's place and length, flags,
#: (unused), unpacked size.
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_FORMS = {1: "ptx", 2: "elf"}
_ARCH_SPECIFIC, _FAMILY_SPECIFIC = 0x100000, 0x200000
_LZ4, _ZSTD = 0x2000, 0x8000
_ALIGNMENT = 8
_UNPACKERS = ("compression.zstd", "backports.zstd", "lz4.block")
#: No module is that large; a header that says so is not believed.
MAX_UNPACKED = 2 << 30


class Packed(Exception):
    """The code of an entry cannot be unpacked here; the text says what is missing or wrong."""


class Entry(Struct, frozen=True):
    """One module of device code. ``packing`` is ``lz4``, ``zstd`` or None; ``arch`` as build files spell it."""

    form: str
    arch: str
    size: int
    packing: str | None
    unpacked: int
    data: memoryview

    def code(self) -> bytes | memoryview:
        """The code as it was before it was packed. Raises Packed."""
        if self.packing is None:
            return self.data
        if self.unpacked > MAX_UNPACKED:
            raise Packed("a module claims a size that cannot be true")
        unpack = unpack_zstd if self.packing == "zstd" else _unpack_lz4
        return unpack(self.data, self.unpacked)


def read_fatbins(section: memoryview) -> tuple[tuple[Entry, ...], str | None]:
    """The entries of all fat binaries of a section, and what was wrong with it, None where all of it was read."""
    entries: list[Entry] = []
    at = 0
    try:
        while at + _HEADER.size <= len(section):
            magic, _, header, size = _HEADER.unpack_from(section, at)
            if magic != _MAGIC:
                at += _ALIGNMENT
                continue
            if at + header + size > len(section):
                return tuple(entries), "a fat binary ends outside its section"
            entries += _entries(section[at + header : at + header + size])
            at += header + size
            at += -at % _ALIGNMENT
    except struct.error:
        return tuple(entries), "the header of a fat binary is damaged"
    return tuple(entries), None


def _entries(body: memoryview) -> Iterator[Entry]:
    at = 0
    while at < len(body):
        kind, _, header, size, packed, _, _, _, arch, _, _, flags, _, unpacked = _ENTRY.unpack_from(body, at)
        if header < _ENTRY.size or at + header + size > len(body):
            raise struct.error("an entry ends outside its fat binary")
        packing = "zstd" if flags & _ZSTD else "lz4" if flags & _LZ4 else None
        length = packed if packing and 0 < packed <= size else size
        data = body[at + header : at + header + length]
        yield Entry(_FORMS.get(kind, f"kind {kind}"), _spelt(arch, flags), size, packing, unpacked or length, data)
        at += header + size


def _spelt(arch: int, flags: int) -> str:
    suffix = "a" if flags & _ARCH_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
    return f"{arch // 10}.{arch % 10}{suffix}"


def unpackers() -> str:
    """Which of the packages that unpack device code are there: what is read of a library depends on it."""
    return " ".join(name for name in _UNPACKERS if _is_there(name))


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def unpack_zstd(data: memoryview, size: int) -> bytes:
    """At most ``size`` bytes out of a Zstandard frame. Raises Packed."""
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise Packed("its code is packed with Zstandard: pip install 'opwalker[audit]'") from None
    try:
        unpacker = zstd.ZstdDecompressor()
        return unpacker.decompress(data, max_length=size)
    except zstd.ZstdError as error:
        raise Packed(f"its code cannot be unpacked ({error})") from error


def _unpack_lz4(data: memoryview, size: int) -> bytes:
    try:
        from lz4 import block
    except ImportError:
        raise Packed("its code is packed with LZ4: pip install 'opwalker[audit]'") from None
    try:
        return block.decompress(data, uncompressed_size=size)
    except block.LZ4BlockError as error:
        raise Packed(f"its code cannot be unpacked ({error})") from error
