"""Faults in other spellings than the pages show: what is found, on which line, and nothing else of that rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.pages import findings

KERNEL = "__global__ void k(float* y, int64_t n) { if (threadIdx.x < n) y[threadIdx.x] = 0; }\n"

#: rule, source, the lines that are found
CASES = [
    # a guard that stands in a branch is not alive behind it
    (
        "missing-device-guard",
        KERNEL
        + "void f(at::Tensor& x, bool b, cudaStream_t s) {\n"
        + "  if (b) { c10::cuda::CUDAGuard g(x.device()); }\n"
        + "  k<<<1, 32, 0, s>>>(x.data_ptr<float>(), 1);\n}\n",
        [4],
    ),
    # a launch through the runtime is a launch
    (
        "missing-device-guard",
        KERNEL
        + "void f(at::Tensor& x, cudaStream_t s) {\n  void* a[] = {nullptr};\n"
        + "  cudaLaunchKernel((const void*)k, dim3(1), dim3(32), a, 0, s);\n}\n",
        [4],
    ),
    # a project's guard by its name, made by hand
    (
        "missing-device-guard",
        KERNEL
        + "void f(at::Tensor& x, cudaStream_t s) {\n  std::optional<c10::cuda::CUDAGuard> guard;\n"
        + "  guard.emplace(x.device());\n  k<<<1, 32, 0, s>>>(x.data_ptr<float>(), 1);\n}\n",
        [],
    ),
    # what stands behind a return in its block never runs; a directive between them may take the return away
    (
        "missing-launch-check",
        KERNEL + "void f(float* y, cudaStream_t s) {\n  return;\n  k<<<1, 32, 0, s>>>(y, 1);\n}\n",
        [],
    ),
    (
        "missing-launch-check",
        KERNEL
        + "void f(float* y, cudaStream_t s) {\n#ifdef OFF\n  return;\n#else\n  k<<<1, 32, 0, s>>>(y, 1);\n#endif\n}\n",
        [6],
    ),
    (
        "missing-launch-check",
        KERNEL
        + "void f(float* y, int n, cudaStream_t s) {\n  if (n) goto go;\n  return;\ngo:\n"
        + "  k<<<1, 32, 0, s>>>(y, 1);\n}\n",
        [6],
    ),
    # a macro writes several functions on one line: each has its own statements
    (
        "missing-launch-check",
        KERNEL
        + "#define F(N) void f##N(float* y, cudaStream_t s) { k<<<N, 32, 0, s>>>(y, 1); }\n"
        + "#define ALL(X) X(1) X(2) X(3)\nALL(F)\n",
        [4],
    ),
    ("stream-default", KERNEL + "void f(float* y) {\n  k<<<1, 32, 0, (cudaStream_t)0>>>(y, 1);\n}\n", [3]),
    ("stream-default", KERNEL + "void f(float* y) {\n  k<<<1, 32, 1024>>>(y, 1);\n}\n", [3]),
    (
        "stream-default",
        KERNEL + "void f(float* y, cudaStream_t s = nullptr) {\n  k<<<1, 32, 0, s>>>(y, 1);\n}\n",
        [],
    ),
    (
        "missing-launch-check",
        KERNEL
        + "template <typename T> void f(T* y, cudaStream_t s) {\n  for (int i = 0; i < 3; ++i) {\n"
        + "    k<<<1, 32, 0, s>>>(y, i);\n  }\n  CUDA_LAUNCH_CHECK();\n}\n",
        [],
    ),
    (
        "missing-launch-check",
        KERNEL
        + "void f(float* y, cudaStream_t s) {\n  k<<<1, 32, 0, s>>>(y, 1);\n  // checked later\n  y[0] = 1;\n}\n",
        [3],
    ),
    (
        "barrier-divergent",
        (
            "__global__ void k(float* y, int n) {\n  const int t = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  while (true) {\n    if (t > n) break;\n    __syncthreads();\n  }\n}\n"
        ),
        [5],
    ),
    (
        "barrier-divergent",
        (
            "__global__ void k(float* y, int n) {\n  if (blockIdx.x >= n) return;\n  __syncthreads();\n"
            "  y[threadIdx.x] = 1;\n}\n"
        ),
        [],
    ),
    (
        "zero-grid",
        KERNEL
        + "void f(const at::Tensor& x, float* y, cudaStream_t s) {\n  auto rows = x.size(0);\n"
        + "  if (!rows) return;\n  k<<<rows, 32, 0, s>>>(y, 1);\n}\n",
        [],
    ),
    (
        "zero-grid",
        KERNEL
        + "void f(const at::Tensor& x, float* y, cudaStream_t s) {\n  dim3 grid((x.numel() + 255) / 256);\n"
        + "  k<<<grid, 32, 0, s>>>(y, 1);\n}\n",
        [3],
    ),
    (
        "temp-data-ptr",
        KERNEL
        + "void f(const at::Tensor& x, cudaStream_t s) {\n"
        + "  k<<<1, 32, 0, s>>>((float*)x.to(at::kFloat).data_ptr(), 1);\n}\n",
        [3],
    ),
    (
        "narrow-index",
        (
            "__global__ void k(float* y, const int* table, int width) {\n  int row = blockIdx.x;\n"
            "  y[static_cast<int64_t>(row) * width] = 0;\n  y[row * width] = 0;\n}\n"
        ),
        [4],
    ),
    (
        "gilstate-unbalanced",
        (
            "#include <Python.h>\nvoid f(int n) {\n  PyGILState_STATE g = PyGILState_Ensure();\n"
            '  if (n) throw std::runtime_error("x");\n  PyGILState_Release(g);\n}\n'
        ),
        [4],
    ),
    (
        "throw-across-c",
        (
            '#include <vector>\nextern "C" {\nint f(int n) {\n  if (n < 0) throw 1;\n  return 0;\n}\n'
            "int g(int n) noexcept { return n; }\n}\n"
        ),
        [3],
    ),
    (
        "smem-optin-per-device",
        KERNEL
        + "void f() {\n  static bool done = [] {\n"
        + "    cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);\n"
        + "    return true;\n  }();\n}\n",
        [4],
    ),
    (
        "cuda-error-dropped",
        "void f(void* p) {\n  if (p) cudaMemset(p, 0, 4);\n  auto e = cudaMemset(p, 0, 4);\n  (void)e;\n}\n",
        [2],
    ),
    (
        "schema-arity-mismatch",
        'void f(const at::Tensor& a);\nTORCH_LIBRARY(kit, m) {\n  m.def("f(Tensor a, *, int n) -> ()", &f);\n}\n',
        [3],
    ),
    (
        "grid-yz-limit",
        KERNEL
        + "void f(const at::Tensor& x, float* y, cudaStream_t s) {\n"
        + "  k<<<dim3(1, 1, x.size(0)), 32, 0, s>>>(y, 1);\n}\n",
        [3],
    ),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(("rule", "source", "lines"), CASES)
def test_what_is_found(rule: str, source: str, lines: list[int], tmp_path: Path, cache: Path) -> None:
    found = findings({"a.cu": source}, rule, tmp_path, cache)
    assert sorted(one.line for one in found) == lines
