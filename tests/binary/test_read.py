"""A library read whole: device code, kernels, registrations, symbols; and files that are no library."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwalker.binary.fatbin import unpackers
from opwalker.binary.read import read_bytes, read_file
from opwalker.errors import InputError, OpwalkerError
from opwalker.model.binary import BuiltOp
from tests.binary.made import AARCH64, Library, cubin, elf, entry, fatbin

HALF = "_ZN4rows6kernelIN3c104HalfELi8ELb1EEEvPT_i"
FLOAT = "_ZN4rows6kernelIfLi4ELb0EEEvPT_i"
UNIT = "_GLOBAL__N__0a1b2c3d_13_count_rows_cu_11223344"
ANONYMOUS = f"_ZN{len(UNIT)}{UNIT}5countEPi"
PLAIN = "fill_rows"
VARIABLE = "_ZN4rows5tableE"


def block(name: str, scope: str = "") -> str:
    """The symbol of a function that a registration macro makes, in a scope (``"4rows3abi"``) if there is one."""
    if scope:
        return f"_ZN{scope}L{len(name)}{name}ERN5torch7LibraryE"
    return f"_ZL{len(name)}{name}RN5torch7LibraryE"


DEF = block("TORCH_LIBRARY_init__rows")
IMPL = block("TORCH_LIBRARY_IMPL_init__rows_CUDA_1")
SCHEMA = "scale(Tensor! rows, float by) -> ()"


def read(library: Library):
    return read_bytes(memoryview(library.bytes()), "rows.so")


@pytest.fixture
def rows() -> Library:
    return Library(
        functions={
            DEF: [SCHEMA, "sum_rows"],
            IMPL: ["scale", "unsafe_scale"],
            "register_kernels": [HALF, FLOAT, VARIABLE],
            "PyInit__rows": [],
        },
        loose=["some text that nothing names"],
        fatbins=[
            fatbin(
                entry(cubin([HALF, FLOAT, PLAIN], ["device_helper"]), 90, flags=0x100011),
                entry(cubin([HALF]), 100, flags=0x1200011, header=112),
                entry(b".version 9.0", 90, "ptx", header=80),
            )
        ],
        exports=["PyInit__rows", "rows_abi", "_ZN4rows5scaleEv"],
        needed=["libtorch.so", "libcudart.so.13"],
        soname="_rows.abi3.so",
    )


def test_what_a_library_says_of_itself(rows: Library) -> None:
    facts = read(rows)
    assert (facts.machine, facts.stripped, facts.soname) == ("x86_64", False, "_rows.abi3.so")
    assert facts.needed == ("libtorch.so", "libcudart.so.13")
    assert facts.modules == ("_rows",)
    assert facts.exports == ("PyInit__rows", "rows_abi")
    assert facts.cannot_tell == ()


def test_device_code_by_architecture(rows: Library) -> None:
    found = [(code.arch, code.form, code.modules, code.kernels) for code in read(rows).device_code]
    assert found == [("9.0", "ptx", 1, None), ("9.0a", "elf", 1, 3), ("10.0f", "elf", 1, 1)]


def test_kernels_are_those_registered_and_those_in_device_code(rows: Library) -> None:
    found = [(kernel.name, kernel.arguments, kernel.archs) for kernel in read(rows).kernels]
    assert found == [
        ("fill_rows", "", ("9.0a",)),
        ("rows::kernel", "c10::Half, 8, true", ("9.0a", "10.0f")),
        ("rows::kernel", "float, 4, false", ("9.0a",)),
    ]


def test_registrations_have_their_namespace_and_key(rows: Library) -> None:
    assert read(rows).ops == (
        BuiltOp("schema", SCHEMA, "_rows"),
        BuiltOp("name", "sum_rows", "_rows"),
        BuiltOp("impl", "scale", "_rows", "CUDA"),
        BuiltOp("impl", "unsafe_scale", "_rows", "CUDA"),
    )


def test_a_name_that_ends_inside_another_is_found_where_code_names_it(rows: Library) -> None:
    rows.merged = True
    assert read(rows).ops[2:] == (
        BuiltOp("impl", "scale", "_rows", "CUDA"),
        BuiltOp("impl", "unsafe_scale", "_rows", "CUDA"),
    )
    assert "scale" in read(rows).words
    rows.functions = {DEF: [SCHEMA], IMPL: ["unsafe_scale"]}
    assert "scale" not in read(rows).words


def test_a_stripped_library_keeps_schemas_and_kernels_and_says_what_is_gone(rows: Library) -> None:
    rows.stripped = True
    facts = read(rows)
    assert facts.stripped
    assert facts.ops == (BuiltOp("schema", SCHEMA),)
    assert len(facts.kernels) == 3
    assert len(facts.cannot_tell) == 1
    assert facts.cannot_tell[0].startswith("it is stripped")


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        (block("STABLE_TORCH_LIBRARY_init__rows"), ("_rows", None)),
        (block("STABLE_TORCH_LIBRARY_FRAGMENT_init__rows_12"), ("_rows", None)),
        (block("TORCH_LIBRARY_init__rows_2"), ("_rows_2", None)),
        (block("TORCH_LIBRARY_init__rows", "4rows3abi"), ("_rows", None)),
        (block("TORCH_LIBRARY_IMPL_init__rows_CompositeExplicitAutograd_3"), ("_rows", "CompositeExplicitAutograd")),
        (block("TORCH_LIBRARY_IMPL_init__rows_CUDA", "4rows"), ("_rows", "CUDA")),
    ],
)
def test_blocks_by_their_symbols(symbol: str, expected: tuple[str, str | None]) -> None:
    found = read(Library(functions={symbol: ["copy_rows"]})).ops
    assert [(op.namespace, op.key) for op in found] == [expected]


def test_a_block_compiled_into_the_initialiser_of_its_file() -> None:
    made = "_ZL43TORCH_LIBRARY_IMPL_static_init__rows_CUDA_0"
    found = read(Library(functions={"_GLOBAL__sub_I_rows.cu": [f"&{made}", "scale"]}, objects=[made])).ops
    assert found == (BuiltOp("impl", "scale", "_rows", "CUDA"),)


def test_the_unit_of_an_anonymous_namespace() -> None:
    code = fatbin(entry(cubin([ANONYMOUS]), 80))
    (kernel,) = read(Library(fatbins=[code])).kernels
    assert (kernel.name, kernel.unit) == ("(anonymous namespace)::count", "count_rows_cu")


def test_registered_names_count_where_the_code_cannot_be_unpacked() -> None:
    packed = fatbin(entry(b"no lz4 data at all", 90, flags=0x2011, unpacked=1 << 20))
    facts = read(Library(functions={"register": [HALF]}, fatbins=[packed]))
    assert [(kernel.name, kernel.archs) for kernel in facts.kernels] == [("rows::kernel", None)]
    assert [(code.arch, code.kernels) for code in facts.device_code] == [("9.0", None)]
    assert len(facts.cannot_tell) == 1
    assert "1 of 1 modules of device code" in facts.cannot_tell[0]


def test_without_the_optional_packages_kernels_are_told_and_their_architectures_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("backports.zstd", "compression.zstd", "lz4.block"):
        monkeypatch.setitem(sys.modules, name, None)
    for package in ("backports", "compression", "lz4"):
        if package in sys.modules:
            for part in ("zstd", "block"):
                monkeypatch.delattr(sys.modules[package], part, raising=False)
    packed = fatbin(entry(b"12345678", 90, flags=0x8011, unpacked=64), entry(b"12345678", 80, flags=0x2011))
    facts = read(Library(functions={"register": [HALF]}, fatbins=[packed]))
    assert [(kernel.name, kernel.archs) for kernel in facts.kernels] == [("rows::kernel", None)]
    assert [code.arch for code in facts.device_code] == ["8.0", "9.0"]
    assert unpackers() == ""
    assert [text.partition(": ")[2] for text in facts.cannot_tell] == [
        "its code is packed with LZ4: pip install 'opwalker[audit]'",
        "its code is packed with Zstandard: pip install 'opwalker[audit]'",
    ]


def test_code_of_another_machine_is_not_looked_through() -> None:
    facts = read(Library(functions={DEF: [SCHEMA]}, machine=243))
    assert facts.machine == "riscv"
    assert [op.text for op in facts.ops] == [SCHEMA]
    assert "is not looked through" in facts.cannot_tell[0]


def test_references_of_aarch64_code() -> None:
    library = Library(functions={DEF: []}, loose=["outer_scale"], machine=AARCH64)
    data = bytearray(library.bytes())
    # adrp x0, the page of .rodata; add x0, x0, its offset: 8 points at "scale" inside "outer_scale".
    page = (0x200000 - 0x10000) >> 12
    adrp = 0x90000000 | (page & 3) << 29 | (page >> 2) << 5
    code = struct.pack("<II", adrp, 0x91000000 | 8 << 10)
    at = bytes(data).index(b"\xc3" + b"\x90" * 8)
    data[at : at + 8] = code
    assert "scale" in read_bytes(memoryview(bytes(data)), "rows.so").words
    assert "scale" not in read(library).words


# -- What is no library ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"#!/bin/sh\n", "it is no ELF file"),
        (b"!<arch>\nrows.o/", "it is an archive of object files"),
        (b"MZ\x90", "it is a Windows library"),
        (b"\xcf\xfa\xed\xfe", "it is a macOS library"),
        (b"\x7fELF\2\1\1", "it ends inside its header"),
        (b"\x7fELF\1\1\1" + b"\0" * 60, "it is a 32-bit file"),
        (b"\x7fELF\2\2\1" + b"\0" * 60, "it is big-endian"),
        (b"\x7fELF\3\1\1" + b"\0" * 60, "its header is damaged"),
        (elf([], kind=1), "it is an object file, not linked yet"),
        (elf([], kind=4), "it is an ELF file of type 4"),
        (Library().bytes()[:-32], "it ends before its table of sections"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_library_is_one_line(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "rows.so"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_file(path, "rows.so")
    assert str(caught.value).startswith("rows.so is no shared library that can be read: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_section_larger_than_the_file(rows: Library) -> None:
    data = bytearray(rows.bytes())
    table = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, table + 64 + 32, 1 << 60)
    with pytest.raises(InputError, match="it ends inside its section"):
        read_bytes(memoryview(bytes(data)), "rows.so")


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read rows\.so: no such file"):
        read_file(tmp_path / "rows.so", "rows.so")


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_damage_is_an_error_of_the_input_or_goes_unseen(data: st.DataObject) -> None:
    """Whatever byte is wrong: an answer, or an error of ours."""
    made = Library(
        functions={DEF: [SCHEMA]}, fatbins=[fatbin(entry(cubin([FLOAT]), 90))], exports=["rows"], needed=["a.so"]
    ).bytes()
    changed = bytearray(made)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(made)) | st.just(len(made)))
    try:
        read_bytes(memoryview(bytes(changed[:cut])), "rows.so")
    except OpwalkerError as error:
        assert error.exit_code == 3
