"""A kernel's index expressions against documented shapes: equal, equal with strides passed, differing, not decided."""

from __future__ import annotations

import pytest

from opwalker.expand.resolve import Candidate
from opwalker.model.layout import LayoutFact
from opwalker.views import short_circuit
from opwalker.views.device_functions import DeviceReader
from opwalker.views.entries import EntryView
from opwalker.views.kernel import read_kernel
from tests.trees import tree
from tests.views.miniatures import SOURCE, implementation


def layouts(parameters: str, body: str, before: str = "") -> list[LayoutFact]:
    """The layouts of documented tensors of a kernel by itself."""
    return [fact for fact in addresses(parameters, body, before) if fact.documented]


def addresses(parameters: str, body: str, before: str = "") -> list[LayoutFact]:
    """How a kernel by itself addresses any tensor."""
    text = f"{before}\ntemplate <typename T, int WIDTH>\n__global__ void k({parameters}) {{\n{body}\n}}\n"
    bench = tree({"k.cu": text})
    ((path, function),) = bench.index.functions("k")
    reading = DeviceReader.of(bench, bench.unit()).kernel(Candidate(path, function), path)
    return list(read_kernel(bench, bench.unit(), reading, path).layouts)


def only(parameters: str, body: str, before: str = "") -> LayoutFact:
    (fact,) = layouts(parameters, body, before)
    return fact


def coordinates(fact: LayoutFact) -> dict[str, str]:
    return {part.dim: part.value for part in fact.coordinates}


PAGED = """T* cache,  // [blocks, heads, size / x, block, x]
    const long* slots, int heads, int size, int block, int x"""
PAGED_BODY = """
  const long token = blockIdx.x;
  const long slot = slots[token];
  if (slot < 0) return;
  const long page = slot / block;
  const long inside = slot % block;
  const int groups = size / x;
  const int unit = threadIdx.x;
  if (unit >= heads * groups) return;
  const int head = unit / groups;
  const int group = unit % groups;
  T* to = cache + page * heads * groups * block * x + head * groups * block * x + {tail};
  for (int i = 0; i < x; i++) to[i] = T(0);
"""


def test_a_paged_layout_in_five_dimensions_is_recognised() -> None:
    fact = only(PAGED, PAGED_BODY.format(tail="group * block * x + inside * x"))
    assert (fact.verdict, fact.access, fact.given) == ("equal", "write", ("size % x == 0",))
    assert coordinates(fact) == {"blocks": "page", "heads": "head", "size / x": "group", "block": "inside", "x": "i"}


def test_two_dimensions_swapped_are_another_layout() -> None:
    fact = only(PAGED, PAGED_BODY.format(tail="inside * groups * x + group * x"))
    assert fact.verdict == "differs"
    assert fact.reason == "it is the index of [blocks, heads, block, size / x, x]"


def test_a_wrong_row_length_is_not_called_equal() -> None:
    fact = only(PAGED, PAGED_BODY.format(tail="group * block * x + inside * (x + 1)"))
    assert fact.verdict == "not_decided"
    assert "is not shown to stay below" in fact.reason


def loop(stop: str, use: str) -> str:
    """All threads of a block striding over an extent."""
    return f"for (int i = threadIdx.x; i < {stop}; i += blockDim.x) {{ {use} }}"


