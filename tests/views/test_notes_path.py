"""The diagram of a note: each function, dispatch and caller where it stands on the way, instances counted once."""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.model.walk import PythonRef, Walk
from opwalker.views.notes.launches import launch_groups
from opwalker.views.notes.note import note_of
from opwalker.views.notes.path import path_diagram
from tests.views.miniatures import walk_of
from tests.views.notes_text import section
from tests.views.test_notes import DISPATCH

LIBRARY = {
    "csrc/dispatch.h": DISPATCH + DISPATCH.replace("SWITCH_TYPE", "SWITCH_INNER").replace("elem_t", "out_t"),
    "csrc/fold.cu": """#include "dispatch.h"
template <typename T, typename O, int W> __global__ void fold_kernel(const T* x, O* out) {}
template <typename T>
void fold_launcher(torch::Tensor& x, torch::Tensor& out, int rows) {
  SWITCH_INNER(out.scalar_type(), [&] {
    if (rows > 8) {
      fold_kernel<T, out_t, 4><<<rows, 32>>>(x.data_ptr<T>(), out.data_ptr<out_t>());
    } else {
      fold_kernel<T, out_t, 1><<<1, 32>>>(x.data_ptr<T>(), out.data_ptr<out_t>());
    }
  });
}
void fold(torch::Tensor& x, torch::Tensor& out) {
  int rows = x.size(0);
  SWITCH_TYPE(x.scalar_type(), [&] { fold_launcher<elem_t>(x, out, rows); });
}
TORCH_LIBRARY(m, o) { o.def("fold(Tensor x, Tensor! out) -> ()"); o.impl("fold", torch::kCUDA, &fold); }
""",
}


def drawn(walk: Walk) -> list[tuple[str, str, str]]:
    """The edges by what their nodes are labelled."""
    diagram = path_diagram(walk, walk.implementations[0])
    labels = {node.id: node.label for node in diagram.nodes}
    return [(labels[edge.start], labels[edge.end], edge.label) for edge in diagram.edges]


def test_a_dispatch_stands_below_the_function_that_it_is_in() -> None:
    walk = walk_of(LIBRARY, "m::fold")
    assert len(launch_groups(walk.implementations[0].launches)) == 2
    assert drawn(walk) == [
        ("m::fold", "fold", "CUDA"),
        ("fold", "SWITCH_TYPE on x.scalar_type()", ""),
        ("SWITCH_TYPE on x.scalar_type()", "fold_launcher", ""),
        ("fold_launcher", "SWITCH_INNER on out.scalar_type()", ""),
        # Two launches of one kernel, configured differently, are one way with the instances of both.
        ("SWITCH_INNER on out.scalar_type()", "fold_kernel", "8 instances"),
    ]


def test_a_caller_is_counted_once_however_often_it_calls() -> None:
    calls = [("a", 3), ("a", 9), ("b", 12), ("c", 20), ("c", 21)]
    walk = replace(walk_of(LIBRARY, "m::fold"), python=tuple(PythonRef("p.py", at, name) for name, at in calls))
    assert [start for start, end, _ in drawn(walk) if end == "m::fold"] == ["a (p.py)", "b (p.py)", "c (p.py)"]
    more = replace(walk, python=(*walk.python, PythonRef("p.py", 30, "d"), PythonRef("p.py", 31, "d")))
    assert [edge for edge in drawn(more) if "more" in edge[0]] == [("1 more caller", "m::fold", "calls")]


def test_it_is_said_which_of_several_builds_is_read() -> None:
    walk = walk_of(LIBRARY, "m::fold")
    said = []
    for builds in (("cuda",), ("cuda", "rocm"), None):
        one = replace(walk, implementations=(replace(walk.implementations[0], builds=builds),))
        said.append(section(note_of(one, "cuda"), "path"))
    assert said == [[], ["Read as the build for cuda compiles it; what rocm compiles may differ."], []]


def test_a_wrapper_is_told_with_the_place_of_its_call() -> None:
    wrapper = PythonRef("p.py", 3, "fold", "torch.ops.m.fold", call_line=8)
    note = note_of(replace(walk_of(LIBRARY, "m::fold"), python=(wrapper,)), "cuda")
    assert section(note, "entry") == ["`fold` | `torch.ops.m.fold` | `p.py:8`"]


def test_what_a_macro_makes_true_is_no_condition() -> None:
    walk = walk_of(LIBRARY, "m::fold")
    chosen = walk.implementations[0]
    said = []
    for conditions in (("rows is greater than 8", "true"), ("true",)):
        one = replace(chosen, launches=(replace(chosen.launches[0], conditions=conditions),))
        told = section(note_of(replace(walk, implementations=(one,)), "cuda"), "launch")
        said.append([line.strip() for line in told if "runs where" in line])
    assert said == [["It runs where `rows` is greater than 8."], []]


def test_launches_of_one_configuration_come_each_from_its_own_dispatch() -> None:
    text = (
        LIBRARY["csrc/fold.cu"].split("template <typename T>")[0]
        + """
void fold(torch::Tensor& x, torch::Tensor& out, bool cast) {
  if (cast) {
    SWITCH_TYPE(x.scalar_type(), [&] {
      SWITCH_INNER(out.scalar_type(), [&] { fold_kernel<elem_t, out_t, 1><<<1, 32>>>(x.data_ptr<elem_t>(), nullptr); });
    });
    return;
  }
  SWITCH_TYPE(x.scalar_type(), [&] { fold_kernel<elem_t, elem_t, 2><<<1, 32>>>(x.data_ptr<elem_t>(), nullptr); });
}
TORCH_LIBRARY(m, o) { o.def("fold(Tensor x, Tensor! out, bool cast) -> ()"); o.impl("fold", torch::kCUDA, &fold); }
"""
    )
    walk = walk_of({**LIBRARY, "csrc/fold.cu": text}, "m::fold")
    assert len(launch_groups(walk.implementations[0].launches)) == 1
    outer, inner = "SWITCH_TYPE on x.scalar_type()", "SWITCH_INNER on out.scalar_type()"
    assert drawn(walk)[1:] == [
        ("fold", outer, ""),
        (outer, inner, ""),
        (inner, "fold_kernel", "4 instances"),
        (outer, "fold_kernel", "2 instances"),
    ]
