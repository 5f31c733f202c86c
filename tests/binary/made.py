"""Shared libraries, cubins and fat binaries written byte by byte: as small as they can be, with what a test needs.

``Library`` takes what is to be found (strings, functions that name strings, device code) and gives the bytes of an ELF
file. Nothing here is taken from a compiler's output.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CUDA, X86_64, AARCH64 = 190, 62, 183
FUNCTION, OBJECT = 2, 1
FATBIN_MAGIC = 0xBA55ED50
KINDS = {"ptx": 1, "elf": 2}
ZSTD, LZ4 = 0x8000, 0x2000
TEXT_AT, RODATA_AT, HEADER_AT = 0x10000, 0x200000, 0x400000


@dataclass
class Section:
    """One section to be written."""

    name: str
    data: bytes
    type: int = 1
    flags: int = 2
    address: int = 0
    link: int = 0
    entry: int = 0


def elf(sections: Sequence[Section], machine: int = X86_64, kind: int = 3) -> bytes:
    """An ELF file with these sections behind the empty one, and the table of their names."""
    everything = [Section("", b"", 0, 0), *sections, Section(".shstrtab", b"", 3, 0)]
    names = b""
    places = []
    for section in everything:
        places.append(len(names))
        names += section.name.encode() + b"\0"
    everything[-1].data = names
    body = b""
    rows = b""
    for place, section in zip(places, everything, strict=True):
        body += b"\0" * (-len(body) % 8)
        offset = 64 + len(body)
        rows += struct.pack(
            "<IIQQQQIIQQ", place, section.type, section.flags, section.address, offset, len(section.data),
            section.link, 0, 8, section.entry,
        )  # fmt: skip
        body += section.data
    body += b"\0" * (-len(body) % 8)
    head = b"\x7fELF\2\1\1" + b"\0" * 9
    head += struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(everything),
                        len(everything) - 1)  # fmt: skip
    return head + body + rows


def symbol_table(symbols: Sequence[tuple[str, int, int, int, int]]) -> tuple[bytes, bytes]:
    """Rows and names of ``(name, address, size, kind, other)``, all global, all of section 1."""
    names = b"\0"
    rows = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name, address, size, kind, other in symbols:
        rows += struct.pack("<IBBHQQ", len(names), 0x10 | kind, other, 1, address, size)
        names += name.encode() + b"\0"
    return rows, names


def cubin(kernels: Sequence[str], functions: Sequence[str] = ()) -> bytes:
    """Device code with these kernels, and functions that cannot be launched."""
    rows, names = symbol_table(
        [(name, 0, 8, FUNCTION, 0x10) for name in kernels] + [(name, 0, 8, FUNCTION, 0) for name in functions]
    )
    return elf(
        [Section(".text", b"\0" * 8), Section(".strtab", names, 3, 0), Section(".symtab", rows, 2, 0, 0, 2, 24)],
        CUDA,
        2,
    )


def entry(code: bytes, arch: int, form: str = "elf", flags: int = 0x11, unpacked: int = 0, header: int = 64) -> bytes:
    """One entry of a fat binary; ``flags`` say how ``code`` is packed and whether it is for one architecture only."""
    padded = code + b"\0" * (-len(code) % 8)
    packed = len(code) if flags & (ZSTD | LZ4) else 0
    head = struct.pack(
        "<HHIQIIHHIIIQQQ", KINDS.get(form, 9), 0x101, header, len(padded), packed, 0, 8, 1, arch, 0, 0, flags, 0,
        unpacked,
    )  # fmt: skip
    return head + b"\0" * (header - len(head)) + padded


def fatbin(*entries: bytes) -> bytes:
    """A fat binary of entries."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", FATBIN_MAGIC, 1, 16, len(body)) + body


@dataclass
class Library:
    """What is to be in a shared library.

    ``functions`` maps a symbol to the strings that its code names, in order; a string that starts with ``&`` names the
    function or object behind it instead. ``loose`` are strings that nothing names, ``objects`` symbols of data.
    """

    functions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    loose: Sequence[str] = ()
    objects: Sequence[str] = ()
    fatbins: Sequence[bytes] = ()
    exports: Sequence[str] = ()
    needed: Sequence[str] = ()
    soname: str = ""
    stripped: bool = False
    machine: int = X86_64
    #: Strings that end inside another one, as a linker lays them: found by searching, not added again.
    merged: bool = False

    def bytes(self) -> bytes:
        """The file."""
        rodata, places = self._strings()
        objects = {name: 0x500000 + 16 * number for number, name in enumerate(self.objects)}
        text, symbols, starts = b"", [], []
        for name, said in self.functions.items():
            start = TEXT_AT + len(text)
            starts.append(start)
            for word in said:
                target = objects[word[1:]] if word.startswith("&") else places[word]
                text += b"\x48\x8d\x3d" + struct.pack("<i", target - (TEXT_AT + len(text) + 7))
            text += b"\xc3" + b"\x90" * 8
            symbols.append((name, start, TEXT_AT + len(text) - start, FUNCTION, 0))
        symbols += [(name, address, 8, OBJECT, 0) for name, address in objects.items()]
        sections = [
            Section(".text", text or b"\xc3", 1, 6, TEXT_AT),
            Section(".rodata", rodata, 1, 2, RODATA_AT),
            Section(".eh_frame_hdr", _search_table(starts), 1, 2, HEADER_AT),
        ]
        if self.fatbins:
            sections.append(Section(".nv_fatbin", b"".join(self.fatbins), 1, 2, 0x800000))
        rows, names = symbol_table([(name, TEXT_AT, 1, FUNCTION, 0) for name in self.exports])
        names, tags = self._dynamic(names)
        sections.append(Section(".dynstr", names, 3, 2))
        strings = len(sections)
        sections.append(Section(".dynsym", rows, 11, 2, 0, strings, 24))
        sections.append(Section(".dynamic", tags, 6, 3, 0x900000, strings, 16))
        if not self.stripped:
            rows, names = symbol_table(symbols)
            sections.append(Section(".strtab", names, 3, 0))
            sections.append(Section(".symtab", rows, 2, 0, 0, len(sections), 24))
        return elf(sections, self.machine)

    def _strings(self) -> tuple[bytes, dict[str, int]]:
        rodata = b"\1\0"
        places: dict[str, int] = {}
        said = [word for words in self.functions.values() for word in words if not word.startswith("&")]
        for word in sorted(dict.fromkeys([*said, *self.loose]), key=len, reverse=True):
            raw = word.encode() + b"\0"
            if self.merged and raw in rodata:
                places[word] = RODATA_AT + rodata.index(raw)
                continue
            places[word] = RODATA_AT + len(rodata)
            rodata += raw
        return rodata, places

    def _dynamic(self, names: bytes) -> tuple[bytes, bytes]:
        tags = b""
        for tag, words in ((1, self.needed), (14, [self.soname] if self.soname else [])):
            for word in words:
                tags += struct.pack("<qQ", tag, len(names))
                names += word.encode() + b"\0"
        return names, tags + struct.pack("<qQ", 0, 0)


def _search_table(starts: Sequence[int]) -> bytes:
    rows = b"".join(struct.pack("<ii", start - HEADER_AT, 0) for start in sorted(starts))
    return b"\1\x1b\3\x3b" + struct.pack("<iI", 0, len(starts)) + rows
