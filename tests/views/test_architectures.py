"""Answers for some architectures: ops and kernels of files that are not compiled for them, and device conditions."""

from __future__ import annotations

from opwalker.expand.workbench import Workbench
from opwalker.model.walk import KernelEntry
from opwalker.views.build_side import build_view, read_build_facts
from opwalker.views.joined import JoinedOps
from opwalker.views.kernels import list_kernels
from opwalker.views.ops import OpsView
from opwalker.views.walk import WalkView
from tests.link.test_build_cuda import CMAKE, built
from tests.trees import tree
from tests.views.miniatures import NO_PYTHON, SOURCE

FILES = {
    "bindings.cpp": """void plain(torch::Tensor& a);
void wide(torch::Tensor& a);
TORCH_LIBRARY(mini, m) {
  m.def("plain(Tensor! a) -> ()");
  m.def("wide(Tensor! a) -> ()");
  m.impl("plain", torch::kCUDA, &plain);
#ifdef ENABLE_WIDE
  m.def("extra(Tensor! a) -> ()");
  m.impl("extra", torch::kCUDA, &wide);
#endif
}
""",
    "common.cu": """__global__ void plain_kernel(float* a) {}
__global__ void newer_kernel(float* a) {}
template <int N> __global__ void tile_kernel(float* a) {
#if __CUDA_ARCH__ >= 900
  __syncwarp();
#else
  __syncthreads();
#endif
}
void plain(torch::Tensor& a) {
  plain_kernel<<<1, 2>>>(a.data_ptr<float>());
  tile_kernel<4><<<1, 2>>>(a.data_ptr<float>());
#ifdef ENABLE_WIDE
  newer_kernel<<<1, 2>>>(a.data_ptr<float>());
#endif
}
""",
    "wide.cuh": "__global__ void wide_kernel(float* a) {}\n",
    "wide.cu": """#include "wide.cuh"
void wide(torch::Tensor& a) { wide_kernel<<<1, 2>>>(a.data_ptr<float>()); }
TORCH_LIBRARY_IMPL(mini, CUDA, m) { m.impl("wide", &wide); }
""",
    "late.cu": "",
}


def bench(*names: str) -> Workbench:
    files = {"CMakeLists.txt": CMAKE}
    paths = tuple(FILES)
    everything = built(files, (), paths=paths)
    view = build_view(built(files, names, paths=paths), everything, names) if names else build_view(everything)
    return tree(FILES, view=view)


def kernels(made: Workbench) -> dict[str, KernelEntry]:
    ops = JoinedOps(OpsView(made), NO_PYTHON).all()
    return {k.name: k for k in list_kernels(made, SOURCE, ops, None).kernels}


def test_kernels_of_files_that_are_not_compiled() -> None:
    found = kernels(bench("8.0"))
    assert {name: bool(k.ops) for name, k in found.items()} == {
        "plain_kernel": True, "tile_kernel": True, "newer_kernel": False, "wide_kernel": False,
    }  # fmt: skip
    why = found["wide_kernel"].why_incomplete
    assert why is not None and why.startswith("wide.cu is not compiled for 8.0 (target _mini, CMakeLists.txt:")
    assert "WIDE_ARCHS" in why
    assert all(k.ops for k in kernels(bench("9.0a")).values())
    assert all(k.ops for k in kernels(bench()).values())


def test_the_architectures_of_a_kernel() -> None:
    found = kernels(bench("8.0", "9.0a"))
    assert {name: k.archs for name, k in found.items()} == {
        "plain_kernel": ("8.0", "9.0a"), "tile_kernel": ("8.0", "9.0a"), "newer_kernel": ("8.0", "9.0a"),
        "wide_kernel": ("9.0a",),
    }  # fmt: skip
    assert kernels(bench())["wide_kernel"].archs == ()


def test_ops_of_files_and_conditions_that_fall_away() -> None:
    made = bench("8.0")
    ops = {op.name: op for op in JoinedOps(OpsView(made), NO_PYTHON).all()}
    assert [d.builds for d in ops["mini::extra"].defs] == [()]
    assert [i.builds for i in ops["mini::wide"].impls] == [()]
    assert [i.builds for i in ops["mini::plain"].impls] == [("cuda",)]
    walk = WalkView(made, SOURCE).walk(ops["mini::wide"])
    assert [(i.host, i.launches) for i in walk.implementations] == [(None, ())]
    (gap,) = walk.gaps
    assert gap.kind == "not-built" and gap.reason.startswith("wide.cu is not compiled for 8.0")
    extra = WalkView(made, SOURCE).walk(ops["mini::extra"])
    assert "wide.cu is not compiled for 8.0" in extra.gaps[0].reason


def test_device_code_is_read_for_the_architectures_asked_for() -> None:
    def barriers(*names: str) -> list[str]:
        made = bench(*names)
        ops = {op.name: op for op in JoinedOps(OpsView(made), NO_PYTHON).all()}
        (one,) = WalkView(made, SOURCE).walk(ops["mini::plain"]).implementations
        return [b.call for k in one.kernels if k.name == "tile_kernel" for b in k.barriers]

    assert barriers("8.0") == ["__syncthreads()"]
    assert barriers("9.0a") == ["__syncwarp()"]
    assert barriers("8.0", "9.0a") == ["__syncwarp()", "__syncthreads()"]
    assert barriers() == ["__syncwarp()", "__syncthreads()"]


def test_macros_that_a_build_sets_for_one_file() -> None:
    cmake = (
        "project(mini LANGUAGES CUDA)\nadd_library(_mini MODULE a.cu b.cu)\n"
        "set_source_files_properties(a.cu PROPERTIES COMPILE_DEFINITIONS WIDE=1)\n"
    )
    text = "#ifdef WIDE\n__global__ void {0}_wide() {{}}\n#else\n__global__ void {0}_plain() {{}}\n#endif\n"
    files = {"a.cu": text.format("a"), "b.cu": text.format("b")}
    made = tree(files, view=build_view(built({"CMakeLists.txt": cmake}, (), paths=("a.cu", "b.cu"))))
    told = {k.name: k.why_incomplete or "" for k in list_kernels(made, SOURCE, [], None).kernels}
    read = {name: "which the cuda build does not set" not in why for name, why in told.items()}
    assert read == {"a_wide": True, "a_plain": False, "b_wide": False, "b_plain": True}


def test_flags_of_python_that_builds_are_of_an_unknown_file() -> None:
    made = 'flags = ["-DWIDE"]\nmade = Spec(sources=found, flags=flags)\n'
    files = {"lib/jit.py": made, "lib/other.py": 'flags = ["-DTALL"]\n'}
    facts = read_build_facts(files, files.__getitem__, lambda path: True)
    assert facts.flagged == build_view(facts).flagged == ("WIDE",)
