"""The walk of an op: what each step says of a small library, line by line."""

from __future__ import annotations

import pytest

from opwalker.views.kernels import list_kernels
from tests.views.miniatures import KERNEL, LIBRARY, SOURCE, implementation, line_of, ops_of, walk_of


def at(piece: str) -> int:
    return line_of(KERNEL, piece)


def test_the_way_from_the_registration_to_the_kernel() -> None:
    walk = walk_of(LIBRARY, "mini::norm")
    (made,) = walk.implementations
    assert (made.key, made.certainty, made.registered_at.file, made.registered_at.line) == (
        "CUDA",
        "proved",
        "csrc/bindings.cpp",
        4,
    )
    assert not walk.gaps
    (launch,) = made.launches
    assert (launch.kernel, launch.file, launch.line) == ("mini::norm_kernel", "csrc/norm.cu", at("mini::norm_kernel<"))
    assert (launch.grid, launch.block, launch.shared, launch.stream) == (
        "dim3 grid(tokens)",
        "dim3 block(std::min(hidden, 1024))",
        "0",
        "stream",
    )
    assert (launch.style, launch.template_arguments, launch.macros) == ("triple_chevron", ("scalar_t", "4"), ())
    assert [(step.function, step.line) for step in launch.path] == [("norm", at("mini::norm_kernel<"))]


def test_the_host_function() -> None:
    host = implementation(LIBRARY, "mini::norm").host
    assert (host.name, host.file, host.line, host.end_line) == (
        "norm",
        "csrc/norm.cu",
        at("void norm("),
        KERNEL.count("\n"),
    )
    assert [(p.name, p.type, p.argument, p.shape) for p in host.parameters] == [
        ("out", "torch::Tensor&", "out", ("...", "hidden")),
        ("input", "torch::Tensor&", "input", ("...", "hidden")),
        ("eps", "double", "eps", None),
    ]
    assert [p.shape_span.line if p.shape_span else None for p in host.parameters] == [
        at("void norm("),
        at("torch::Tensor& input"),
        None,
    ]
    assert [(s.name, s.value, s.type, s.narrowed, s.line) for s in host.sizes] == [
        ("hidden", "input.size(-1)", "int", True, at("int hidden")),
        ("tokens", "input.numel() / hidden", "const int64_t", False, at("int64_t tokens")),
    ]
    assert [(s.name, s.value, s.narrowed) for s in host.strides] == [("stride", "input.stride(0)", True)]
    first = host.checks[0]
    assert (first.kind, first.condition, first.message, first.line) == (
        "TORCH_CHECK",
        "out.is_contiguous()",
        '"out must be ", "contiguous"',
        at("TORCH_CHECK"),
    )
    assert [(g.type, g.of) for g in host.guards] == [("at::cuda::OptionalCUDAGuard", "device_of(input)")]
    assert [(s.value, s.line) for s in host.streams] == [
        ("at::cuda::getCurrentCUDAStream()", at("getCurrentCUDAStream")),
    ]
    assert [(c.tensor, c.line) for c in host.contiguous_calls] == [("input", at("input.contiguous"))]
    assert host.signature == "void norm(torch::Tensor& out, torch::Tensor& input, double eps)"


def test_the_dispatch() -> None:
    (dispatch,) = implementation(LIBRARY, "mini::norm").dispatch
    assert (dispatch.macro, dispatch.file, dispatch.line) == (
        "DISPATCH_FLOATING",
        "csrc/norm.cu",
        at("DISPATCH_FLOATING("),
    )
    assert (dispatch.on, dispatch.binds, dispatch.values) == ("input.scalar_type()", "scalar_t", ("float", "c10::Half"))
    assert (dispatch.defined_at.file, dispatch.defined_at.line, dispatch.defined_at.end_line) == (
        "csrc/dispatch.h",
        5,
        6,
    )