SINGLE = [
    # parameters, body, verdict, coordinates
    ("T* o /* [rows, cols] */, int cols", loop("cols", "o[blockIdx.x * cols + i] = 0;"), "equal",
     {"rows": "blockIdx.x", "cols": "i"}),
    ("T* o /* [..., cols] */, int cols", loop("cols", "(o + blockIdx.x * cols)[i] = 0;"), "equal",
     {"...": "blockIdx.x", "cols": "i"}),
    ("T* o /* [rows, cols] */, int cols", "o[blockIdx.x * cols + threadIdx.x] = 0;", "not_decided", {}),
    ("T* o /* [rows, cols] */, int cols", "if (threadIdx.x < cols) *(o + blockIdx.x * cols + threadIdx.x) = 0;",
     "equal", {"rows": "blockIdx.x", "cols": "threadIdx.x"}),
    ("T* o /* [rows, cols] */, int cols, int n", loop("n", "o[blockIdx.x * cols + i] = 0;"),
     "not_decided", {}),
    # Two dimensions run through as one.
    ("T* o /* [rows, cols] */, int rows, int cols",
     "const long at = blockIdx.x * (long)blockDim.x + threadIdx.x; if (at < rows * cols) o[at] = 0;", "equal",
     {"rows, cols": "at"}),
    ("T* o /* [rows, cols] */, int rows, int cols",
     "const long at = blockIdx.x * (long)blockDim.x + threadIdx.x; if (at < rows) o[at] = 0;", "not_decided", {}),
    # A vector of four: the last element has to be inside as the first is.
    ("float* o /* [rows, cols] */, int cols",
     "auto* v = reinterpret_cast<float4*>(o + blockIdx.x * cols);" + loop("cols / 4", "v[i] = {};"),
     "equal", {"rows": "blockIdx.x", "cols": "4 * i"}),
    ("float* o /* [rows, cols] */, int cols",
     "auto* v = reinterpret_cast<float4*>(o + blockIdx.x * cols);" + loop("cols", "v[i] = {};"),
     "not_decided", {}),
    # Shifts and masks are divisions; a quotient and its remainder belong together.
    ("T* o /* [rows, 4, 32] */",
     "int r = blockIdx.x, t = threadIdx.x; if (t >= 128) return; o[r * 128 + (t >> 5) * 32 + (t & 31)] = 0;",
     "equal", {"rows": "r", "4": "(t / 32)", "32": "(t % 32)"}),
    # What turns threads away in some builds alone proves nothing of the others.
    ("T* o /* [rows, cols] */, int cols",
     "int i = blockIdx.y;\n#ifdef FAST\nif (i >= cols) return;\n#endif\no[blockIdx.x * cols + i] = 0;",
     "not_decided", {}),
    ("T* o /* [rows, cols] */, int cols",
     "int i = blockIdx.y;\n#ifdef FAST\nif (i >= cols) return;\no[blockIdx.x * cols + i] = 0;\n#endif",
     "equal", {"rows": "blockIdx.x", "cols": "i"}),
    ("T* o /* [rows, 2, d] */, int d", loop("d", "o[blockIdx.x * 2 * d + d + i] = 0;"), "equal",
     {"rows": "blockIdx.x", "2": "1", "d": "i"}),
    ("T* o /* [rows, a + b] */, int a, int b",
     loop("b", "o[blockIdx.x * (a + b) + a + i] = 0;"), "equal", {"rows": "blockIdx.x", "a + b": "a + i"}),
    # A pointer that is moved first, and an index that is changed on the way.
    ("T* o /* [rows, cols] */, int cols", "o += blockIdx.x * cols;" + loop("cols", "o[i] = 0;"), "equal",
     {"rows": "blockIdx.x", "cols": "i"}),
    ("T* o /* [rows, cols] */, int cols", loop("cols", "i += 3; o[blockIdx.x * cols + i] = 0;"),
     "not_decided", {}),
    ("T* o /* [rows, cols] */, int cols", loop("cols", "o[blockIdx.x + i * gridDim.x] = 0;"),
     "not_decided", {}),
    # Another dimension in front than the comment says.
    ("T* o /* [rows, cols] */, int heads, int cols",
     loop("cols", "o[(blockIdx.x * heads + blockIdx.y) * cols + i] = 0;"), "not_decided", {}),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "body", "verdict", "parts"), SINGLE, ids=range(len(SINGLE)))
def test_one_index(parameters, body, verdict, parts) -> None:
    facts = layouts(parameters, body)
    assert {fact.verdict for fact in facts} == {verdict}
    if parts:
        assert coordinates(facts[0]) == parts


SWAPPED = [
    ("T* o /* [a, b] */, int a, int b", "if (blockIdx.x < a && threadIdx.x < b) o[threadIdx.x * a + blockIdx.x] = 0;",
     "[b, a]"),
    ("T* o /* [n, a, b] */, int a, int b",
     "for (int i = 0; i < a; i++) for (int j = 0; j < b; j++) o[blockIdx.x * a * b + j * a + i] = 0;", "[n, b, a]"),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "body", "order"), SWAPPED)
def test_a_transposed_index_is_called_so(parameters, body, order) -> None:
    fact = only(parameters, body)
    assert (fact.verdict, fact.reason) == ("differs", f"it is the index of {order}")


def test_the_same_loops_in_the_documented_order_are_equal() -> None:
    body = "for (int i = 0; i < a; i++) for (int j = 0; j < b; j++) o[blockIdx.x * a * b + i * b + j] = 0;"
    assert only("T* o /* [n, a, b] */, int a, int b", body).verdict == "equal"


HELPER = """template <int N, typename T>
struct alignas(N * sizeof(T)) pack { T of[N]; };
template <int N, typename A, typename B>
__device__ void copy(const A* from, B* to, int count, int at, int step) {
  int n = count / N;
  auto* wide_from = reinterpret_cast<const pack<N, A>*>(from);
  auto* wide_to = reinterpret_cast<pack<N, B>*>(to);
  for (int i = at; i < n; i += step) { wide_to[i] = wide_from[i]; }
  for (int i = n * N + at; i < count; i += step) to[i] = from[i];
}
"""


def test_a_pointer_is_followed_into_a_helper() -> None:
    body = "copy<8>(in + blockIdx.x * d, out + blockIdx.x * d, d, threadIdx.x, blockDim.x);"
    facts = layouts("const T* in /* [rows, d] */, T* out /* [rows, d] */, int d", body, HELPER)
    assert [(f.parameter, f.verdict, f.access, f.through, f.width) for f in facts] == [
        ("in", "equal", "read", "copy", "8 elements"),
        ("in", "equal", "read", "copy", None),
        ("out", "equal", "write", "copy", "8 elements"),
        ("out", "equal", "write", "copy", None),
    ]
    # Where eight are moved at once, the loop counts packs.
    assert [coordinates(f)["d"] for f in facts] == ["8 * i", "i", "8 * i", "i"]
    assert {f.line for f in facts} == {facts[0].line}


