"""One shared library, read.

In: a file, and the name to call it by. Out: ``LibraryFacts``. The file is mapped, never loaded; what is read of it is
bounded by its size. InputError, one line, for what is no shared library.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
from collections.abc import Iterable
from pathlib import Path

from opwalker.binary.cubin import DeviceKernels, arch_order
from opwalker.binary.demangle import demangled, outline
from opwalker.binary.elf import Elf, read_library
from opwalker.binary.fatbin import read_fatbins
from opwalker.binary.names import kernel_name, unit_of
from opwalker.binary.offload import read_bundles
from opwalker.binary.references import References
from opwalker.binary.registrations import read_registrations
from opwalker.binary.strings import Strings
from opwalker.errors import InputError
from opwalker.model.binary import BuiltKernel, DeviceCode, LibraryFacts

_FUNCTION, _GLOBAL = 2, (1, 2)
_MODULE = "PyInit_"
_WORD = re.compile(r"[A-Za-z_][\w.]{0,127}")
_MANGLED = re.compile(r"_Z[\w$.]+")
#: Symbols that every library exports for its loader.
_LOADER = frozenset(("_init", "_fini", "__bss_start", "_edata", "_end"))
_DEVICE_SECTIONS = {".nv_fatbin": read_fatbins, "__nv_relfatbin": read_fatbins, ".hip_fatbin": read_bundles}


def read_file(path: Path, called: str) -> LibraryFacts:
    """What the library at ``path`` says; ``called`` is how it is named in messages and in the result."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                raise InputError(f"{called} is no shared library that can be read: it is empty")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InputError(f"cannot read {called}: {reason}") from error
    try:
        return read_bytes(data, called)
    finally:
        # Where something still looks into the map, it is let go with that.
        with contextlib.suppress(BufferError):
            data.close()


def read_bytes(data: mmap.mmap | memoryview, called: str) -> LibraryFacts:
    """What the library whose bytes these are says."""
    elf = read_library(data, called)
    references = References(elf)
    strings = Strings(elf, references.targets())
    symbols = list(elf.symbols())
    exported = sorted(
        {s.name for s in elf.symbols(".dynsym") if s.section and s.bind in _GLOBAL and s.kind in (1, _FUNCTION)}
    )
    plain = tuple(name for name in exported if not name.startswith("_Z") and name not in _LOADER)
    texts = [text for _, text in strings.all()]
    device, code, unclear = _device(elf)
    held = any(elf.section(name) is not None for name in _DEVICE_SECTIONS)
    kernels = _kernels(texts, device) if held else ()
    soname, needed = elf.loader()
    stripped = elf.section(".symtab") is None
    return LibraryFacts(
        path=called,
        size=len(data),
        machine=elf.machine,
        stripped=stripped,
        soname=soname,
        needed=needed,
        modules=tuple(name[len(_MODULE) :] for name in plain if name.startswith(_MODULE)),
        exports=plain,
        words=tuple(sorted({text for text in texts if _WORD.fullmatch(text)})),
        device_code=code,
        kernels=kernels,
        ops=tuple(read_registrations(symbols, strings, references)),
        cannot_tell=tuple(_unknown(elf, references, stripped, kernels, unclear)),
    )


def _device(elf: Elf) -> tuple[DeviceKernels, tuple[DeviceCode, ...], list[str]]:
    """The kernels of the device code, what there is of it, and what could not be read."""
    unclear: list[str] = []
    entries = []
    for name, read in _DEVICE_SECTIONS.items():
        section = elf.section(name)
        if section is not None:
            found, fault = read(section.data)
            entries += found
            if fault:
                unclear.append(f"{fault}: what follows it in {name} is not read")
    device = DeviceKernels(entries)
    for fault, count in sorted(device.faults.items()):
        unclear.append(f"{count} of {len(entries)} modules of device code: {fault}")
    return device, device.device_code(), unclear


def _kernels(texts: Iterable[str], device: DeviceKernels) -> tuple[BuiltKernel, ...]:
    """Every kernel that is registered or stands in device code, by name and arguments."""
    registered = {text for text in texts if _MANGLED.fullmatch(text)}
    built = set().union(*device.by_arch.values()) if device.by_arch else set()
    names = demangled(sorted(registered | built))
    archs: dict[str, list[str]] = {}
    for arch in sorted(device.by_arch, key=arch_order):
        for symbol in device.by_arch[arch]:
            archs.setdefault(symbol, []).append(arch)
    kernels = []
    for symbol in registered | built:
        text = names.get(symbol)
        # Variables are registered too; what only device code has is a kernel for certain.
        parts = kernel_name(text) if text else _undemangled(symbol, symbol in built)
        if parts is not None:
            known = tuple(archs.get(symbol, ())) if device.readable and built else None
            kernels.append(BuiltKernel(symbol, parts[0], parts[1], known, unit_of(symbol)))
    return tuple(sorted(kernels, key=lambda kernel: (kernel.name, kernel.arguments or "", kernel.symbol)))


def _undemangled(symbol: str, built: bool) -> tuple[str, str | None] | None:
    """A C function's name as it is; of a C++ name that no demangler takes, what its beginning tells."""
    if not symbol.startswith("_Z"):
        return (symbol, "") if built else None
    name = outline(symbol)
    return (name, None) if name and (built or symbol.endswith("ParamsE")) else None


def _unknown(
    elf: Elf, references: References, stripped: bool, kernels: tuple[BuiltKernel, ...], unclear: list[str]
) -> Iterable[str]:
    if not elf.sections:
        yield "it has no table of sections: nothing but its machine can be told"
    if stripped:
        yield (
            "it is stripped: which namespace and dispatch key an op has is not shown by symbols; schemas and kernel "
            "names are there all the same, because torch and the CUDA runtime need them"
        )
    if not references.complete:
        yield f"code for {elf.machine} is not looked through: a string that ends inside another one is not told apart"
    long = sum(1 for kernel in kernels if kernel.arguments is None)
    if long:
        yield f"{long} kernels have names that are too long for the demangler: their template arguments are not told"
    yield from unclear
