"""The CUDA-on-CPU headers: what threads of a block may do together, and what is told when they may not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opwalker.views.verify import build

PROGRAM = """
__global__ void kernel(int* out) {{ {body} }}
int main() {{
  static int out[256];
  try {{
    cuda_on_cpu::block.seed({seed});
    cuda_on_cpu::launch(cuda_on_cpu::Configuration({grid}, {threads}, 64), kernel)(out);
  }} catch (const std::exception& error) {{
    std::printf("fault: %s", error.what());
    return 0;
  }}
  for (int i = 0; i < 8; ++i) std::printf("%d ", out[i]);
}}
"""

REVERSED = "__shared__ int s[64]; s[threadIdx.x] = threadIdx.x; {} out[threadIdx.x] = s[63 - threadIdx.x];"

BUTTERFLY = "int v = threadIdx.x; for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d); out[threadIdx.x] = v;"
DYNAMIC = """
    int* s = static_cast<int*>(cuda_on_cpu::block.dynamic_shared());
    if (threadIdx.x == 0) out[1] = s[0];
    s[threadIdx.x] = 5;
    __syncthreads();
    out[0] = s[7 - threadIdx.x];
"""
RETURNED = "if (threadIdx.x == 3) return; __syncthreads(); out[threadIdx.x] = 1;"
DIVERGED = "if (threadIdx.x < 16) __syncthreads(); else __shfl_sync(~0u, 1, 0);"

#: What is tried: a kernel's body, blocks, threads, and how what is printed begins.
CASES = {
    "several blocks": ("out[blockIdx.x * 4 + threadIdx.x] = 10 * blockIdx.x + threadIdx.x;", 2, 4, "0 1 2 3 10 11 12"),
    "a barrier": (REVERSED.format("__syncthreads();"), 1, 64, "63 62 61 60 59 58 57 56"),
    "a thread that has returned": (RETURNED, 1, 8, "1 1 1 0 1"),
    "a barrier against a warp's operation": (DIVERGED, 1, 32, "fault: the threads of a block wait"),
    "a warp's operation without its lanes": ("if (threadIdx.x < 4) return; __syncwarp();", 1, 32, "fault: a"),
    "a butterfly": (BUTTERFLY, 1, 32, "496 496"),
    "down": ("out[threadIdx.x] = __shfl_down_sync(~0u, (int)threadIdx.x, 2, 4);", 1, 32, "2 3 2 3 6 7 6 7"),
    "up": ("out[threadIdx.x] = __shfl_up_sync(~0u, (int)threadIdx.x, 1);", 1, 32, "0 0 1 2 3 4 5 6"),
    "a ballot": ("out[threadIdx.x] = __ballot_sync(~0u, threadIdx.x % 8 == 1);", 1, 32, "33686018 33686018"),
    "a vote of the block": ("out[threadIdx.x] = __syncthreads_count(threadIdx.x < 5);", 1, 64, "5 5 5"),
    "atomics": ("atomicAdd(&out[0], 2); atomicMax(&out[1], (int)threadIdx.x);", 1, 64, "128 63 0"),
    "dynamic memory": (DYNAMIC, 1, 8, "5 -1"),
    "too many threads": ("out[0] = 1;", 1, 1025, "fault: launch failed"),
    "no block": ("out[0] = 1;", 0, 32, "fault: launch failed"),
}


def run(tmp_path: Path, body: str, grid: int, threads: int, seed: int = 1) -> str:
    chain = build.host_compiler()
    source, program = tmp_path / "a.cpp", tmp_path / "a.out"
    source.write_text(PROGRAM.format(body=body, grid=grid, threads=threads, seed=seed), encoding="utf-8")
    command = [word for word in chain.command if word != "-shared"]
    subprocess.run([*command, "-O0", str(source), "-o", str(program)], check=True, capture_output=True, timeout=600)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True, timeout=600).stdout


@pytest.mark.parametrize("name", CASES)
def test_what_a_block_does(tmp_path: Path, name: str) -> None:
    body, grid, threads, told = CASES[name]
    assert run(tmp_path, body, grid, threads).startswith(told)


def test_a_barrier_that_is_missing_shows(tmp_path: Path) -> None:
    assert "-1" in run(tmp_path, "cuda_on_cpu::block.meet(out, 256);" + REVERSED.format("").replace(
        "s[threadIdx.x] =", "cuda_on_cpu::block.meet(&s, sizeof(s)); s[threadIdx.x] ="
    ), 1, 64)  # fmt: skip


def test_the_compiler_is_there() -> None:
    assert shutil.which("g++") or shutil.which("clang++"), "tests of the emulation need a C++ compiler"