def test_each_call_of_a_helper_is_another_reading() -> None:
    helper = """template <typename T>
    __device__ void put(T* to, int first, int n) {
      int at = first + threadIdx.x;
      if (at < n) to[at] = 0;
    }
    """
    body = """put(o + blockIdx.x * cols, 0, cols);
    put(o + blockIdx.x * cols, cols, 2 * cols);"""
    facts = layouts("T* o /* [rows, cols] */, int cols", body, helper)
    assert [fact.verdict for fact in facts] == ["equal", "not_decided"]


LAMBDA = """int shift = 0;
auto copy = [&](const T* from, int step, int n, int off) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    out[blockIdx.x * (a + b) + i + off + shift] = from[blockIdx.x * step + i];
  }
};
copy(x, a, a, 0);
copy(y, b, b, a);
"""
PAIR = "const T* x /* [rows, a] */, const T* y /* [rows, b] */, T* out /* [rows, a + b] */, int a, int b"


def test_a_lambda_is_read_for_each_of_its_calls() -> None:
    facts = layouts(PAIR, LAMBDA)
    assert [(f.parameter, f.verdict, f.through, coordinates(f)) for f in facts] == [
        ("x", "equal", "copy", {"rows": "blockIdx.x", "a": "i"}),
        ("y", "equal", "copy", {"rows": "blockIdx.x", "b": "i"}),
        ("out", "equal", "copy", {"rows": "blockIdx.x", "a + b": "i"}),
        ("out", "equal", "copy", {"rows": "blockIdx.x", "a + b": "a + i"}),
    ]
    assert [f.line for f in facts] == [facts[0].line, facts[0].line + 1, facts[0].line, facts[0].line + 1]


def test_what_changes_beside_a_lambda_is_not_known_in_it() -> None:
    facts = layouts(PAIR, LAMBDA.replace("copy(y", "shift = 1;\ncopy(y"))
    out = {(f.verdict, f.reason) for f in facts if f.parameter == "out"}
    assert out == {("not_decided", "`shift` is changed beside a lambda that uses it")}
    assert {f.verdict for f in facts if f.parameter != "out"} == {"equal"}


def test_a_short_function_is_looked_through() -> None:
    before = "__device__ int at(int row, int width) { return row * width; }\n"
    body = loop("cols", "o[at(blockIdx.x, cols) + i] = 0;")
    assert only("T* o /* [rows, cols] */, int cols", body, before).verdict == "equal"


def test_a_pointer_that_branches_set_is_each_of_its_addresses() -> None:
    body = f"""T* row;
    if constexpr (WIDTH == 2) {{ row = o + blockIdx.x * cols; }} else {{ row = o + (blockIdx.x + 1) * (cols + 1); }}
    {loop("cols", "row[i] = 0;")}"""
    facts = layouts("T* o /* [rows, cols] */, int cols", body)
    assert [(f.under, f.verdict) for f in facts] == [("WIDTH == 2", "equal"), ("!(WIDTH == 2)", "not_decided")]


def test_a_template_parameter_of_the_same_name_is_meant() -> None:
    fact = only("T* o /* [rows, width] */", loop("WIDTH", "o[blockIdx.x * WIDTH + i] = 0;"))
    assert (fact.verdict, fact.given) == ("equal", ("width == WIDTH",))


def test_constants_are_known_by_their_numbers() -> None:
    body = loop("kCols", "o[blockIdx.x * kCols + i] = 0;")
    assert only("T* o /* [rows, 64] */", body, "constexpr int kCols = 8 * 8;\n").verdict == "equal"
    assert only("T* o /* [rows, 64] */", body, "constexpr int kCols = 8 * 9;\n").verdict == "not_decided"


LAUNCH = """
#include <torch/library.h>
template <typename T>
__global__ void shift_kernel(T* out, const T* in, int s0, int out_stride, int n) {{
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * out_stride + i] = in[blockIdx.x * s0 + i];
}}
void shift(torch::Tensor& out,       // [rows, width]
           const torch::Tensor& in)  // [rows, width]
{{
  int width = in.size(1);
  {checks}
  shift_kernel<float><<<in.size(0), 128>>>(
      out.data_ptr<float>(), in.data_ptr<float>(), in.stride(0), {passed}, width);
}}
TORCH_LIBRARY(mini, ops) {{
  ops.def("shift(Tensor! out, Tensor input) -> ()");
  ops.impl("shift", torch::kCUDA, &shift);
}}
"""


