"""What stands outside of functions concerns those that name it: each line of some headers, and each of their users'."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.asking import asked
from opwalker.model.check import Finding, Settings
from opwalker.source.changes import Changes
from opwalker.views.check.check import tree_of
from opwalker.views.check.focus import Focus, touched
from opwalker.views.check.run import run_rules
from opwalker.views.check.standing import standing
from tests.rules.pages import write_files

FILES = {
    "kit.h": """#pragma once
#include <torch/all.h>
// What launches.
#define RUN(kernel, stream, ...) \\
  kernel<<<1, 32, 0, stream>>>( \\
      __VA_ARGS__)
#define STOP(ok) \\
  if (!(ok)) { \\
    exit(1); \\
  }
struct Sizes {
  int wide;
  int32_t tokens;
  volatile int flag;
};
using Bounds = Sizes;
struct Call {
  Bounds sizes;
};
enum Kind { kFirst, kSecond };
constexpr int kLimit = 16;
extern "C" {
int scale(int rows, int columns);
}
namespace kit {
inline int halved(int n) { return n / 2; }
void lengthen(int64_t columns, int64_t rows);
}  // namespace kit
""",
    "kernels.cu": """#include "kit.h"
__global__ void twice_kernel(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
void twice(torch::Tensor& x, cudaStream_t stream) {
  STOP(x.numel() > 0)
  RUN(twice_kernel, stream, x.data_ptr<float>(), kLimit);
}
void thrice(torch::Tensor& x, cudaStream_t stream) {
  STOP(x.numel() > 1)
  RUN(twice_kernel, stream, x.data_ptr<float>(), 1);
}
void fill(Call& call, const torch::Tensor& x) { call.sizes.tokens = x.size(0) * x.size(1); }
namespace kit {
void lengthen(int64_t rows, int64_t columns) { halved(rows); }
}
int scale(int columns, int rows) { return rows; }
TORCH_LIBRARY(kit, m) {
  m.def("twice(Tensor x, int stream) -> ()");
  m.def("thrice(Tensor! x, int stream) -> ()");
  m.impl("twice", torch::kCUDA, &twice);
  m.impl("thrice", torch::kCUDA, &thrice);
}
""",
    "flags.cu": """#include "kit.h"
__global__ void wait_kernel(Sizes* held) {
  held->flag = 1;
  while (held->flag != 2) {}
}
""",
    "apart.cu": """#include "kit.h"
void grow(const torch::Tensor& x, float* out, cudaStream_t stream) {
  int rows = x.size(0);
  fill_kernel<<<rows, 128, 0, stream>>>(out, x.size(0));
}
int nothing() { return 0; }
""",
}


def _session(tmp_path: Path, ask):
    write_files(FILES, tmp_path / "source")
    options = pipeline.Options(source=str(tmp_path / "source"), cache=tmp_path / "cache", jobs=1)
    return asked(options, None, None, ask)


def test_each_line_is_told_what_the_whole_is_told_there(tmp_path: Path) -> None:
    rules = [rule for rule, _ in pipeline.load_rules()]

    def judge(session) -> tuple[tuple[Finding, ...], list[tuple[Changes, set[Finding], set[Finding]]]]:
        whole, wrong = run_rules(tree_of(session, Settings()), rules), []
        tree = tree_of(session, Settings())
        changes = [{file: ((at, at),)} for file, text in FILES.items() for at in range(1, text.count("\n") + 1)]
        for change in changes:
            there = {one for one in whole if touched(change, one)}
            found = {one for one in run_rules(tree.narrowed(change), rules) if touched(change, one)}
            if found != there:
                wrong.append((change, found - there, there - found))
        return whole, wrong

    whole, wrong = _session(tmp_path, judge)
    assert wrong == []
    places = {(at.file, at.line) for one in whole for at in (one, *one.related) if at.file == "kit.h"}
    # Of the macros, the flag, and what is declared.
    assert {("kit.h", line) for line in (5, 9, 14, 23, 27)} <= places


@pytest.mark.parametrize(
    "line, names",
    [
        (2, set()),
        (3, set()),
        (4, {"twice", "thrice"}),
        (6, {"twice", "thrice"}),
        (9, {"twice", "thrice"}),
        (11, {"fill", "wait_kernel"}),
        (12, {"fill", "wait_kernel"}),
        (13, {"fill", "wait_kernel"}),
        (14, {"fill", "wait_kernel"}),
        (15, set()),
        (16, {"fill"}),
        (18, {"fill"}),
        (20, set()),
        (21, {"twice"}),
        (22, set()),
        (23, {"scale"}),
        (25, set()),
        (27, {"kit::lengthen"}),
    ],
)
def test_who_is_concerned(line: int, names: set[str], tmp_path: Path) -> None:
    def own(session) -> set[str]:
        routines, _ = Focus(tree_of(session, Settings()), {"kit.h": ((line, line),)}).of("own")
        return {one.name for one in routines}

    assert _session(tmp_path, own) == names


def test_what_nobody_knows_concerns_all(tmp_path: Path) -> None:
    text = "int first() { return 1; }\nint last() { return 2; }\n// opwalker: ignore[zero-grid] why\n@unread here\n"
    write_files({"odd.cpp": text}, tmp_path / "source")

    def wide(session) -> list[tuple[bool, bool]]:
        tree = tree_of(session, Settings())
        inside = tree.routines_in("odd.cpp")
        found = [standing(tree, "odd.cpp", inside, [(at, at)]) for at in (1, 2, 3, 4)]
        return [(one.wide, one.comment) for one in found]

    options = pipeline.Options(source=str(tmp_path / "source"), cache=tmp_path / "cache", jobs=1)
    assert asked(options, None, None, wide) == [(False, False), (False, False), (True, True), (True, True)]
