"""Instances that several files make together: what one file defines for the next, what others instantiate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from opwalker import pipeline

#: A header for several languages: the branch that is read ends the condition that it stands under itself.
ROWS_H = """
#ifndef ROWS_DECLARED
#if defined(ROWS_FOR_C)
#include <stdint.h>
typedef uint16_t row_half;
#define ROWS_DECLARED
#elif defined(ROWS_FOR_CUDA)
typedef half row_half;
#define ROWS_DECLARED
#endif
#if defined(ROWS_DECLARED)
#define ROWS_WIDTH 32
typedef struct { row_half scale; char rows[ROWS_WIDTH]; } row_block;
#endif
#endif

#if defined(ROWS_TABLES)
static const int row_table[] = {1, 2, 3};
#endif
"""
COMMON_H = """
#pragma once
#ifdef USE_HIP
#define ROWS_FOR_HIP
#else
#define ROWS_FOR_CUDA
#endif
#include "rows.h"
"""
SHARED = {
    "rows.h": ROWS_H,
    "common.cuh": COMMON_H,
    "host.c": '#define ROWS_FOR_C\n#include "rows.h"\nint width(void) { return ROWS_WIDTH; }\n',
    "rows.cu": """
#include "common.cuh"
template <int width, typename block> __global__ void unpack_kernel(const block* rows) {}
void unpack(const void* rows) { unpack_kernel<ROWS_WIDTH><<<1, 32>>>((const row_block*)rows); }
""",
}

RUN_H = """
struct Gpu { cudaStream_t stream; };
template <typename Device, typename T, unsigned N> struct Scale { void operator()(const Device& on, T* rows); };
"""
#: The unit that defines the members for one device; ``{made}`` are the classes that it instantiates.
SCALE_CU = """
#include "run.h"
template <typename T, unsigned N> __global__ void scale_kernel(T* rows) {{}}
template <typename T, unsigned N> struct Scale<Gpu, T, N> {{
  void operator()(const Gpu& on, T* rows) {{ scale_kernel<T, N><<<1, 32, 0, on.stream>>>(rows); }}
}};
#define MADE_OF(T) template struct Scale<Gpu, T, 2>; template struct Scale<Gpu, T, 4>;
#define MADE(T) MADE_OF(T)
{made}
"""
OPS_CU = """
#include <torch/library.h>
#include "run.h"
template <unsigned N> void scale_rows(at::Tensor& rows) {
  auto run = Scale<Gpu, float, N>();
  run(Gpu(), rows.data_ptr<float>());
}
void scale(at::Tensor& rows) { scale_rows<2>(rows); }
TORCH_LIBRARY(rowkit, m) { m.def("scale(Tensor! rows) -> ()", &scale); }
"""


@pytest.fixture
def only_kernel(library: Callable[[Mapping[str, str]], Path], tmp_path: Path):
    """The only kernel of a tree of files."""

    def read(files: Mapping[str, str]):
        options = pipeline.Options(source=str(library(files)), cache=tmp_path / "cache", jobs=1)
        (kernel,) = pipeline.kernels(options).kernels
        return kernel

    return read


def test_a_branch_that_ends_its_own_condition_is_read_to_its_end(only_kernel) -> None:
    kernel = only_kernel(SHARED)
    assert (kernel.instances, kernel.complete) == (("32, row_block",), True)


def test_a_header_that_was_read_before_is_not_read_again(only_kernel) -> None:
    """What ended the condition was read before: the rest of the branch is not."""
    before = {"rows.cu": "#define ROWS_DECLARED\n" + SHARED["rows.cu"]}
    kernel = only_kernel(SHARED | before)
    assert not kernel.instances
    assert not kernel.complete


@pytest.mark.parametrize(
    ("made", "instances", "complete"),
    [
        ("MADE(float)", ("float, 2u", "float, 4u"), True),
        ("MADE_OF(float) MADE_OF(int)", ("float, 2u", "float, 4u", "int, 2u", "int, 4u"), True),
        ("template struct Scale<Gpu, float, 2>;", ("float, 2u",), True),
        ("template struct Scale<Gpu, double, 2>;", ("double, 2u",), False),
        ("", (), False),
    ],
)
def test_members_that_another_unit_defines_are_those_that_it_instantiates(
    only_kernel, made: str, instances: tuple[str, ...], complete: bool
) -> None:
    kernel = only_kernel({"run.h": RUN_H, "scale.cu": SCALE_CU.format(made=made), "ops.cu": OPS_CU})
    assert kernel.ops == ("rowkit::scale",)
    assert (kernel.instances, kernel.complete) == (instances, complete)


ROWS_CUH = """
template <typename T, int N, int lanes> __global__ void rows_kernel(T* rows) {}
template <typename T, int N> void launch_rows(T* rows);
"""
#: One of several units that define the same function template, each for instances of its own.
UNIT_CU = """
#include "rows.cuh"
template <typename T, int N> void launch_rows(T* rows) {{ rows_kernel<T, N, {lanes}><<<1, 32>>>(rows); }}
template void launch_rows<float, {size}>(float* rows);
template void launch_rows<double, {size}>(double* rows);
"""
CALLS_CU = """
#include <torch/library.h>
#include "rows.cuh"
template <typename T> void by_size(T* rows, int size) {
  if (size == 64) launch_rows<T, 64>(rows);
  else launch_rows<T, 128>(rows);
}
void run(at::Tensor& rows) {
  by_size(rows.data_ptr<float>(), rows.size(0));
  by_size(rows.data_ptr<double>(), rows.size(0));
}
TORCH_LIBRARY(rowkit, m) { m.def("run(Tensor! rows) -> ()", &run); }
"""


def test_a_template_that_several_units_define_is_entered_where_it_is_instantiated(only_kernel) -> None:
    kernel = only_kernel(
        {
            "rows.cuh": ROWS_CUH,
            "rows_64.cu": UNIT_CU.format(lanes="N / 2", size=64),
            "rows_128.cu": UNIT_CU.format(lanes="N / 16", size=128),
            "calls.cu": CALLS_CU,
        }
    )
    assert kernel.ops == ("rowkit::run",)
    assert kernel.instances == ("double, 128, 8", "double, 64, 32", "float, 128, 8", "float, 64, 32")
    assert kernel.complete


def test_a_file_that_is_included_with_other_macros_each_time_is_read_once_and_says_so(only_kernel) -> None:
    inner = "template <int N> __global__ void k(float* x) {}\nvoid GO(float* x) { k<4><<<1, 1>>>(x); }\n"
    unit = '#include <torch/library.h>\n#define GO first\n#include "k.inc.h"\n#undef GO\n#define GO second\n'
    unit += '#include "k.inc.h"\nTORCH_LIBRARY(rowkit, m) { m.def("go(Tensor! x) -> ()", &second); }\n'
    kernel = only_kernel({"k.inc.h": inner, "rows.cu": unit})
    assert (kernel.instances, kernel.complete) == (("4",), False)
    assert "rows.cu includes k.inc.h several times with other macros" in kernel.why_incomplete
