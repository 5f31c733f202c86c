"""Notes: what a walk carries comes out as sentences in reading order, each once and with its place."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from opwalker.model.notes import Diagram, Note, Statements
from opwalker.model.ops import OpImpl
from opwalker.model.owning import Holding
from opwalker.model.walk import PythonRef
from opwalker.views.entries import EntryView
from opwalker.views.notes.note import note_of
from opwalker.views.notes.words import condition, marked, message, some
from opwalker.views.python_dims import with_dims
from tests.trees import tree
from tests.views.miniatures import SOURCE, walk_of
from tests.views.notes_text import plain, section

DISPATCH = """#pragma once
#define SWITCH_TYPE(TYPE, ...)                                     \\
  if (TYPE == at::ScalarType::Float) {                             \\
    using elem_t = float;                                          \\
    __VA_ARGS__();                                                 \\
  } else if (TYPE == at::ScalarType::Half) {                       \\
    using elem_t = uint16_t;                                       \\
    __VA_ARGS__();                                                 \\
  } else {                                                         \\
    TORCH_CHECK(false, "no such type: ", TYPE);                    \\
  }
"""

STORE = """#include "dispatch.h"
namespace mini {
template <typename T>
__global__ void __launch_bounds__(256) store_kernel(
    const T* __restrict__ rows,   // [tokens, width]
    T* __restrict__ pages,        // [pages, width/x, page, x]
    const int64_t* __restrict__ slots,  // [tokens]
    const int row_stride, const int width, const int page, const int x) {
  const int64_t token = blockIdx.x;
  const int64_t slot = slots[token];
  if (slot < 0) {
    return;
  }
  __shared__ float most;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const int64_t at = (slot / page) * (width / x) * page * x + (i / x) * page * x + (slot % page) * x + i % x;
    pages[at] = rows[token * row_stride + i];
  }
  __syncthreads();
}
}  // namespace mini

