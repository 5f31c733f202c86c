# ruff: noqa: E501 - an example reads better whole
"""Views of ops and walks: what library macros hide, what is no function, which name a dispatch binds."""

from __future__ import annotations

import pytest

from opwalker.model.walk import SourceInfo
from opwalker.views.joined import JoinedOps
from opwalker.views.names import foreign_imports
from opwalker.views.ops import OpsView
from opwalker.views.python_side import PythonSide
from opwalker.views.walk import WalkView
from tests.trees import tree


def ops(files, **settings):
    if isinstance(files, str):
        files = {"a.cu": files}
    bench = tree(files, **settings)
    native = OpsView(bench)
    return bench, JoinedOps(native, PythonSide((), (), {})).all(), native.gaps()


def walk(files, name, **settings):
    bench, found, _ = ops(files, **settings)
    return WalkView(bench, SourceInfo("t")).walk(next(op for op in found if op.name == name))


REGISTER = 'TORCH_LIBRARY(ns, m) { m.def("f(Tensor x) -> ()"); m.impl("f", torch::kCUDA, &f); }\n'


def test_checks_are_those_of_the_source():
    text = (
        "template <class T> __global__ void k(T* a) {}\nvoid f(at::Tensor x) {\n"
        '  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "f", [&] { k<scalar_t><<<1, 2>>>(x.data_ptr<scalar_t>()); });\n}\n'
    )
    (made,) = walk(text + REGISTER, "ns::f").implementations
    assert made.host.checks == ()


def test_what_is_switched_off_is_no_op():
    _, found, _ = ops(
        'void f() {}\nTORCH_LIBRARY(ns, m) {\n#if 0\n m.def("dead() -> ()");\n#endif\n m.def("live() -> ()");\n}\n'
    )
    assert [op.name for op in found] == ["ns::live"]


def test_a_data_member_is_no_missing_function():
    text = 'struct B { int x; void run() {} };\nPYBIND11_MODULE(mod, m) { py::class_<B>(m, "B").def_readwrite("x", &B::x).def("run", &B::run); }\n'
    _, _, gaps = ops(text)
    assert not [g for g in gaps if g.kind == "no-body"]


def test_sizes_through_macros():
    text = "#define SZ(t, n) t.size(n)\nvoid f(at::Tensor x) { int n = SZ(x, 0) / 2; }\n"
    (made,) = walk(text + REGISTER, "ns::f").implementations
    assert [(s.name, s.value) for s in made.host.sizes] == [("n", "SZ(x, 0) / 2")] or [
        s.value for s in made.host.sizes
    ] == ["x.size(0) / 2"]


@pytest.mark.parametrize(
    ("macro", "use", "on", "binds", "values"),
    [
        (
            (
                "#define D(N, V, ...) switch (N) { case 1: { constexpr int V = 1; __VA_ARGS__; break; } "
                "case 2: { constexpr int V = 2; __VA_ARGS__; break; } }"
            ),
            "D(x, W, { k<int, W><<<1, 2>>>(a); })",
            "x",
            "W",
            ("1", "2"),
        ),
        (
            (
                "#define D(C, V, ...) [&] { if (C) { constexpr static bool V = true; return __VA_ARGS__(); } "
                "else { constexpr static bool V = false; return __VA_ARGS__(); } }()"
            ),
            "D(x > 3, B, [&] { k<int, B><<<1, 2>>>(a); })",
            "x > 3",
            "B",
            ("true", "false"),
        ),
        (
            "#define D(N, T, ...) if (N == 1) { using T = float; __VA_ARGS__; } else { using T = half; __VA_ARGS__; }",
            "D(x, Q, { k<Q, 1><<<1, 2>>>(a); })",
            "x",
            "Q",
            ("float", "half"),
        ),
    ],
)
def test_dispatch_macros_that_get_the_name_they_bind(macro, use, on, binds, values):
    text = f"template <typename T, int N = 0> __global__ void k(int* a) {{}}\n{macro}\nvoid f(int x, int* a) {{\n  {use};\n}}\n"
    (made,) = walk(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f").implementations
    assert [(d.macro, d.on, d.binds, d.values) for d in made.dispatch] == [("D", on, binds, values)]


def test_imports_from_outside_the_source_are_evidence():
    texts = {"pkg/a.py": "import os\nimport torch\nimport far_ops  # noqa\nfrom pkg.b import c\nfrom near import d\n"}
    found = foreign_imports(texts, ["pkg/a.py", "pkg/b.py", "lib/near.py"])
    assert found == ["`far_ops` (pkg/a.py:3)"]


def test_a_branch_of_the_function_is_not_that_of_a_macro_in_it():
    text = (
        "#define CHECKED(cmd) do { const auto e = (cmd); if (e != 0) { throw e; } } while (0)\n"
        "__global__ void k(int* a) {}\n"
        "void f(bool wait, int* a) {\n  k<<<1, 2>>>(a);\n  if (wait)\n    CHECKED(cudaDeviceSynchronize());\n}\n"
    )
    (made,) = walk(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f").implementations
    assert made.dispatch == ()
