"""What blocks and threads of a kernel handle, in words; shared memory, wide accesses, reductions, functions called."""

from __future__ import annotations

import pytest

from opwalker.model.kernel import Kernel
from opwalker.views.entries import EntryView
from tests.trees import tree
from tests.views.miniatures import SOURCE, implementation, line_of, walk_of
from tests.views.notes_text import section
from tests.views.test_notes import note_of


def kernel(parameters: str, body: str, before: str = "") -> Kernel:
    """A kernel by itself."""
    text = f"{before}\ntemplate <typename T, int WIDTH>\n__global__ void k({parameters}) {{\n{body}\n}}\n"
    walk = EntryView(tree({"k.cu": text}), SOURCE).walk("k")
    (found,) = walk.implementations[-1].kernels
    return found


def words(parameters: str, body: str, before: str = "") -> list[str]:
    return [fact.says for fact in kernel(parameters, body, before).work]


SAID = [
    ("const long token = blockIdx.x; out[token] = 0;", ["one block for each token (blockIdx.x)"]),
    ("int row = blockIdx.y; int at = blockIdx.x; out[row + at] = 0;",
     ["one block along x for each at (blockIdx.x)", "one block along y for each row (blockIdx.y)"]),
    (("int at = blockIdx.x * blockDim.x + threadIdx.x; int row = blockIdx.y * blockDim.y + threadIdx.y;\n"
      "out[row * n + at] = 0;"),
     ["one thread along x for each at, counted over all blocks",
      "one thread along y for each row, counted over all blocks"]),
    ("out[blockIdx.x * 4] = 0;", ["blockIdx.x tells blocks apart"]),
    ("int head = blockIdx.x % n; int b = blockIdx.x / n; out[head + b] = 0;",
     ["blockIdx.x tells blocks apart", "head is blockIdx.x % n", "b is blockIdx.x / n"]),
    ("for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;", ["the threads of a block stride over n (i)"]),
    ("for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = 0;",
     ["the threads of all blocks stride over n (i)"]),
    ("for (int i = first[blockIdx.x / 2] / n + threadIdx.x; i < m; i += blockDim.x) out[i] = 0;",
     ["the threads of a block stride from first[(blockIdx.x / 2)] / n to m (i)"]),
    ("for (int row = blockIdx.x; row < n; row += gridDim.x) out[row] = 0;", ["blocks stride over n (row)"]),
    ("int at = blockIdx.x * blockDim.x + threadIdx.x; if (at >= n) return; out[at] = 0;",
     ["one thread for each at, counted over all blocks, while it is below n"]),
    ("int at = blockIdx.x * 256 + threadIdx.x; out[at] = 0;", ["one thread for each at, counted over all blocks"]),
    ("int unit = threadIdx.x; if (unit >= n * 2) return; out[unit] = 0;",
     ["one thread for each unit (threadIdx.x), while it is below 2 * n"]),
    ("int warp = threadIdx.x / 32; int lane = threadIdx.x & 31; out[warp + lane] = 0;",
     ["warp is the warp of the block", "lane is the lane of its warp"]),
    ("int warp = threadIdx.x >> 5; for (int r = warp; r < n; r += blockDim.x >> 5) out[r] = 0;",
     ["warp is the warp of the block", "the warps of a block stride over n (r)"]),
    ("for (int j = threadIdx.x % 32; j < n; j += 32) out[j] = 0;", ["the lanes of a warp stride over n (j)"]),
    ("for (int j = 0; j < n; j++) out[j] = 0;", []),
    (("int at = blockIdx.x * blockDim.x + threadIdx.x; int all = gridDim.x * blockDim.x;\n"
     "for (int i = 3 + at; i < n; i += all) out[i] = 0;"), ["the threads of all blocks stride from 3 to n (i)"]),
    ("int tid = threadIdx.x; for (int i = tid; i < n; i += blockDim.x) out[i] = 0;",
     ["the threads of a block stride over n (i)"]),
    ("for (int i = marks[threadIdx.x]; i < n; i += block_size) out[i] = 0;", []),
    ("int rest = threadIdx.x - 64; for (int i = rest; i < n; i += blockDim.x - 64) out[i] = 0;",
     ["the threads of a block from 64 on stride over n (i)"]),
    ("if (threadIdx.x < 64) { for (int i = threadIdx.x; i < n; i += 64) out[i] = 0; }",
     ["the threads of a block stride over n (i), if threadIdx.x < 64"]),
    ("if (blockIdx.x % 2) { for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0; return; }",
     ["blockIdx.x tells blocks apart", "the threads of a block stride over n (i), if blockIdx.x % 2"]),
    ("for (int i = block_size + threadIdx.x; i < n; i += blockDim.x) out[i] = 0;",
     ["the threads of a block stride from block_size to n (i)"]),
    ("if constexpr (WIDTH > 1) { for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0; }",
     ["the threads of a block stride over n (i), if WIDTH > 1"]),
    (("if (blockIdx.x % 2) { out[0] = 1; return; }\n"
      "for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;"),
     ["blockIdx.x tells blocks apart", "the threads of a block stride over n (i), if blockIdx.x % 2 == 0"]),
    ("if (n > 4) { out[0] = 1; } else { for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0; }",
     ["the threads of a block stride over n (i), if n <= 4"]),
    ("if (n > 4) { if (marks != nullptr) { for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0; } }",
     ["the threads of a block stride over n (i), if n > 4 && marks != nullptr"]),
    # What a kernel turns threads away by at its start is told of the threads.
    ("if (n > 4) return; for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;",
     ["nothing more is done where n > 4", "the threads of a block stride over n (i)"]),
    # A return that only some builds compile is told with what it is compiled under.
    ("if (n > 4) {\n#if __CUDA_ARCH__ == 750\nreturn;\n#endif\n}\nout[0] = 0;",
     ["nothing more is done where n > 4, compiled under #if __CUDA_ARCH__ == 750"]),
    ("#ifdef SHORT\nif (n > 4) return;\n#endif\nout[0] = 0;",
     ["nothing more is done where n > 4, compiled under #if SHORT"]),
    ("int at = blockIdx.x * blockDim.x + threadIdx.x;\n#ifdef SHORT\nif (at >= n) return;\n#endif\nout[at] = 0;",
     ["one thread for each at, counted over all blocks",
      "nothing more is done where at >= n, with at = blockIdx.x * blockDim.x + threadIdx.x, compiled under #if SHORT"]),
    ("int rest = n - block_size; for (int i = rest + threadIdx.x; i < n; i += blockDim.x) out[i] = 0;",
     ["the threads of a block stride from rest + threadIdx.x to n (i)"]),
    ("for (int i = threadIdx.x; i < n && i < block_size; i += blockDim.x) out[i] = 0;",
     ["the threads of a block stride over min(n, block_size) (i)"]),
    ("for (int i = threadIdx.x; i <= n; i += blockDim.x) out[i] = 0;",
     ["the threads of a block stride over n + 1 (i)"]),
    ("for (int i = threadIdx.x; i < n && marks[0] < 3; i += blockDim.x) out[i] = 0;",
     ["the threads of a block stride over n (i), as long as marks[0] < 3"]),
    ("for (int i = blockIdx.y * n + threadIdx.x; i < n * 2; i += blockDim.x) out[i] = 0;",
     ["the threads of a block stride from blockIdx.y * n to 2 * n (i)"]),
    ("int end = min(n, block_size); for (int i = threadIdx.x; i < end; i += blockDim.x) out[i] = marks[end];",
     ["the threads of a block stride over min(n, block_size) (i)"]),
    (("int at = blockIdx.y * blockDim.x + threadIdx.x; int all = blockDim.x * gridDim.y;\n"
      "for (int i = at; i < n; i += all) out[i] = 0;"), ["the threads of all blocks along y stride over n (i)"]),
    ("int part = threadIdx.x / n; for (int i = part; i < block_size; i += blockDim.x / n) out[i] = 0;",
     ["part is threadIdx.x / n", "groups of n threads of a block stride over block_size (i)"]),
    ("int at = blockIdx.x * blockDim.x + threadIdx.x; if (at >= n) return; int row = at / 8; out[row] = 0;",
     ["one thread for each at, counted over all blocks, while it is below n", "row is at / 8"]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "said"), SAID, ids=range(len(SAID)))
