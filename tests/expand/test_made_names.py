"""Functions that a macro names, each translation unit another one; and what a unit defines before it includes them."""

from __future__ import annotations

import pytest

from opwalker.expand.macros import MacroChoice
from opwalker.model.walk import SourceInfo
from opwalker.views.kernels import list_kernels
from tests.trees import follow, kernels, tree

SHARED = """#ifndef EXPORT_NAME
#define EXPORT_NAME scale
#endif
#ifndef WIDTH
#define WIDTH 1
#endif
template <int N> __global__ void scale_kernel(float* x) {}
void EXPORT_NAME(float* x) { scale_kernel<WIDTH><<<1, 32>>>(x); }
"""
FILES = {
    "scale.cu": SHARED,
    "scale_wide.cu": '#define EXPORT_NAME scale_wide\n#define WIDTH 8\n#include "scale.cu"\n',
    "scale_wider.cu": '#define NAMED scale_wider\n#define EXPORT_NAME NAMED\n#define WIDTH 16\n#include "scale.cu"\n',
    "a.cpp": "".join(
        f"void {name}(float* x);\nvoid call_{name}(float* x) {{ {name}(x); }}\n"
        for name in ("scale", "scale_wide", "scale_wider", "scale_other")
    ),
}


@pytest.mark.parametrize(
    ("name", "instances"), [("scale", ["1"]), ("scale_wide", ["8"]), ("scale_wider", ["16"]), ("scale_other", [])]
)
def test_each_unit_gives_a_function_its_own_name(name: str, instances: list[str]) -> None:
    found = follow(tree(FILES), "a.cpp", f"call_{name}")
    assert [text for site in found.launches for kernel in site.kernels for text in kernel.instances] == instances
    assert [gap.kind for gap in found.gaps] == ([] if instances else ["no-body"])


def test_a_name_that_all_units_give_is_the_functions_own() -> None:
    files = {"a.cuh": "#define NAME go\n__global__ void k() {}\ninline void NAME() { k<<<1, 1>>>(); }\n"}
    files |= {f"{unit}.cu": f'#include "a.cuh"\nvoid {unit}() {{ go(); }}\n' for unit in "bc"}
    assert [kernels(follow(tree(files), f"{unit}.cu", unit)) for unit in "bc"] == [["k"], ["k"]]


@pytest.mark.parametrize(("root", "body"), [("scale.cu", "1"), ("scale_wide.cu", "8"), ("scale_wider.cu", "16")])
def test_a_default_gives_way_to_what_the_unit_defined(root: str, body: str) -> None:
    bench = tree(FILES)
    for _ in range(2):
        found = bench.unit().macros.lookup("WIDTH", "scale.cu", len(SHARED) - 1, root)
        assert isinstance(found, MacroChoice)
        assert (found.event.body.strip(), found.certainty) == (body, "proved")


DECLARED = """template <int N> __global__ void k(float* x);
inline void h(float* x) { k<3><<<1, 32>>>(x); }
"""


def test_a_nearer_declaration_hides_the_same_name_of_another_unit() -> None:
    files = {
        "far.cu": "template <int N> __global__ void k(float* x) {}\n",
        "a.cu": f"namespace near {{\n{DECLARED}}}\n",
        "b.cuh": "namespace near {\ntemplate <int N> __global__ void k(float* x) {}\n}\n",
    }
    found = follow(tree(files), "a.cu", "h")
    assert [(kernel.path, kernel.name) for site in found.launches for kernel in site.kernels] == [("b.cuh", "near::k")]


SPACE = """#ifndef SPACE
#define SPACE common
#endif
namespace SPACE {
template <int N> __global__ void k(float* x) {}
void go(float* x) { k<7><<<1, 32>>>(x); }
}
"""


