"""Compiler calls translated for clang: what says something about the source stays, all else goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker.facts.clang_flags import translated

CASES = {
    "macros, with and without a blank": (
        ["-DA=1", "-D", "B", "-UC", "--define-macro=D=2"],
        ["-DA=1", "-DB", "-UC", "-DD=2"],
    ),
    "a macro whose value holds an equals sign": (["-DTEXT=a=b"], ["-DTEXT=a=b"]),
    "the standard in each spelling": (
        ["-std=c++17", "--std", "c++20", "-std", "gnu++17"],
        ["-std=c++17", "-std=c++20", "-std=gnu++17"],
    ),
    "no standard of C++": (["-std=c11"], []),
    "architectures go with their values": (["-gencode", "arch=compute_90,code=sm_90", "-arch=sm_80", "-gencode=x"], []),
    "what is no word for clang": (
        ["--expt-relaxed-constexpr", "-O3", "--use_fast_math", "-c", "a.cu", "-o", "a.o"],
        [],
    ),
    "an output that is called like a flag": (["-o", "-Dx.o", "-DY"], ["-DY"]),
    "what is handed on to the host compiler": (
        ["-Xcompiler", "-fPIC,-DHOST=1", "--compiler-options='-DMORE'"],
        ["-DHOST=1", "-DMORE"],
    ),
    "what is handed on to the assembler": (["-Xptxas", "-DNOT_A_MACRO", "-DREAL"], ["-DREAL"]),
    "a flag that lacks its value": (["-DA", "-I"], ["-DA"]),
}


@pytest.mark.parametrize(("given", "kept"), CASES.values(), ids=CASES)
def test_flags(given: list[str], kept: list[str], tmp_path: Path) -> None:
    assert list(translated(given, str(tmp_path))) == kept


def test_folders_are_found_from_where_the_compiler_ran_and_must_be_there(tmp_path: Path) -> None:
    for name in ("one", "two", "three", "four"):
        (tmp_path / name).mkdir()
    (tmp_path / "forced.h").write_text("")
    given = ["-I", "one", "-Itwo", "-isystem=three", "--include-path", "four", "-include", "forced.h", "-Igone"]
    base = str(tmp_path)
    assert list(translated(given, base)) == [
        "-I", f"{base}/one", "-I", f"{base}/two", "-isystem", f"{base}/three", "-I", f"{base}/four",
        "-include", f"{base}/forced.h",
    ]  # fmt: skip
    assert list(translated(["-I", f"{base}/one/../two"], "/nowhere")) == ["-I", f"{base}/two"]
