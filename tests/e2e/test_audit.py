"""A made library beside a made source, through the whole flow: what is in both, on one side, and why."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from opwalker import pipeline
from opwalker.binary.read import read_file
from opwalker.errors import InputError
from opwalker.model.audit import AuditResult, KernelAudit, OpAudit
from opwalker.serve.cli import main
from tests.binary.made import Library, Section, cubin, elf, entry, fatbin
from tests.binary.test_offload import bundle, code
from tests.binary.test_read import block

SCHEMA_FILE = Path(__file__).resolve().parents[1] / "serve" / "schemas" / "audit.json"

CMAKE = """
cmake_minimum_required(VERSION 3.26)
project(rowkit LANGUAGES CXX CUDA)
find_package(Torch REQUIRED)
set(ROWKIT_ARCHS "8.0;9.0a;10.0")
include(FetchContent)
FetchContent_Declare(colkit GIT_REPOSITORY https://code.invalid/colkit.git GIT_TAG v1)
FetchContent_MakeAvailable(colkit)
install(TARGETS _colkit DESTINATION rowkit)
set(GENERATOR "${CMAKE_CURRENT_SOURCE_DIR}/csrc/make_rows.py")
execute_process(COMMAND python ${GENERATOR})
file(GLOB GENERATED csrc/made_*.cu)
set(SOURCES ${GENERATED} csrc/bindings.cpp csrc/scale.cu)
if(ROWKIT_WITH_SORT)
  list(APPEND SOURCES csrc/sort.cu)
endif()
Python_add_library(_rowkit MODULE ${SOURCES})
target_compile_definitions(_rowkit PRIVATE ROWKIT_CUDA)
Python_add_library(_extra MODULE csrc/extra.cu)
"""

BINDINGS = """
#include <torch/library.h>
void scale(at::Tensor& rows, double by);
void sort_rows(at::Tensor& rows);
TORCH_LIBRARY(rowkit, m) {
  m.def("scale(Tensor! rows, float by) -> ()");
  m.impl("scale", torch::kCUDA, &scale);
#ifdef ROWKIT_PREVIEW
  m.def("preview(Tensor rows) -> Tensor");
#endif
}
"""

SCALE = """
#include "tuned.inc"
template <typename T, int N>
__global__ void scale_kernel(T* rows, float by) { rows[threadIdx.x * N] *= by; }
__global__ void unused_helper_kernel(int* rows) { rows[0] = 1; }
template <typename T>
__global__ void lone_kernel(T* rows) { rows[0] = 4; }
void scale(at::Tensor& rows, double by) {
  if (rows.size(0) > 8) {
    scale_kernel<float, 8><<<1, 32>>>(rows.data_ptr<float>(), by);
  } else {
    scale_kernel<float, 4><<<1, 32>>>(rows.data_ptr<float>(), by);
  }
  unused_helper_kernel<<<1, 1>>>(rows.data_ptr<int>());
  launch_tuned(&tuned_kernel, rows.data_ptr<int>());
}
"""

SORT = """
__global__ void sort_kernel(int* rows) { rows[0] = 2; }
"""

EXTRA = """
#include <torch/library.h>
TORCH_LIBRARY(extra, m) { m.def("count(Tensor rows) -> int"); }
__global__ void extra_kernel(int* rows) { rows[0] = 3; }
"""

FOUR, EIGHT, SIXTEEN = (f"_Z12scale_kernelIfLi{n}EEvPT_f" for n in (4, 8, 16))
HELPER = "_Z20unused_helper_kernelPi"
COPY = "_ZN3cub11EmptyKernelIvEEvv"
DEF = block("TORCH_LIBRARY_init_rowkit")
IMPL = block("TORCH_LIBRARY_IMPL_init_rowkit_CUDA_1")
SCHEMA = "scale(Tensor! rows, float by) -> ()"
GENERATOR = """
for kind in ("float", "double"):
    print(f"template __global__ void made_kernel<{kind}>({kind}*);")
"""
FILES = {
    "csrc/make_rows.py": GENERATOR,
    "CMakeLists.txt": CMAKE,
    "csrc/bindings.cpp": BINDINGS,
    "csrc/scale.cu": SCALE,
    "csrc/sort.cu": SORT,
    "csrc/extra.cu": EXTRA,
}
BUILT = Library(
    functions={DEF: [SCHEMA], IMPL: ["scale"], "register": [FOUR, EIGHT, HELPER, COPY]},
    fatbins=[fatbin(entry(cubin([FOUR, EIGHT, HELPER, COPY]), 80), entry(cubin([FOUR, HELPER]), 90, flags=0x100011))],
)
FETCHED = Library(
    functions={block("TORCH_LIBRARY_init_colkit"): ["flip(Tensor columns) -> Tensor"]},
    fatbins=[fatbin(entry(cubin(["_ZN6colkit11flip_kernelEPf"]), 80))],
)

Audit = Callable[..., AuditResult]


@dataclass
class AmdLibrary:
    """A library with nothing but device code for AMD GPUs."""

    code: bytes

    def bytes(self) -> bytes:
        """The file."""
        return elf([Section(".hip_fatbin", self.code)])


@pytest.fixture
def audit(library: Callable[[Mapping[str, str]], Path], tmp_path: Path) -> Audit:
    """``audit(_rowkit=BUILT)``: the made source beside libraries of these names."""
    root = library(FILES)

    def run(op: str | None = None, **libraries: Library) -> AuditResult:
        built = tmp_path / "built"
        built.mkdir(exist_ok=True)
        for name, made in libraries.items():
            (built / f"{name}.abi3.so").write_bytes(made.bytes())
        options = pipeline.Options(source=str(root), cache=tmp_path / "cache", jobs=1)
        return pipeline.audit(options, [str(built)], op=op)

    return run


def ops(result: AuditResult) -> dict[str, OpAudit]:
    return {op.name: op for op in result.ops}


def kernels(result: AuditResult) -> dict[str, KernelAudit]:
    return {kernel.name: kernel for kernel in result.kernels}


def test_all_is_explained(audit: Audit) -> None:
    result = audit(_rowkit=BUILT, _colkit=FETCHED)
    assert [one for one in (*result.ops, *result.kernels, *result.foreign) if not one.explained] == []
    assert result.counts.unexplained == 0
    assert (result.counts.ops_both, result.counts.kernels_both, result.counts.kernels_equal) == (1, 2, 2)


def test_an_op_in_both(audit: Audit) -> None:
    op = ops(audit(_rowkit=BUILT))["rowkit::scale"]
    assert (op.status, op.libraries) == ("both", ("_rowkit.abi3.so",))
    assert (op.schema, op.built_schema, op.keys, op.built_keys) == (SCHEMA, None, ("CUDA",), ("CUDA",))


def test_ops_of_one_side_say_why(audit: Audit) -> None:
    found = ops(audit(_rowkit=BUILT, _colkit=FETCHED))
    reasons = {name: (op.status, op.reason) for name, op in found.items() if op.status != "both"}
    assert reasons == {
        "rowkit::preview": (
            "source_only",
            "it stands under `#if ROWKIT_PREVIEW`, which no build of the build files sets",
        ),
        "extra::count": ("source_only", "its file goes into _extra, which is not among the libraries"),
        "colkit::flip": ("binary_only", "it comes from code.invalid/colkit, which the build fetches"),
    }


def test_kernels_with_their_instances_and_architectures(audit: Audit) -> None:
    found = kernels(audit(_rowkit=BUILT))
    scale = found["scale_kernel"]
    assert (scale.status, scale.verdict, scale.predicted, scale.built) == ("both", "equal", 2, 2)
    assert scale.instances == ("float, 4", "float, 8")
    assert (scale.archs, scale.some_archs) == (("8.0",), ("9.0a",))
    assert found["unused_helper_kernel"].archs == ("8.0", "9.0a")


def test_kernels_of_the_source_alone_say_why(audit: Audit) -> None:
    found = kernels(audit(_rowkit=BUILT))
    reasons = {name: kernel.reason for name, kernel in found.items() if kernel.status == "source_only"}
    assert reasons == {
        "sort_kernel": "its file is compiled only if ROWKIT_WITH_SORT",
        "extra_kernel": "its file goes into _extra, which is not among the libraries",
        "lone_kernel": "nothing instantiates it: no op of the source launches it by a path that could be followed",
    }


def test_kernels_from_elsewhere_say_what_they_are(audit: Audit) -> None:
    found = [(one.library, one.kernels, one.reason) for one in audit(_rowkit=BUILT, _colkit=FETCHED).foreign]
    assert found == [
        ("_colkit.abi3.so", ("colkit::flip_kernel",),
         "its sources are fetched when it is built: code.invalid/colkit"),
        ("_rowkit.abi3.so", ("cub::EmptyKernel",), "instantiated from the headers of CUB"),
    ]  # fmt: skip


def test_architectures_of_both_sides(audit: Audit) -> None:
    found = audit(_rowkit=BUILT).architectures
    assert (found.named, found.built) == (("8.0", "9.0a", "10.0"), ("8.0", "9.0a"))
    assert (found.only_named, found.only_built) == (("10.0",), ())


def test_an_instance_that_is_not_predicted_is_a_difference(audit: Audit) -> None:
    more = replace(BUILT, fatbins=[fatbin(entry(cubin([FOUR, EIGHT, SIXTEEN, HELPER]), 80))])
    result = audit(_rowkit=more)
    scale = kernels(result)["scale_kernel"]
    assert (scale.verdict, scale.explained, scale.missing, scale.extra) == ("different", False, (), ("float, 16",))
    assert result.counts.unexplained == 1


def test_an_instance_that_is_not_built_is_a_difference(audit: Audit) -> None:
    fewer = replace(
        BUILT,
        functions={DEF: [SCHEMA], IMPL: ["scale"]},
        fatbins=[fatbin(entry(cubin([FOUR, HELPER]), 80))],
    )
    scale = kernels(audit(_rowkit=fewer))["scale_kernel"]
    assert (scale.verdict, scale.explained, scale.missing, scale.extra) == ("different", False, ("float, 8",), ())


def test_a_kernel_that_is_no_template_has_one_instance_whoever_launches_it(audit: Audit) -> None:
    functions = {**BUILT.functions, "more": ["_Z11lone_kernelPi"]}
    found = kernels(audit(_rowkit=replace(BUILT, functions=functions)))
    lone = found["lone_kernel"]
    assert (lone.ops, lone.verdict, lone.predicted, lone.built) == ((), "equal", 1, 1)


def test_a_kernel_in_a_file_that_the_source_lacks(audit: Audit) -> None:
    """The launching file names it and includes what is not there; a kernel that nothing names stays unexplained."""
    more = {**BUILT.functions, "more": ["_Z12tuned_kernelPi", "_Z14unknown_kernelPi"]}
    found = audit(_rowkit=replace(BUILT, functions=more)).foreign
    reasons = {one.kernels: (one.reason, one.explained) for one in found if one.origin is None}
    assert reasons == {
        ("tuned_kernel",): ("csrc/scale.cu:2 includes tuned.inc, which is not in the source", True),
        ("unknown_kernel",): ("no file of the source defines it", False),
    }


def test_a_kernel_that_a_script_writes(audit: Audit) -> None:
    functions = {**BUILT.functions, "more": ["_Z11made_kernelIfEvPT_"]}
    (made,) = [
        one
        for one in audit(_rowkit=replace(BUILT, functions=functions)).foreign
        if one.kernels[0] != "cub::EmptyKernel"
    ]
    assert (made.kernels, made.explained) == (("made_kernel",), True)
    assert made.reason == "it stands in files that csrc/make_rows.py writes when it is built"


def test_a_schema_that_differs_is_a_difference(audit: Audit) -> None:
    other = "scale(Tensor! rows, float by=1.0) -> ()"
    changed = replace(BUILT, functions={**BUILT.functions, DEF: [other]})
    op = ops(audit(_rowkit=changed))["rowkit::scale"]
    assert (op.built_schema, op.explained, op.reason) == (other, False, "the schemas differ")


def test_a_string_that_the_compiler_cut_is_no_difference(audit: Audit) -> None:
    changed = replace(BUILT, functions={**BUILT.functions, DEF: ["scale(Tensor! rows, float by) -> getDevice"]})
    op = ops(audit(_rowkit=changed))["rowkit::scale"]
    assert (op.status, op.explained) == ("both", True)
    assert op.reason == "its string is cut in the library behind what is the same"


def test_what_nothing_explains(audit: Audit) -> None:
    strange = Library(
        functions={block("TORCH_LIBRARY_init_strange"): ["act(Tensor x) -> Tensor"]},
        fatbins=[fatbin(entry(cubin(["_ZN7strange10act_kernelEPf", "_ZN7strange11sort_kernelEPi"]), 80))],
    )
    result = audit(_rowkit=strange)
    found = ops(result)
    assert (found["rowkit::scale"].status, found["rowkit::scale"].explained) == ("source_only", False)
    assert found["strange::act"].reason == "nothing in the source registers it"
    assert {one.reason for one in result.foreign} == {
        "no file of the source defines it",
        "the source has a kernel of that name under another scope, at csrc/sort.cu:2",
    }
    # Both ops, the two kernels of the source that must be there, and the two groups.
    assert result.counts.unexplained == 6


def test_a_stripped_library_is_compared_as_far_as_it_goes(audit: Audit) -> None:
    op = ops(audit(_rowkit=replace(BUILT, stripped=True)))["rowkit::scale"]
    assert (op.status, op.built_keys, op.explained) == ("both", None, True)
    assert op.reason == "its schema is there; the library does not show under which namespace"


def test_a_library_of_another_build_is_listed_and_not_compared(audit: Audit) -> None:
    amd = AmdLibrary(bundle(gfx942=code("_Z11strange_amdPf")))
    result = audit(_rowkit=BUILT, _rowkit_amd=amd)
    assert result.counts.unexplained == 0
    assert result.foreign[-1].library == "_rowkit.abi3.so"
    assert {library.path: library.left_out for library in result.libraries} == {
        "_rowkit.abi3.so": None,
        "_rowkit_amd.abi3.so": "it is built for rocm: --build rocm compares it",
    }


def test_one_op_alone(audit: Audit) -> None:
    result = audit(op="scale", _rowkit=BUILT, _colkit=FETCHED)
    assert [op.name for op in result.ops] == ["rowkit::scale"]
    assert [kernel.name for kernel in result.kernels] == ["scale_kernel", "unused_helper_kernel"]
    assert [library.path for library in result.libraries] == ["_rowkit.abi3.so"]


def test_the_command_ends_with_1_on_a_difference(
    library: Callable[[Mapping[str, str]], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = library(FILES)
    wheel = tmp_path / "rowkit-1.0-cp39-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as bundle:
        bundle.writestr("_rowkit.abi3.so", BUILT.bytes())
        bundle.writestr("rowkit.libs/libother.so", b"not looked at")
    words = ["audit", str(wheel), "--source", str(root), "--cache", str(tmp_path / "cache"), "-j", "1"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["wheels"]) == (1, [wheel.name])
    assert [
        error.message for error in Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).iter_errors(document)
    ] == []
    assert [one["path"] for one in document["libraries"]] == ["_rowkit.abi3.so"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "all is explained" in text
    assert "scale_kernel" not in text
    with zipfile.ZipFile(wheel, "w") as bundle:
        bundle.writestr("_rowkit.abi3.so", replace(BUILT, functions={"register": [FOUR, EIGHT]}).bytes())
    assert main(words) == 1
    text = capsys.readouterr().out
    assert "1 difference not explained" in text
    assert "op rowkit::scale  only in the source" in text


def test_a_library_that_cannot_be_read_is_named_and_the_others_are_compared(
    library: Callable[[Mapping[str, str]], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, built = library(FILES), tmp_path / "built"
    built.mkdir()
    (built / "_rowkit.abi3.so").write_bytes(BUILT.bytes())
    (built / "empty.so").write_bytes(b"")
    (built / "script.so").write_text("INPUT(-lother)")
    words = ["audit", str(built), "--source", str(root), "--cache", str(tmp_path / "cache"), "-j", "1"]
    assert main([*words, "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert [one["path"] for one in document["libraries"]] == ["_rowkit.abi3.so"]
    assert document["counts"]["kernels_equal"] == 2
    assert {one["path"] for one in document["unread"]} == {"empty.so", "script.so"}
    assert main(words) == 3
    text = capsys.readouterr().out
    assert "empty.so is no shared library that can be read: it is empty" in text and "script.so" in text
    assert main(["audit", str(built / "empty.so"), *words[2:]]) == 3
    assert capsys.readouterr().err.startswith("opwalker: error: ")
    (built / "_rowkit.abi3.so").unlink()
    assert main(words) == 3
    assert "no library can be read" in capsys.readouterr().err


def test_nothing_to_compare_is_bad_input(tmp_path: Path, library: Callable[[Mapping[str, str]], Path]) -> None:
    options = pipeline.Options(source=str(library(FILES)), cache=tmp_path / "cache", jobs=1)
    with pytest.raises(InputError, match="no shared library lies in"):
        pipeline.audit(options, [str(tmp_path / "library")])


def test_a_library_is_read_again_once_its_code_can_be_unpacked(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    audit(_rowkit=BUILT)
    read: list[str] = []
    monkeypatch.setattr("opwalker.binary.read.read_file", lambda *words: read.append(words[1]) or read_file(*words))
    for there, times in (("none", 1), ("none", 1), ("another", 2)):
        monkeypatch.setattr("opwalker.binary.fatbin.unpackers", lambda there=there: there)
        audit()
        assert len(read) == times
