"""Fat binaries: entries, architectures, packing, and what is wrong with a damaged one."""

from __future__ import annotations

import struct

import lz4.block
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.binary.cubin import DeviceKernels, arch_order, kernel_names
from opwalker.binary.elf import BadElf
from opwalker.binary.fatbin import MAX_UNPACKED, Entry, Packed, read_fatbins
from tests.binary.made import LZ4, ZSTD, cubin, entry, fatbin

try:
    from compression import zstd
except ImportError:
    from backports import zstd


def entries(*fatbins: bytes) -> tuple[Entry, ...]:
    found, fault = read_fatbins(memoryview(b"".join(fatbins)))
    assert fault is None
    return found


@pytest.mark.parametrize(
    ("arch", "flags", "spelt"),
    [
        (75, 0x11, "7.5"),
        (90, 0x11, "9.0"),
        (90, 0x100011, "9.0a"),
        (100, 0x1000011, "10.0"),
        (100, 0x1100011, "10.0a"),
        (120, 0x1200011, "12.0f"),
    ],
)
def test_architectures_are_spelt_as_in_build_files(arch: int, flags: int, spelt: str) -> None:
    (found,) = entries(fatbin(entry(b"12345678", arch, flags=flags)))
    assert found.arch == spelt


def test_entries_of_several_fat_binaries_in_order() -> None:
    found = entries(
        fatbin(entry(b"one", 80), entry(b"two", 80, "ptx", header=80)), b"\0" * 24, fatbin(entry(b"three", 90))
    )
    assert [(one.form, one.arch, bytes(one.code()).rstrip(b"\0")) for one in found] == [
        ("elf", "8.0", b"one"),
        ("ptx", "8.0", b"two"),
        ("elf", "9.0", b"three"),
    ]


@given(st.binary(max_size=2000), st.sampled_from(["zstd", "lz4"]))
def test_packed_code_comes_out_as_it_went_in(code: bytes, packing: str) -> None:
    if packing == "zstd":
        packed, flag = zstd.compress(code), ZSTD
    else:
        packed, flag = lz4.block.compress(code, store_size=False), LZ4
    (found,) = entries(fatbin(entry(packed, 90, flags=0x11 | flag, unpacked=len(code))))
    assert found.packing == packing
    assert bytes(found.code())[: len(code)] == code


@pytest.mark.parametrize("flag", [ZSTD, LZ4])
def test_code_that_cannot_be_unpacked(flag: int) -> None:
    (found,) = entries(fatbin(entry(b"\xff" * 40, 90, flags=0x11 | flag, unpacked=4000)))
    with pytest.raises(Packed, match="its code cannot be unpacked"):
        found.code()


@pytest.mark.parametrize("flag", [ZSTD, LZ4])
def test_a_size_that_cannot_be_true_is_not_believed(flag: int) -> None:
    (found,) = entries(fatbin(entry(b"\xff" * 40, 90, flags=0x11 | flag, unpacked=MAX_UNPACKED + 1)))
    with pytest.raises(Packed, match="cannot be true"):
        found.code()


def test_code_that_unpacks_to_more_than_it_says_is_cut() -> None:
    (found,) = entries(fatbin(entry(zstd.compress(b"\0" * 1_000_000), 90, flags=0x11 | ZSTD, unpacked=64)))
    assert len(found.code()) <= 64


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda made: made[:-8], "a fat binary ends outside its section"),
        (lambda made: made[:24] + struct.pack("<Q", 1 << 50) + made[32:], "the header of a fat binary is damaged"),
        (lambda made: made[:20] + struct.pack("<I", 8) + made[24:], "the header of a fat binary is damaged"),
    ],
)
def test_damage_is_said_and_what_stands_before_it_is_kept(change, said: str) -> None:
    whole = fatbin(entry(b"12345678", 80))
    found, fault = read_fatbins(memoryview(whole + change(whole)))
    assert (len(found), fault) == (1, said)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_to_an_end(data: bytes) -> None:
    found, fault = read_fatbins(memoryview(fatbin(entry(b"12345678", 80)) + data))
    assert found
    assert fault is None or "fat binary" in fault


def test_kernels_of_a_cubin_are_its_entry_points() -> None:
    assert kernel_names(cubin(["rows", "columns"], ["helper"])) == ["rows", "columns"]
    with pytest.raises(BadElf, match="it is no ELF file"):
        kernel_names(b".version 8.0 .target sm_90")


def test_kernels_by_architecture_and_faults_by_number() -> None:
    device = DeviceKernels(
        entries(
            fatbin(entry(cubin(["rows"]), 80), entry(cubin(["rows", "columns"]), 80), entry(b"no cubin", 90)),
            fatbin(entry(b"ptx text", 80, "ptx")),
        )
    )
    assert device.by_arch == {"8.0": {"rows", "columns"}}
    assert device.faults == {"it is no ELF file": 1}
    assert not device.readable
    assert [(code.arch, code.form, code.modules, code.kernels) for code in device.device_code()] == [
        ("8.0", "elf", 2, 2),
        ("8.0", "ptx", 1, None),
        ("9.0", "elf", 1, None),
    ]


def test_architectures_are_sorted_as_people_count() -> None:
    assert sorted(["10.0a", "9.0a", "8.9", "12.0", "9.0", "10.0"], key=arch_order) == [
        "8.9", "9.0", "9.0a", "10.0", "10.0a", "12.0",
    ]  # fmt: skip
