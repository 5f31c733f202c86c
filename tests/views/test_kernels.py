"""Which instances count: those that are compiled where a template is defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.expand.reach import Follower
from opwalker.expand.resolve import Candidate
from opwalker.model.reach import VERSIONED, Reach
from opwalker.model.walk import KernelEntry

DECLARED = "template <typename T, int N> __global__ void scale_kernel(T* rows);\n"
DEFINED = """
#include "kernels.cuh"
template <typename T, int N> __global__ void scale_kernel(T* rows) { rows[threadIdx.x] *= N; }
"""
WRITTEN_OUT = """
template __global__ void scale_kernel<float, 4>(float*);
template __global__ void scale_kernel<double, 4>(double*);
"""
LAUNCHED = """
#include <torch/library.h>
#include "{header}"
template <typename T, int N> void launch(T* rows) {{
  switch (N) {{
    case 4: scale_kernel<T, N><<<1, 32>>>(rows); break;
    case 8: break;
  }}
}}
template void launch<float, 4>(float*);
template void launch<float, 8>(float*);
void scale(at::Tensor& rows) {{ launch<float, 4>(rows.data_ptr<float>()); launch<float, 8>(rows.data_ptr<float>()); }}
TORCH_LIBRARY(rowkit, m) {{ m.def("scale(Tensor! rows) -> ()", &scale); }}
"""


@pytest.fixture
def scale_kernel(library: Callable[[Mapping[str, str]], Path], tmp_path: Path) -> Callable[..., KernelEntry]:
    """The only kernel of a small tree."""

    def read(**files: str) -> KernelEntry:
        named = {"kernels.cuh": DECLARED, "kernels.cu": DEFINED}
        named |= {name.replace("_", "."): text for name, text in files.items()}
        options = pipeline.Options(source=str(library(named)), cache=tmp_path / "cache", jobs=1)
        (kernel,) = pipeline.kernels(options).kernels
        return kernel

    return read


def test_a_file_that_sees_a_declaration_compiles_no_instance(scale_kernel: Callable[..., KernelEntry]) -> None:
    found = scale_kernel(kernels_cu=DEFINED + WRITTEN_OUT, ops_cu=LAUNCHED.format(header="kernels.cuh"))
    assert found.ops == ("rowkit::scale",)
    assert found.instances == ("double, 4", "float, 4")
    assert found.complete


def test_a_file_that_sees_the_definition_compiles_what_it_launches(scale_kernel: Callable[..., KernelEntry]) -> None:
    found = scale_kernel(kernels_cu=DEFINED + WRITTEN_OUT, ops_cu=LAUNCHED.format(header="kernels.cu"))
    assert found.instances == ("double, 4", "float, 4", "float, 8")


def test_without_instantiations_a_launch_counts_wherever_it_stands(scale_kernel: Callable[..., KernelEntry]) -> None:
    """An include that cannot be found must not lose what is launched."""
    found = scale_kernel(ops_cu=LAUNCHED.format(header="kernels.cuh"))
    assert found.instances == ("float, 4", "float, 8")


def test_a_definition_in_a_header_that_only_other_files_include(scale_kernel: Callable[..., KernelEntry]) -> None:
    other = '#include "kernels.cuh"\n#include "body.cuh"\n'
    launched = LAUNCHED.format(header="kernels.cuh")
    found = scale_kernel(kernels_cu=other + WRITTEN_OUT, body_cuh=DEFINED, ops_cu=launched)
    assert found.ops == ("rowkit::scale",)
    assert (found.instances, found.complete) == (("double, 4", "float, 4"), True)


@pytest.mark.parametrize(
    ("launched", "why"),
    [
        ("scale_kernel<float, 8><<<1, 32>>>(rows)", "may launch instances that no line makes"),
        ("scale_kernel<float, WIDTH><<<1, 32>>>(rows)", "may launch instances that no line makes"),
        ("scale_kernel<float, 4><<<1, 32>>>(rows)", None),
    ],
)
def test_a_launch_of_what_no_line_instantiates(
    scale_kernel: Callable[..., KernelEntry], launched: str, why: str | None
) -> None:
    """A file that a script writes, with the instances that are missed, is not in the source."""
    ops = f"""
