"""The strings of a library: constant text that ends with a NUL byte.

In: sections that hold constants, and the addresses that code names. Out: ``Strings``: the text at an address, and all
texts. A linker lets one string end inside another (``rms_norm`` in ``fused_rms_norm``): such a one counts where code
names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.binary.elf import Elf

#: Bytes of text: what a compiler leaves of a string literal in UTF-8, line ends included.
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+\Z")
_FAT = (".nv_fatbin", ".hip_fatbin")
MAX_STRING = 1 << 20


class Strings:
    """Constant strings by their address."""

    def __init__(self, elf: Elf, named: frozenset[int]) -> None:
        self._blocks = [
            (section.address, bytes(section.data))
            for section in elf.sections
            if section.allocated
            and not section.executable
            and section.type == "SHT_PROGBITS"
            and section.name.startswith((".rodata", ".data.rel.ro"))
            and section.name not in _FAT
        ]
        self._named = named

    def at(self, address: int) -> str | None:
        """The text that begins at an address, None where there is none."""
        for base, block in self._blocks:
            if base <= address < base + len(block):
                end = block.find(b"\0", address - base, address - base + MAX_STRING)
                raw = block[address - base : end] if end >= 0 else b""
                return raw.decode("utf-8", "replace") if _TEXT.match(raw) else None
        return None

    def all(self) -> Iterator[tuple[int, str]]:
        """Every text with its address: those that begin behind a NUL byte, and those that are named."""
        for base, block in self._blocks:
            at = 0
            while at < len(block):
                end = block.find(b"\0", at)
                if end < 0:
                    break
                raw = block[at:end]
                if raw and _TEXT.match(raw):
                    yield base + at, raw.decode("utf-8", "replace")
                at = end + 1
        for address in sorted(self._named):
            if self._inside(address):
                text = self.at(address)
                if text:
                    yield address, text

    def _inside(self, address: int) -> bool:
        """Whether an address lies in a block and not behind a NUL byte."""
        return any(
            base < address < base + len(block) and block[address - base - 1] != 0 for base, block in self._blocks
        )