void store(torch::Tensor& rows,    // [tokens, width]
           torch::Tensor& pages,   // [pages, width/x, page, x]
           torch::Tensor& slots) { // [tokens]
  TORCH_CHECK(slots.dim() == 1, "slots must be flat");
  int tokens = slots.size(0);
  int width = rows.size(1);
  int page = pages.size(2);
  int x = pages.size(3);
  int row_stride = rows.stride(0);
  dim3 grid(tokens);
  dim3 block(std::min(width, 256));
  const at::cuda::OptionalCUDAGuard device_guard(device_of(rows));
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  const auto kind = rows.scalar_type();
  SWITCH_TYPE(kind, [&] {
    mini::store_kernel<elem_t><<<grid, block, 0, stream>>>(
        rows.data_ptr<elem_t>(), pages.data_ptr<elem_t>(), slots.data_ptr<int64_t>(), row_stride, width, page, x);
  });
}
"""

LIBRARY = {
    "csrc/dispatch.h": DISPATCH,
    "csrc/store.cu": STORE,
    "csrc/bindings.cpp": """TORCH_LIBRARY(mini, ops) {
  ops.def("store(Tensor rows, Tensor! pages, Tensor slots) -> ()");
  ops.impl("store", torch::kCUDA, &store);
}
""",
}

HELD = """#include <Python.h>
static int last_error = 0;
#define TRY(call) do { int e = (call); if (e != 0) { last_error = e; } } while (0)
static void* room(size_t n) {
  void* p = nullptr;
  TRY(cudaMalloc(&p, n));
  return p;
}
extern "C" {
void* take(size_t n) {
  void* found = room(n);
  if (last_error != 0) return nullptr;
  PyGILState_STATE state = PyGILState_Ensure();
  if (n == 7) {
    PyGILState_Release(state);
    return nullptr;
  }
  PyGILState_Release(state);
  return found;
}
}
"""


@pytest.fixture(scope="module")
def note() -> Note:
    return note_of(walk_of(LIBRARY, "mini::store"), "cuda")


@pytest.fixture(scope="module")
def held() -> Note:
    return note_of(EntryView(tree({"csrc/held.cpp": HELD}), SOURCE).walk("csrc/held.cpp::take"), "cuda")


def test_sections_stand_in_reading_order(note: Note) -> None:
    assert [one.id for one in note.sections] == [
        "entry", "contract", "path", "shapes", "checks", "ownership", "synchronisation", "dispatch", "launch",
        "kernel-1", "questions",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("part", "sentences"),
    [
        (
            "contract",
            ["Writes `pages` in place: calls cannot be dropped or reordered.",
             "Returns nothing: results go there and nowhere else.",
             "No fake implementation was found; as it only writes arguments, torch traces it without one.",
             "`pages` | `Tensor` | written | `torch::Tensor&` | "],
        ),
        (
            "shapes",
            ["`rows` is documented as `[tokens, width]`.",
             "  In the code it is `[?, width, ...]`, as documented.",
             ("  It may be strided: the kernel gets the stride of dimension 0 (`row_stride`), so rows may lie apart: "
              "a slice of a wider tensor, as of a fused QKV, needs no copy."),
             ("  `width` is cut into groups of `x`: the `x` elements of a group stand side by side, so that one wide "
              "access can move them, then those of the next `page`, before the next group of `width` begins."),
             "  How large `x` is, no caller in Python shows: the tensor that is passed decides.",
             "  Checks allow 1 dimension.",
             "Of `pages` and `slots`, no check asks for contiguity or a stride.",
             "`tokens` | `slots.size(0)` | `int`, 64 bits narrowed"],
        ),
        (
            "checks",
            ['Requires that `slots` has 1 dimension, else `"slots must be flat"`.',
             "Runs on the device of `rows`, by `at::cuda::OptionalCUDAGuard` of `device_of(rows)`.",
             "Work goes to the current stream: `at::cuda::getCurrentCUDAStream()`."],
        ),
        ("ownership", ["The guard `device_guard` lives to the end of its scope in `store`."]),
        (
            "dispatch",
            ["The macro `SWITCH_TYPE` on `kind` binds `elem_t` to `float` or `uint16_t`.",
             "  There, `kind` is `rows.scalar_type()`.",
             '  It raises unless `kind` is Float or Half: `"no such type: {kind}"`.',
             "`mini::store_kernel` is compiled in 2 instances.",
             "  `T` is `float` or `unsigned short`, from the macro `SWITCH_TYPE`.",
             "`<float>`"],
        ),
        (
            "launch",
            ["  Grid: `tokens` blocks, written `dim3 grid(tokens)`.",
             "  Block: `min(width, 256)` threads, written `dim3 block(std::min(width, 256))`.",
             "  Dynamic shared memory: none.",
             "  There, `tokens` is `slots.size(0)`."],
        ),
        (
            "kernel-1",
            ["One block for each `token` (`blockIdx.x`, `tokens` in all).",
             "Nothing more is done where `slot < 0`, with `slot` = `slots[token]`.",
             "The threads of a block stride over `width` (`i`).",
             "Shared memory: `float most`, 4 bytes.",
             "1 barrier, told under Synchronisation points.",
             "`rows` is addressed as its documented shape, with strides that the host passes: `[tokens, width]`.",
             "  This holds where `rows` is contiguous from dimension `width` on.",
             "`pages` is addressed as its documented shape `[pages, width/x, page, x]`.",
             "    Given that `width % x == 0`."],
        ),
    ],
)  # fmt: skip
def test_what_is_known_is_said(note: Note, part: str, sentences: list[str]) -> None:
    rest = iter(section(note, part))
    missing = [one for one in sentences if not any(one == found for found in rest)]
    assert missing == [], section(note, part)


def test_no_statement_stands_twice(note: Note) -> None:
    whole = [one for part in note.sections for one in section(note, part.id) if len(one) > 40]
    assert len(whole) > 20
    assert sorted(one for one in set(whole) if whole.count(one) > 1) == []


def test_every_statement_of_the_source_has_its_place(note: Note) -> None:
    lengths = {path: text.count("\n") for path, text in LIBRARY.items()}
    spans = []
    for part in note.sections:
        for block in part.blocks:
            for item in block.items if isinstance(block, Statements) else ():
                spans += [*item.at, *(span for one in item.below for span in one.at)]
    assert len(spans) > 15
    assert [span for span in spans if not 1 <= span.line <= span.end_line <= lengths[span.file]] == []


def test_long_lists_are_folded(note: Note) -> None:
    (dispatch,) = [one for one in note.sections if one.id == "dispatch"]
    assert [block.fold for block in dispatch.blocks if block.fold] == ["2 instances of mini::store_kernel"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Acquires a GIL state: `PyGILState_Ensure()`, held in `state`, in `take`.",
        "  Released by `PyGILState_Release(state)`.",
        "  Every way out behind it passes a release or hands it on.",
        "Acquires device memory: `cudaMalloc(&p, n)`, held in `p`, in `room`.",
        "  It is returned to the caller.",
        "`last_error` (`int`) is a global.",
        "  Written by `last_error = e` (the macro `TRY`) in `room`.",
        "  Tested in `take`.",
        (
            "Nothing is thrown across C: `take` has C linkage, and no throw and no raising check stands in it or in "
            "the one function of this source that it calls."
        ),
    ],
)
def test_ownership_across_c(held: Note, sentence: str) -> None:
    assert sentence in section(held, "ownership")


def test_a_release_that_is_missing_is_told() -> None:
    leaking = HELD.replace("    PyGILState_Release(state);\n    return nullptr;", "    return found;")
    note = note_of(EntryView(tree({"csrc/held.cpp": leaking}), SOURCE).walk("csrc/held.cpp::take"), "cuda")
    assert "  **Not released** on 1 way out behind it." in section(note, "ownership")


def test_an_op_that_returns_something_needs_a_fake() -> None:
    returning = {**LIBRARY, "csrc/bindings.cpp": LIBRARY["csrc/bindings.cpp"].replace("-> ()", "-> Tensor")}
    note = note_of(walk_of(returning, "mini::store"), "cuda")
    assert "No fake implementation was found: `torch.compile` cannot trace through it here." in section(
        note, "contract"
    )


@pytest.mark.parametrize(
    ("composite", "other", "needed"),
    [(("cpu",), ("cuda", "rocm"), True), (("cpu", "cuda"), ("cuda",), False), (None, ("cuda",), False)],
)
def test_what_torch_looks_through_in_one_build_helps_no_other(composite, other, needed) -> None:
    walk = walk_of(LIBRARY, "mini::store")
    through = OpImpl("CompositeImplicitAutograd", "place", "a.cpp", 1, builds=composite)
    impls = (through, OpImpl("CUDA", "store", "a.cpp", 2, builds=other))
    said = section(note_of(replace(walk, op=replace(walk.op, impls=impls)), "cuda"), "contract")
    assert any(one.startswith("No fake") for one in said) == needed


def test_a_file_is_told_in_reading_order() -> None:
    note = note_of(EntryView(tree({"csrc/held.cpp": HELD}), SOURCE).walk("csrc/held.cpp"), "cuda")
    assert plain(note.summary) == "Holds 1 entry point, 1 host function and 1 global."
    assert [row.split(" | ")[0] for row in section(note, "outline")] == ["`take`", "`room`", "`last_error`"]
    assert "path" not in {one.id for one in note.sections}


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("dimension 0 of weight equals x", ["weight"], "dimension 0 of `weight` equals x"),
        ("std::gcd(16 / sizeof(a), n) is 1 or 2", [], "`std::gcd(16 / sizeof(a), n)` is 1 or 2"),
        ("vec_size == 16 (:7)", [], "`vec_size == 16` (:7)"),
        ("!force_one and world_ is 2", [], "`!force_one` and `world_` is 2"),
        ('mode is "a" or "b"', ["mode"], '`mode` is `"a"` or `"b"`'),
        ("of a block", ["a", "block"], "of a block"),
        ("head % x", ["head", "x"], "`head % x`"),
        ("where (head / x) * n is more than 5", ["head", "x", "n"], "where `(head / x) * n` is more than 5"),
        ("rot + off is at most 4", ["rot", "off"], "`rot + off` is at most 4"),
        ("far.index() equals near.index()", ["far", "near"], "`far.index()` equals `near.index()`"),
        ("all equals peer->count_", ["peer"], "all equals `peer->count_`"),
        ("static_cast<size_t>(at) is less than 4", [], "`static_cast<size_t>(at)` is less than 4"),
        ("dimension 1 of a is divisible by a block", ["a"], "dimension 1 of `a` is divisible by a block"),
        ("not found: `f`", [], "not found: `f`"),
    ],
)
def test_names_of_the_source_are_code(text: str, names: list[str], expected: str) -> None:
    assert plain(marked(text, names)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d is divisible by vec_size", "`d` is divisible by `vec_size`"),
        ("numColumns is at least kSplit and !wide", "`numColumns` is at least `kSplit` and `!wide`"),
        ("x is of type Half or BFloat16", "`x` is of type Half or BFloat16"),
        (
            "(where key is given, key and rows are on the GPU)",
            "(where `key` is given, `key` and `rows` are on the GPU)",
        ),
    ],
)
def test_a_condition_is_words_around_names(text: str, expected: str) -> None:
    assert plain(condition(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"width must be a multiple of ", n', '`"width must be a multiple of {n}"`'),
        ('"a (", x.dim(), ") and " "b"', '`"a ({x.dim()}) and b"`'),
        ('"index " + std::to_string(v.size()) + " of, " + std::string(f(a, b))', '`"index {v.size()} of, {f(a, b)}"`'),
        ("kMessage", '`"{kMessage}"`'),
        ('"at (", row, ", ", col + 1, ")"', '`"at ({row}, {col + 1})"`'),
    ],
)
def test_a_message_is_one_text(text: str, expected: str) -> None:
    assert plain(message(text)) == expected


def test_many_values_are_counted() -> None:
    assert plain(some([str(number) for number in range(20)], 3)) == "`0`, `1`, `2` and 17 more"
    assert plain(some(["a", "b"], 3, "or")) == "`a` or `b`"


NEVER = """template <int R> __global__ void near_kernel(float* p) {}
template <int R> __global__ void far_kernel(float* p) {}
class Ranks {
 public:
  explicit Ranks(int world) : world_(world) {}
  void run(float* p, int n) {
    switch (world_) {
      case 2:
        if (world_ == 4) { near_kernel<1><<<1, 32>>>(p); } else { far_kernel<1><<<1, 32>>>(p); }
        break;
      case 4:
        if (world_ == 4) { near_kernel<2><<<2, 32>>>(p); } else { far_kernel<2><<<2, 32>>>(p); }
        break;
    }
  }
  int world_;
};
void run(torch::Tensor& x, int64_t n) {
  Ranks ranks(n);
  ranks.run(x.data_ptr<float>(), n);
}
TORCH_LIBRARY(m, o) { o.def("run(Tensor! x, int n) -> ()"); o.impl("run", torch::kCUDA, &run); }
"""


def test_a_launch_whose_conditions_exclude_each_other_is_said_to_never_run() -> None:
    said = section(note_of(walk_of(NEVER, "m::run"), "cuda"), "launch")
    never = [one for one in said if "never" in one]
    assert never == [
        "  It never runs: `world_ == 4` (:9) contradicts `world_ == 2` (:8).",
        "  It never runs: `world_ != 4` (:12) contradicts `world_ == 4` (:11).",
    ], said


PICKED = """template <int M> __global__ void wide_kernel(float* p) {}
__global__ void flat_kernel(float* p) {}
using pick_t = void (*)(float*);
#define PICK(M) if (m == M) return wide_kernel<M>;
pick_t pick(int m) {
  PICK(1);
  PICK(2);
  return nullptr;
}
torch::Tensor run(torch::Tensor& x, int64_t m, int64_t bits) {
  auto made = torch::empty({x.size(0), 4}, x.options());
  const auto rows = x.size(0);
  auto chosen = pick(m);
  chosen<<<1, 32>>>(x.data_ptr<float>());
  auto kernel = wide_kernel<3>;
  if (bits == 8) {
    kernel = flat_kernel;
  }
  kernel<<<1, 32>>>(x.data_ptr<float>());
  cudaMemcpyAsync(x.data_ptr(), x.data_ptr(), 4, cudaMemcpyDeviceToDevice, 0);
  return made;
}
TORCH_LIBRARY(m, o) { o.def("run(Tensor! x, int!? m, int bits) -> Tensor"); o.impl("run", torch::kCUDA, &run); }
"""


@pytest.fixture(scope="module")
def picked() -> Note:
    return note_of(walk_of(PICKED, "m::run"), "cuda")


@pytest.mark.parametrize(
    ("part", "said", "unsaid"),
    [
        ("launch", "`wide_kernel<…>` by `<<<…>>>`.", "`wide_kernel<1>` by `<<<…>>>`."),
        ("launch", "`flat_kernel` by `<<<…>>>`.", "`flat_kernel<3>` by `<<<…>>>`."),
        ("launch", "  Grid: `1` block.", "  Grid: `1` blocks."),
        (
            "launch",
            "Copies memory by `cudaMemcpyAsync(x.data_ptr(), x.data_ptr(), 4, cudaMemcpyDeviceToDevice, 0)`.",
            "Takes memory by `cudaMemcpyAsync`.",
        ),
        ("shapes", "`rows` | `x.size(0)` | `const auto`", "`made` | `torch::empty({x.size(0), 4}, x.options())` | "),
        (
            "contract",
            "Writes `x` in place: calls cannot be dropped or reordered.",
            "`m` | `int?` | written | `int64_t` | ",
        ),
    ],
)
def test_what_would_mislead_is_not_said(picked: Note, part: str, said: str, unsaid: str) -> None:
    found = section(picked, part)
    assert said in found, found
    assert unsaid not in found


def test_what_the_schema_calls_written_and_cannot_be(picked: Note) -> None:
    told = [one for one in section(picked, "contract") if one.startswith("The schema marks")]
    assert told == ["The schema marks `m` as written too, yet `int` is passed by value: nothing can be written to it."]


def test_how_large_a_group_is_where_python_makes_it() -> None:
    python = (
        "import torch\n\ndef store(rows, pages, slots):\n    x = 16 // pages.element_size()\n"
        "    made = pages.view(8, rows.shape[1] // x, -1, x)\n    torch.ops.mini.store(rows, made, slots)\n"
    )
    refs = (PythonRef("mini/ops.py", 6, "store"),)
    files = {**LIBRARY, "mini/ops.py": python}
    walk = with_dims(walk_of(files, "mini::store"), refs, files.__getitem__)
    (told,) = [one for one in section(note_of(walk, "cuda"), "shapes") if "Python" in one]
    assert told == (
        "  Python makes it with `x = 16 // pages.element_size()`: so many elements that a group takes 16 bytes, in "
        "`pages.view(8, rows.shape[1] // x, -1, x)`."
    )


def test_what_calls_beside_another_implementation_hold_is_not_told() -> None:
    walk = walk_of(LIBRARY, "mini::store")
    (chosen,) = walk.implementations
    other = replace(chosen, key="CPU", builds=("cpu",), host=replace(chosen.host, file="cpu/store.cpp"))
    held = Holding("memory", "malloc(1)", "make", "cpu/store.cpp", 3)
    walk = replace(walk, implementations=(chosen, other), ownership=replace(walk.ownership, holdings=(held,)))
    assert "malloc" not in repr(note_of(walk, "cuda"))
    own = replace(held, file=chosen.host.file)
    assert "malloc" in repr(note_of(replace(walk, ownership=replace(walk.ownership, holdings=(own,))), "cuda"))


@pytest.mark.parametrize(
    ("wait", "word"), [("cudaGridDependencySynchronize();", "2 synchronising calls"), ("", "1 barrier")]
)
def test_a_wait_for_another_grid_is_no_barrier(wait: str, word: str) -> None:
    body = f"__global__ void k(float* a) {{ {wait} a[threadIdx.x] = 1.f; __syncthreads(); }}\n"
    walk = EntryView(tree({"k.cu": body + "void go(float* a) { k<<<1, 32>>>(a); }\n"}), SOURCE).walk("go")
    told = section(note_of(walk, "cuda"), "kernel-1")
    assert any(one.startswith(f"{word}, told under") for one in told), told


PAGED = """
#define BY_WIDTH(N, ...) \\
  if (N == 4) { constexpr int W = 4; __VA_ARGS__(); } else { constexpr int W = 2; __VA_ARGS__(); }