def of_launch(passed: str, checks: str = "") -> dict[str, LayoutFact]:
    (kernel,) = implementation(LAUNCH.format(passed=passed, checks=checks), "mini::shift").kernels
    return {fact.parameter: fact for fact in kernel.layouts}


def test_host_shapes_and_strides_reach_the_kernel() -> None:
    facts = of_launch("out.stride(0)")
    assert {name: (f.verdict, f.tensor, f.documented) for name, f in facts.items()} == {
        "out": ("equal_with_strides", "out", "[rows, width]"),
        "in": ("equal_with_strides", "in", "[rows, width]"),
    }
    assert [(p.dim, p.value, p.stride, p.passed) for p in facts["in"].coordinates] == [
        ("rows", "blockIdx.x", "in.stride(0)", True),
        ("width", "i", "1", False),
    ]
    assert facts["in"].requires == ("in is contiguous from dimension width on",)


def test_a_size_passed_as_stride_is_the_dense_layout() -> None:
    facts = of_launch("width")
    assert (facts["out"].verdict, facts["out"].requires) == ("equal", ("out is contiguous",))


def test_strides_of_another_tensor_are_said() -> None:
    assert of_launch("in.stride(0)")["out"].given == (
        "out.stride(0) == in.stride(0) (the host function does not check it)",
    )
    checked = of_launch("in.stride(0)", "TORCH_CHECK(in.stride(0) == out.stride(0));")["out"]
    assert checked.verdict == "equal_with_strides"
    assert "(checked at :" in checked.given[0]


ROWS = """
#include <torch/library.h>
template <typename T>
__global__ void flip_kernel(T* out, const T* in, int heads, int apart) {
  for (int i = threadIdx.x; i < 64; i += blockDim.x) {
    out[(blockIdx.x * heads + blockIdx.y) * apart + i] = in[blockIdx.x * heads * apart + blockIdx.y * apart + i];
  }
}
void flip(torch::Tensor& out,       // [rows, heads, 64]
          const torch::Tensor& in)  // [rows, heads, 64]
{
  int heads = in.size(1);
  flip_kernel<float><<<dim3(in.size(0), heads), 64>>>(
      out.data_ptr<float>(), in.data_ptr<float>(), heads, in.stride(1));
}
TORCH_LIBRARY(mini, ops) {
  ops.def("flip(Tensor! out, Tensor input) -> ()");
  ops.impl("flip", torch::kCUDA, &flip);
}
"""


def test_rows_that_lie_as_far_apart_as_the_passed_stride_reaches() -> None:
    (kernel,) = implementation(ROWS, "mini::flip").kernels
    facts = {fact.parameter: fact for fact in kernel.layouts}
    assert {fact.verdict for fact in facts.values()} == {"equal_with_strides"}
    assert coordinates(facts["in"]) == {"rows": "blockIdx.x", "heads": "blockIdx.y", "64": "i"}
    assert facts["in"].given == ("in.stride(0) == heads * in.stride(1) (the host function does not check it)",)
    assert facts["in"].requires == ("in is contiguous from dimension 64 on",)
    assert facts["out"].given == (
        "out.stride(1) == in.stride(1) (the host function does not check it)",
        "out.stride(0) == heads * in.stride(1) (the host function does not check it)",
    )


@pytest.mark.parametrize(
    "asked",
    [
        "TORCH_CHECK(in.stride(0) == heads * in.stride(1));",
        "auto apart = in.stride(0); TORCH_CHECK(apart >= heads * 64);",
        "if (!in.is_contiguous()) throw 1;",
        "CHECK_CONTIGUOUS(in);",
    ],
)
def test_of_a_tensor_whose_strides_are_asked_for_nothing_is_said_to_be_unchecked(asked: str) -> None:
    text = ROWS.replace("  flip_kernel<float><<<", f"  {asked}\n  flip_kernel<float><<<")
    (kernel,) = implementation(text, "mini::flip").kernels
    given = {fact.parameter: fact.given for fact in kernel.layouts}
    assert not [text for text in given["in"] if "does not check" in text]
    assert all("does not check" in text for text in given["out"]) and given["out"]


def test_a_check_of_one_stride_is_none_of_another() -> None:
    asked = "TORCH_CHECK(in.stride(0) == out.stride(0));"
    text = ROWS.replace("  flip_kernel<float><<<", f"  {asked}\n  flip_kernel<float><<<")
    (kernel,) = implementation(text, "mini::flip").kernels
    given = {fact.parameter: fact.given for fact in kernel.layouts}
    assert given["out"] == (
        "out.stride(1) == in.stride(1) (the host function does not check it)",
        "out.stride(0) == heads * in.stride(1)",
    )


def test_the_stride_of_another_dimension_is_not_the_documented_layout() -> None:
    assert of_launch("out.stride(1)")["out"].verdict == "not_decided"


def test_a_kernel_without_documented_shapes_says_nothing() -> None:
    assert layouts("T* o, int n", "o[threadIdx.x] = n;") == []


