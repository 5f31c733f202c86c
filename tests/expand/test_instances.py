"""Instances of kernels against what a compiler makes of the same source: see ``instance_sections``."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from opwalker.expand.environment_names import NameLookup
from tests.expand.instance_sections import FOLDER, Section, predicted, sections, split_instance
from tests.not_run import NotRun

SECTIONS = sections()
HEADERS = (
    "cstdint type_traits utility array memory tuple vector functional limits variant "
    "cuda_fp16.h cuda_bf16.h cuComplex.h cuda_fp8.h cuda_fp4.h"
).split()
ENTRY = re.compile(r"\.entry\s+([\w$.]+)")


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: f"{section.file}: {section.title}")
def test_the_instances_of_a_section(section: Section) -> None:
    found, reasons = predicted(section.code)
    assert set(reasons) == section.open, reasons
    assert {k: v for k, v in found.items() if k not in reasons} == {
        k: v for k, v in section.instances.items() if k not in section.open
    }
    for name in reasons:
        assert found[name] <= section.instances.get(name, set()), "an instance that no compiler makes"


def test_every_file_has_sections_and_every_section_expects_something() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == {section.file for section in SECTIONS}
    assert all(section.instances for section in SECTIONS)


#: Constants made from one another, and a local of the same name in another branch.
CHAIN = """template <int A> __global__ void k() {}
template <int N> void launcher() {
  constexpr int a0 = N;
  constexpr int a1 = a0 + a0;
  constexpr int a2 = a1 + a1 + a0;
  using I = std::integral_constant<int, a2>;
  constexpr int a3 = a2 + I::value;
  k<a3><<<1, 1>>>();
  { constexpr int a2 = 100; constexpr int a4 = a2 + a1; k<a4><<<1, 1>>>(); }
}
void op() { launcher<1>(); launcher<3>(); }
"""


def test_a_constant_of_a_function_is_worked_out_once_for_each_of_its_instances(monkeypatch) -> None:
    read = []
    initialiser = NameLookup.initialiser
    monkeypatch.setattr(NameLookup, "initialiser", lambda *given: read.append(given[1]) or initialiser(*given))
    found, reasons = predicted(CHAIN)
    assert found == {"k": {"10", "30", "102", "106"}} and not reasons
    assert {text: read.count(text) for text in read} == {
        "N": 2, "a0 + a0": 2, "a1 + a1 + a0": 2, "a2 + I::value": 2, "100": 2, "a2 + a1": 2,
    }  # fmt: skip


@pytest.mark.parametrize("file", sorted({section.file for section in SECTIONS}))
def test_a_compiler_makes_the_same_instances(file: str, tmp_path: Path) -> None:
    compiler, demangler = shutil.which("nvcc"), shutil.which("c++filt")
    if compiler is None or demangler is None:
        raise NotRun("no nvcc, or no c++filt, on this machine")
    held = [section for section in SECTIONS if section.file == file]
    text = "".join(f"#include <{header}>\n" for header in HEADERS)
    text += "".join(f"namespace section{n} {{\n{section.code}}}\n" for n, section in enumerate(held))
    source, made = tmp_path / "a.cu", tmp_path / "a.ptx"
    source.write_text(text)
    flags = ["-std=c++20", "-arch=sm_90", "-ptx", "-w", "--expt-relaxed-constexpr", "--extended-lambda"]
    subprocess.run([compiler, *flags, str(source), "-o", str(made)], check=True, capture_output=True)
    names = "\n".join(ENTRY.findall(made.read_text()))
    shown = subprocess.run([demangler], input=names, capture_output=True, text=True, check=True).stdout
    found: list[dict[str, set[str]]] = [{} for _ in held]
    for line in shown.splitlines():
        number = int(re.search(r"\bsection(\d+)::", line).group(1))
        name, arguments = split_instance(_kernel(re.sub(r"\bsection\d+::", "", line)))
        found[number].setdefault(name, set()).add(arguments)
    assert dict(zip((s.title for s in held), found, strict=True)) == {s.title: s.instances for s in held}


def _kernel(line: str) -> str:
    """A demangled function without its result and its parameters."""
    depth = 0
    for at in range(len(line) - 1, -1, -1):
        depth += (line[at] == ")") - (line[at] == "(")
        if depth == 0:
            break
    head, depth = line[:at], 0
    for at in range(len(head) - 1, -1, -1):
        depth += (head[at] in ">)") - (head[at] in "<(")
        if depth == 0 and head[at] == " ":
            return head[at + 1 :]
    return head
