"""Launches in every style: which kernel, with which grid, block, shared memory and stream, where written and used."""

from __future__ import annotations

import pytest

from opwalker.model.reach import LaunchSite, Reach
from tests.trees import follow, kernels, tree

KERNELS = "__global__ void k(int* a) {}\ntemplate <typename T, int N> __global__ void kt(T* a, int n) {}\n"


def reach(text: str, head: str = KERNELS, build: str = "cuda", **headers: str) -> Reach:
    """What ``void h(int* a)`` with ``text`` as its body reaches; it begins on line 3 of ``a.cu``."""
    files = {
        "a.cu": f'void h(int* a, int n) {{\n{text}\n}}\n#include "kernels.h"\n',
        "kernels.h": f"#pragma once\n{head}",
    }
    files["a.cu"] = f'#include "kernels.h"\n{files["a.cu"]}'
    files.update({f"{name}.h": content for name, content in headers.items()})
    return follow(tree(files, build), "a.cu", "h")


def only(found: Reach) -> LaunchSite:
    assert len(found.launches) == 1, found
    return found.launches[0]


def configuration(site: LaunchSite) -> tuple:
    return site.grid, site.block, site.shared, site.stream


CHEVRONS = [
    ("k<<<1, 2>>>(a);", ("1", "2", "0", "0")),
    ("k<<<grid, block, 16>>>(a);", ("grid", "block", "16", "0")),
    ("k<<<grid, block, 0, s>>>(a);", ("grid", "block", "0", "s")),
    (
        "k<<<dim3(n, 2), dim3(32), sizeof(float) * 2, get_stream()>>>(a);",
        ("dim3(n, 2)", "dim3(32)", "sizeof(float) * 2", "get_stream()"),
    ),
    ("dim3 grid(n, 2);\ndim3 block{256};\nk<<<grid, block>>>(a);", ("dim3 grid(n, 2)", "dim3 block{256}", "0", "0")),
    ("const dim3 grid = dim3(n);\nk<<<grid, 2>>>(a);", ("const dim3 grid = dim3(n)", "2", "0", "0")),
    ("int grid = 3;\nk<<<grid, 2>>>(a);", ("grid", "2", "0", "0")),
    ("k\n  <<<(n + 31) / 32,\n     32>>>(a);", ("(n + 31) / 32", "32", "0", "0")),
    ("#define THREADS 128\nk<<<1, THREADS * 2>>>(a);", ("1", "THREADS * 2", "0", "0")),
]


@pytest.mark.parametrize(("text", "wanted"), CHEVRONS)
def test_the_configuration_of_a_launch(text: str, wanted: tuple) -> None:
    site = only(reach(text))
    assert (kernels(reach(text)), configuration(site)) == (["k"], wanted)
    assert (site.style, site.certainty, site.macros, site.used_at) == ("triple_chevron", "matched", (), None)


def test_a_launch_stands_on_the_line_of_its_kernel() -> None:
    site = only(reach("\n  int x = 3;\n  k\n   <<<1,\n   2>>>(a);"))
    assert site.place == ("a.cu", 5)
    assert [(step.function, step.file, step.line) for step in site.steps] == [("h", "a.cu", 5)]


TEMPLATES = [
    ("kt<float, 3><<<1, 2>>>(a, n);", ("float", "3")),
    ("kt<std::pair<int, int>, (3 > 2)><<<1, 2>>>(a, n);", ("std::pair<int, int>", "(3 > 2)")),
    ("kt<T, N><<<1, 2>>>(a, n);", ("T", "N")),
    ("k<<<1, 2>>>(a);", ()),
]


@pytest.mark.parametrize(("text", "wanted"), TEMPLATES)
def test_template_arguments_as_they_are_written(text: str, wanted: tuple[str, ...]) -> None:
    assert only(reach(text)).template_arguments == wanted


