"""Which addresses a library's code and tables name.

In: the sections of a library. Out: ``References``: where something is named, and what; and where functions begin. Code
is not decoded: only the instructions that form an address relative to their own place are looked for (``lea`` on
x86-64, ``adrp`` and ``add`` on aarch64). So a string that is named can be told from bytes that merely look like one.
"""

from __future__ import annotations

import re
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from opwalker.binary.elf import Elf, Section

#: ``lea`` into any 64-bit register, with an offset to the next instruction.
_LEA = re.compile(rb"[\x48-\x4f]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](.{4})", re.DOTALL)
_RELA = struct.Struct("<QQq")
#: "Add the base of the library": the relocation of a pointer in a table, on each machine.
_RELATIVE = {"x86_64": 8, "aarch64": 1027}
_ADD_REACH = 6
_TABLE_DATAREL_SDATA4 = 0x3B


class References:
    """Every place that names an address, in order, and the beginnings of functions."""

    def __init__(self, elf: Elf) -> None:
        self.complete = elf.machine in _RELATIVE
        found: list[tuple[int, int]] = []
        for section in elf.sections:
            if section.executable and section.type == "SHT_PROGBITS" and not section.name.startswith(".plt"):
                found += _FINDERS.get(elf.machine, _nothing)(section)
            elif section.type == "SHT_RELA" and section.allocated and section.address:
                found += _pointers(section, _RELATIVE.get(elf.machine))
        found.sort()
        self._places = [place for place, _ in found]
        self._targets = [target for _, target in found]
        self.starts = _function_starts(elf.section(".eh_frame_hdr"))

    def targets(self) -> frozenset[int]:
        """All addresses that are named."""
        return frozenset(self._targets)

    def within(self, start: int, end: int) -> list[tuple[int, int]]:
        """The places from ``start`` to before ``end`` that name an address, with the address."""
        low, high = bisect_left(self._places, start), bisect_left(self._places, end)
        return list(zip(self._places[low:high], self._targets[low:high], strict=True))

    def function_at(self, address: int) -> tuple[int, int] | None:
        """Beginning and end of the function that holds an address, as the unwind table has it."""
        number = bisect_right(self.starts, address)
        if not number:
            return None
        end = self.starts[number] if number < len(self.starts) else address + 1
        return self.starts[number - 1], end

    def all(self) -> Iterator[tuple[int, int]]:
        """Every place with the address that it names."""
        return zip(self._places, self._targets, strict=True)


def _nothing(section: Section) -> Iterator[tuple[int, int]]:
    return iter(())


def _x86_64(section: Section) -> Iterator[tuple[int, int]]:
    base = section.address
    unpack = struct.Struct("<i").unpack
    for found in _LEA.finditer(section.data):
        yield base + found.start(), base + found.end() + unpack(found[1])[0]


def _aarch64(section: Section) -> Iterator[tuple[int, int]]:
    """``adrp`` gives a page, an ``add`` to the same register soon after gives the place in it."""
    code = array("I", bytes(section.data[: len(section.data) // 4 * 4]))
    if sys.byteorder == "big":
        code.byteswap()
    for number, word in enumerate(code):
        if word & 0x9F000000 != 0x90000000:
            continue
        register = word & 31
        offset = ((word >> 29) & 3) | ((word >> 3) & 0x1FFFFC)
        offset -= (offset & 0x100000) << 1
        place = section.address + 4 * number
        page = (place & ~0xFFF) + (offset << 12)
        for after in code[number + 1 : number + 1 + _ADD_REACH]:
            if after & 0xFFC00000 == 0x91000000 and (after >> 5) & 31 == register:
                yield place, page + ((after >> 10) & 0xFFF)
                break


_FINDERS = {"x86_64": _x86_64, "aarch64": _aarch64}


def _pointers(section: Section, relative: int | None) -> Iterator[tuple[int, int]]:
    whole = section.data[: len(section.data) // _RELA.size * _RELA.size]
    for place, info, addend in _RELA.iter_unpack(whole):
        if info & 0xFFFFFFFF == relative:
            yield place, addend


def _function_starts(header: Section | None) -> list[int]:
    """The sorted beginnings of functions, from the search table of the unwind information; none where it has none."""
    if header is None or len(header.data) < 12 or header.data[0] != 1 or header.data[3] != _TABLE_DATAREL_SDATA4:
        return []
    count = struct.unpack_from("<I", header.data, 8)[0]
    count = min(count, (len(header.data) - 12) // 8)
    rows = struct.iter_unpack("<ii", header.data[12 : 12 + 8 * count])
    return [header.address + start for start, _ in rows]
