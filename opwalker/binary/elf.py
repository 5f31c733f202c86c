"""The sections and symbols of a 64-bit ELF file, through pyelftools.

In: the bytes of a file, mapped or in memory. Out: ``Elf``: sections with their bytes, symbols, what the loader is told.
The only module that knows pyelftools; whatever it trips over in a damaged file comes out as ``BadElf``.
"""

from __future__ import annotations

import io
import mmap
import struct
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from opwalker.errors import InputError

#: A symbol as it lies in the file. Tables hold tens of thousands: pyelftools' own objects take a second for each.
_SYMBOL = struct.Struct("<IBBHQQ")
_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_CUDA": "cuda", "EM_AMDGPU": "amdgpu"}
_CUDA = 190


class BadElf(Exception):
    """The bytes are no ELF file that can be read; the text says why."""


class Section(Struct, frozen=True):
    """One section: its place in memory and its bytes, none where the file holds none of them."""

    name: str
    type: str
    flags: int
    address: int
    link: int
    data: memoryview

    @property
    def executable(self) -> bool:
        """Whether it holds code."""
        return bool(self.flags & 4)

    @property
    def allocated(self) -> bool:
        """Whether a loader maps it."""
        return bool(self.flags & 2)


class Symbol(Struct, frozen=True):
    """One symbol. ``section`` is the index of the section that defines it, 0 for one that another library defines."""

    name: str
    address: int
    size: int
    kind: int
    bind: int
    other: int
    section: int


class Elf:
    """An ELF file of this machine's byte order and 64 bits."""

    def __init__(self, data: memoryview | mmap.mmap) -> None:
        self._view = memoryview(data)
        _check(bytes(self._view[:64]))
        from elftools.elf.elffile import ELFFile

        stream = data if isinstance(data, mmap.mmap) else io.BytesIO(data)
        self._file: Any = _guarded(lambda: ELFFile(stream))
        count = _guarded(self._file.num_sections)
        if self._file["e_shoff"] + count * self._file["e_shentsize"] > len(self._view):
            raise BadElf("it ends before its table of sections")
        self.machine = _MACHINES.get(self._file["e_machine"], str(self._file["e_machine"]).removeprefix("EM_").lower())
        self._sections: tuple[Section, ...] | None = None

    @property
    def sections(self) -> tuple[Section, ...]:
        """All sections, in the order of their table."""
        if self._sections is None:
            self._sections = _guarded(lambda: tuple(self._section(one) for one in self._file.iter_sections()))
        return self._sections

    def section(self, name: str) -> Section | None:
        """The first section of a name, None where there is none."""
        return next((one for one in self.sections if one.name == name), None)

    def symbols(self, name: str = ".symtab") -> Iterator[Symbol]:
        """The symbols of the full table, or of the loader's (``.dynsym``); those without a name are left out."""
        raw = _guarded(lambda: self._file.get_section_by_name(name))
        if raw is None:
            return
        table = self._section(raw)
        names = bytes(_guarded(lambda: self._section(self._file.get_section(table.link))).data)
        whole = table.data[: len(table.data) // _SYMBOL.size * _SYMBOL.size]
        for at, info, other, section, address, size in _SYMBOL.iter_unpack(whole):
            if at:
                text = _text(names, at)
                yield Symbol(text, address, size, info & 15, info >> 4, other, section)

    def loader(self) -> tuple[str | None, tuple[str, ...]]:
        """The name that the library goes by, and the names of those that it needs."""
        return _guarded(self._loader)

    def _loader(self) -> tuple[str | None, tuple[str, ...]]:
        soname: str | None = None
        needed: list[str] = []
        dynamic = self._file.get_section_by_name(".dynamic")
        for tag in dynamic.iter_tags() if dynamic is not None else ():
            if tag.entry.d_tag == "DT_NEEDED":
                needed.append(tag.needed)
            elif tag.entry.d_tag == "DT_SONAME":
                soname = tag.soname
        return soname, tuple(needed)

    def _section(self, raw: Any) -> Section:
        header = raw.header
        offset, size = header["sh_offset"], header["sh_size"]
        if header["sh_type"] in ("SHT_NOBITS", "SHT_NULL"):
            offset = size = 0
        if offset + size > len(self._view):
            raise BadElf(f"it ends inside its section {raw.name or 'without a name'}")
        data = self._view[offset : offset + size]
        return Section(raw.name, str(header["sh_type"]), header["sh_flags"], header["sh_addr"], header["sh_link"], data)


def read_library(data: memoryview | mmap.mmap, name: str) -> Elf:
    """The ELF file of a shared library. InputError, one line, for anything else."""
    try:
        elf = Elf(data)
        elf.sections  # noqa: B018  read now, so that a damaged file is refused here
    except BadElf as error:
        raise InputError(f"{name} is no shared library that can be read: {error}") from error
    return elf


def _check(head: bytes) -> None:
    if not head:
        raise BadElf("it is empty")
    if head[:4] != b"\x7fELF":
        raise BadElf(_what_else(head))
    if len(head) < 64:
        raise BadElf("it ends inside its header")
    if head[4] == 1:
        raise BadElf("it is a 32-bit file")
    if head[5] == 2:
        raise BadElf("it is big-endian")
    if head[4:6] != b"\2\1":
        raise BadElf("its header is damaged")
    kind, machine = struct.unpack_from("<HH", head, 16)
    if machine != _CUDA and kind not in (2, 3):
        raise BadElf("it is an object file, not linked yet" if kind == 1 else f"it is an ELF file of type {kind}")


def _what_else(head: bytes) -> str:
    if head.startswith(b"!<arch>\n"):
        return "it is an archive of object files"
    if head[:4] in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"):
        return "it is a macOS library"
    return "it is a Windows library" if head[:2] == b"MZ" else "it is no ELF file"


def _guarded(act: Any) -> Any:
    """What ``act`` gives. pyelftools meets a damaged file with errors of many kinds, which all mean the same here."""
    from elftools.common.exceptions import ELFError

    try:
        return act()
    except (ELFError, ValueError, TypeError, LookupError, AttributeError, OverflowError, struct.error) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadElf(f"it is damaged ({said[:80]})") from error


def _text(names: bytes, at: int) -> str:
    end = names.find(b"\0", at)
    return names[at : end if end >= 0 else None].decode("utf-8", "replace")