def test_what_is_handled(body, said) -> None:
    assert words("T* out, int n, const int* marks, int block_size", body) == said


def test_a_step_is_the_block_that_the_kernel_is_bound_to() -> None:
    text = "template <int TPB>\n__launch_bounds__(TPB) __global__ void k(float* out, int n) {\n%s\n}\n"
    for step, said in (("TPB", ["the threads of a block stride over n (i)"]), ("WIDE", [])):
        loop = f"for (int i = threadIdx.x; i < n; i += {step}) out[i] = 0;"
        walk = EntryView(tree({"k.cu": text % loop}), SOURCE).walk("k")
        assert [fact.says for fact in walk.implementations[-1].kernels[0].work] == said


def test_a_helper_that_reads_the_index_itself_is_looked_into() -> None:
    helper = (
        "__device__ void inner(float* to, int count) "
        "{ for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = 0; }\n"
        "__device__ void fill(float* to, int count) { inner(to, count); inner(to, count * 2); }\n"
    )
    assert words("float* out, int n", "fill(out, n);", helper) == [
        "the threads of a block stride over n (i) in inner",
        "the threads of a block stride over 2 * n (i) in inner",
    ]


def test_the_conditions_of_a_call_and_of_its_function_hold_for_its_loops() -> None:
    helper = (
        "__device__ void fill(float* to, const float* from, int count) {\n"
        "  if (from != nullptr) { for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i]; return; }\n"
        "  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = 0; }\n"
    )
    assert words("float* out, const float* in, int n", "if (n > 8) { fill(out, in, n); }", helper) == [
        "the threads of a block stride over n (i) in fill, if n > 8 && in != nullptr",
        "the threads of a block stride over n (i) in fill, if n > 8 && in == nullptr",
    ]


