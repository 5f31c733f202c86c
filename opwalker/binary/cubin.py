"""The kernels of device code.

In: the entries of a library's fat binaries. Out: what there is for each architecture, and which kernels: device code is
an ELF file whose symbol table tells them. PTX is counted and not read.
"""

from __future__ import annotations

from collections.abc import Iterable

from opwalker.binary.elf import BadElf, Elf
from opwalker.binary.fatbin import Entry, Packed
from opwalker.model.binary import DeviceCode

_FUNCTION = 2
#: Set in a symbol's other byte for what can be launched.
_ENTRY_POINT = 0x10
#: AMD's code has an object of this name for each kernel.
_DESCRIPTOR = ".kd"


class DeviceKernels:
    """What the modules of a library hold: ``by_arch`` the names of the kernels, ``faults`` what could not be read."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.by_arch: dict[str, set[str]] = {}
        self.faults: dict[str, int] = {}
        self._modules: dict[tuple[str, str], tuple[int, int]] = {}
        self._unread: set[str] = set()
        for entry in entries:
            count, size = self._modules.get((entry.arch, entry.form), (0, 0))
            self._modules[entry.arch, entry.form] = (count + 1, size + entry.size)
            if entry.form == "elf":
                self._read(entry)

    def _read(self, entry: Entry) -> None:
        try:
            names = kernel_names(entry.code())
        except (Packed, BadElf) as error:
            self.faults[str(error)] = self.faults.get(str(error), 0) + 1
            self._unread.add(entry.arch)
            return
        self.by_arch.setdefault(entry.arch, set()).update(names)

    @property
    def readable(self) -> bool:
        """Whether all machine code was read."""
        return not self._unread

    def device_code(self) -> tuple[DeviceCode, ...]:
        """What there is for each architecture, the oldest first."""
        out = []
        for (arch, form), (count, size) in self._modules.items():
            known = form == "elf" and arch not in self._unread
            out.append(DeviceCode(arch, form, count, size, len(self.by_arch.get(arch, ())) if known else None))
        return tuple(sorted(out, key=lambda code: (arch_order(code.arch), code.form)))


def arch_order(arch: str) -> tuple[int, int, str]:
    """A key that sorts architectures as people count them: ``8.9`` before ``9.0`` before ``9.0a`` before ``10.0``, and
    behind them ``gfx90a`` before ``gfx942`` before ``gfx1100``."""
    if arch.startswith("gfx"):
        name = arch.partition(":")[0][3:]
        return (1000 + int(name[:-2]) if name[:-2].isdigit() else 1000, 0, arch)
    number = arch.split("+")[0].rstrip("af")
    major, _, minor = number.partition(".")
    return (int(major) if major.isdigit() else 0, int(minor) if minor.isdigit() else 0, arch)


def kernel_names(code: bytes | memoryview) -> list[str]:
    """The names of the kernels of one module of machine code. Raises BadElf."""
    elf = Elf(memoryview(code))
    if elf.machine == "amdgpu":
        return [s.name.removesuffix(_DESCRIPTOR) for s in elf.symbols() if s.name.endswith(_DESCRIPTOR) and s.section]
    return [s.name for s in elf.symbols() if s.kind == _FUNCTION and s.other & _ENTRY_POINT and s.section]
