"""The names of conditions and what they hold: those of the host function that nothing changes."""

from __future__ import annotations

from opwalker.views.notes.note import note_of
from tests.views.miniatures import walk_of
from tests.views.notes_text import section

TEXT = """template <typename T, int W> __global__ void fold_kernel(T* x) {}
#define FOLD(W) fold_kernel<float, W><<<8, 32>>>(x.data_ptr<float>())
void fold(torch::Tensor& x, std::optional<torch::Tensor> ids, int64_t group) {
  int rows = x.size(0);
  int heads = rows / group;
  TORCH_CHECK(heads % 2 == 0);
  constexpr int lanes = 8;
  constexpr int bytes = lanes * 4;
  auto address = reinterpret_cast<uintptr_t>(x.data_ptr());
  int unused = 3;
  int outer = group - 1;
  int64_t step = x.stride(outer);
  int counted = rows;
  counted += 1;
  if (ids.has_value()) {
    const torch::Tensor& given_ids = ids.value();
    int64_t length = given_ids.numel() / 2;
    TORCH_CHECK(given_ids.dim() == 1);
  } else {
    int64_t length = rows;
    TORCH_CHECK(counted < 8 && length > 2);
  }
  if (address % bytes == 0) { FOLD(lanes); } else { FOLD(1); }
}
TORCH_LIBRARY(ns, m) { m.impl("fold", torch::kCUDA, &fold); }
"""


def test_names_of_conditions_are_told_with_what_they_hold() -> None:
    walk = walk_of(TEXT, "ns::fold")
    host = walk.implementations[0].host
    assert host is not None
    named = {one.name: (one.value, one.line) for one in host.named}
    # Neither what is told as a size, nor what changes, nor what is one of two values, nor what no condition speaks of.
    assert named == {
        "lanes": ("8", 7),
        "bytes": ("lanes * 4", 8),
        "address": ("reinterpret_cast<uintptr_t>(x.data_ptr())", 9),
        "outer": ("group - 1", 11),
    }
    # What a check speaks of stands with it.
    assert [one.name for one in host.held] == ["heads", "given_ids"]
    assert "`bytes` | `lanes * 4`" in section(note_of(walk, "cuda"), "checks")


def test_the_variable_of_a_loop_over_a_list_is_told_with_the_list() -> None:
    text = """void fold(torch::Tensor& x, torch::Tensor& y) {
  for (const torch::Tensor* one : {&x, &y}) {
    TORCH_CHECK(one->dim() == 1);
  }
}
TORCH_LIBRARY(ns, m) { m.impl("fold", torch::kCUDA, &fold); }
"""
    host = walk_of(text, "ns::fold").implementations[0].host
    assert host is not None
    assert [(one.name, one.value, one.line) for one in host.held] == [("one", "each of x, y", 2)]