def test_that_a_helper_has_more_loops_than_the_first_is_said() -> None:
    helper = (
        "__device__ void fill(float* to, int count, int at, int by, bool wide) {\n"
        "  if (wide) { for (int i = at; i < count / 4; i += by) to[i] = 0; return; }\n"
        "  for (int i = at; i < count; i += by) to[i] = 0; }\n"
    )
    assert words("float* out, int n, bool wide", "fill(out, n, threadIdx.x, blockDim.x, wide);", helper) == [
        "the threads of a block stride over n / 4 (i) in fill, if wide",
        "further loops in fill are shared the same way",
    ]


def test_a_long_bound_is_shown_by_its_name_and_what_it_holds() -> None:
    body = """int first_of_the_tile = blockIdx.y * number_of_elements_in_one_tile * elements_per_thread_and_pass;
    for (int i = first_of_the_tile + threadIdx.x; i < n; i += blockDim.x) out[i] = 0;"""
    parameters = "float* out, int n, int number_of_elements_in_one_tile, int elements_per_thread_and_pass"
    assert sorted(words(parameters, body), reverse=True) == [
        "the threads of a block stride from first_of_the_tile to n (i)",
        "first_of_the_tile is blockIdx.y * number_of_elements_in_one_tile * elements_per_thread_and_pass",
    ]


def test_a_documented_row_names_what_a_block_handles() -> None:
    body = "for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = 0;"
    assert words("T* out /* [..., d] */, int d", body)[0] == "one block for each row of out (blockIdx.x)"


def test_a_loop_of_a_helper_is_said_at_its_call() -> None:
    helper = (
        "__device__ void fill(float* to, int count, int at, int by) { "
        "for (int i = at; i < count; i += by) to[i] = 0; }\n"
    )
    found = kernel("float* out, int n", "fill(out, n, threadIdx.x, blockDim.x);", helper)
    (fact,) = found.work
    assert (fact.says, fact.through) == ("the threads of a block stride over n (i) in fill", "fill")
    assert [(call.name, call.at.file, call.at.line) for call in found.calls] == [("fill", "k.cu", 1)]


def test_a_loop_of_a_lambda_is_said_at_its_calls() -> None:
    body = """auto fill = [&](int count) { for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = 0; };
    fill(n);
    fill(2 * n);"""
    assert words("float* out, int n", body) == [
        "the threads of a block stride over n (i) in fill",
        "the threads of a block stride over 2 * n (i) in fill",
    ]