PUTTING = """template <typename O, typename I>
struct Put {
  float scale;
  __device__ void operator()(O& to, const I from) const { to = from * scale; }
};
template <typename O>
struct Add {
  __device__ void operator()(O& to) const { to += to; }
};
__device__ float grown(float v) { return v * 2; }
__device__ void bump(float& v) { v = 1; }
"""


@pytest.mark.parametrize(
    ("body", "access"),
    [
        ("Put<float, float> put{2.f}; put(rows[threadIdx.x], other[threadIdx.x]);", {"rows": "write", "other": "read"}),
        ("Add<float> add; add(rows[threadIdx.x]);", {"rows": "read, write"}),
        ("bump(rows[threadIdx.x]); n = grown(other[threadIdx.x]);", {"rows": "write", "other": "read"}),
        ("n = fmaxf(other[threadIdx.x], 1.f);", {"other": "read"}),
        ("unknown(rows[threadIdx.x]);", {"rows": "passed on"}),
    ],
)
def test_what_becomes_of_an_element_that_is_passed(body: str, access: dict[str, str]) -> None:
    parameters = "float* rows /* [n] */, const float* other /* [n] */, int n"
    text = f"{PUTTING}__global__ void k({parameters}) {{\n{body}\n}}\n"
    (found,) = EntryView(tree({"k.cu": text}), SOURCE).walk("k").implementations[-1].kernels
    assert {fact.parameter: fact.access for fact in found.layouts} == access


@pytest.mark.parametrize(
    ("body", "under"),
    [
        ("out[n] = wide ? 0 : in[n];", ["!wide"]),
        ("out[n] = wide ? in[n] : 0;", ["wide"]),
        ("out[n] = wide ? in[n] : in[n + 1];", [None, None]),  # both sides read it
        ("out[n] = in[n];", [None]),
        ("if (wide) { out[n] = take(in, n); } else { out[n] = 0; }", ["wide"]),
        ("if (n > 2) { out[0] = 1; return; } out[n] = take(in, n);", ["n <= 2"]),
        ("#ifdef FAST\nif (n > 2) { out[0] = 1; return; }\n#endif\nout[n] = take(in, n);", ["(n <= 2) (#if FAST)"]),
        ("if constexpr (WIDTH == 4) { out[0] = 1; } else { out[n] = in[n]; }", ["WIDTH != 4"]),
        (
            (
                "if constexpr (std::is_same_v<T, int>) { out[0] = 1; } else if constexpr (std::is_same_v<T, half>) {\n"
                "if (n > 2) out[n] = wide ? in[n] : 0; }"
            ),
            ["std::is_same_v<T, half> && wide && n > 2"],
        ),
        # What a thread is tested for, in branches and by returns from branches that did something.
        (
            "if (threadIdx.x >= 64) { out[0] = 1; return; } if (n == 0 || n == 4) { out[1] = in[n]; }",
            ["threadIdx.x < 64 && (n == 0 || n == 4)"],
        ),
        (
            "if (threadIdx.x < 8) { out[0] = in[n]; } else { out[1] = in[n + 1]; }",
            ["threadIdx.x < 8", "threadIdx.x >= 8"],
        ),
        # One element in several places: what holds at all of them, or at one of two.
        ("if (wide) { if (n > 2) out[0] = in[n]; else out[1] = in[n]; }", ["wide"]),
        ("if (wide) { if (n > 2) out[0] = in[n]; if (n < 1) out[1] = in[n]; }", ["wide && (n > 2 || n < 1)"]),
        ("if (n > 2) { out[0] = in[n]; return; } if (wide) out[1] = in[n];", ["n > 2 || wide"]),
    ],
)
def test_the_choice_or_branch_that_an_access_stands_in(body: str, under: list[str | None]) -> None:
    take = "__device__ float take(const float* from, int at) { return from[at]; }"
    facts = layouts("float* out, const float* in /* [count] */, int n, bool wide", body, take)
    assert [fact.under for fact in facts if fact.parameter == "in"] == under


def test_an_element_written_under_more_than_it_is_read_under() -> None:
    body = "float held = out[n];\nif (held < 0) {\nout[n] = 0;\n} else {\nif (wide) out[n] = 1;\n}"
    facts = layouts("float* out /* [count] */, int n, bool wide", body)
    assert [(fact.access, fact.under) for fact in facts] == [("read", None), ("write", "held < 0 || wide")]
    assert [(fact.line, fact.also_at) for fact in facts] == [(4, ()), (6, (8,))]


LOADED = [
    # How an element is read without a subscript, the access, its index along the columns.
    ("use(__ldg(&o[blockIdx.x * cols + i]));", "read", "i"),
    ("use(__ldg(o + blockIdx.x * cols + i));", "read", "i"),
    ("use(LOAD(&o[blockIdx.x * cols + i]));", "read", "i"),
    ("__stcs(o + blockIdx.x * cols + i, 0);", "write", "i"),
    ("atomicAdd(&o[blockIdx.x * cols + i], 1);", "read, write", "i"),
    ("elsewhere(&o[blockIdx.x * cols + i]);", "passed on", "i"),
]