#define BY_KIND(K, ...) \\
  if (K) { constexpr bool B = true; __VA_ARGS__(); } else { constexpr bool B = false; __VA_ARGS__(); }
template <int W>
__global__ void put_kernel(float* out, int64_t page, int64_t head, int heads, int width) {
  float* to = out + blockIdx.x * page;
  if (head == width) {
    for (int i = threadIdx.x; i < heads * width; i += blockDim.x) to[i] = W;
  } else {
    for (int h = 0; h < heads; ++h) {
      for (int i = threadIdx.x; i < width; i += blockDim.x) to[h * head + i] = W;
    }
  }
}
template <bool B>
__global__ void pack_kernel(float* out) {}
void pack(torch::Tensor& out, bool kind) {
  BY_KIND(kind, [&] { pack_kernel<B><<<1, 32>>>(out.data_ptr<float>()); });
}
void put(torch::Tensor& out,  // [pages, heads, width]
         bool packed, bool kind) {
  if (packed) {
    pack(out, kind);
    return;
  }
  int heads = out.size(1);
  int width = out.size(2);
  BY_WIDTH(width, [&] {
    put_kernel<W><<<out.size(0), 32>>>(out.data_ptr<float>(), out.stride(0), out.stride(1), heads, width);
  });
}
"""


@pytest.fixture(scope="module")
def paged() -> Note:
    bound = """TORCH_LIBRARY(mini, ops) {
  ops.def("put(Tensor! out, bool packed, bool kind) -> ()");
  ops.impl("put", torch::kCUDA, &put);
}
"""
    return note_of(walk_of({"csrc/put.cu": PAGED, "csrc/bindings.cpp": bound}, "mini::put"), "cuda")


def test_a_dispatch_leads_only_to_the_launches_in_it(paged: Note) -> None:
    (path,) = [one for one in paged.sections if one.id == "path"]
    (drawn,) = [block for block in path.blocks if isinstance(block, Diagram)]
    labels = {node.id: node.label for node in drawn.nodes}
    assert {(labels[edge.start], labels[edge.end]) for edge in drawn.edges} == {
        ("mini::put", "put"),
        ("put", "pack"),
        ("pack", "BY_KIND on kind"),
        ("BY_KIND on kind", "pack_kernel"),
        ("put", "BY_WIDTH on width"),
        ("BY_WIDTH on width", "put_kernel"),
    }


def test_what_one_access_requires_is_not_asked_of_the_others(paged: Note) -> None:
    said = [text for one in paged.sections if one.id.startswith("kernel-") for text in section(paged, one.id)]
    assert [text for text in said if "holds where" in text] == [
        "    For this access it holds where `out` is contiguous from dimension `heads` on.",
        "    For this access it holds where `out` is contiguous from dimension `width` on.",
    ]


def test_a_call_stands_where_it_is_made_and_not_where_its_function_begins() -> None:
    wrapper = PythonRef("mini/ops.py", 3, "store", "torch.ops.mini.store", 0, 7)
    found = note_of(replace(walk_of(LIBRARY, "mini::store"), python=(wrapper,)), "cuda")
    assert section(found, "entry") == ["`store` | `torch.ops.mini.store` | `mini/ops.py:7`"]


FIXED = """#define RUN(WIDE, N) k<elem_t, WIDE, N><<<1, 32>>>(x.data_ptr<elem_t>());
template <typename T, bool WIDE, int N> __global__ void k(T* a) {}
void f(torch::Tensor& x, int64_t n) {
  using elem_t = float;
  constexpr int LANES = 4;
  if (n % 4 == 0) {
    RUN(true, LANES)
  } else {
    RUN(false, LANES)
  }
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""


def test_what_a_name_in_template_arguments_always_means_is_shown() -> None:
    told = section(note_of(walk_of(FIXED, "ns::f"), "cuda"), "launch")
    assert told[0] == "`k<float, …, 4>` by `<<<…>>>`."
    rows = [row.split(" | ")[1] for row in told if row.startswith("`a.cu:")]
    assert rows == ["`<float, true, 4>`", "`<float, false, 4>`"]