CALLS = [
    ("cudaLaunchKernel((void*)k, dim3(1), dim3(2), args, 3, s);", "cudaLaunchKernel", ("dim3(1)", "dim3(2)", "3", "s")),
    ("cudaLaunchKernel((const void*)&k, 1, 2, args);", "cudaLaunchKernel", ("1", "2", "0", "0")),
    ("C10_CUDA_CHECK(cudaLaunchKernel((void*)k, 1, 2, args, 0, s));", "cudaLaunchKernel", ("1", "2", "0", "s")),
    ("cudaLaunchCooperativeKernel((void*)k, grid, block, args, 0, s);", "cooperative", ("grid", "block", "0", "s")),
    (
        "cuLaunchKernel((CUfunction)k, gx, 1, 1, 32, 1, 1, 0, s, args, nullptr);",
        "cuLaunchKernel",
        ("gx, 1, 1", "32, 1, 1", "0", "s"),
    ),
    (
        (
            "cudaLaunchConfig_t c;\nc.gridDim = dim3(4);\nc.blockDim = 128;\nc.dynamicSmemBytes = 16;\nc.stream = s;\n"
            "cudaLaunchKernelEx(&c, k, a);"
        ),
        "cudaLaunchKernelEx",
        ("dim3(4)", "128", "16", "s"),
    ),
    (
        "cudaLaunchConfig_t c = {grid, block, 16, s};\ncudaLaunchKernelEx(&c, k, a);",
        "cudaLaunchKernelEx",
        ("grid", "block", "16", "s"),
    ),
    (
        (
            "cudaLaunchConfig_t c{.gridDim = 1, .blockDim = 2, .dynamicSmemBytes = 3, .stream = s};\n"
            "cudaLaunchKernelEx(&c, &k, a);"
        ),
        "cudaLaunchKernelEx",
        ("1", "2", "3", "s"),
    ),
    (
        "cudaLaunchConfig_t c;\nc.gridDim = 4;\nc.blockDim = 5;\ncudaLaunchKernelExC(&c, (void*)k, args);",
        "cudaLaunchKernelEx",
        ("4", "5", "0", "0"),
    ),
    (
        "cudaLaunchConfig_t c;\nc.gridDim.x = n;\nc.blockDim = 5;\ncudaLaunchKernelEx(&c, k, a);",
        "cudaLaunchKernelEx",
        ("x = n", "5", "0", "0"),
    ),
    (
        (
            "cutlass::ClusterLaunchParams p{grid, 128, dim3(2, 1, 1), bytes, s};\n"
            "cutlass::launch_kernel_on_cluster(p, (void const*)k, a);"
        ),
        "cudaLaunchKernelEx",
        ("grid", "128", "bytes", "s"),
    ),
    (
        (
            "cutlass::ClusterLaunchParams p;\np.grid_dims = grid;\np.block_dims = 64;\np.cuda_stream = s;\n"
            "auto kernel = &k;\ncutlass::launch_kernel_on_cluster(p, (void*)kernel, a);"
        ),
        "cudaLaunchKernelEx",
        ("grid", "64", "0", "s"),
    ),
]


@pytest.mark.parametrize(("text", "style", "wanted"), CALLS)
def test_launches_through_an_interface(text: str, style: str, wanted: tuple) -> None:
    site = only(reach(text))
    assert [k.name for k in site.kernels] == ["k"]
    assert (site.style, configuration(site)) == (style, wanted)


def test_two_configurations_in_one_body_are_told_apart() -> None:
    text = (
        "cudaLaunchConfig_t c, d;\nc.gridDim = 1;\nc.blockDim = 2;\nd.gridDim = 3;\nd.blockDim = 4;\nc.stream = s;\n"
        "cudaLaunchKernelEx(&d, k, a);"
    )
    assert configuration(only(reach(text))) == ("3", "4", "0", "0")


