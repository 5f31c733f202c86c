"""What a build compiles though no op reaches it, and what nothing may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from opwalker import pipeline
from tests.expand.instance_sections import predicted

KERNEL = "template <typename T, int N> __global__ void k(T* a) {}\n"
OP = "void h(float* a) { k<float, 1><<<1, 1>>>(a); }\n"
CASES = {
    "a function that nothing calls": ("void other(float* a) { k<float, 2><<<1, 1>>>(a); }", {"float,1", "float,2"}),
    "static, inline, in no namespace": (
        (
            "static void s(float* a) { k<float, 2><<<1, 1>>>(a); }\n"
            "inline void i(float* a) { k<float, 3><<<1, 1>>>(a); }\n"
            "namespace { void n(float* a) { k<float, 4><<<1, 1>>>(a); } }"
        ),
        {"float,1", "float,2", "float,3", "float,4"},
    ),
    "through a template": (
        "template <int N> void via(float* a) { k<float, N><<<1, 1>>>(a); }\nvoid other(float* a) { via<7>(a); }",
        {"float,1", "float,7"},
    ),
    "a member of a class": (
        "struct S { void run(float* a) { k<float, 2><<<1, 1>>>(a); } };",
        {"float,1", "float,2"},
    ),
    "a template that nothing names": (
        "template <int N> void dead(float* a) { k<float, N><<<1, 1>>>(a); }",
        {"float,1"},
    ),
    "an explicit instantiation of a class": (
        (
            "template <int N> struct L { void run(float* a);\n"
            "static void twice(float* a) { k<float, 2 * N><<<1, 1>>>(a); } };\n"
            "template <int N> void L<N>::run(float* a) { k<float, N><<<1, 1>>>(a); }\n"
            "template struct L<5>;\nextern template struct L<6>;"
        ),
        {"float,1", "float,5", "float,10"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_compiled_besides(name: str) -> None:
    text, wanted = CASES[name]
    found, reasons = predicted(f"{KERNEL}{text}\n{OP}")
    assert (found["k"], reasons) == (wanted, {})


def test_a_template_that_may_be_called_leaves_its_kernel_open() -> None:
    text = "template <typename T> void may(T* a) { k<T, 2><<<1, 1>>>(a); }\nusing F = void (*)(double*);\n"
    text += "struct Entry { F f; };\nEntry pick(int n) { return Entry{may}; }"
    _, reasons = predicted(f"{KERNEL}{text}\n{OP}")
    assert "may" in reasons["k"]


def test_a_kernel_that_nothing_launches_is_compiled_once() -> None:
    found, reasons = predicted(f"{KERNEL}__global__ void alone(float* a) {{}}\n{OP}")
    assert (found["alone"], reasons) == ({""}, {})


def test_instantiations_of_examples_that_no_build_file_names_do_not_count(
    library: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    """Where build files say what is compiled, another project's examples and tests are not."""
    rows = KERNEL.replace("void k(", "void rows(") + (
        "#include <torch/library.h>\n"
        "template <int N> void via(float* a) { rows<float, N><<<1, 1>>>(a); }\n"
        "void h(at::Tensor& a) { via<1>(a.data_ptr<float>()); }\n"
        'TORCH_LIBRARY(rowkit, m) { m.def("h(Tensor! a) -> ()", &h); }\n'
    )
    files = {
        "csrc/rows.cu": rows,
        "csrc/more.cu": '#include "rows.cu"\ntemplate void via<2>(float*);\n',
        "examples/rows.cu": '#include "../csrc/rows.cu"\ntemplate void via<3>(float*);\n',
        "cutlass/include/x.h": "",
        "cutlass/tools/rows.cu": '#include "../../csrc/rows.cu"\ntemplate void via<4>(float*);\n',
        "setup.py": (
            "from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
            'setup(name="rowkit", ext_modules=[CUDAExtension("rowkit._C", ["csrc/rows.cu"])])\n'
        ),
    }
    # The tree without its build file first: the second one is written over it.
    for build, wanted in ((False, {f"float, {n}" for n in range(1, 5)}), (True, {"float, 1", "float, 2"})):
        source = str(library({name: text for name, text in files.items() if build or name != "setup.py"}))
        found = pipeline.kernels(pipeline.Options(source=source, cache=tmp_path / str(build), jobs=1)).kernels
        assert set(found[0].instances) == wanted


@pytest.mark.parametrize(
    ("launch", "instances"),
    [
        ("k<float, WIDTH><<<1, 1>>>(a)", ("float, 1", "float, 2", "float, 4")),
        ("k<float, 8><<<1, 1>>>(a)", ("float, 8",)),
    ],
)
@pytest.mark.parametrize("reached", [False, True])
def test_a_function_is_compiled_in_each_unit_that_defines_what_it_uses(
    library: Callable[[Mapping[str, str]], Path], tmp_path: Path, launch: str, instances: tuple[str, ...], reached: bool
) -> None:
    header = f"#pragma once\n#ifndef WIDTH\n#define WIDTH 1\n#endif\n{KERNEL}static void go(float* a) {{ {launch}; }}\n"
    op = "void h(at::Tensor& a) { go(a.data_ptr<float>()); }\n"
    op += 'TORCH_LIBRARY(kit, m) { m.def("h(Tensor! a) -> ()", &h); }\n'
    files = {
        "go.cuh": header,
        "two.cu": f'#define WIDTH 2\n#include "go.cuh"\n{op if reached else ""}',
        "four.cu": '#define WIDTH 4\n#include "go.cuh"\n',
        "plain.cu": '#include "go.cuh"\n',
    }
    options = pipeline.Options(source=str(library(files)), cache=tmp_path / "cache", jobs=1)
    (kernel,) = pipeline.kernels(options).kernels
    assert (kernel.instances, kernel.complete, bool(kernel.ops)) == (instances, True, reached)
