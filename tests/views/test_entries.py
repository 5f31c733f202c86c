"""Walks that begin at no op: files in reading order, functions, classes with overriders, kernels with launchers."""

from __future__ import annotations

import pytest

from opwalker.errors import InputError
from opwalker.model.walk import Walk
from opwalker.views.entries import EntryView
from tests.trees import tree
from tests.views.miniatures import SOURCE

HEADER = """#pragma once
#define D_INLINE __device__ inline
D_INLINE int twice(int a) { return a * 2; }
struct Stage {
  int depth;
  Stage(int d) : depth(d) {}
  virtual ~Stage() {}
  virtual int run(int n) = 0;
  virtual int width() { return depth; }
};
"""

KERNELS = """#include "parts.h"
__global__ void scale(float* a, int n) { int b = twice(n); }
__global__ void idle(float* a) {}
template <int N> __global__ void shift(float* a) {}
#define RUN(FN) FN<<<1, 2>>>(a)
int calls = 0;
static int pick(int n) { return n; }
void launch_scale(float* a, int n) { RUN(scale); }
void outer(float* a, int n) { calls = pick(n); launch_scale(a, n); }
void lonely(float* a) { shift<4><<<1, 2>>>(a); }
class Quick : public Stage {
 public:
  Quick() : Stage(1) {}
  int run(int n) override { return n; }
};
class Quicker : public Quick { public: int run(int n) override; };
int Quicker::run(int n) { return n + 1; }
void make() { Stage* s = new Quick(); auto t = std::make_unique<Quicker>(); delete static_cast<Quick*>(s); }
TORCH_LIBRARY(ns, m) { m.impl("scaled", torch::kCUDA, &outer); }
"""

FILES = {"csrc/parts.h": HEADER, "csrc/steps.cu": KERNELS, "other/steps.cu": "void other_one() {}\n"}


def walk(name: str, files: dict[str, str] = FILES) -> Walk | None:
    return EntryView(tree(files), SOURCE).walk(name)


def line(piece: str, text: str = KERNELS) -> int:
    return text.count("\n", 0, text.index(piece)) + 1


def test_a_file_in_reading_order() -> None:
    found = walk("csrc/steps.cu")
    assert (found.entry.kind, found.entry.file, found.entry.end_line) == ("file", "csrc/steps.cu", KERNELS.count("\n"))
    assert [(one.kind, one.name, one.ops) for one in found.outline] == [
        ("entry point", "outer", ("ns::scaled",)),
        ("host function", "pick", ()),
        ("host function", "launch_scale", ()),
        ("host function", "lonely", ()),
        ("host function", "Quick::Quick", ()),
        ("host function", "Quick::run", ()),
        ("host function", "Quicker::run", ()),
        ("host function", "make", ()),
        ("kernel", "scale", ()),
        ("kernel", "idle", ()),
        ("kernel", "shift", ()),
        ("class", "Quick", ()),
        ("class", "Quicker", ()),
        ("global", "calls", ()),
    ]


def test_who_uses_whom_inside_a_file_also_through_its_macros() -> None:
    found = {one.name: one for one in walk("csrc/steps.cu").outline}
    assert (found["outer"].uses, found["outer"].used_by) == (("pick", "launch_scale"), ())
    assert (found["launch_scale"].uses, found["launch_scale"].used_by) == (("scale",), ("outer",))
    assert found["scale"].used_by == ("launch_scale",)
    assert found["idle"].used_by == ()
    assert found["outer"].notes == ("launches scale",)


def test_a_header_names_the_files_that_use_it() -> None:
    found = {one.name: one for one in walk("csrc/parts.h").outline}
    assert (found["twice"].kind, found["twice"].used_by) == ("device function", ("csrc/steps.cu",))


def test_a_path_by_its_end() -> None:
    assert walk("parts.h").entry.file == "csrc/parts.h"
    with pytest.raises(InputError, match=r"several files end in steps\.cu") as raised:
        walk("steps.cu")
    assert "csrc/steps.cu, other/steps.cu" in raised.value.help
    assert walk("nowhere.cu") is None