def test_the_last_assignment_to_a_configuration_counts() -> None:
    text = "cudaLaunchConfig_t c;\nc.gridDim = 1;\nc.blockDim = 2;\nc.gridDim = 7;\ncudaLaunchKernelEx(&c, k, a);"
    assert configuration(only(reach(text)))[:2] == ("7", "2")


def test_overloads_of_a_kernel_by_the_arguments_passed() -> None:
    head = "__global__ void o(int* a) {}\n__global__ void o(int* a, int b) {}\n"
    config = "cudaLaunchConfig_t c;\nc.gridDim = 1;\nc.blockDim = 2;\n"
    for text, line in (
        ("o<<<1, 2>>>(a);", 2),
        ("o<<<1, 2>>>(a, n);", 3),
        (f"{config}cudaLaunchKernelEx(&c, o, a);", 2),
        (f"{config}cudaLaunchKernelEx(&c, o, a, n);", 3),
    ):
        site = only(reach(text, head))
        assert ([k.function.line for k in site.kernels], site.certainty) == ([line], "matched")


def test_a_kernel_that_several_definitions_fit_is_only_possible() -> None:
    site = only(
        reach("f = n ? k : o;\nauto g = n ? k : o;\ng<<<1, 2>>>(a);", KERNELS + "__global__ void o(int* a) {}\n")
    )
    assert ({k.name for k in site.kernels}, site.certainty) == ({"k", "o"}, "possible")


CONDITIONS = [
    ("if (n > 3) { k<<<1, 2>>>(a); }", (("n > 3", 3),)),
    ("if (n > 3) {} else { k<<<1, 2>>>(a); }", (("!(n > 3)", 3),)),
    ("if (n) {\n  if (a) k<<<1, 2>>>(a);\n}", (("n", 3), ("a", 4))),
    ("switch (n) {\n  case 4: k<<<1, 2>>>(a);\n}", (("case 4", 4),)),
    ("if constexpr (N) { k<<<1, 2>>>(a); }", (("N", 3),)),
    ("for (;;) { k<<<1, 2>>>(a); }", ()),
    ("k<<<1, 2>>>(a);", ()),
]


@pytest.mark.parametrize(("text", "wanted"), CONDITIONS)
def test_the_conditions_around_a_launch(text: str, wanted: tuple) -> None:
    assert only(reach(text)).under == wanted


def test_the_branches_of_a_dispatch_are_no_conditions_of_the_launch() -> None:
    site = only(reach("if (n) { OWN(n, { kt<scalar_t, 3><<<1, 2>>>(a, n); }); }", KERNELS + DISPATCH))
    assert site.under == (("n", 3),)


def test_launches_through_hip() -> None:
    site = only(reach("hipLaunchKernelGGL((kt<float, 3>), dim3(1), dim3(2), 3, s, a, n);", build="rocm"))
    assert [(k.name, k.template_arguments) for k in site.kernels] == [("kt", ("float", "3"))]
    assert configuration(site) == ("dim3(1)", "dim3(2)", "3", "s")


def test_attributes_of_a_kernel_are_no_launch() -> None:
    text = "cudaFuncSetAttribute(k, x, n);\ncudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, k, 3, 4);\n"
    assert not reach(text).launches
    assert len(reach(text + "k<<<1, 2>>>(a);").launches) == 1


# -- macros ---------------------------------------------------------------------------------------------------

PASTED = """#define CALL(n) \\
  case n: \\
    k_##n<<<grid, n>>>(a); \\
    break
"""
TWO = "__global__ void k_1(int* a) {}\n__global__ void k_2(int* a) {}\n"


def test_a_launch_in_a_macro_keeps_both_places() -> None:
    found = reach("switch (n) {\n  CALL(1);\n  CALL(2);\n}", TWO + PASTED)
    assert [([k.name for k in s.kernels], s.place, s.used_at, s.macros, s.style, s.block) for s in found.launches] == [
        (["k_1"], ("kernels.h", 6), ("a.cu", 4), ("CALL",), "macro:triple_chevron", "1"),
        (["k_2"], ("kernels.h", 6), ("a.cu", 5), ("CALL",), "macro:triple_chevron", "2"),
    ]