@pytest.mark.parametrize(("use", "access", "column"), LOADED)
def test_elements_that_functions_load_and_store_are_accesses(use, access, column) -> None:
    fact = only("int* o /* [rows, cols] */, int cols", loop("cols", use), "#define LOAD(at) __ldg(at)")
    assert (fact.verdict, fact.access, coordinates(fact)) == ("equal", access, {"rows": "blockIdx.x", "cols": column})


ASSERTED = """struct lanes { unknown_t of; };
"""


def test_a_vector_type_is_as_wide_as_the_kernel_asserts() -> None:
    body = """static_assert(sizeof(lanes) == sizeof(T) * WIDTH);
    lanes* wide = reinterpret_cast<lanes*>(o);
    const int packs = cols / WIDTH;
    for (int i = threadIdx.x; i < packs; i += blockDim.x) wide[blockIdx.x * packs + i] = lanes();"""
    fact = only("T* o /* [rows, cols] */, int cols", body, ASSERTED)
    assert (fact.verdict, fact.width) == ("equal", "WIDTH elements")
    assert coordinates(fact) == {"rows": "blockIdx.x", "cols": "WIDTH * i"}


def test_a_vector_type_of_unknown_making_is_said_with_its_size() -> None:
    body = "lanes* wide = reinterpret_cast<lanes*>(o + blockIdx.x * cols); wide[threadIdx.x] = lanes();"
    fact = only("T* o /* [rows, cols] */, int cols", body, ASSERTED)
    assert fact.verdict == "not_decided"
    assert fact.computed == "(sizeof(lanes) / sizeof(T)) * threadIdx.x + blockIdx.x * cols"


UNDER = """template <bool SIDE, typename T>
__device__ void store(T* to, const bool last, int n) {
  bool there = threadIdx.x < n;
  int near = n;
  near++;
  if (SIDE) { to[threadIdx.x] = 0; }
  if (last) { to[threadIdx.x + 1] = 1; }
  if (there) { to[threadIdx.x + 2] = 2; }
  if (near > 3) { to[threadIdx.x + 3] = 3; }
}
"""


def test_an_access_says_what_it_stands_under() -> None:
    body = """constexpr int LANES = 4;
    if (cols % LANES == 0) { o[0 * cols + threadIdx.x] = 0; }
    else if (full) { store<WIDTH, T>(o + blockIdx.x * cols, more, cols); }"""
    facts = layouts("T* o /* [rows, cols] */, int cols, bool full, bool more", body, UNDER)
    assert [fact.under for fact in facts] == [
        "cols % 4 == 0",
        "cols % 4 != 0 && full && WIDTH",
        "cols % 4 != 0 && full && more",
        "cols % 4 != 0 && full && threadIdx.x < cols",
        # What the helper changes itself says nothing to a reader of the kernel.
        "cols % 4 != 0 && full",
    ]


def test_what_is_said_under_fewer_conditions_is_said_once() -> None:
    body = "if (more) o[threadIdx.x] = 0; o[threadIdx.x] = 0; if (more) o[0] = 0; else o[1] = 0;"
    facts = layouts("int* o /* [cols] */, int cols, bool more", body)
    assert [(fact.computed, fact.under) for fact in facts] == [("threadIdx.x", None), ("0", "more"), ("1", "!more")]


def held(fact: LayoutFact) -> dict[str, str | tuple]:
    return {one.name: one.value or one.cases for one in fact.names}


def test_names_of_an_index_are_told_with_what_they_hold() -> None:
    body = """for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
      const int head = i / half;
      const int at = i % half;
      int first, second;
      if (WIDTH == 2) { first = at; second = half + at; } else { first = 2 * at; second = first + 1; }
      o[head * size + first] = o[head * size + second];
    }"""
    facts = layouts("T* o /* [heads, size] */, int heads, int half, int size", body)
    assert {fact.computed: held(fact) for fact in facts} == {
        "head * size + first": {
            "head": "i / half", "at": "i % half", "first": (("WIDTH == 2", "at"), ("WIDTH != 2", "2 * at")),
        },
        "head * size + second": {
            "head": "i / half", "at": "i % half",
            "second": (("WIDTH == 2", "at + half"), ("WIDTH != 2", "2 * at + 1")),
        },
    }  # fmt: skip


def test_the_other_branch_does_not_change_what_this_one_reads() -> None:
    body = """int at = threadIdx.x;
    if (wide) { at = 2 * threadIdx.x; } else { o[at + 1] = T(0); }
    if (wide) { at = 8; o[at] = T(1); }"""
    facts = layouts("T* o /* [n] */, bool wide, int n", body)
    assert [(fact.computed, held(fact)) for fact in facts] == [("at + 1", {"at": "threadIdx.x"}), ("8", {})]


