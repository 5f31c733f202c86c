"""A small library with stub headers of its own, for what a compiler says of a walk: no torch and no CUDA are needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opwalker.facts.clang_headers import Headers
from opwalker.model.walk import Walk
from opwalker.pipeline import Options, Session, _walk
from opwalker.source.compile_database import find_database
from opwalker.views.clang_report import with_clang
from opwalker.views.clang_units import Surroundings

#: A machine on which neither torch nor CUDA is installed.
NOTHING = Headers()

STUBS = {
    "stubs/torch/library.h": """#pragma once
namespace torch {
enum class ScalarType { Float, Half };
struct Tensor {
  int size(int) const;
  ScalarType scalar_type() const;
  template <typename T> T* data_ptr() const;
};
struct Library {
  Library& def(const char* schema);
  template <typename F> Library& impl(const char* name, F* function);
};
}
#define TORCH_LIBRARY(ns, m) static void register_##ns(torch::Library& m)
#define TORCH_LIBRARY_IMPL(ns, key, m) static void register_##ns##_##key(torch::Library& m)
""",
}

RING = {
    **STUBS,
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.20)
project(ringkit LANGUAGES CXX CUDA)
add_library(_C MODULE csrc/bindings.cpp csrc/turn.cu csrc/shift.cu)
target_include_directories(_C PRIVATE stubs csrc)
target_compile_definitions(_C PRIVATE USE_CUDA)
""",
    "csrc/ops.h": """#pragma once
#include <torch/library.h>
void turn(torch::Tensor& out, const torch::Tensor& in, long steps);
void shift(torch::Tensor& out, const torch::Tensor& in);
""",
    "csrc/bindings.cpp": """#include "ops.h"

TORCH_LIBRARY(ringkit, m) {
  m.def("turn(Tensor! out, Tensor input, int steps) -> ()");
  m.def("shift(Tensor! out, Tensor input) -> ()");
}

TORCH_LIBRARY_IMPL(ringkit, CUDA, m) {
  m.impl("turn", &turn);
  m.impl("shift",
         &shift);
}
""",
    "csrc/dispatch.h": """#pragma once
#define RING_CASE(enumerator, type, ...) \\
  case torch::ScalarType::enumerator: { using scalar_t = type; __VA_ARGS__; break; }
#define RING_DISPATCH(kind, ...) \\
  switch (kind) { RING_CASE(Float, float, __VA_ARGS__) RING_CASE(Half, short, __VA_ARGS__) }
""",
    "csrc/turn.cu": """#include "ops.h"
#include "dispatch.h"

template <typename T, int Width>
__global__ void turn_kernel(T* out, const T* in, int n) {
  int i = blockIdx.x * Width + threadIdx.x;
  if (i < n) out[i] = in[n - 1 - i];
}

template <typename T>
void launch_turn(T* out, const T* in, int n) {
  if (n % 4 == 0) {
    turn_kernel<T, 4><<<n / 4, 4>>>(out, in, n);
  } else {
    turn_kernel<T, 1><<<n, 1>>>(out, in, n);
  }
}

void turn(torch::Tensor& out, const torch::Tensor& in, long steps) {
  RING_DISPATCH(in.scalar_type(),
                launch_turn<scalar_t>(out.data_ptr<scalar_t>(), in.data_ptr<scalar_t>(), in.size(0)))
}
""",
    "csrc/shift.cu": """#include "ops.h"

typedef void (*ShiftKernel)(float*, const float*);

__global__ void shift_left(float* out, const float* in) { out[0] = in[0]; }
__global__ void shift_right(float* out, const float* in) { out[0] = in[1]; }
__global__ void shift_both(float* out, const float* in) { out[0] = in[2]; }

static ShiftKernel choose(int n) {
  ShiftKernel table[] = {shift_both};
  if (n > 2) return table[0];
  return shift_left;
}

void shift(torch::Tensor& out, const torch::Tensor& in) {
  ShiftKernel kernel = choose(in.size(0));
  if (in.size(0) == 1) kernel = shift_right;
  kernel<<<1, 32>>>(out.data_ptr<float>(), in.data_ptr<float>());
}
""",
}


def changed(files: Mapping[str, str], path: str, old: str, new: str) -> dict[str, str]:
    """The files with a piece of one of them replaced; the piece must be there."""
    assert old in files[path]
    return {**files, path: files[path].replace(old, new)}


def asked(
    root: Path,
    cache: Path,
    name: str,
    headers: Headers = NOTHING,
    edit=lambda walk: walk,
    **settings: object,
) -> Walk:
    """The walk of an op with clang's opinion on it; ``edit`` may put something wrong into the walk before it is asked
    for."""
    session = Session(Options(source=str(root), cache=cache, jobs=2))
    try:
        around = Surroundings(str(root), session.builds, find_database(str(root), session.say), headers)
        walk = edit(_walk(session, name))
        return with_clang(walk, session.workbench, around, lambda path: session.known[path][3], session, 2, **settings)
    finally:
        session.close()