#include <torch/library.h>
#include "kernels.cuh"
void scale(at::Tensor& rows) {{ {launched}; }}
TORCH_LIBRARY(rowkit, m) {{ m.def("scale(Tensor! rows) -> ()", &scale); }}
"""
    found = scale_kernel(kernels_cu=DEFINED + WRITTEN_OUT, ops_cu=ops)
    assert (found.instances, found.complete) == (("double, 4", "float, 4"), why is None)
    assert why is None or why in found.why_incomplete


def test_what_is_named_where_no_body_is_seen_is_compiled_elsewhere(scale_kernel: Callable[..., KernelEntry]) -> None:
    """What a script writes out is not in the source: nothing is claimed of it."""
    other = '#include "kernels.cuh"\n#include "body.cuh"\n'
    found = scale_kernel(kernels_cu=other, body_cuh=DEFINED, ops_cu=LAUNCHED.format(header="kernels.cuh"))
    assert found.ops == ("rowkit::scale",)
    assert (found.instances, found.complete) == ((), False)
    assert found.why_incomplete is not None and "only declared where it is launched" in found.why_incomplete


def test_instantiations_without_a_kernel_in_sight_are_not_followed(
    scale_kernel: Callable[..., KernelEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[str] = []
    follow = Follower.follow_bound

    def noted(self: Follower, candidate: Candidate, *rest: object) -> Reach:
        followed.append(candidate.function.name)
        return follow(self, candidate, *rest)

    monkeypatch.setattr(Follower, "follow_bound", noted)
    vectors = "template <typename T> T length(T a) { return a * a; }\ntemplate float length<float>(float);\n"
    unseen = LAUNCHED.format(header="elsewhere.h").replace("TORCH_LIBRARY(rowkit", "TORCH_LIBRARY(other")
    found = scale_kernel(vectors_cpp=vectors, ops_cu=LAUNCHED.format(header="kernels.cuh"), unseen_cu=unseen)
    assert found.instances == ("float, 4", "float, 8")
    # A header that cannot be found hides no kernel that is named.
    assert followed == ["launch"] * 4


TWO_HEADERS = {
    "a_other.h": "using row_t = double;\nconstexpr int width = 2;\n",
    "b_own.h": "using row_t = float;\nconstexpr int width = 4;\n",
    "kernels.cuh": """
#ifdef USE_OTHER
#include "a_other.h"
#else
#include "b_own.h"
#endif
template <typename T, int N> __global__ void scale_kernel(T* rows) {}
""",
    "ops.cu": """
#include <torch/library.h>
#include "kernels.cuh"
void scale(at::Tensor& rows) { scale_kernel<row_t, width><<<1, 32>>>(rows.data_ptr<row_t>()); }
TORCH_LIBRARY(rowkit, m) { m.def("scale(Tensor! rows) -> ()", &scale); }
""",
}
BUILT = {"setup.py": "from torch.utils.cpp_extension import CUDAExtension\nCUDAExtension('rowkit', ['ops.cu'])\n"}


@pytest.mark.parametrize(("more", "instances"), [(BUILT, ("float, 4",)), ({}, ())])
def test_of_two_headers_the_build_reads_one(
    library: Callable[[Mapping[str, str]], Path],
    tmp_path: Path,
    more: Mapping[str, str],
    instances: tuple[str, ...],
) -> None:
    options = pipeline.Options(source=str(library(TWO_HEADERS | more)), cache=tmp_path / "cache", jobs=1)
    (kernel,) = pipeline.kernels(options).kernels
    assert (kernel.instances, kernel.complete) == (instances, bool(instances))
    assert kernel.complete or "is declared in two ways" in (kernel.why_incomplete or "")


BASES = """
#include <torch/library.h>
namespace detail {
template <class T> std::bool_constant<(T::size >= 0)> has_size(T*);
std::false_type has_size(...);
}
template <class T> struct sized : decltype(detail::has_size((T*)0)) {};
template <class T> struct Base { static constexpr int width = 4; };
template <class T> struct Wide : Base<T> {};
template <typename T, int N> __global__ void scale_kernel(T* rows) {}
void scale(at::Tensor& rows) {
  scale_kernel<float, Wide<float>::width><<<1, 32>>>(rows.data_ptr<float>());
  if (sized<float>::value) {
    scale_kernel<float, sized<float>::width><<<1, 32>>>(rows.data_ptr<float>());
  }
}
TORCH_LIBRARY(rowkit, m) { m.def("scale(Tensor! rows) -> ()", &scale); }
"""


def test_a_base_is_named_from_outside_its_class(library: Callable[[Mapping[str, str]], Path], tmp_path: Path) -> None:
    """A base that is worked out from a call comes to an end, and what it does not tell is not claimed."""
    options = pipeline.Options(source=str(library({"ops.cu": BASES})), cache=tmp_path / "cache", jobs=1)
    (kernel,) = pipeline.kernels(options).kernels
    assert kernel.instances == ("float, 4",)
    assert not kernel.complete


@pytest.mark.parametrize(
    ("head", "complete"),
    [("", True), ("template <typename T = float> ", False)],
    ids=["plain", "template"],
)
def test_a_plain_kernel_is_compiled_whatever_names_it(
    library: Callable[[Mapping[str, str]], Path], tmp_path: Path, head: str, complete: bool
) -> None:
    """A file that the source lacks may hold further launches: of a kernel that is no template they tell nothing."""
    text = f"""
