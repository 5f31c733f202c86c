"""CUDA text for a C++ compiler: launches, shared memory and includes are rewritten, lines and all else stay."""

from __future__ import annotations

from opwalker.model.source import SourceFile
from opwalker.views.verify.rewriting import rewritten

SOURCE = """\
#include <cuda_fp16.h>
#include <cstdint>
#include "common/op.cuh"

template <typename T, int N>
__global__ void scale(T* x) {  // <<<not, a launch>>>
  __shared__ float part[N], other;
  extern __shared__ char room[];
  part[0] = other;
}

void host(float* x, cudaStream_t stream) {
  const char* text = "k<<<1, 2>>>(x)";
  DISPATCH(4, [&] {
    scale<float, 4>
        <<<dim3(1, 2), 32, 0, stream>>>(x);
  });
}
"""


def test_a_file() -> None:
    made = rewritten(SourceFile("a.cu", SOURCE, "cuda", ""))
    assert made.count("\n") == SOURCE.count("\n")
    lines = made.split("\n")
    assert lines[:3] == ["", "#include <cstdint>", '#include "common/op.cuh"']
    assert lines[5] == SOURCE.split("\n")[5]
    assert lines[6].count("::cuda_on_cpu::block.meet(") == 2
    assert "part[N], other; " in lines[6]
    assert lines[7].split() == "char* room = static_cast<char*>(::cuda_on_cpu::block.dynamic_shared());".split()
    assert lines[12] == SOURCE.split("\n")[12]
    configuration = "::cuda_on_cpu::Configuration(dim3(1, 2), 32, 0, stream)"
    assert f"::cuda_on_cpu::launch({configuration}, scale<float, 4>)" in made
    assert "<<<dim3" not in made


def test_a_file_without_cuda_stays_as_it_is() -> None:
    text = "// ünïcode\nint f() { return 1 << 3; }\n"
    assert rewritten(SourceFile("a.cuh", text, "cuda", "")) == text