LAUNCHED = """
#include <torch/library.h>
__global__ void fill_kernel(float* out, int n, int width) {
  const int row = blockIdx.x;
  for (int i = threadIdx.x; i < width; i += blockDim.x) out[row * width + i] = n;
}
void fill(torch::Tensor& out) {  // [rows, cols]
  int rows = out.size(0);
  fill_kernel<<<rows, 128>>>(out.data_ptr<float>(), 3, out.size(1));
}
TORCH_LIBRARY(mini, ops) {
  ops.def("fill(Tensor! out) -> ()");
  ops.impl("fill", torch::kCUDA, &fill);
}
"""


def test_the_launch_says_how_many_there_are() -> None:
    (found,) = implementation(LAUNCHED, "mini::fill").kernels
    assert [(f.of, f.says, f.extent) for f in found.work] == [
        ("block", "one block for each row (blockIdx.x, rows in all)", "rows"),
        ("thread", "the threads of a block stride over cols (i)", "cols"),
    ]
    assert found.work[0].line == line_of(LAUNCHED, "const int row")


def test_shared_memory_has_its_size() -> None:
    body = """__shared__ float total;
    __shared__ double part[kWarps][4];
    __shared__ T tile[WIDTH];
    extern __shared__ char scratch[];
    __shared__ typename Sum::Storage held;"""
    found = kernel("T* out", body, "constexpr int kWarps = 8;\n")
    assert [(s.name, s.size, s.bytes, s.dynamic) for s in found.shared] == [
        ("total", "4", 4, False),
        ("part", "256", 256, False),
        ("tile", "WIDTH * sizeof(T)", None, False),
        ("scratch", None, None, True),
        ("held", None, None, False),
    ]


def test_wide_accesses_say_how_wide() -> None:
    before = "template <typename E, int N> struct alignas(16) Pack { E of[N]; };\n"
    body = """auto* a = reinterpret_cast<float4*>(out);
    auto* b = reinterpret_cast<const Pack<T, 16 / sizeof(T)>*>(out);
    auto* c = reinterpret_cast<char*>(out);"""
    found = kernel("T* out", body, before)
    assert [(v.type, v.size, v.bytes) for v in found.vectors] == [
        ("float4", "16", 16),
        ("Pack<T, 16 / sizeof(T)>", "(16 / sizeof(T)) * sizeof(T)", None),
    ]


def test_an_alias_that_each_block_makes_is_that_of_its_block() -> None:
    before = "template <typename E, int N> struct alignas(16) Pack { E of[N]; };\n"
    body = """if constexpr (sizeof(T) == 4) {
      using Vec = Pack<float, 4>; auto* a = reinterpret_cast<Vec*>(out);
    } else {
      using Vec = Pack<short, 4>; { using Vec = Pack<double, 2>; } auto* b = reinterpret_cast<Vec*>(out);
    }"""
    found = kernel("T* out", body, before)
    assert [(v.type, v.bytes) for v in found.vectors] == [("Vec", 16), ("Vec", 8)]


REDUCES = """
__device__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}
__device__ float block_max(float v, float* held) {
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
  if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = v;
  __syncthreads();
  return held[0];
}
"""


def test_reductions_are_known_by_what_they_do() -> None:
    body = """using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage room;
    float a = Reduce(room).Sum(out[0]);
    float b = warp_sum(a);
    float c = block_max(b, out);"""
    found = kernel("float* out", body, REDUCES)
    assert [(r.over, r.how) for r in found.reductions] == [
        ("block", "cub::BlockReduce"),
        ("warp", "warp_sum: shuffles (sum)"),
        ("block", "block_max: shuffles, shared memory and a barrier (max)"),
    ]


PAIRED = """template <int LANES>
__device__ float pair(float v, bool small) {{
  float other = small ? min(v, 2.f) : v;
  {exchange}
  return v + other;
}}
"""


