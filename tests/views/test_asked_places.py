"""A place that is asked for and is not there: which part of it is missing, and what is near."""

from __future__ import annotations

import pytest

from opwalker.views.asked_places import no_such_place
from tests.trees import tree

CODE = """namespace mini { struct Box { int n; }; __global__ void scale(int* a) {} }
void run_scale(int n) {}
void later();
"""
FILES = {"csrc/scale.cu": CODE, "csrc/empty.h": "#pragma once\n", "csrc/deep/rotate.cu": "void rotate() {}\n"}
PATHS = (*FILES, "mini/ops.py")


@pytest.mark.parametrize(
    ("name", "said", "help_"),
    [
        ("csrc/nope.cu::run", "no file `csrc/nope.cu` in this source", "a path is relative to the source"),
        ("csrc/scal.cu", "no file `csrc/scal.cu` in this source", "nearest: csrc/scale.cu"),
        ("rotat.cu::f", "no file `rotat.cu` in this source", "nearest: csrc/deep/rotate.cu"),
        ("csrc/scale.cu::run_scal", "no function, kernel or class `run_scal` is defined in csrc/scale.cu",
         "nearest: run_scale, mini::scale"),
        ("scale.cu::mini::scale_it", "no function, kernel or class `mini::scale_it` is defined in csrc/scale.cu",
         "nearest: mini::scale"),
        ("csrc/scale.cu::zz", "no function, kernel or class `zz` is defined in csrc/scale.cu",
         "it defines mini::Box, mini::scale, run_scale"),
        ("csrc/scale.cu::later", "no function, kernel or class `later` is defined in csrc/scale.cu",
         "it defines mini::Box"),
        ("csrc/empty.h::f", "no function, kernel or class `f` is defined in csrc/empty.h", "it defines none"),
        ("mini/ops.py::run", "mini/ops.py is no C or C++ file", "`opwalker ops` lists"),
    ],
)  # fmt: skip
def test_which_part_of_a_place_is_missing(name: str, said: str, help_: str) -> None:
    found = no_such_place(name, tree(FILES).index, PATHS)
    assert str(found).startswith(said)
    assert (found.help or "").startswith(help_)


@pytest.mark.parametrize("name", ["mini::scale", "scale", "torch.ops.mini.scale", "_C.Buffer.run", "ns::op.overload"])
def test_names_are_no_places(name: str) -> None:
    assert no_such_place(name, tree(FILES).index, PATHS) is None