def test_the_kernel() -> None:
    (kernel,) = implementation(LIBRARY, "mini::norm").kernels
    assert (kernel.name, kernel.line, kernel.end_line) == (
        "mini::norm_kernel",
        at("norm_kernel("),
        at("}  // namespace mini") - 2,
    )
    assert kernel.template_parameters == ("typename scalar_t", "int VEC")
    assert kernel.launch_bounds == "256, 2"
    assert [(p.name, p.shape) for p in kernel.parameters] == [
        ("out", ("...", "hidden")),
        ("input", ("...", "hidden")),
        ("eps", None),
        ("n", None),
    ]
    assert kernel.shared_memory == ("float total", "extern char scratch[]")
    assert [(c.condition, c.line) for c in kernel.if_constexpr] == [("VEC > 0", at("if constexpr"))]
    assert [(b.call, b.line) for b in kernel.barriers] == [
        ("__syncthreads()", at("__syncthreads")),
        ("__syncwarp()", at("__syncwarp")),
    ]
    assert [(a.text, a.line) for a in kernel.atomics] == [("atomicAdd(&total, 1.0f)", at("atomicAdd"))]
    assert [(a.text, a.line) for a in kernel.inline_asm] == [("ld.global.nc.v4 {%0};", at("asm volatile"))]
    assert [(v.text, v.line) for v in kernel.vector_accesses] == [
        ("reinterpret_cast<const float4*>", at("reinterpret_cast")),
    ]
    assert kernel.device_functions == ("mini::helper",)


def test_ends_and_ownership() -> None:
    walk = walk_of(LIBRARY, "mini::norm")
    (made,) = walk.implementations
    # What only makes a tensor is owned, and no end of the way.
    assert [(t.kind, t.name, t.line) for t in made.terminals] == [("torch", "input.contiguous", at("input.contiguous"))]
    assert [(g.text, g.line) for g in walk.ownership.guards] == [
        ("at::cuda::OptionalCUDAGuard(device_of(input))", at("OptionalCUDAGuard")),
    ]
    assert [(a.text, a.line) for a in walk.ownership.allocations] == [
        ("torch::empty({1}, input.options())", at("torch::empty")),
    ]


def test_a_view_that_is_made_with_sizes_is_no_size() -> None:
    files = dict(LIBRARY)
    path = next(path for path, text in files.items() if "auto scratch = torch::empty" in text)
    view = "auto seen = lib::Accessor<float, 2>(input.data_ptr<float>(), input.sizes().data(), input.strides().data());"
    files[path] = files[path].replace("auto scratch =", f"{view} auto deep = input.size(0); auto scratch =")
    (made,) = walk_of(files, "mini::norm").implementations
    names = [one.name for one in (*made.host.sizes, *made.host.strides)]
    assert "deep" in names and "seen" not in names


