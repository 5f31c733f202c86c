"""Launch configurations followed back to sizes: through locals, branches, macros, calls and configuration objects."""

from __future__ import annotations

import pytest

from opwalker.model.walk import Launch
from tests.views.miniatures import walk_of

KERNEL = "__global__ void k(float* a) {}\n"


def launch(code: str, head: str = "", parameters: str = "torch::Tensor& x, int n, bool wide") -> Launch:
    """The launch in an op's host function with this body."""
    text = f"{KERNEL}{head}void f({parameters}) {{\n{code}\n}}\n"
    walk = walk_of(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")
    (found,) = walk.implementations[0].launches
    return found


@pytest.mark.parametrize(
    ("code", "grid", "block"),
    [
        ("k<<<n, 32>>>(a);", "n", "32"),
        ("int t = x.size(0); dim3 grid(t); dim3 block(std::min(t, 512)); k<<<grid, block>>>(a);", "t", "min(t, 512)"),
        ("int per = n / 4; int rest = n * per; k<<<rest, per>>>(a);", "n * (n / 4)", "n / 4"),
        ("dim3 grid(n, 2, 1); k<<<grid, dim3(8, 4)>>>(a);", "n, 2", "8, 4"),
        ("dim3 grid; grid.x = n; grid.y = 3; k<<<grid, 1>>>(a);", "n, 3", "1"),
        ("auto grid = dim3(n, 7); k<<<grid, {32, 2}>>>(a);", "n, 7", "32, 2"),
        ("int b = n; b *= 2; b = b + 1; k<<<b, 1>>>(a);", "n * 2 + 1", "1"),
        ("int b = (n + 3) / 4 * 4; k<<<b, 1>>>(a);", "(n + 3) / 4 * 4", "1"),
        ("int64_t b = n; k<<<static_cast<unsigned int>(b), 1>>>(a);", "n", "1"),
        ("static const int b = 16; k<<<b, 1>>>(a);", "16", "1"),
        ("static int b = 0; b = n; k<<<b, 1>>>(a);", "n", "1"),
    ],
)
def test_names_are_followed_back(code: str, grid: str, block: str) -> None:
    found = launch(code)
    assert (found.grid_resolved, found.block_resolved) == (grid, block)


@pytest.mark.parametrize(
    "code",
    [
        "int b = n; for (int i = 0; i < n; i++) { b = b * 2; } k<<<b, 1>>>(a);",
        "int b = 1; while (b < n) b *= 2; k<<<b, 1>>>(a);",
        "int b = 1; b++; k<<<b, 1>>>(a);",
        "int b; cudaGetDevice(&b); k<<<b, 1>>>(a);",
        "int b = 1; grow(b); k<<<b, 1>>>(a);",
        "for (int b = 1; b < n; b += 2) { k<<<b, 1>>>(a); }",
        "int end = 0; while (end < n) { int b = end; end += 16; k<<<b, 1>>>(a); }",
        "int b = n; n = n / 2; k<<<b, 1>>>(a);",
        "int b = n; n++; k<<<b, 1>>>(a);",
        "int b; b = n; n -= 1; k<<<b, 1>>>(a);",
        # A local that is kept holds what it is made from in the first call alone.
        "static int b = 0; if (b == 0) { b = count(); } k<<<b, 1>>>(a);",
        "static int b = n; k<<<b, 1>>>(a);",
        "int most = n * 2; static const int b = most; k<<<b, 1>>>(a);",
        "static thread_local int b = 1; k<<<b, 1>>>(a); b = 2;",
    ],
)
def test_what_is_not_certain_stays_a_name(code: str) -> None:
    assert launch(code, "void grow(int& b) { b = b * 2; }\n").grid_resolved == "b"


def test_a_constant_that_each_branch_of_a_macro_makes_stays_a_name() -> None:
    head = """#define PICK(n, WIDTH, ...) switch (n) { \\
  case 64: { constexpr int WIDTH = 64; __VA_ARGS__ break; } \\
  case 128: { constexpr int WIDTH = 128; __VA_ARGS__ break; } }
#define ONE(WIDTH, ...) { constexpr int WIDTH = 64; __VA_ARGS__ }
"""
    body = "W, { constexpr int threads = W / 2; k<<<n, threads>>>(a); }"
    assert launch(f"PICK(n, {body})", head).block_resolved == "W / 2"
    assert launch(f"ONE({body})", head).block_resolved == "32"


def test_a_name_that_depends_on_conditions_lists_its_cases() -> None:
    found = launch("int most = fixed() ? 1024 : (n < 256 ? 1024 : 256); int b = std::min(n, most); k<<<n, b>>>(a);")
    assert found.block_resolved == "min(n, most)"
    (most,) = found.names
    assert [(case.under, case.value) for case in most.cases] == [
        (("fixed()",), "1024"),
        (("n is less than 256",), "1024"),
        ((), "256"),
    ]


def test_branches_that_set_a_variable_are_its_cases() -> None:
    found = launch("int b = 128; if (wide) { b = 256; } k<<<n, b>>>(a);")
    (name,) = found.names
    assert (name.name, [(c.under, c.value) for c in name.cases]) == ("b", [(("wide",), "256"), ((), "128")])
    both = launch("int b; if (wide) { b = 256; } else { b = 64; } k<<<n, b>>>(a);")
    assert [(c.under, c.value) for c in both.names[0].cases] == [(("!wide",), "64"), ((), "256")]


def test_sizes_keep_their_names_and_say_what_they_hold() -> None:
    found = launch("int tokens = x.numel() / x.size(-1); int heads = x.size(1); k<<<tokens, heads * 2>>>(a);")
    assert (found.grid_resolved, found.block_resolved) == ("tokens", "heads * 2")
    assert [(n.name, n.value) for n in found.names] == [
        ("tokens", "x.numel() / x.size(-1)"),
        ("heads", "x.size(1)"),
    ]


def test_a_tensor_that_is_made_anew_is_still_spoken_of_by_its_name() -> None:
    found = launch("if (x.stride(-1) != 1) { x = x.contiguous(); } int d = x.size(-1); k<<<d, 1>>>(a);")
    assert [(n.name, n.value) for n in found.names] == [("d", "x.size(-1)")]


def test_through_calls_with_template_arguments_and_defaults() -> None:
    head = """constexpr int kMost = 36;
template <typename T, int THREADS>
void go(T* a, int size, int most = kMost) {
  size /= 4;
  int blocks = std::min(most, (size + THREADS - 1) / THREADS);
  k<<<blocks, THREADS>>>(a);
}
"""
    found = launch("go<float, 128>(a, x.numel());", head)
    assert found.grid_resolved == "min(kMost, (x.numel() / 4 + 128 - 1) / 128)"
    assert found.block_resolved == "128"
    assert [(n.name, n.value) for n in found.names] == [("kMost", "36")]


def test_calls_that_differ_leave_the_parameter_alone() -> None:
    head = "void go(float* a, int size) { k<<<size, 1>>>(a); }\n"
    for code in ("if (wide)\n go(a, 1);\n else\n go(a, n);", "wide ? go(a, 1) : go(a, n);"):
        found = launch(code, head)
        assert (found.grid_resolved, [(n.name, n.value) for n in found.names]) == ("size", [("size", "1 or n")])


@pytest.mark.parametrize(
    ("head", "calls", "names"),
    [
        ("template <int T = 16> void go(float* a, int n)", "go<32>(a, n); go(a, n);", [("T", "32 or 16")]),
        ("template <int T = 16> void go(float* a, int n)", "go<16>(a, n); go(a, n);", []),
        ("template <int T = kTile> void go(float* a, int n)", "go<32>(a, n); go(a, n);", []),
        ("void go(float* a, int n, int T = 4)", "go(a, n); go(a, n, 8);", [("T", "4 or 8")]),
    ],
)
def test_a_call_that_gives_nothing_gives_the_default(head: str, calls: str, names: list[tuple[str, str]]) -> None:
    text = f"{head} {{ k<<<T, 1>>>(a); }}\n"
    found = launch(calls, text, "float* a, int n, bool wide")
    assert [(n.name, n.value) for n in found.names] == names


def test_a_dim3_that_is_passed_on() -> None:
    head = "void go(dim3 grid, float* a) { k<<<grid, 1>>>(a); }\n"
    assert launch("dim3 g(n, 4); go(g, a);", head).grid_resolved == "n, 4"


def test_a_configuration_object_with_its_attributes() -> None:
    found = launch(
        """cudaLaunchConfig_t config;
        config.gridDim = dim3(n, 2);
        config.blockDim = 256;
        config.dynamicSmemBytes = n * sizeof(float);
        cudaLaunchAttribute attrs[1];
        attrs[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attrs[0].val.programmaticStreamSerializationAllowed = 1;
        config.attrs = attrs;
        cudaLaunchKernelEx(&config, k, a);"""
    )
    assert (found.grid_resolved, found.block_resolved, found.shared_resolved) == ("n, 2", "256", "n * sizeof(float)")
    (attribute,) = found.attributes
    assert attribute.id == "cudaLaunchAttributeProgrammaticStreamSerialization"
    assert attribute.value == "programmaticStreamSerializationAllowed = 1"
    assert not found.cooperative


def test_attributes_are_those_of_the_launch_and_not_of_another_one() -> None:
    head = """#define GO(N) do { \\
  cudaLaunchConfig_t config = {n, 32, 0, 0}; \\
  cudaLaunchAttribute attrs[1]; \\
  attrs[0].id = cudaLaunchAttributeClusterDimension; \\
  attrs[0].val.clusterDim.x = N; \\
  config.attrs = attrs; \\
  cudaLaunchKernelEx(&config, k, a); } while (0)
"""
    text = f"{KERNEL}{head}void f(int n) {{\nGO(2);\nGO(4);\n}}\n"
    walk = walk_of(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")
    values = [[one.value for one in found.attributes] for found in walk.implementations[0].launches]
    assert values == [["clusterDim.x = 2"], ["clusterDim.x = 4"]]


def test_more_shared_memory_is_asked_for_where_the_launch_is() -> None:
    code = """int smem = n * 4;
    switch (n) {
      case 64: cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 64); break;
      default:
        if (smem >= 48 * 1024) { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, smem); }
        k<<<n, 32, smem>>>(a);
    }"""
    found = launch(code)
    assert [(one.value, one.under) for one in found.shared_opt_in] == [
        ("smem", ("n is not 64", "smem is at least 48 * 1024"))
    ]
    assert found.shared_resolved == "n * 4"


def test_a_cooperative_launch() -> None:
    assert launch("cudaLaunchCooperativeKernel((void*)k, n, 32, args, 0, 0);").cooperative


@pytest.mark.parametrize(
    ("code", "conditions"),
    [
        ("if (n == 8) { if ((n <= 4 && wide) || (n <= 8 && m < 9)) k<<<1, 1>>>(a); }", ("n is 8", "m is less than 9")),
        ("if (n == 8) { if (n > 4 && m < 9) k<<<1, 1>>>(a); }", ("n is 8", "m is less than 9")),
        ("if (n == 8) { if (n > 4) k<<<1, 1>>>(a); }", ("n is 8",)),
        (
            "if (n == 8) { n++; if (n > 4 || m < 9) k<<<1, 1>>>(a); }",
            ("n is 8", "n is greater than 4 or m is less than 9"),
        ),
        ("if (n == 8) { if (m < 9 || wide) k<<<1, 1>>>(a); }", ("n is 8", "m is less than 9 or wide")),
    ],
)
def test_what_one_condition_fixes_is_left_out_of_others(code: str, conditions: tuple[str, ...]) -> None:
    assert launch(code, parameters="torch::Tensor& x, int n, int m, bool wide").conditions == conditions


def test_a_choice_that_is_no_choice_is_not_told() -> None:
    found = launch("constexpr bool wide_ = false; int w = 10; if (wide_) { w = n; } k<<<std::min(w, n), 1>>>(a);")
    assert [(one.value, one.cases) for one in found.names if one.name == "w"] in ([], [("10", ())])
    assert "n : 10" not in (found.grid_resolved or "")


def test_flags_of_the_project_that_a_launch_is_compiled_under() -> None:
    text = f"""{KERNEL}void start(int n) {{
#ifdef __CUDACC__
  k<<<n, 32>>>(0);
#endif
}}
void f(torch::Tensor& x, int n) {{
#if !defined(USE_ROCM) && defined(WITH_FAST)
  start(n);
#endif
}}
TORCH_LIBRARY(ns, m) {{ m.impl("f", torch::kCUDA, &f); }}
"""
    (found,) = walk_of(f"#define WITH_FAST 1\n{text}", "ns::f").implementations[0].launches
    assert found.compiled == "!USE_ROCM && WITH_FAST"
    plain = text.replace(" && defined(WITH_FAST)", "")
    (found,) = walk_of(plain, "ns::f").implementations[0].launches
    assert found.compiled is None


@pytest.mark.parametrize(
    ("code", "compiled"),
    [
        ("#if NEW\n  start(1);\n#endif\n", "NEW"),
        # One of two calls is enough for the launch to be compiled.
        ("#if NEW\n  start(1);\n#endif\n#if OLD\n  start(2);\n#endif\n", "NEW || OLD"),
        ("#if NEW\n  start(1);\n#endif\n#if OLD\n  middle(2);\n#endif\n", "NEW || OLD"),
        ("#if NEW || OLD\n#if OLD\n  start(1);\n#endif\n#if NEW\n  start(1);\n#endif\n#endif\n", "NEW || OLD"),
        ("#if NEW\n  start(1);\n#endif\n  start(2);\n", None),
        ("#if ALL\n#if NEW\n  start(1);\n#endif\n#if OLD\n  start(2);\n#endif\n#endif\n", "ALL && (NEW || OLD)"),
        ("#if ALL\n  start(1);\n#if NEW\n  start(2);\n#endif\n#endif\n", "ALL"),
        # A function that is handed on is called by nobody where that is not compiled.
        ("#if NEW\n  start(1);\n#endif\n#if OLD\n  auto run = &start; run(2);\n#endif\n", "NEW || OLD"),
    ],
)
def test_a_launch_is_compiled_under_what_all_ways_to_it_share(code: str, compiled: str | None) -> None:
    text = f"""#define NEW 1
#define OLD 1
#define ALL 1
{KERNEL}void start(int n) {{ k<<<n, 32>>>(0); cudaMemsetAsync(nullptr, 0, n); }}
void middle(int n) {{ start(n); }}
void f(torch::Tensor& x, int n) {{
{code}}}
TORCH_LIBRARY(ns, m) {{ m.impl("f", torch::kCUDA, &f); }}
"""
    found = walk_of(text, "ns::f").implementations[0]
    assert [one.compiled for one in found.launches] == [compiled]
    assert [one.compiled for one in found.terminals] == [compiled]


RUNS, ASKS = "#define START(K, ...) K<<<1, 32>>>(__VA_ARGS__)\n", "#define START(K, ...) K(0)\n"


@pytest.mark.parametrize(
    ("head", "compiled"),
    [
        (f"#ifdef OLD_DEVICE\n{ASKS}#else\n{RUNS}#endif\n", "!OLD_DEVICE"),
        (f"#define NEW\n#ifndef START\n#ifdef NEW\n{RUNS}#else\n{ASKS}#endif\n#endif\n", "NEW"),
        (f"#define WAYS 3\n#if WAYS > 2\n{RUNS}#else\n{ASKS}#endif\n", "WAYS > 2"),
        (f"#ifndef START\n{RUNS}#endif\n", None),  # only that no other definition stands before it
        (f"#ifndef USE_ROCM\n{RUNS}#else\n{ASKS}#endif\n", None),  # the kind of build meets it
        # No host code is compiled with it.
        (f"#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800\n{RUNS}#else\n{ASKS}#endif\n", None),
    ],
)
def test_the_condition_of_the_macro_that_launches_is_the_launchs(head: str, compiled: str | None) -> None:
    found = launch("START(k, 0);", head)
    assert (found.style, found.compiled) == ("macro:triple_chevron", compiled)


def test_what_the_launching_function_stands_under_as_well_is_not_said_of_its_macro() -> None:
    text = f"""{KERNEL}#if defined(FAST)
#define START(K, ...) K<<<1, 32>>>(__VA_ARGS__)
void start() {{ START(k, 0); }}
#endif
void f(int n) {{ start(); }}
TORCH_LIBRARY(ns, m) {{ m.impl("f", torch::kCUDA, &f); }}
"""
    (found,) = walk_of(text, "ns::f").implementations[0].launches
    assert found.compiled is None


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ("n, side", "side"),
        ("n, at::cuda::getCurrentCUDAStream()", "at::cuda::getCurrentCUDAStream()"),
        ("n, mine", "at::cuda::getCurrentCUDAStream()"),
        ("n", "0"),
    ],
)
def test_the_stream_is_what_the_caller_passes(given: str, resolved: str) -> None:
    head = "cudaStream_t side;\nvoid go(int n, cudaStream_t stream = 0) { auto st = stream; k<<<n, 32, 0, st>>>(0); }\n"
    found = launch(f"auto mine = at::cuda::getCurrentCUDAStream(); go({given});", head)
    assert (found.stream, found.stream_resolved) == ("st", resolved)


def test_a_stream_that_calls_give_differently_is_named_as_written() -> None:
    head = "void go(int n, cudaStream_t stream) { k<<<n, 32, 0, stream>>>(0); }\n"
    found = launch("go(n, one); go(n, other);", head)
    assert (found.stream, found.stream_resolved) == ("stream", None)


@pytest.mark.parametrize(
    ("code", "unused"),
    [
        ("go(n, side);", True),
        ("go(n, mine);", False),
        ("go(n, side); go(n, mine);", False),
        ("side = mine; go(n, side);", False),
    ],
)
def test_a_stream_that_no_launch_runs_on_is_not_told_as_theirs(code: str, unused: bool) -> None:
    text = f"{KERNEL}cudaStream_t side;\nvoid go(int n, cudaStream_t stream) {{ k<<<n, 32, 0, stream>>>(0); }}\n"
    text += f"void f(int n) {{ auto mine = at::cuda::getCurrentCUDAStream(); {code} }}\n"
    walk = walk_of(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")
    assert [fact.unused for fact in walk.implementations[0].host.streams] == [unused]