@pytest.mark.parametrize(
    ("units", "name", "why"),
    [
        (("",), "common::k", None),
        (("#define SPACE mine\n",), "mine::k", None),
        (("#define SPACE mine\n", "#define SPACE mine\n"), "mine::k", None),
        (("#define SPACE mine\n", ""), "common::k", "the units that read it give its namespace several names"),
    ],
)
def test_a_namespace_that_a_macro_names_is_the_one_of_every_unit(units, name: str, why: str | None) -> None:
    files = {"space.h": SPACE} | {f"{n}.cu": f'{text}#include "space.h"\n' for n, text in enumerate(units)}
    (found,) = list_kernels(tree(files), SourceInfo("miniature"), [], None).kernels
    assert (found.name, found.instances, found.complete, found.why_incomplete) == (name, ("7",), why is None, why)


def test_defaults_that_stand_alone_in_a_header_give_way_too() -> None:
    files = {
        "sizes.h": "#pragma once\n#ifndef WIDTH\n#define WIDTH 4\n#endif\n#ifndef DEPTH\n#define DEPTH 2\n#endif\n",
        "k.h": '#include "sizes.h"\ntemplate <int W, int D> __global__ void k() {}\n'
        "static void go() { k<WIDTH, DEPTH><<<1, 1>>>(); }\n",
        "a.cu": '#define WIDTH 16\n#include "k.h"\nvoid h() { go(); }\n',
    }
    found = follow(tree(files), "a.cu", "h")
    assert [text for site in found.launches for kernel in site.kernels for text in kernel.instances] == ["16, 2"]


PASTED = """#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define HALF(name) name##_fp16
#define HEAD(name) name(float* x, int n)
#define PLAIN plain_kernel
__global__ void HALF(add)(float* x) {}
__global__ void JOIN(mul_, 3)(float* x) {}
__global__ void HEAD(divide) {}
template <int N> __global__ void PLAIN(float* x) {}
void h(float* x) {
  HALF(add)<<<1, 32>>>(x);
  JOIN(mul_, 3)<<<1, 32>>>(x);
  divide<<<1, 32>>>(x, 3);
  PLAIN<4><<<1, 32>>>(x);
  plain_kernel<8><<<1, 32>>>(x);
}
"""


def _listed(files: dict[str, str]) -> list[tuple[str, tuple[str, ...]]]:
    found = list_kernels(tree(files), SourceInfo("miniature"), [], None).kernels
    assert all(kernel.complete for kernel in found)
    return sorted((kernel.name, kernel.instances) for kernel in found)


def test_a_kernel_is_listed_by_the_name_that_a_macro_makes() -> None:
    listed = [("add_fp16", ("",)), ("divide", ("",)), ("mul_3", ("",)), ("plain_kernel", ("4", "8"))]
    assert _listed({"a.cu": PASTED}) == listed
    parameters = {f.name: [p.type for p in f.parameters] for f in tree({"a.cu": PASTED}).index.facts("a.cu").functions}
    assert parameters["add_fp16"] == ["float*"] and parameters["divide"] == ["float*", "int"]


def test_each_unit_lists_a_kernel_by_its_own_name() -> None:
    header = "__global__ void NAME(float* x) {}\nvoid RUN(float* x) { NAME<<<1, 32>>>(x); }\n"
    files = {"k.cuh": header}
    files |= {f"{u}.cu": f'#define NAME k_{u}\n#define RUN run_{u}\n#include "k.cuh"\n' for u in "ab"}
    assert _listed(files) == [("k_a", ("",)), ("k_b", ("",))]
    # One that defines no name keeps the one that is written.
    files["c.cu"] = '#include "k.cuh"\n'
    assert [name for name, _ in _listed(files)] == ["NAME", "k_a", "k_b"]


@pytest.mark.parametrize(("condition", "names"), [("defined(A)", ["f"]), ("A >= 3 && B", ["f"]), ("", ["g"])])
def test_a_macro_of_another_branch_names_nothing(condition: str, names: list[str]) -> None:
    body = "#define f g\n{}int f(int a) {{ return a; }}\n"
    text = f"#if {condition}\n{body.format('#else' + chr(10))}#endif\n" if condition else body.format("")
    assert [f.name for f in tree({"a.cu": text}).index.facts("a.cu").functions] == names