def test_a_launch_in_a_macro_within_a_macro() -> None:
    head = "#define INNER(T) kt<T, 4><<<1, 2>>>(a, n)\n#define OUTER(T) \\\n  if (n) { INNER(T); }\n"
    site = only(reach("OUTER(float);", KERNELS + head))
    assert (site.macros, site.used_at, site.place) == (("OUTER", "INNER"), ("a.cu", 3), ("kernels.h", 4))
    # What the uses give stands for the parameters of both.
    assert site.template_arguments == ("float", "4")
    assert site.spelt == ("T", "4")
    assert [k.template_arguments for k in site.kernels] == [("float", "4")]


def test_the_same_macro_twice_in_one_body_is_two_launches() -> None:
    found = reach("RUN;\nRUN;", KERNELS + "#define RUN k<<<1, 2>>>(a)\n")
    assert [s.used_at for s in found.launches] == [("a.cu", 3), ("a.cu", 4)]


def test_a_macro_that_is_redefined_between_its_uses() -> None:
    text = "#define CASE k_1<<<1, 2>>>(a)\nCASE;\n#undef CASE\n#define CASE k_2<<<1, 2>>>(a)\nCASE;"
    found = reach(text, TWO)
    assert [([k.name for k in s.kernels], s.place[1], s.used_at[1]) for s in found.launches] == [
        (["k_1"], 3, 4),
        (["k_2"], 6, 7),
    ]


def test_case_macros_that_each_function_defines_again() -> None:
    head = KERNELS + "#define SWITCH(m) switch (n) { case 2: m(2); case 4: m(4); default: break; }\n"
    text = "#define CASE(r) kt<int, r><<<1, 2>>>(a, n); break\nSWITCH(CASE);\n#undef CASE"
    site = only(reach(text, head))
    assert [k.template_arguments for k in site.kernels] == [("int", "2"), ("int", "4")]
    # Where its uses differ, the macro's parameter stands for both.
    assert site.template_arguments == ("int", "r")
    assert (site.place, site.used_at) == (("a.cu", 3), ("a.cu", 4))


def test_a_launch_macro_that_gets_kernel_and_arguments() -> None:
    head = KERNELS + "#define LAUNCH(cfg, kernel, ...) CHECK(cudaLaunchKernelEx(cfg, kernel, ##__VA_ARGS__))\n"
    text = "cudaLaunchConfig_t c;\nc.gridDim = 1;\nc.blockDim = 2;\nLAUNCH(&c, kt<int, 3>, a, n);"
    site = only(reach(text, head))
    assert [(k.name, k.template_arguments) for k in site.kernels] == [("kt", ("int", "3"))]
    assert configuration(site) == ("1", "2", "0", "0")


LAMBDAS = [
    'AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "h", [&] {\n  kt<scalar_t, 3><<<1, 2>>>(a, n);\n});',
    'AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, t, "h", [&] { kt<scalar_t, 3><<<1, 2>>>(a, n); });',
    'THO_DISPATCH_FLOATING_TYPES(x.scalar_type(), "h", [&] { kt<scalar_t, 3><<<1, 2>>>(a, n); });',
    "OWN(n, { kt<scalar_t, 3><<<1, 2>>>(a, n); });",
    "SWITCH(n, B, [&] { kt<scalar_t, 3><<<1, 2>>>(a, n); });",
    "SWITCH(n, B, [&] { SWITCH(m, C, [&] { kt<scalar_t, 3><<<1, 2>>>(a, n); }); });",
    "auto go = [&] { kt<scalar_t, 3><<<1, 2>>>(a, n); };\ngo();",
    "std::for_each(v.begin(), v.end(), [&](int i) { kt<scalar_t, 3><<<1, 2>>>(a, n); });",
]
DISPATCH = """
#define OWN(t, ...) switch (t) { case 1: { using scalar_t = float; __VA_ARGS__; break; } case 2: { using scalar_t = half; __VA_ARGS__; break; } }
#define SWITCH(COND, NAME, ...) \\
  [&] { if (COND) { constexpr bool NAME = true; return __VA_ARGS__(); } else { constexpr bool NAME = false; return __VA_ARGS__(); } }()
"""  # noqa: E501


