"""Bundles of device code for AMD GPUs: plain, packed, damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.binary.cubin import DeviceKernels, kernel_names
from opwalker.binary.offload import read_bundles
from opwalker.binary.read import read_bytes
from tests.binary.made import Section, elf, symbol_table

try:
    from compression import zstd
except ImportError:
    from backports import zstd

AMDGPU = 224
ROWS, COLUMNS = "_Z4rowsPf", "_Z7columnsPf"


def code(*kernels: str) -> bytes:
    """A code object: each kernel is a function and the object that describes it."""
    symbols = [(f"{name}{end}", 0, 8, kind, 0) for name in kernels for end, kind in ((".kd", 1), ("", 2))]
    rows, names = symbol_table([*symbols, ("helper", 0, 8, 2, 0)])
    return elf(
        [Section(".text", b"\0" * 8), Section(".strtab", names, 3, 0), Section(".symtab", rows, 2, 0, 0, 2, 24)], AMDGPU
    )


def bundle(**targets: bytes) -> bytes:
    listed = [("host-x86_64-unknown-linux-gnu-", b"")]
    listed += [(f"hipv4-amdgcn-amd-amdhsa--{arch}", data) for arch, data in targets.items()]
    at = 32 + sum(24 + len(name) for name, _ in listed)
    head, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(listed)), b""
    for name, data in listed:
        head += struct.pack("<QQQ", at + len(body), len(data), len(name)) + name.encode()
        body += data
    return head + body


def packed(plain: bytes, version: int) -> bytes:
    squeezed = zstd.compress(plain)
    form, start = ("<II", 24) if version == 2 else ("<QQ", 32)
    sizes = struct.pack(form, start + len(squeezed), len(plain))
    return b"CCOB" + struct.pack("<HH", version, 1) + sizes + b"\0" * 8 + squeezed


PLAIN = bundle(gfx90a=code(ROWS, COLUMNS), gfx942=code(ROWS))


@pytest.mark.parametrize("made", [PLAIN, packed(PLAIN, 2), packed(PLAIN, 3)], ids=["plain", "packed 2", "packed 3"])
def test_targets_and_their_kernels(made: bytes) -> None:
    entries, fault = read_bundles(memoryview(made))
    assert fault is None
    device = DeviceKernels(entries)
    assert device.by_arch == {"gfx90a": {ROWS, COLUMNS}, "gfx942": {ROWS}}


def test_bundles_follow_each_other_at_pages() -> None:
    first = packed(PLAIN, 3)
    second = bundle(gfx1100=code(COLUMNS))
    entries, fault = read_bundles(memoryview(first + b"\0" * (-len(first) % 4096) + second))
    assert fault is None
    assert [entry.arch for entry in entries] == ["gfx90a", "gfx942", "gfx1100"]


def test_kernels_of_a_code_object_are_those_with_a_descriptor() -> None:
    assert kernel_names(code(ROWS)) == [ROWS]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (b"CCOB" + struct.pack("<HHQQQ", 9, 1, 40, 10, 0), "is packed in a way that is not known here"),
        (b"CCOB" + struct.pack("<HHQQQ", 3, 0, 40, 10, 0), "is packed in a way that is not known here"),
        (b"CCOB" + struct.pack("<HHQQQ", 3, 1, 1 << 40, 10, 0), "is damaged"),
        (PLAIN[:-600], "is damaged"),
        (PLAIN[:24] + struct.pack("<Q", 1 << 40) + PLAIN[32:], "is damaged"),
        (packed(PLAIN, 3)[:40] + b"\xff" * 40 + packed(PLAIN, 3)[80:], "cannot be unpacked"),
    ],
)
def test_damage_is_said(made: bytes, said: str) -> None:
    entries, fault = read_bundles(memoryview(made))
    assert entries == ()
    assert said in (fault or "")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_to_an_end(data: bytes) -> None:
    for head in (b"", b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__"):
        entries, _ = read_bundles(memoryview(head + data))
        assert entries == ()


def test_a_library_with_amd_code() -> None:
    sections = [Section(".rodata", b"\0" + ROWS.encode() + b"\0", 1, 2, 0x1000), Section(".hip_fatbin", PLAIN)]
    facts = read_bytes(memoryview(elf(sections)), "rows.so")
    assert facts.builds == ("rocm",)
    assert [(kernel.name, kernel.archs) for kernel in facts.kernels] == [
        ("columns", ("gfx90a",)),
        ("rows", ("gfx90a", "gfx942")),
    ]
