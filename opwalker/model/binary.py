"""What one shared library says of itself: device code by architecture, registered kernels, registrations of ops."""

from __future__ import annotations

from msgspec import Struct


class DeviceCode(Struct, frozen=True):
    """The device code of a library for one architecture, in one form: ``elf`` (machine code) or ``ptx``.

    ``arch`` is as build files spell it (``"9.0a"``). ``kernels`` counts the entry points in it; None where the code is
    compressed and could not be unpacked, and for PTX, which is not read.
    """

    arch: str
    form: str
    modules: int
    size: int
    kernels: int | None = None


class BuiltKernel(Struct, frozen=True):
    """One kernel that a library registers with the CUDA runtime.

    ``name`` and ``arguments`` are those of its demangled name (``vllm::rms_norm_kernel``, ``"c10::Half, 8, 2, true"``);
    ``arguments`` is ``""`` for a kernel that is no template, and None where the name is too long for the demangler.
    ``archs`` are the architectures whose machine code has it; None where that cannot be told. ``unit`` is what the name
    of an anonymous namespace says of the file that it stands in.
    """

    symbol: str
    name: str
    arguments: str | None
    archs: tuple[str, ...] | None = None
    unit: str | None = None


class BuiltOp(Struct, frozen=True):
    """A schema, or a name given to ``impl``, that a library hands to torch.

    ``namespace`` and ``key`` are None where the bytes do not say them.
    """

    role: str
    text: str
    namespace: str | None = None
    key: str | None = None


class LibraryFacts(Struct, frozen=True):
    """Everything that was read of one shared library.

    ``modules`` are the Python modules that it can be imported as, ``exports`` its global symbols that no C++ mangling
    changed, ``words`` the names among its strings, dotted ones too, ``cannot_tell`` what its bytes do not say, and why.
    """

    path: str
    size: int
    machine: str
    stripped: bool = False
    soname: str | None = None
    needed: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    device_code: tuple[DeviceCode, ...] = ()
    kernels: tuple[BuiltKernel, ...] = ()
    ops: tuple[BuiltOp, ...] = ()
    cannot_tell: tuple[str, ...] = ()

    @property
    def builds(self) -> tuple[str, ...]:
        """The kinds of build that its device code comes from; none where it has none."""
        kinds = {"rocm" if code.arch.startswith("gfx") else "cuda" for code in self.device_code}
        return tuple(sorted(kinds))