def test_a_name_that_a_loop_or_one_branch_alone_sets_is_not_told() -> None:
    body = """int at, step;
    if (n > 1) at = 0;
    for (int i = 0; i < n; i++) { if (i > 1) step = 1; else step = 2; }
    o[at] = T(0); o[step + n] = T(1);"""
    assert [fact.names for fact in layouts("T* o /* [n] */, int n", body)] == [(), ()]


def test_what_goes_on_with_the_next_pass_is_a_condition_of_what_follows() -> None:
    body = """for (int k = 0; k < rows; k++) {
      if constexpr (WIDTH == 2) { if (mask[k] < 0) { continue; } }
      for (int i = 0; i < cols; i++) { if (i == skipped) continue; o[k * cols + i] = T(0); }
      o[k * cols + 1] = T(0);
    }
    o[1] = T(0);"""
    facts = layouts("T* o /* [rows, cols] */, const int* mask, int rows, int cols, int skipped", body)
    assert {fact.computed: fact.under for fact in facts} == {
        "cols * k + i": "(WIDTH != 2 || mask[k] >= 0) && i != skipped",
        "cols * k + 1": "WIDTH != 2 || mask[k] >= 0",
        "1": None,
    }


def test_a_tensor_without_a_documented_shape_is_told_beside_others() -> None:
    body = """for (int i = threadIdx.x; i < n; i += blockDim.x) {
      const int* row = nullptr;
      if constexpr (WIDTH == 2) { row = ids + blockIdx.x * n; }
      if constexpr (WIDTH == 2) { o[i] = row[i]; }
      o[i + 1] = scale[i / 4];
    }"""
    facts = addresses("T* o /* [n] */, const int* ids, const float* scale, int n", body)
    told = [(f.parameter, f.verdict, f.computed, f.under) for f in facts if f.parameter != "o"]
    assert told == [
        ("ids", "undocumented", "blockIdx.x * n + i", "WIDTH == 2"),
        ("scale", "undocumented", "(i / 4)", None),
    ]
    (alone,) = addresses("T* o, int n", "o[n] = 0;")
    assert (alone.verdict, alone.access, alone.computed) == ("undocumented", "write", "n")


def test_a_kernel_without_any_documented_shape_says_how_it_addresses_its_tensors() -> None:
    body = "int at = blockIdx.x * n; float* to = o + at; to[2] = q[at].x; *to = 0;"
    facts = addresses("float* o, const uint4* q, void* other, int n", body)
    assert {(fact.parameter, fact.access, fact.computed) for fact in facts} == {
        ("o", "write", "blockIdx.x * n + 2"),
        ("o", "write", "blockIdx.x * n"),
        ("q", "read", "blockIdx.x * n"),
    }


def test_what_a_method_gets_the_address_of_is_told() -> None:
    body = "Wide held; if (n > 2) { held.load(o + blockIdx.x * n); } held.fill(0);"
    (fact,) = addresses("const float* o, int n", body)
    assert (fact.access, fact.computed, fact.under) == ("passed on", "blockIdx.x * n", "n > 2")


def test_a_part_of_a_helpers_condition_that_the_kernel_knows_is_told() -> None:
    helper = """__device__ float pick(const float* from, int at, bool wide) {
      int twice = at * 2;
      if (wide && twice < 8) { return from[twice]; }
      return 0;
    }"""
    (fact,) = addresses("const float* from, float* to, bool wide", "float held = pick(from, 3, wide);", helper)
    assert (fact.computed, fact.under) == ("6", "wide")


def test_a_name_of_two_things_is_not_told() -> None:
    body = """if (wide) { for (int at = 0; at < n; at++) o[4 * at] = T(0); }
    else { for (int i = threadIdx.x; i < n; i += blockDim.x) { const int at = i / 8; o[at] = T(1); } }
    const int row = blockIdx.x / 4; o[row] = T(2);"""
    facts = layouts("T* o /* [n] */, bool wide, int n", body)
    assert {fact.computed: held(fact) for fact in facts} == {"4 * at": {}, "at": {}, "row": {"row": "blockIdx.x / 4"}}


def test_a_lambda_stands_under_what_the_kernel_is_compiled_for() -> None:
    body = """auto copy = [&](int n) { if constexpr (WIDTH == 4) { o[n] = T(0); } else { o[n] = T(scale[0]); } };
    copy(rows);"""
    facts = addresses("T* o /* [rows] */, const float* scale, int rows", body)
    assert [fact.under for fact in facts if fact.parameter == "scale"] == ["WIDTH != 4"]


SKIP = """__device__ bool skip(const long* ids, const int* map, long at, bool all) {
  const long id = ids[at];
  if (id < 0) return true;
  if (map != nullptr && (all || map[id] < 0)) return true;
  return false;
}
__device__ float both(const float* from, long at) {
  const bool odd = at % 2 == 1;
  if (odd) { return from[at]; } else { return -from[at]; }
}"""


