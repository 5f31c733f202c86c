"""Offload bundles: the device code that a library built for AMD GPUs carries, for each architecture.

In: the bytes of a ``.hip_fatbin`` section. Out: ``Entry`` values, as of a fat binary; the architecture is a target such
as ``gfx942``. A bundle is a list of targets with places, or the same packed as a whole behind a header of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from opwalker.binary.fatbin import MAX_UNPACKED, Entry, Packed, unpack_zstd

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_PACKED_MAGIC = b"CCOB"
_ENTRY = struct.Struct("<QQQ")
#: The header of a packed bundle by its version: where sizes stand and how wide they are, and where the code begins.
_HEADERS = {2: ("<II", 24), 3: ("<QQ", 32)}
_ZSTD = 1
#: Bundles follow each other at pages.
_PAGE = 4096
MAX_TARGETS = 1000


def read_bundles(section: memoryview) -> tuple[tuple[Entry, ...], str | None]:
    """The device code of all bundles of a section, and what was wrong with it, None where all of it was read."""
    entries: list[Entry] = []
    at = 0
    try:
        while at + len(_MAGIC) <= len(section):
            head = bytes(section[at : at + len(_MAGIC)])
            if head == _MAGIC:
                found, size = _bundle(section[at:])
                entries += found
            elif head[:4] == _PACKED_MAGIC:
                code, size = _unpacked(section[at:])
                entries += _bundle(code)[0]
            else:
                size = 1
            at += size
            at += -at % _PAGE
    except (struct.error, Packed) as error:
        known = str(error) if isinstance(error, Packed) else "a bundle of device code is damaged"
        return tuple(entries), known
    return tuple(entries), None


def _unpacked(bundle: memoryview) -> tuple[memoryview, int]:
    version, method = struct.unpack_from("<HH", bundle, 4)
    if version not in _HEADERS or method != _ZSTD:
        raise Packed("a bundle of device code is packed in a way that is not known here")
    form, start = _HEADERS[version]
    size, unpacked = struct.unpack_from(form, bundle, 8)
    if not start < size <= len(bundle) or unpacked > MAX_UNPACKED:
        raise struct.error("a packed bundle ends outside its section")
    return memoryview(unpack_zstd(bundle[start:size], unpacked)), size


def _bundle(bundle: memoryview) -> tuple[list[Entry], int]:
    """The device code of a plain bundle, and its size."""
    if bytes(bundle[: len(_MAGIC)]) != _MAGIC:
        raise struct.error("no bundle")
    count = struct.unpack_from("<Q", bundle, len(_MAGIC))[0]
    if count > MAX_TARGETS:
        raise struct.error("too many targets")
    entries = []
    end = len(_MAGIC) + 8
    for target, offset, size in _targets(bundle, count):
        if offset + size > len(bundle):
            raise struct.error("code outside its bundle")
        end = max(end, offset + size)
        # The host's own entry is empty: its code is the library itself.
        if size and "amdgcn" in target:
            arch = target.partition("amdgcn-amd-amdhsa-")[2].lstrip("-") or target
            entries.append(Entry("elf", arch, size, None, size, bundle[offset : offset + size]))
    return entries, end


def _targets(bundle: memoryview, count: int) -> Iterator[tuple[str, int, int]]:
    at = len(_MAGIC) + 8
    for _ in range(count):
        offset, size, length = _ENTRY.unpack_from(bundle, at)
        at += _ENTRY.size
        if at + length > len(bundle):
            raise struct.error("a name outside its bundle")
        yield bytes(bundle[at : at + length]).decode("ascii", "replace"), offset, size
        at += length