@pytest.mark.parametrize(
    ("exchange", "said"),
    [
        ("v = fmaxf(__shfl_xor_sync(~0u, v, 1), v);", ("group of 2 lanes", "pair: shuffles (max)")),
        (
            "if constexpr (LANES == 2) { v = fmaxf(v, __shfl_xor_sync(~0u, v, 8)); }",
            ("group of 2 lanes", "pair: shuffles (max), where `LANES == 2`"),
        ),
        ("v = fmaxf(v, __shfl_xor_sync(~0u, v, LANES));", ("warp", "pair: shuffles (max)")),
        (
            "v = fmaxf(v, __shfl_xor_sync(~0u, v, 2)); v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));",
            ("group of 4 lanes", "pair: shuffles (max)"),
        ),
        (
            "v = fmaxf(v, __shfl_xor_sync(~0u, v, 4)); v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));",
            ("warp", "pair: shuffles (max)"),
        ),
        (
            "for (int n = 0; n < 2; ++n) { v = fmaxf(v, __shfl_xor_sync(~0u, v, 1)); }",
            ("warp", "pair: shuffles (max)"),
        ),
    ],
)
def test_one_exchange_joins_two_lanes(exchange: str, said: tuple[str, str]) -> None:
    found = kernel("float* out", "out[0] = pair<2>(out[1], true);", PAIRED.replace("{exchange}", exchange))
    assert [(r.over, r.how) for r in found.reductions] == [said]


def test_assembly_of_the_functions_called_is_decoded() -> None:
    load = 'asm("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(p));'
    before = f"static __device__ int get(int* p) {{ int v; {load} return v; }}\n"
    found = kernel("int* flag", 'get(flag); asm volatile("griddepcontrol.wait;");', before)
    assert [(a.function, [i.what for i in a.instructions]) for a in found.assembly] == [
        ("k", ["grid wait"]),
        ("get", ["load"]),
    ]
    assert found.assembly[1].operands == ("v", "p")


CAPPED = """__global__ void k(float* out /* [rows, n] */, int n) {
  const int unit = threadIdx.x;
  if (unit >= n) {
    return;
  }
  %s
}
void op(torch::Tensor& out /* [rows, n] */) {
  int n = out.size(1);
  k<<<out.size(0), std::min(n, %s)>>>(out.data_ptr<float>(), n);
}
TORCH_LIBRARY(m, o) { o.def("op(Tensor! out) -> ()"); o.impl("op", torch::kCUDA, &op); }
"""


@pytest.mark.parametrize(
    ("use", "cap", "left_over"),
    [
        ("out[unit] = 0;", "512", ["where n is more than 512, unit from 512 on is not handled"]),
        ("out[unit] = 0;", "2 * n", []),
        ("for (int i = unit; i < n; i += blockDim.x) out[i] = 0;", "512", []),
    ],
)
def test_units_beyond_the_block_that_no_loop_reaches(use: str, cap: str, left_over: list[str]) -> None:
    (found,) = implementation(CAPPED % (use, cap), "m::op").kernels
    assert [fact.says.rpartition(": ")[2] for fact in found.work if "goes on" in fact.says] == left_over


def test_extents_that_differ_between_launches_are_not_said() -> None:
    text = (
        "__global__ void k(float* out, int n) { out[blockIdx.y * n + blockIdx.x] = 0; }\n"
        "void op(torch::Tensor& out, int n) {\n"
        "if (n < 9) k<<<n, 1>>>(out.data_ptr<float>(), n); else k<<<dim3(n, %s), 1>>>(out.data_ptr<float>(), n); }\n"
        'TORCH_LIBRARY(m, o) { o.def("op(Tensor! out, int n) -> ()"); o.impl("op", torch::kCUDA, &op); }\n'
    )
    said = {}
    for extent in ("1", "4"):
        (found,) = implementation(text % extent, "m::op").kernels
        said[extent] = [fact.says for fact in found.work]
    assert said["1"] == ["blockIdx.x tells blocks apart, n in all", "blockIdx.y tells blocks apart, 1 in all"]
    assert said["4"] == ["blockIdx.x tells blocks apart, n in all", "blockIdx.y tells blocks apart"]


def test_a_variable_of_the_thread_is_no_wide_access() -> None:
    body = (
        "float4 held = *reinterpret_cast<const float4*>(out); float parts[4];\n"
        "n = reinterpret_cast<float*>(&held)[0]; *reinterpret_cast<float2*>(parts) = float2();"
    )
    found = kernel("const float* out, int n", body)
    assert [one.type for one in found.vectors] == ["float4"]