def test_what_a_helper_tests_of_its_own_is_not_passed_over() -> None:
    body = "if (!skip(ids, map, threadIdx.x, wide)) { to[0] = both(from, blockIdx.x); }"
    facts = addresses("const long* ids, const int* map, const float* from, float* to, bool wide", body, SKIP)
    assert {(f.parameter, f.computed): (f.under, f.tests_more) for f in facts if f.through} == {
        ("ids", "threadIdx.x"): (None, False),
        # Read in both branches of what the helper tests.
        ("from", "blockIdx.x"): ("!skip(ids, map, threadIdx.x, wide)", False),
        ("map", "id"): ("map != nullptr && !wide", True),
    }


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("if (p != nullptr && p[i] < 0) return;", ("p != nullptr",)),
        ("x = a || b && f(q, !(c && d), p[i]);", ("!a", "b")),
        ("const bool z = ok && (n > 2 || p[i]);", ("ok", "n <= 2")),
        ("for (int i = 0; i < n && p[i]; i++) {}", ("i < n",)),
        ("y = a && b; z = p[i];", ()),
        ("v = a && b ? p[i] : q[i];", ()),
        ("T&& v(p[i]);", ()),
        ("f(std::forward<T&&>(p[i]));", ()),
    ],
)
def test_operands_before_another_have_been_tested(text: str, before: tuple[str, ...]) -> None:
    assert short_circuit.tested_before(f"{{ {text} }}", text.index("p[i]") + 2) == before


def test_a_stride_of_no_known_dimension_is_the_reason() -> None:
    text = """__global__ void k(float* x /* [tokens, heads, size] */, long head, int heads, int size) {
  for (int i = threadIdx.x; i < size; i += blockDim.x) x[blockIdx.x * heads * size + blockIdx.y * head + i] = 0;
}
void f(torch::Tensor& x, int64_t size) {
  int64_t head = x.dim() == 3 ? x.stride(1) : size;
  k<<<dim3(x.size(0), 4), 64>>>(x.data_ptr<float>(), head, 4, size);
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""
    (fact,) = implementation(text, "ns::f").kernels[0].layouts
    assert (fact.verdict, fact.reason) == (
        "not_decided",
        "it is not known which dimension `(x.dim() == 3 ? x.stride(1) : size)` is the stride of",
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        # The address itself is not worked out: the access is told with the reason.
        ("float4* v = reinterpret_cast<float4*>(wide ? p : q); v[n] = {};", [("p", "write", "", True),
                                                                         ("q", "write", "", True)]),
        ("float* v = p; if (wide) { v = q; } v[n] = 0;", [("p", "write", "", True), ("q", "write", "", True)]),
        ("while (n > 0) { p += n; p[0] = 0; n--; }", [("p", "write", "", True)]),
        ("while (n > 0) { copy(dst, p + 4); p += n; n--; }", [("p", "passed on", "", True)]),
        # What is read points nobody knows where, and registers are no memory of a tensor.
        ("auto v = p[n]; use(v.x[2]);", [("p", "read", "n", False)]),
        ("float r[4]; r[n] = p[0];", [("p", "read", "0", False)]),
    ],
)  # fmt: skip
def test_accesses_that_are_not_worked_out_are_told(body: str, told: list[tuple[str, str, str, bool]]) -> None:
    found = addresses("float* p, float* q, int n, bool wide", body)
    assert [(one.parameter, one.access, one.computed, one.reason is not None) for one in found] == told
    assert {one.verdict for one in found} == {"undocumented"}


def test_ways_of_a_helper_stay_apart_where_no_shape_tells_them() -> None:
    helper = "__device__ void fill(float* to, int at, int n) { if (n > 2) { to[n] = 0; return; } to[at] = 1; }"
    found = addresses("float* p, int n", "fill(p, threadIdx.x, n);", helper)
    assert [(one.computed, one.under) for one in found] == [("n", "n > 2"), ("threadIdx.x", "n <= 2")]


@pytest.mark.parametrize(
    ("body", "untold"),
    [
        ("p[n] = 0; q[n] = 0;", []),
        ("p[n] = 0;\nelsewhere(q);", [("q", None, 4)]),
        ("p[n] = 0;", []),  # nothing is named that is not told
        ("p[size] = 0;", []),  # a comment documents a number
        ("q[0] = 0;\n" + "".join(f"p[{n}] = 0;\n" for n in range(20)), [("p", 8, 0)]),
        ("".join(f"q[{n % 2}] = 0;\n" for n in range(401)), [("", None, 0)]),
    ],
)
def test_pointers_whose_accesses_are_not_all_told(body: str, untold: list[tuple[str, int | None, int]]) -> None:
    text = f"__global__ void k(\n  float* p, float* q, int n, int size  /* [n, 4] */) {{\n{body}\n}}\n"
    bench = tree({"k.cu": text})
    ((path, function),) = bench.index.functions("k")
    reading = DeviceReader.of(bench, bench.unit()).kernel(Candidate(path, function), path)
    found = read_kernel(bench, bench.unit(), reading, path).untold
    assert [(one.parameter, one.ways, one.line) for one in found] == untold