@pytest.mark.parametrize(
    ("value", "narrowed"),
    [
        ("x.numel()", True),
        ("x.defined() ? x.numel() / 2 : 0", True),
        ("(x.numel() > 1) ? 1 : 0", False),
        ("x.numel() > 1 ? -1 : 1", False),
        ("x.size(0) == 4", False),
    ],
)
def test_only_a_value_of_64_bits_is_narrowed(value: str, narrowed: bool) -> None:
    text = f"void f(torch::Tensor& x) {{ int held = {value}; }}\n"
    made = implementation(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")
    assert [(one.name, one.narrowed) for one in made.host.sizes] == [("held", narrowed)]


def test_a_guard_that_is_made_in_an_optional_is_one() -> None:
    files = dict(LIBRARY)
    path = next(path for path, text in files.items() if "OptionalCUDAGuard" in text)
    (plain,) = [line for line in files[path].splitlines() if "OptionalCUDAGuard" in line and "(" in line]
    late = "std::optional<c10::DeviceGuard> g; if (true) { g.emplace(input.device()); }"
    files[path] = files[path].replace(plain, late)
    (made,) = walk_of(files, "mini::norm").implementations
    assert [(g.type, g.of) for g in made.host.guards] == [("c10::DeviceGuard", "input.device()")]


def test_a_container_that_is_asked_whether_it_is_empty_takes_no_memory() -> None:
    files = dict(LIBRARY)
    path = next(path for path, text in files.items() if "torch::empty({1}" in text)
    made = "auto scratch = torch::empty({1}"
    files[path] = files[path].replace(made, f"std::vector<int> left; while (!left.empty()) {{}} {made}")
    assert len(walk_of(files, "mini::norm").ownership.allocations) == 1
    assert "left.empty()" in files[path]


def test_a_library_with_windows_line_ends_says_the_same() -> None:
    same = {path: text.replace("\n", "\r\n") for path, text in LIBRARY.items()}
    unix, windows = walk_of(LIBRARY, "mini::norm"), walk_of(same, "mini::norm")
    assert windows.implementations == unix.implementations
    assert windows.gaps == unix.gaps


# -- other shapes of implementations --------------------------------------------------------------------------

LAMBDA = """__global__ void k(int* a) {}
TORCH_LIBRARY(ns, m) {
  m.impl("f", torch::kCUDA, [](int* a) {
    TORCH_CHECK(a, "null");
    k<<<1, 2>>>(a);
  });
}
"""


def test_a_lambda_is_walked_in_place() -> None:
    made = implementation(LAMBDA, "ns::f")
    assert (made.host.name, made.host.line, made.host.end_line) == ("lambda", 3, 6)
    assert [(launch.kernel, launch.line) for launch in made.launches] == [("k", 5)]
    assert [(c.condition, c.line) for c in made.host.checks] == [("a", 4)]


def test_a_host_function_that_launches_nothing_is_an_end_of_its_own() -> None:
    made = implementation('int f(int a) { return a; }\nTORCH_LIBRARY(ns, m) { m.def("f", &f); }\n', "ns::f")
    assert [(t.kind, t.name, t.line) for t in made.terminals] == [("host", "f", 1)]


def test_a_missing_body_is_a_gap() -> None:
    walk = walk_of('TORCH_LIBRARY(ns, m) {\n  m.impl("f", torch::kCUDA, &missing);\n}\n', "ns::f")
    assert [(g.kind, g.span.line) for g in walk.gaps] == [("no-body", 2)]
    assert walk.implementations[0].host is None


def test_an_op_without_an_implementation_is_a_gap() -> None:
    walk = walk_of('TORCH_LIBRARY(ns, m) {\n  m.def("f() -> ()");\n}\n', "ns::f")
    assert [(g.kind, g.span.line) for g in walk.gaps] == [("no-implementation", 2)]
    assert not walk.implementations


def test_implementations_of_the_own_build_come_first() -> None:
    files = {
        "cpu.cpp": 'void c() {}\nTORCH_LIBRARY_IMPL(ns, CPU, m) { m.impl("f", &c); }\n',
        "cuda.cu": 'void d() {}\nTORCH_LIBRARY_IMPL(ns, CUDA, m) { m.impl("f", &d); }\n',
    }
    builds = {"cpu.cpp": ("cpu",), "cuda.cu": ("cuda",)}
    walk = walk_of(files, "ns::f", builds_of=builds)
    assert [i.key for i in walk.implementations] == ["CUDA", "CPU"]
    assert [i.key for i in walk_of(files, "ns::f", build="cpu", builds_of=builds).implementations] == ["CPU", "CUDA"]


def test_each_implementation_is_read_in_its_own_build() -> None:
    text = """__global__ void kc(int* a) {}
__global__ void kr(int* a) {}
void f(int* a) {
#ifdef USE_ROCM
  kr<<<1, 2>>>(a);
#else
  kc<<<1, 2>>>(a);
#endif
}
#ifdef USE_ROCM
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
#else
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
#endif
"""
    walk = walk_of(text, "ns::f")
    assert [(i.builds, [launch.kernel for launch in i.launches]) for i in walk.implementations] == [
        (("cuda", "cpu"), ["kc"]),
        (("rocm",), ["kr"]),
    ]


def test_a_launch_in_a_macro_of_the_host() -> None:
    text = """__global__ void k(int* a) {}
#define RUN \\
  k<<<1, 2>>>(a)
void f(int* a) {
  RUN;
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""
    (launch,) = implementation(text, "ns::f").launches
    assert (launch.line, launch.used_at.line, launch.macros, launch.style) == (3, 5, ("RUN",), "macro:triple_chevron")


@pytest.mark.parametrize(
    ("macro", "use", "on", "binds", "values"),
    [
        (
            "#define D(T, ...) if (T == 1) { using t_t = float; __VA_ARGS__ } else { using t_t = double; __VA_ARGS__ }",
            "D(x, { k<t_t><<<1, 2>>>(a); })",
            "x",
            "t_t",
            ("float", "double"),
        ),
        (
            "#define FN(T, N) k<T, N><<<1, 2>>>(a)\n#define D(X, M) if (X == 1) { M(float, 1); } else { M(half, 2); }",
            "D(x, FN)",
            "x",
            "T, N",
            ("float, 1", "half, 2"),
        ),
        (
            "#define D(E, C, ...) if (E) { const int C = 1; __VA_ARGS__(); } else { const int C = 2; __VA_ARGS__(); }",
            "D(x == 0, N, [&] { k<int, N><<<1, 2, 0, nullptr>>>(a); })",
            "x == 0",
            "N",
            ("1", "2"),
        ),
    ],
)
def test_dispatch_macros_of_a_project(macro: str, use: str, on: str, binds: str, values: tuple[str, ...]) -> None:
    head = f"template <typename T, int N = 0> __global__ void k(int* a) {{}}\n{macro}\n"
    text = f"{head}void f(int x, int* a) {{\n  {use};\n}}\n"
    made = implementation(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")
    (dispatch,) = made.dispatch
    assert (dispatch.macro, dispatch.line) == ("D", line_of(text, "  D("))
    assert (dispatch.on, dispatch.binds, dispatch.values) == (on, binds, values)


def test_an_ordinary_macro_with_a_branch_is_no_dispatch() -> None:
    text = "#define CHECK(e) do { if ((e) != 0) { fail(); } } while (0)\nvoid f(int* a) { CHECK(go(a)); }\n"
    made = implementation(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")
    assert made.dispatch == ()


# -- the kernels of a tree ------------------------------------------------------------------------------------


def test_every_kernel_with_the_ops_that_reach_it() -> None:
    files = {
        **LIBRARY,
        "csrc/other.cu": "__global__ void idle(int* a) {}\n#ifdef USE_ROCM\n__global__ void amd(int* a) {}\n#endif\n",
    }
    ops, _, bench = ops_of(files)
    result = list_kernels(bench, SOURCE, list(ops.values()), None)
    assert [(k.name, k.file, k.ops) for k in result.kernels] == [
        ("mini::norm_kernel", "csrc/norm.cu", ("mini::norm",)),
        ("idle", "csrc/other.cu", ()),
        ("amd", "csrc/other.cu", ()),
    ]
    reasons = {g.reason.split(":")[0]: g.reason for g in result.gaps}
    assert set(reasons) == {"idle", "amd"}
    assert "USE_ROCM" in reasons["amd"]


def test_the_kernels_of_one_op() -> None:
    ops, _, bench = ops_of({**LIBRARY, "csrc/other.cu": "__global__ void idle(int* a) {}\n"})
    op = ops["mini::norm"]
    result = list_kernels(bench, SOURCE, [op], op)
    assert [k.name for k in result.kernels] == ["mini::norm_kernel"]