@pytest.mark.parametrize(
    ("body", "over"),
    [
        ("float v = out[0]; v = max(v, __shfl_xor_sync(~0u, v, 4)); out[0] = v;", ["group of lanes of a warp"]),
        ("float v = out[0]; v += __shfl_down_sync(~0u, v, 4, 8); out[0] = v;", ["group of 8 lanes"]),
        ("float v = __shfl_down_sync(~0u, out[0], 1); out[1] = v;", [""]),
        ("float v = __shfl_sync(~0u, out[0], 0); v += __shfl_xor_sync(~0u, v, 1); out[1] = v;",
         ["group of lanes of a warp"]),
        (("float v = out[0], w = out[1]; v += __shfl_xor_sync(~0u, v, 2); v += __shfl_xor_sync(~0u, v, 1);\n"
         "w = max(w, __shfl_xor_sync(~0u, w, 1, 2)); out[0] = v + w;"),
         ["group of lanes of a warp", "group of 2 lanes"]),
    ],
)  # fmt: skip
def test_a_shuffle_of_the_kernel_itself_reduces_where_it_joins(body: str, over: list[str]) -> None:
    assert [r.over for r in kernel("float* out", body).reductions] == over


def test_what_a_local_is_made_of_at_first_is_not_what_it_is_once_it_changes() -> None:
    body = "int group = blockIdx.x / 4; while (n > 0) { group++; n--; } out[group] = 0; int part = blockIdx.x % 4;"
    assert words("float* out, int n", body) == ["blockIdx.x tells blocks apart", "part is blockIdx.x % 4"]


def test_what_only_some_threads_make_is_told_with_that() -> None:
    body = """if (threadIdx.x < 8) { int tile = threadIdx.x; out[tile] = 0; }
    else { int two = threadIdx.x / 2; out[two] = 1; }"""
    assert words("float* out", body) == [
        "one thread for each tile (threadIdx.x), if threadIdx.x < 8",
        "two is threadIdx.x / 2, if threadIdx.x >= 8",
    ]


def test_what_the_head_of_a_kernel_demands_is_said() -> None:
    text = """template <typename T, int N>
__global__ std::enable_if_t<(N > 0) && sizeof(T) == 2> k(T* out) { out[blockIdx.x] = 0; }
"""
    walk = EntryView(tree({"k.cu": text}), SOURCE).walk("k")
    assert walk.implementations[-1].kernels[0].asked == ("(N > 0) && sizeof(T) == 2",)


PASSING = """template <typename T> __global__ void fold(
    T* to, const T* from, const T* by, const T* mask, float scale, int first, int rows) {}
template <typename T> void launch(T* to, const T* by, float scale, int rows) {
  fold<T><<<rows, 32>>>(to, to, by, nullptr, scale, -1, rows);
}
void folded(torch::Tensor& out, const torch::Tensor& in, const std::optional<torch::Tensor>& by, int64_t rows) {
  auto dense = in.contiguous();
  const float* by_data = by.has_value() ? by->data_ptr<float>() : nullptr;
  %s
}
TORCH_LIBRARY(ns, m) { m.impl("folded", torch::kCUDA, &folded); }
"""
HERE = "fold<float><<<rows, 32>>>(out.data_ptr<float>(), dense.data_ptr<float>(), by_data, nullptr, %s, -1, rows);"
THERE = "launch<float>(out.data_ptr<float>(), by_data, 1.0f, rows);"


@pytest.mark.parametrize(
    ("launches", "passed"),
    [
        ((HERE % "1.0f",), {"to": "&out", "from": "&in", "scale": "1.0f", "rows": "rows"}),
        ((HERE % "1.0f", HERE % "2.0f"), {"to": "&out", "from": "&in", "rows": "rows"}),
        ((THERE,), {"scale": "1.0f", "rows": "rows"}),
        ((HERE % "rows", THERE), {"rows": "rows"}),
        # A launcher's own name is not the host function's, whatever it is called.
        ((HERE % "1.0f", THERE.replace("rows", "rows + 1")), {"scale": "1.0f"}),
        ((HERE % "in.size(0) * 2",), {"to": "&out", "from": "&in", "scale": "in.size(0) * 2", "rows": "rows"}),
        ((HERE % "made[0]",), {"to": "&out", "from": "&in", "rows": "rows"}),
    ],
)
def test_what_every_launch_passes_is_said(launches: tuple[str, ...], passed: dict[str, str]) -> None:
    (found,) = walk_of(PASSING % "\n  ".join(launches), "ns::folded").implementations[0].kernels
    passed = {"mask": "nullptr", "first": "-1", **passed}
    assert {one.parameter: one.value for one in found.passed} == passed


