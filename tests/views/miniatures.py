"""A small normalisation op in a library's idiom, and short ways to the answers about a tree in memory."""

from __future__ import annotations

from collections.abc import Mapping

from opwalker.expand.workbench import Workbench
from opwalker.model.walk import Gap, Implementation, Op, SourceInfo, Walk
from opwalker.views.joined import JoinedOps
from opwalker.views.ops import OpsView
from opwalker.views.python_side import PythonSide
from opwalker.views.walk import WalkView
from tests.trees import tree

SOURCE = SourceInfo("miniature")
NO_PYTHON = PythonSide((), (), {})

DISPATCH = """#pragma once
#define DISPATCH_CASE_FLOATING(...) \\
  AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__) \\
  AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__)
#define DISPATCH_FLOATING(TYPE, NAME, ...) \\
  AT_DISPATCH_SWITCH(TYPE, NAME, DISPATCH_CASE_FLOATING(__VA_ARGS__))
"""

KERNEL = """#include "dispatch.h"

namespace mini {

__device__ int helper(int a) { return a; }

template <typename scalar_t, int VEC>
__global__ void __launch_bounds__(256, 2) norm_kernel(
    scalar_t* __restrict__ out,          // [..., hidden]
    const scalar_t* __restrict__ input,  // [..., hidden]
    const float eps, int n) {
  __shared__ float total;
  extern __shared__ __align__(16) char scratch[];
  if constexpr (VEC > 0) {
    auto v = *reinterpret_cast<const float4*>(input);
    atomicAdd(&total, 1.0f);
  }
  __syncthreads();
  asm volatile("ld.global.nc.v4 {%0};\\n" : "=r"(x) : "l"(p));
  helper(n);
  __syncwarp();
}

}  // namespace mini

void norm(torch::Tensor& out,    // [..., hidden]
          torch::Tensor& input,  // [..., hidden]
          double eps) {
  TORCH_CHECK(out.is_contiguous(), "out must be ", "contiguous");
  int hidden = input.size(-1);
  const int64_t tokens = input.numel() / hidden;
  int stride = input.stride(0);
  dim3 grid(tokens);
  dim3 block(std::min(hidden, 1024));
  const at::cuda::OptionalCUDAGuard device_guard(device_of(input));
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  auto input_c = input.contiguous();
  auto scratch = torch::empty({1}, input.options());
  DISPATCH_FLOATING(input.scalar_type(), "norm", [&] {
    mini::norm_kernel<scalar_t, 4><<<grid, block, 0, stream>>>(
        out.data_ptr<scalar_t>(), input.data_ptr<scalar_t>(), eps, 3);
  });
}
"""

BINDINGS = """#include "ops.h"
TORCH_LIBRARY(mini, ops) {
  ops.def("norm(Tensor! out, Tensor input, float eps) -> ()");
  ops.impl("norm", torch::kCUDA, &norm);
}
"""

LIBRARY = {
    "csrc/norm.cu": KERNEL,
    "csrc/dispatch.h": DISPATCH,
    "csrc/bindings.cpp": BINDINGS,
    "csrc/ops.h": "void norm(torch::Tensor& out, torch::Tensor& input, double eps);\n",
}


def line_of(text: str, piece: str) -> int:
    """The line on which a piece of text first stands."""
    return text.count("\n", 0, text.index(piece)) + 1


def ops_of(files: str | Mapping[str, str], **settings) -> tuple[dict[str, Op], tuple[Gap, ...], Workbench]:
    """Ops by name, the gaps met while they were read, and the workbench."""
    bench = tree({"a.cu": files} if isinstance(files, str) else files, **settings)
    native = OpsView(bench)
    ops, gaps = JoinedOps(native, NO_PYTHON).all(), native.gaps()
    return {op.name: op for op in ops}, gaps, bench


def walk_of(files: str | Mapping[str, str], name: str, **settings) -> Walk:
    """The walk of one op by its full name."""
    ops, _, bench = ops_of(files, **settings)
    return WalkView(bench, SOURCE).walk(ops[name])


def implementation(files: str | Mapping[str, str], name: str, **settings) -> Implementation:
    """The only implementation of an op."""
    (found,) = walk_of(files, name, **settings).implementations
    return found