@pytest.mark.parametrize("text", LAMBDAS)
def test_a_launch_inside_a_dispatch_is_one_launch(text: str) -> None:
    site = only(reach(text, KERNELS + DISPATCH))
    assert {k.name for k in site.kernels} == {"kt"}
    assert (site.macros, site.used_at) == ((), None)
    assert site.place == ("a.cu", 3 + text[: text.index("kt<")].count("\n"))
    assert site.template_arguments == ("scalar_t", "3")


# -- ends that are no kernel of the source --------------------------------------------------------------------

ENDS = [
    ("lib::outside<float><<<1, 2>>>(a);", [("library", "lib::outside<float>")]),
    ("cublasGemmEx(handle, a);", [("library", "cublasGemmEx")]),
    ("cub::DeviceReduce::Sum(a, b);", [("library", "cub::DeviceReduce::Sum")]),
    ("cudaMemcpyAsync(a, b, n);", [("memory", "cudaMemcpyAsync")]),
    ("at::matmul(x, y);", [("torch", "at::matmul")]),
    ("ncclAllReduce(a, b);", [("library", "ncclAllReduce")]),
    ("auto t = torch::empty({1});", [("memory", "torch::empty")]),
]


@pytest.mark.parametrize(("text", "wanted"), ENDS)
def test_terminals(text: str, wanted: list) -> None:
    found = reach(text)
    assert [(t.kind, t.name) for t in found.terminals] == wanted
    assert not found.launches
    assert [(t.file, t.line) for t in found.terminals] == [("a.cu", 3)]


def test_a_kernel_in_a_variable_that_nobody_sets_is_a_gap() -> None:
    found = reach("auto f = pick_one();\nf<<<1, 2>>>(a);")
    assert [(g.kind, g.span.line) for g in found.gaps] == [("launch", 4)]
    assert not found.launches and not found.terminals


def test_a_kernel_in_a_parameter_that_nobody_sets_is_a_gap() -> None:
    found = follow(tree({"a.cu": "void h(void (*f)(int*), int* a) {\n  f<<<1, 2>>>(a);\n}\n"}), "a.cu", "h")
    assert [(g.kind, g.span.line) for g in found.gaps] == [("launch", 2)]


def test_what_is_declared_without_a_body_is_a_gap() -> None:
    found = reach("elsewhere(a);", KERNELS + "void elsewhere(int* a);\n")
    assert [(g.kind, g.span.file, g.span.line) for g in found.gaps] == [("no-body", "a.cu", 3)]


def test_a_file_that_is_included_in_the_middle_and_is_not_there_is_a_gap() -> None:
    found = reach('if (false) {}\n#include "selector.h"\nk<<<1, 2>>>(a);')
    assert [(g.kind, g.span.line) for g in found.gaps] == [("include", 4)]
    assert kernels(found) == ["k"]


def test_a_kernel_of_no_known_origin_is_a_gap() -> None:
    """A name that nothing defines may be made by a macro or generated: no library is known to hold it."""
    found = reach("outside<<<1, 2>>>(a);")
    assert not found.terminals
    assert [g.kind for g in found.gaps] == ["launch"]


def test_text_that_cannot_be_read_is_a_gap() -> None:
    found = reach("foo bar g(1) h(2) ! ;\nk<<<1, 2>>>(a);")
    assert [(g.kind, g.span.line) for g in found.gaps] == [("unread", 3)]
    assert kernels(found) == ["k"]