def test_what_the_host_function_makes_is_passed_by_its_name() -> None:
    made = HERE.replace("out.data_ptr", "made.data_ptr") % "1.0f"
    text = PASSING % f"auto made = torch::empty({{rows}}, in.options()); {made} return made;"
    walk = walk_of(text.replace("void folded", "torch::Tensor folded"), "ns::folded")
    (found,) = walk.implementations[0].kernels
    assert {one.parameter: one.value for one in found.passed}["to"] == "&made"
    (place,) = walk.ownership.allocations
    assert (place.holder, place.returned) == ("made", "folded")
    told = section(note_of(walk, "cuda"), "ownership")
    assert "Allocates `torch::empty({rows}, in.options())`, as `made`, which `folded` returns." in told


@pytest.mark.parametrize(
    ("begin", "says"),
    [
        ("first + at", "the threads of all blocks stride from first to n (i)"),
        ("at", "the threads of all blocks stride over n (i)"),
        ("n * 3 + at", "the threads of all blocks stride from 3 * n to n (i)"),
    ],
)
def test_a_loop_of_all_threads_says_where_it_begins(begin: str, says: str) -> None:
    body = "int first = n / 2; int at = blockIdx.x * blockDim.x + threadIdx.x;"
    body += f" for (int i = {begin}; i < n; i += gridDim.x * blockDim.x) out[i] = 0;"
    assert says in words("float* out, int n", body)


OVERLOADS = """struct Pair { float a; float b; };
__device__ void fetch(Pair& to, const Pair* from) { to = *from; to.a += 1; }
template <typename V> __device__ void fetch(V& to, const V* from) { to = *from; }
__device__ float twice(float one) { return one + one; }
"""


def test_a_call_that_can_mean_several_overloads_names_them_all() -> None:
    found = kernel("T* x", "T held; fetch(held, x + 1); fetch(held, x); x[0] = twice(x[1]);", OVERLOADS).calls
    assert [(one.name, one.at.line, one.overloaded) for one in found] == [
        ("fetch", 2, True),
        ("fetch", 3, True),
        ("twice", 4, False),
    ]


def test_of_many_definitions_the_number_is_told() -> None:
    kinds = ["char", "short", "int", "long", "float", "double", "half", "uint2", "uint4"]
    before = "".join(f"__device__ void put({kind}& to, float from) {{ to = from; }}\n" for kind in kinds)
    text = f"{before}template <typename T> __global__ void k(T* x) {{ T held; put(held, 1.f); x[0] = held; }}\n"
    walk = EntryView(tree({"k.cu": text}), SOURCE).walk("k")
    (call,) = walk.implementations[-1].kernels[0].calls
    assert (call.name, call.overloaded, call.of) == ("put", True, 9)
    assert "Calls `put`, one of its 9 definitions." in section(note_of(walk, "cuda"), "kernel-1")


def test_a_count_of_blocks_does_not_take_a_size_for_what_its_comment_makes_of_it() -> None:
    text = """__global__ void gate_kernel(float* x, int d) { int row = blockIdx.x; x[row * d + threadIdx.x] = 0; }
void gate(torch::Tensor& x) {  // [..., 2 * d]
  int d = x.size(-1) / 2;
  int rows = x.numel() / x.size(-1);
  gate_kernel<<<rows, 32>>>(x.data_ptr<float>(), d);
}
TORCH_LIBRARY(ns, m) { m.impl("gate", torch::kCUDA, &gate); }
"""
    (work, *_) = walk_of(text, "ns::gate").implementations[0].kernels[0].work
    assert work.says == "one block for each row (blockIdx.x, x.numel() / x.size(-1) in all)"
