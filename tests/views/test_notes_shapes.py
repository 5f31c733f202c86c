"""Shapes and layout in a note: what is said of strides, and of sizes that are counted from both ends."""

from __future__ import annotations

import pytest

from opwalker.views.notes.note import note_of
from tests.views.miniatures import walk_of
from tests.views.notes_text import section

STRIDED = """template <typename T> __global__ void fold_kernel(T* x, %s) { x[blockIdx.x * s0] = 0; }
void fold(torch::Tensor& x%s) {
  int rows = x.size(0);
  int width = x.size(-1);
  fold_kernel<<<rows, 32>>>(x.data_ptr<float>(), %s);
}
TORCH_LIBRARY(m, o) { o.def("fold(Tensor! x) -> ()"); o.impl("fold", torch::kCUDA, &fold); }
"""


def said_of(shape: str, *dimensions: int) -> list[str]:
    """What the section on shapes says where a kernel gets the strides of some dimensions."""
    taken = ", ".join(f"int64_t s{number}" for number in range(len(dimensions)))
    given = ", ".join(f"x.stride({one})" for one in dimensions)
    comment = f"  // {shape}\n" if shape else ""
    return section(note_of(walk_of(STRIDED % (taken, comment, given), "m::fold"), "cuda"), "shapes")


@pytest.mark.parametrize(
    ("shape", "dimensions", "any_slice"),
    [
        ("", (0,), True),
        ("", (0, 1), True),
        ("", (1,), False),  # that of dimension 0 is made of it: a slice along dimension 1 would be read wrongly
        ("[rows, heads, width]", (1,), False),
        ("[rows, heads, width]", (-2,), False),
        ("[rows, width]", (-2,), True),
        ("[..., width]", (-2,), False),  # of more dimensions a slice along one of them has no one stride
        ("[..., width]", (-3,), False),
        ("[..., width]", (-1,), False),
    ],
)
def test_a_slice_needs_no_copy_only_where_no_outer_stride_is_left_out(shape, dimensions, any_slice) -> None:
    (strided,) = [one for one in said_of(shape, *dimensions) if "may be strided" in one]
    assert ("needs no copy" in strided) is any_slice, strided
    as_one = ", as in a slice of a wider matrix; dimensions before them must lie as one." in strided
    assert as_one is (shape.startswith("[...") and dimensions == (-2,)), strided


def test_sizes_counted_from_both_ends_say_nothing_of_what_lies_between() -> None:
    assert "  The code reads `rows` and `width` of it, as documented." in said_of("[rows, width]", 0)
    assert "  In the code it is `[rows, ..., width]`, as documented." in said_of("[rows, ..., width]", 0)


@pytest.mark.parametrize(
    ("loop", "layout"),
    [
        ("for (int i = threadIdx.x; i < s0; i += blockDim.x) x[blockIdx.x * s0 + i] = 0;",
         "  The kernel goes through as many elements as the stride of dimension 0, a gap behind a row among them."),
        ("for (int i = threadIdx.x; i < width; i += blockDim.x) x[blockIdx.x * s0 + i] = 0;",
         ("  It may be strided: the kernel gets the stride of dimension 0, so rows may lie apart: a slice of a wider "
         "tensor, as of a fused QKV, needs no copy.")),
    ],
)  # fmt: skip
def test_a_stride_that_a_kernel_takes_for_a_length_allows_no_gaps(loop: str, layout: str) -> None:
    text = STRIDED.replace("x[blockIdx.x * s0] = 0;", loop) % ("int64_t s0, int width", "", "x.stride(0), width")
    assert layout in section(note_of(walk_of(text, "m::fold"), "cuda"), "shapes")


def test_a_figure_says_where_strides_may_be_others_than_it_shows() -> None:
    said = "The figures show `x` without gaps; the strides that the code reads may be others."
    assert said in said_of("[rows, width]", 0)
    assert said not in said_of("", 0)  # nothing is drawn
    packed = STRIDED.replace("x[blockIdx.x * s0]", "x[blockIdx.x * width]") % (
        "int width",
        "  // [rows, width]\n",
        "width",
    )
    assert said not in section(note_of(walk_of(packed, "m::fold"), "cuda"), "shapes")


def test_a_figure_says_so_too_where_the_host_alone_reads_the_strides() -> None:
    text = """void move(torch::Tensor& x, const torch::Tensor& pairs /* [n, 2] */) {
  const int64_t* from = pairs.const_data_ptr<int64_t>();
  const int64_t apart = pairs.stride(0);
  for (int64_t i = 0; i < pairs.size(0); i++) cudaMemcpyAsync(x.data_ptr(), x.data_ptr(), from[i * apart], kind, s);
}
TORCH_LIBRARY(m, o) { o.def("move(Tensor! x, Tensor pairs) -> ()"); o.impl("move", torch::kCUDA, &move); }
"""
    said = section(note_of(walk_of(text, "m::move"), "cuda"), "shapes")
    assert "  The stride of dimension 0 is read (apart)." in said
    assert "The figures show `pairs` without gaps; the strides that the code reads may be others." in said


def test_a_check_that_not_every_build_has_says_so() -> None:
    text = """void fold(torch::Tensor& x) {
  TORCH_CHECK(x.dim() == 2);
#ifdef WITH_WIDE
  TORCH_CHECK(x.size(1) == 64, "too narrow");
#endif
  fold_kernel<<<1, 32>>>(x.data_ptr<float>());
}
__global__ void fold_kernel(float* x) {}
TORCH_LIBRARY(m, o) { o.def("fold(Tensor! x) -> ()"); o.impl("fold", torch::kCUDA, &fold); }
"""
    said = section(note_of(walk_of(text, "m::fold"), "cuda"), "checks")
    assert "Requires that `x` has 2 dimensions." in said
    assert 'Requires that dimension 1 of `x` is 64, under `#if WITH_WIDE`, else `"too narrow"`.' in said
