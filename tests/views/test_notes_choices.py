"""Dispatch and definitions in a note: what decides a template argument is told, and nothing that does not decide it."""

from __future__ import annotations

import pytest

from opwalker.views.notes.note import note_of
from tests.views.miniatures import walk_of
from tests.views.notes_text import section

TEXT = """#define LEAST(a, b) ((a) < (b) ? (a) : (b))
enum Kind { PLAIN = 0, SCALED = 1 };
template <typename T, Kind KIND, int LANES, int BYTES, int ROWS> __global__ void fold_kernel(T* x) {}
template <typename T, Kind KIND, int MOST> void fold_rows(torch::Tensor& x, int64_t rows) {
  constexpr int BYTES = LEAST(MOST, sizeof(T));
  switch (rows) {
    case 8: fold_kernel<T, KIND, 32, BYTES, 8><<<8, 32>>>(x.data_ptr<T>()); break;
    default: fold_kernel<T, KIND, 32, BYTES, 1><<<rows, 32>>>(x.data_ptr<T>());
  }
}
void fold(torch::Tensor& x, int64_t rows, bool scaled) {
  if (scaled) {
    if (x.scalar_type() == at::kFloat) { fold_rows<float, SCALED, 16>(x, rows); }
    else if (x.scalar_type() == at::kInt) { fold_rows<int, SCALED, 16>(x, rows); }
    else { fold_rows<double, SCALED, 16>(x, rows); }
  } else {
    if (x.scalar_type() == at::kFloat) { fold_rows<float, PLAIN, 16>(x, rows); }
    else if (x.scalar_type() == at::kInt) { fold_rows<int, PLAIN, 16>(x, rows); }
    else { fold_rows<double, PLAIN, 16>(x, rows); }
  }
}
TORCH_LIBRARY(ns, m) { m.impl("fold", torch::kCUDA, &fold); }
"""


@pytest.fixture(scope="module")
def told() -> list[str]:
    return section(note_of(walk_of(TEXT, "ns::fold"), "cuda"), "dispatch")


@pytest.mark.parametrize(
    "said",
    [
        "  `LANES` is `32` in every branch of the switch on `rows` that leads here.",
        "    `float`: written under `x.scalar_type() == at::kFloat`.",
        "    `double`: written in the `else` of `x.scalar_type() == at::kInt`.",
        "    `(Kind)1`: written in a branch.",  # each type leads to both kinds
        "    `(Kind)0`: written in a branch.",
    ],
)
def test_what_decides_a_value(told: list[str], said: str) -> None:
    assert said in told


def test_a_value_made_by_a_macro_stands_where_the_macro_is_used() -> None:
    walk = walk_of(TEXT, "ns::fold")
    axes = {one.parameter: one for launch in walk.implementations[0].launches for one in launch.axes}
    assert {origin.line for origin in axes["BYTES"].origins} == {5}


def test_a_definition_with_another_schema_says_so() -> None:
    text = """void fold(torch::Tensor& x) {}
TORCH_LIBRARY(ns, m) { m.def("fold(Tensor! x) -> ()"); m.def("fold() -> ()"); m.impl("fold", torch::kCUDA, &fold); }
"""
    said = section(note_of(walk_of(text, "ns::fold"), "cuda"), "contract")
    assert [one for one in said if one.startswith("Defined")] == ["Defined.", "Defined, there as `fold() -> ()`."]


TWICE = """template <typename T, typename K, int LANES, bool SKIP> __global__ void add_kernel(T* x) {}
template <typename T, bool SKIP> __global__ void slow_kernel(T* x) {}
void add(torch::Tensor& x, std::optional<torch::Tensor> ids, int64_t lanes) {
  bool wide = x.size(0) > 8;
  if (ids.has_value()) {
    const torch::Tensor& of = ids.value();
    AT_DISPATCH_INDEX_TYPES(of.scalar_type(), "add", [&] {
      if (wide) {
        switch (lanes) {
          case 2: add_kernel<float, index_t, 2, true><<<8, 32>>>(x.data_ptr<float>()); break;
          default: add_kernel<float, index_t, 4, true><<<8, 32>>>(x.data_ptr<float>());
        }
      } else { slow_kernel<float, true><<<8, 32>>>(x.data_ptr<float>()); }
    });
    return;
  }
  if (wide) {
    switch (lanes) {
      case 2: add_kernel<float, int32_t, 2, false><<<8, 32>>>(x.data_ptr<float>()); break;
      default: add_kernel<float, int32_t, 4, false><<<8, 32>>>(x.data_ptr<float>());
    }
  } else { slow_kernel<float, false><<<8, 32>>>(x.data_ptr<float>()); }
}
TORCH_LIBRARY(ns, m) { m.impl("add", torch::kCUDA, &add); }
"""


@pytest.mark.parametrize(
    "said",
    [
        "  `LANES` is `2` or `4`, from a switch on `lanes`.",
        # What both switches leave as it is depends on what leads to one or the other.
        "    `true`: in every branch of the switch on `lanes` that leads here, where `ids` is given.",
        "    `false`: in every branch of the switch on `lanes` that leads here, where `ids` is not given.",
        "    `int`: in every branch of the switch on `lanes` that leads here, where `ids` is not given.",
        "    `true`: written in a branch, where `ids` is given.",
    ],
)
def test_a_value_that_no_case_decides_says_what_leads_to_it(said: str) -> None:
    assert said in section(note_of(walk_of(TWICE, "ns::add"), "cuda"), "dispatch")


def test_what_a_choice_within_a_branch_decides_the_branch_does_not_say() -> None:
    # Under one branch several instances of a kernel are compiled: which is called, the branch alone leaves open.
    text = """template <typename T, int KIND> __global__ void fold_kernel(T* x) {}
void fold(torch::Tensor& x, bool scaled) {
  if (scaled) {
    if (x.scalar_type() == at::kFloat) { fold_kernel<float, 1><<<1, 32>>>(x.data_ptr<float>()); }
    else { fold_kernel<double, 1><<<1, 32>>>(x.data_ptr<double>()); }
  } else {
    fold_kernel<float, 0><<<1, 32>>>(x.data_ptr<float>());
  }
}
TORCH_LIBRARY(ns, m) { m.impl("fold", torch::kCUDA, &fold); }
"""
    said = section(note_of(walk_of(text, "ns::fold"), "cuda"), "dispatch")
    assert "`scaled` | `fold_kernel<…>`" in said
    assert [one for one in said if one.endswith("`fold_kernel<float, 0>`")]