def test_a_function_in_a_file() -> None:
    found = walk("csrc/steps.cu::outer")
    assert (found.entry.kind, found.entry.name, found.entry.line) == ("function", "outer", line("void outer"))
    assert [launch.kernel for launch in found.implementations[0].launches] == ["scale"]


PYTHON_MODULE = """extern "C" {
void grow(int n) {}
void* take(int n) { grow(n); return nullptr; }
static PyObject* py_start(PyObject* self, PyObject* args) { return nullptr; }
static PyMethodDef methods[] = {{"start", (PyCFunction)py_start, METH_VARARGS, "Starts."}, {NULL, NULL, 0, NULL}};
PyMODINIT_FUNC PyInit_thing(void) { return PyModule_Create(&thing); }
}
"""


def test_entry_points_that_no_op_names() -> None:
    found = walk("a.cpp", {"a.cpp": PYTHON_MODULE})
    assert [(one.name, one.why, one.ops) for one in found.outline if one.kind == "entry point"] == [
        ("take", "C linkage, called by nothing in this file", ()),
        ("py_start", None, ("start",)),
        ("PyInit_thing", "start of a Python module", ()),
    ]
    assert [one.name for one in found.outline if one.kind != "entry point"] == ["grow"]


def test_a_class_with_its_overriders_and_where_it_is_made() -> None:
    found = walk("Stage")
    view = found.class_view
    assert (found.entry.kind, view.name, view.kind, view.bases) == ("class", "Stage", "struct", ())
    assert [one.name for one in view.derived] == ["Quick", "Quicker"]
    run = next(one for one in view.methods if one.name == "run")
    assert (run.virtual, run.pure, run.body_at) == (True, True, None)
    assert [(one.function, one.line) for one in run.overridden_by] == [
        ("Quick", line("int run(int n) override {")),
        ("Quicker", line("class Quicker")),
    ]
    width = next(one for one in view.methods if one.name == "width")
    assert (width.virtual, width.pure, width.overridden_by) == (True, False, ())
    assert [(one.function, one.text) for one in view.members] == [("depth", "int")]
    assert [(one.text, one.function) for one in view.constructed] == [
        ("new Quick", "make"),
        ("make_unique<Quicker", "make"),
    ]
    assert [one.text for one in view.deleted] == ["delete static_cast<Quick*>(s)"]


def test_a_body_outside_the_class() -> None:
    (run,) = walk("Quicker").class_view.methods
    assert (run.line, run.body_at.line) == (line("class Quicker"), line("int Quicker::run"))


def test_the_name_of_a_class_is_not_its_constructors() -> None:
    assert walk("Quick").entry.kind == "class"


def test_other_classes_of_one_name_are_told() -> None:
    files = {"a.h": "namespace one { struct Job { int n; }; }\n", "b.h": "namespace two { class Job { int m; }; }\n"}
    assert walk("Job", files).notes == ("other classes of this name: two::Job (b.h:1)",)
    assert walk("two::Job", files).notes == ()


def test_a_kernel_is_walked_from_what_leads_to_it() -> None:
    found = walk("scale")
    assert (found.entry.kind, found.entry.name) == ("kernel", "scale")
    (way,) = found.implementations
    assert (way.host.name, [launch.kernel for launch in way.launches]) == ("outer", ["scale"])
    assert [step.function for step in way.launches[0].path] == ["outer", "launch_scale"]
    assert [kernel.name for kernel in way.kernels] == ["scale"]


def test_a_kernel_that_nothing_launches() -> None:
    found = walk("idle")
    assert found.notes == ("nothing in the source was found to launch this kernel",)
    assert [kernel.name for one in found.implementations for kernel in one.kernels] == ["idle"]


def test_a_launcher_that_nothing_binds_is_where_the_way_begins() -> None:
    assert [one.host.name for one in walk("shift").implementations] == ["lonely"]