#include <torch/library.h>
{head}__global__ void none_kernel(float* rows) {{}}
void scale(at::Tensor& rows) {{
  auto kernel = none_kernel{"<>" if "template" in head else ""};
#include "chosen.inc"
  kernel<<<1, 32>>>(rows.data_ptr<float>());
}}
TORCH_LIBRARY(rowkit, m) {{ m.def("scale(Tensor! rows) -> ()", &scale); }}
"""
    options = pipeline.Options(source=str(library({"ops.cu": text})), cache=tmp_path / "cache", jobs=1)
    (kernel,) = pipeline.kernels(options).kernels
    assert kernel.instances == (("float",) if "template" in head else ("",))
    assert kernel.complete is complete


IN_TWO_LANGUAGES = {
    "ops.cpp": """
#include <torch/library.h>
void scale(at::Tensor& rows);
TORCH_LIBRARY(rowkit, m) { m.def("scale(Tensor! rows) -> ()", &scale); }
""",
    "rows.cu": """
template <typename T> __global__ void scale_kernel(T* rows) {}
void scale(at::Tensor& rows) { scale_kernel<float><<<1, 32>>>(rows.data_ptr<float>()); }
""",
    "rows.hip": """
__global__ void scale_kernel(float* rows) {}
void scale(at::Tensor& rows) { scale_kernel<<<1, 64>>>(rows.data_ptr<float>()); }
""",
}


@pytest.mark.parametrize(("build", "read"), [("cuda", {"rows.cu"}), ("rocm", {"rows.cu", "rows.hip"})])
def test_a_file_in_the_language_of_hip_is_for_rocm(
    library: Callable[[Mapping[str, str]], Path], tmp_path: Path, build: str, read: set[str]
) -> None:
    source = str(library(IN_TWO_LANGUAGES))
    found = pipeline.kernels(pipeline.Options(source=source, build=build, cache=tmp_path / "cache", jobs=1)).kernels
    assert {kernel.file for kernel in found if kernel.instances} == read
    assert all("compiled for rocm only" in (k.why_incomplete or "") for k in found if k.file not in read)


OF_CUB = """
#include <cub/block/block_scan.cuh>
#include <torch/library.h>
using namespace cub;
constexpr BlockScanAlgorithm SCAN = BLOCK_SCAN_WARP_SCANS;
template <int Threads, BlockScanAlgorithm Algorithm, typename T> __global__ void scan_kernel(T* x) {}
template <int Threads> __global__ void plain_kernel(float* x) {}
void scan(at::Tensor& rows) {
  scan_kernel<128, SCAN, float><<<1, 128>>>(rows.data_ptr<float>());
  plain_kernel<cub::BLOCK_LOAD_TRANSPOSE * 32><<<1, 96>>>(rows.data_ptr<float>());
}
TORCH_LIBRARY(rowkit, m) { m.def("scan(Tensor! rows) -> ()", &scan); }
"""


def test_what_stands_in_a_namespace_of_a_version_is_not_claimed(
    library: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    options = pipeline.Options(source=str(library({"ops.cu": OF_CUB})), cache=tmp_path / "cache", jobs=1)
    scan, plain = pipeline.kernels(options).kernels
    assert (scan.instances, scan.complete) == (("128, (cub::BlockScanAlgorithm)2, float",), False)
    assert (scan.why_incomplete or "").endswith(VERSIONED)
    assert (plain.instances, plain.complete) == (("96",), True)


ACCESSORS = """
#include <torch/extension.h>
template <typename scalar_t> __global__ void rows_kernel(
    const at::PackedTensorAccessor64<float, 3, at::RestrictPtrTraits> in,
    at::PackedTensorAccessor64<scalar_t, 2, at::RestrictPtrTraits> out) {}
template <typename scalar_t, int N> __global__ void dims_kernel(torch::PackedTensorAccessor32<scalar_t, N> x) {}
template <typename View> __global__ void view_kernel(View x) {}
void scale(at::Tensor& rows, const at::Tensor& other) {
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "scale", ([&] {
    rows_kernel<<<1, 32>>>(
        other.packed_accessor64<float, 3, at::RestrictPtrTraits>(),
        rows.packed_accessor64<scalar_t, 2, at::RestrictPtrTraits>());
  }));
  dims_kernel<float, 2><<<1, 32>>>(rows.packed_accessor32<float, 2>());
  view_kernel<<<1, 32>>>(rows.packed_accessor32<float, 2>());
}
TORCH_LIBRARY(rowkit, m) { m.def("scale(Tensor! rows, Tensor other) -> ()", &scale); }
"""


def test_what_an_accessor_holds_is_deduced_from_it(
    library: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    options = pipeline.Options(source=str(library({"ops.cu": ACCESSORS})), cache=tmp_path / "cache", jobs=1)
    rows, dims, view = pipeline.kernels(options).kernels
    assert (rows.instances, rows.complete) == (("double", "float"), True)
    assert (dims.instances, dims.complete) == (("float, 2",), True)
    assert not view.complete
    assert "as the version of torch has it" in (view.why_incomplete or "")
