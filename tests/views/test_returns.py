"""Early returns: where a function leaves, what holds behind, and under what the functions behind are entered."""

from __future__ import annotations

import pytest

from opwalker.model.walk import Implementation
from opwalker.views.checks import checks_of
from opwalker.views.notes.note import note_of
from opwalker.views.returns import Returns
from tests.trees import tree
from tests.views.miniatures import implementation, walk_of
from tests.views.notes_text import section


def returns(code: str, head: str = "") -> Returns:
    text = f"{head}int f(Tensor& x, Tensor& y, int n, int m) {{\n{code}\n}}\n"
    bench = tree({"a.cu": text})
    (_, function) = bench.index.functions("f")[0]
    return Returns(bench.unit().bodies.span("a.cu", function.body_start, function.body_end, "a.cu", function, ()))


@pytest.mark.parametrize(
    ("code", "words", "value"),
    [
        ("if (n == 0) return 0; g();", ("n is 0",), "0"),
        ("if (n == 0) { return 0; } g();", ("n is 0",), "0"),
        ("if (n > 0) { h(); return 1; } else { g(); } g();", ("n is greater than 0",), "1"),
        ("if (n > 0) { if (m == 1) return 2; } g();", ("n is greater than 0", "m is 1"), "2"),
        ("if (n == 1) { h(); } else if (n == 2) { return 3; } g();", ("n is 2",), "3"),
        ("if (false) { } else if (n == 2) { return 3; } g();", ("n is 2",), "3"),
        ("if (x.numel() == 0) return 4; g<<<1, 1>>>(n);", ("x has 0 elements",), "4"),
    ],
)
def test_where_a_function_leaves_early(code: str, words: tuple[str, ...], value: str) -> None:
    (found,) = returns(code).early()
    assert (found.words, found.value, found.line) == (words, value, 2)


@pytest.mark.parametrize(
    "code",
    [
        "g(); return 0;",  # nothing is left out
        "if (n == 0) return 0;",  # nothing stands behind it
        "if (n == 0) return g(); else return h();",
        "for (int i = 0; i < n; i++) { if (i == m) return i; } g();",  # which pass leaves is not known
        "auto take = [&] { if (n == 0) return; g(); }; take();",  # leaves the lambda alone
        "auto err = g(); if (err != cudaSuccess) return 1; h();",  # whether a call has worked
        "int rc = g(); if (rc) return rc; h();",
        "switch (n) { case 1: return 1; } g();",
    ],
)
def test_what_is_no_early_return(code: str) -> None:
    assert returns(code).early() == ()


@pytest.mark.parametrize(
    ("code", "past"),
    [
        ("if (n == 0) return 0; TORCH_CHECK(x.is_contiguous());", ("n is not 0",)),
        ("if (n == 0) return 0; if (m == 0) return 0; TORCH_CHECK(x.is_contiguous());", ("n is not 0", "m is not 0")),
        ("if (n == 1) return 0; else if (n == 2) { return 1; } TORCH_CHECK(x.is_contiguous());",
         ("n is not 1", "n is not 2")),
        ("if (n == 1) { h(); } else { return 0; } TORCH_CHECK(x.is_contiguous());", ("n is 1",)),
        ("if (n > 8) { if (m == 1) return 0; } TORCH_CHECK(x.is_contiguous());", ("n is at most 8 or m is not 1",)),
        ("if (m > 0) { if (n == 0) return 0; TORCH_CHECK(x.is_contiguous()); }", ("n is not 0",)),
        ("if (m > 0) { if (n == 0) return 0; } else { TORCH_CHECK(x.is_contiguous()); }", ()),
        ("TORCH_CHECK(x.is_contiguous()); if (n == 0) return 0; g();", ()),
        ("if (n == 0) throw 1; TORCH_CHECK(x.is_contiguous());", ()),
        ("auto take = [&] { if (n == 0) return; }; TORCH_CHECK(x.is_contiguous());", ()),
        ("int rc = g(); if (rc != 0) return rc; TORCH_CHECK(x.is_contiguous());", ()),
        ("LEAVE(n); TORCH_CHECK(x.is_contiguous());", ("n is not 0",)),
        # What some builds alone return by holds in those.
        ("#ifdef FAST\nif (n == 0) return 0;\n#endif\nTORCH_CHECK(x.is_contiguous());", ("n is not 0 (#if FAST)",)),
        ("if (n == 0) {\n#ifdef FAST\nreturn 0;\n#endif\n}\nTORCH_CHECK(x.is_contiguous());",
         ("n is not 0 (#if FAST)",)),
        ("if (n == 0) {\n#ifdef FAST\nreturn 0;\n#else\nreturn 1;\n#endif\n}\nTORCH_CHECK(x.is_contiguous());",
         ("n is not 0",)),
        ("#ifdef FAST\nif (n == 0) return 0;\nTORCH_CHECK(x.is_contiguous());\n#endif", ("n is not 0",)),
        ("#ifdef FAST\nif (n == 0) return 0;\n#else\nTORCH_CHECK(x.is_contiguous());\n#endif", ()),
        ("#ifdef FAST\nif (n == 0) return 0;\n#endif\n#ifndef FAST\nTORCH_CHECK(x.is_contiguous());\n#endif", ()),
        ("#ifndef USE_ROCM\nif (n == 0) return 0;\n#endif\nTORCH_CHECK(x.is_contiguous());", ("n is not 0",)),
        ("#ifdef FAST\nLEAVE(n)\n#endif\nTORCH_CHECK(x.is_contiguous());", ("n is not 0 (#if FAST)",)),
        ("#ifdef FAST\nif (n > 8 && m > 8) return 0;\n#endif\nTORCH_CHECK(x.is_contiguous());",
         ("(n is at most 8 or m is at most 8) (#if FAST)",)),
        (("if (n > 8) {\n#ifdef FAST\nif (m == 1) return 0;\n#endif\nif (m == 2) return 1;\n}\n"
          "TORCH_CHECK(x.is_contiguous());"), ("(n is at most 8 or (m is neither 1 nor 2)) (#if FAST)",)),
        # What goes without saying where it stands does so in each build.
        ("#ifdef FAST\nif (n == 0) return 0;\n#endif\nif (n == 3) { TORCH_CHECK(x.is_contiguous()); }", ()),
        # Where the branches that return lead around it, its own words say so.
        ("if (n == 1) return 0; if (n == 2) return 1; TORCH_CHECK(false, \"n\");", ()),
    ],
)  # fmt: skip
def test_what_holds_behind_early_returns(code: str, past: tuple[str, ...]) -> None:
    head = "#define LEAVE(N) if (N == 0) { return 0; }\n"
    found = [one for one in checks_of(returns(code, head)._body) if one.kind != "throw 1"]
    assert [one.past for one in found if one.kind == "TORCH_CHECK"][-1] == past


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("#ifdef FAST\nif (n == 9) return 9;\n#endif\nif (n == 8) return 8;\nTORCH_CHECK(false);",
         "n is 9 (#if FAST) or n is 8"),
        ("#ifdef FAST\nif (n == 9) return 9;\n#else\nTORCH_CHECK(false);\n#endif", None),
        ("#ifdef FAST\nif (n == 9) return 9;\nTORCH_CHECK(false);\n#endif", "n is 9"),
        ("#ifdef FAST\nif (n == 9) return 9;\n#endif\n#ifdef MORE\nif (n == 8) return 8;\n#endif\nthrow 1;",
         "n is 9 (#if FAST) or n is 8 (#if MORE)"),
    ],
)  # fmt: skip
def test_what_leads_around_a_raise_in_some_builds(code: str, words: str | None) -> None:
    (found,) = checks_of(returns(code)._body)
    assert found.words == words


def test_what_is_asked_behind_a_return_of_some_builds_is_asked_of_no_shape_in_all() -> None:
    code = "#ifdef FAST\nif (x.dim() == 2) return;\n#endif\nTORCH_CHECK(false);\nk<<<1, 32>>>(x.data_ptr<float>());"
    text = f"__global__ void k(float* a) {{}}\nvoid f(torch::Tensor& x) {{\n{code}\n}}\n"
    ranks = {}
    for name, made in (("some", text), ("all", text.replace("#ifdef FAST\n", "").replace("#endif\n", ""))):
        found = implementation(made + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")
        ranks[name] = found.host.parameters[0].rank
    assert ranks == {"some": None, "all": 2}


WALKED = """template <typename T> __global__ void small(T* a, int n) {}
template <typename T> __global__ void large(T* a, int n) {}
void by_parts(torch::Tensor& x, int64_t n) {
  TORCH_CHECK(x.dim() == 3, "parts");
  TORCH_CHECK(x.stride(-1) == 1);
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  large<<<1, 32>>>(x.data_ptr<float>(), n);
}
int64_t rounded(int64_t n) { TORCH_CHECK(n % 4 == 0); return n / 4; }
void f(torch::Tensor& x, int64_t n, const std::string& mode) {
  if (mode == "parts") {
    by_parts(x, rounded(n));
    return;
  }
  TORCH_CHECK(x.is_contiguous());
  if (rounded(n) == 0) return;
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  auto stream = at::cuda::getCurrentCUDAStream();
  small<<<1, 32, 0, stream>>>(x.data_ptr<float>(), rounded(n));
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""
PARTS, REST = 'mode is "parts"', 'mode is not "parts"'


@pytest.fixture(scope="module")
def walked() -> Implementation:
    return implementation(WALKED, "ns::f")


def test_everything_behind_an_early_return_is_told_with_it(walked: Implementation) -> None:
    host = walked.host
    assert host is not None
    assert [(one.words, one.value, one.line) for one in host.returns] == [
        ((PARTS,), None, 13), (("rounded(n) is 0",), None, 16)
    ]  # fmt: skip
    assert [(one.line, one.past, one.under) for one in host.checks] == [(15, (REST,), ())]
    assert [one.past for one in (*host.guards, *host.streams)] == [(REST, "rounded(n) is not 0")] * 2
    launches = {one.kernel: one.conditions for one in walked.launches}
    assert launches == {"small": (REST, "rounded(n) is not 0"), "large": (PARTS,)}


def test_a_function_is_entered_under_what_all_its_calls_stand_under(walked: Implementation) -> None:
    # `rounded` is called on both ways, `by_parts` on one of them.
    assert {one.name: one.under for one in walked.helpers} == {"by_parts": (PARTS,), "rounded": ()}


def test_what_a_function_demands_that_is_entered_under_a_condition_is_conditional(walked: Implementation) -> None:
    assert walked.host is not None
    (x, *_) = walked.host.parameters
    assert (x.ranks, x.rank, x.derived_shape) == ((), None, None)
    assert [(one.text, one.how, one.under) for one in x.derived_from] == [("3", "rank", (PARTS,))]
    strides = f"the last dimension must have stride 1 where {PARTS}"
    assert x.layout == f"must be contiguous where {REST}; {strides}"


@pytest.mark.parametrize(
    ("use", "under"),
    [
        ("if (n > 4) { g(x); }", ("n is greater than 4",)),
        ("if (n > 4) { g(x); } else { g(x); }", ()),
        ("if (n > 4) { std::call_once(flag, g, x); }", ("n is greater than 4",)),
        ("auto later = g; if (n > 4) { later(x); }", ()),  # called by another name
        ("if (n > 4) { g(x); } auto later = &g; keep(later);", ()),
    ],
)
def test_calls_and_what_is_no_call(use: str, under: tuple[str, ...]) -> None:
    head = "void g(torch::Tensor& x) { TORCH_CHECK(x.dim() == 1); }\n"
    text = f"{head}void f(torch::Tensor& x, int64_t n) {{ {use} }}\n"
    found = implementation(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")
    assert [one.under for one in found.helpers if one.name == "g"] in ([under], [])
    assert found.host is not None
    told = [one.under for one in found.host.parameters[0].derived_from]
    assert told == ([] if "call_once" in use or "later(x)" in use else [under])


def test_the_note_tells_of_early_returns_and_of_what_stands_behind_them() -> None:
    note = note_of(walk_of(WALKED, "ns::f"), "cuda")
    told = section(note, "checks")
    assert told[: told.index('On the way, `by_parts`, entered where `mode` is `"parts"`:')] == [
        'Returns early where `mode` is `"parts"`: nothing that stands behind it is done then.',
        "Returns early where `rounded(n)` is 0: nothing that stands behind it is done then.",
        'Only where `mode` is not `"parts"` (it has returned otherwise):',
        "  Requires that `x` is contiguous.",
        'Only where `mode` is not `"parts"` and `rounded(n)` is not 0 (it has returned otherwise):',
        "  Runs on the device of `x`, by `at::cuda::OptionalCUDAGuard` of `device_of(x)`.",
        "  Work goes to the current stream: `at::cuda::getCurrentCUDAStream()`.",
    ]
    assert 'Where `mode` is `"parts"`, checks demand: 3 dimensions.' in [one.strip() for one in section(note, "shapes")]
    launched = [one.strip() for one in section(note, "launch")]
    assert 'It runs where `mode` is not `"parts"` and `rounded(n)` is not 0.' in launched
    assert 'It runs where `mode` is `"parts"`.' in launched


DISPATCHED = """enum class Kind { kPlain = 0, kSmall = 1 };
inline Kind kind_of(const std::string& name) {
  if (name == "auto" || name == "plain") { return Kind::kPlain; }
  else if (name == "small") { return Kind::kSmall; }
  TORCH_CHECK(false, "no such kind: ", name);
}
#define BY_KIND(NAME, FN) Kind KIND = kind_of(NAME); if (KIND == Kind::kPlain) { FN(float); } \\
  else if (KIND == Kind::kSmall) { FN(uint8_t); } else { TORCH_CHECK(false, "no kind"); }
template <typename T> __global__ void k(float* a) {}
#define CALL(T) k<T><<<1, 32>>>(x.data_ptr<float>());
void f(torch::Tensor& x, const std::string& name) {
  if (x.numel() == 0) return;
  BY_KIND(name, CALL);
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""


def test_a_dispatch_says_where_it_is_used_and_what_the_function_it_tests_gives() -> None:
    note = note_of(walk_of(DISPATCHED, "ns::f"), "cuda")
    told = section(note, "dispatch")
    assert told[0] == (
        "The macro `BY_KIND` on `name` binds `T` to `float` or `uint8_t`, where the number of elements of `x` is not 0."
    )
    assert '  It raises unless `kind_of(name)` is `kPlain` or `kSmall`: `"no kind"`.' in told
    helper = [one.strip() for one in section(note, "checks")]
    assert 'Gives `Kind::kPlain` where `name` is `"auto"` or `"plain"`.' in helper
    assert 'Gives `Kind::kSmall` where `name` is `"small"`.' in helper


ASSERTING = """inline void expect(bool condition, const char* message = nullptr) {
  if (!condition) { throw std::runtime_error(message); }
}
inline void expect_both(bool first, int n) { if (!first) throw 1; TORCH_CHECK(n > 0); }
void f(torch::Tensor& x, int64_t n) {
  expect(n % 4 == 0, "n is cut into fours");
  if (n == 0) return;
  expect(x.is_contiguous());
  expect_both(n > 2, 3);
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""


def test_a_function_that_only_raises_unless_its_argument_holds_is_a_check_of_its_callers() -> None:
    found = implementation(ASSERTING, "ns::f")
    assert found.host is not None
    assert [(one.kind, one.words, one.message, one.line, one.past) for one in found.host.checks] == [
        ("expect", "n is divisible by 4", '"n is cut into fours"', 6, ()),
        ("expect", "x is contiguous", None, 8, ("n is not 0",)),
    ]
    assert [one.name for one in found.helpers] == ["expect_both"]  # it demands more than its argument


UNROLLED = """template <typename T> __global__ void k(T* a) {}
template <int BEGIN, int END> struct Unroller {
  static void run(torch::Tensor& x, int n) {
    if (n == BEGIN) { k<<<1, BEGIN>>>(x.data_ptr<float>()); } else { Unroller<BEGIN + 1, END>::run(x, n); }
  }
};
template <int END> struct Unroller<END, END> {
  static void run(torch::Tensor& x, int n) {
    if (n == END) { k<<<1, END>>>(x.data_ptr<float>()); } else { throw std::invalid_argument("too many"); }
  }
};
void f(torch::Tensor& x, int n) { Unroller<1, 4>::run(x, n); }
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""


def test_what_a_specialisation_demands_counts_where_it_is_the_one_that_is_called() -> None:
    (found,) = [one for one in implementation(UNROLLED, "ns::f").helpers if one.checks]
    assert (found.line, found.under) == (8, ("the definition of run at :8 is the one that is called",))


MENTIONED = """__global__ void k(float* a) {}
void gather(int n) { TORCH_CHECK(n > 2); k<<<n, 32>>>(0); }
void f(int64_t kind) {
  if (kind == 0) { gather(1); } else if (kind == 1) { gather(2); } else { throw Error("no gather of this kind"); }
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""


def test_a_function_is_not_entered_by_a_message_that_names_it() -> None:
    (found,) = implementation(MENTIONED, "ns::f").helpers
    # Every kind that does not raise leads to it: nothing is asked of that.
    assert (found.name, found.under) == ("gather", ())


COPIED = """#define BY_TYPE(X, ...) if (X.scalar_type() == at::kFloat) { using T = float; __VA_ARGS__(); } \\
  else if (X.scalar_type() == at::kHalf) { using T = at::Half; __VA_ARGS__(); } else { TORCH_CHECK(false, "no type"); }
template <typename T> __global__ void k(T* a, int n) {}
void f(torch::Tensor& x, int64_t n, const c10::optional<torch::Tensor>& room) {
  torch::Tensor own;
  if (!room.has_value()) { own = torch::empty({n}, x.options()); }
  BY_TYPE(x, [&] {
    if (n > 8) { auto wide = torch::zeros({n}, x.options()); }
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    for (int i = 0; i < n; i++) { k<T><<<1, 32>>>(x.data_ptr<T>(), i); }
  });
  do { if (n == 7) { cudaMemcpyAsync(0, 0, n, cudaMemcpyDefault, 0); } } while (0);
  while (n > 1) { for (auto one : parts) { cudaMemsetAsync(one, 0, n, 0); } }
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""


def test_allocations_guards_launches_and_ends_are_told_with_their_conditions_and_loops() -> None:
    walk = walk_of(COPIED, "ns::f")
    (found,) = walk.implementations
    # What a macro copies into each of its branches stands under what all copies do.
    assert [(one.line, one.under) for one in walk.ownership.allocations] == [
        (6, ("room is not given",)),
        (8, ("n is greater than 8",)),
    ]
    assert found.host is not None
    assert [one.under for one in found.host.guards] == [()]
    assert [one.loops for one in found.launches] == [("for (int i = 0; i < n; i++)",)]
    assert [(one.name, one.under, one.loops) for one in found.terminals if one.kind == "memory"] == [
        ("cudaMemcpyAsync", ("n is 7",), ()),
        ("cudaMemsetAsync", (), ("while (n > 1)", "for (auto one : parts)")),
    ]
    note = note_of(walk, "cuda")
    launched = [one.strip() for one in section(note, "launch")]
    assert "It stands in a loop, and is launched in each pass of `for (int i = 0; i < n; i++)`." in launched
    assert "Copies memory by `cudaMemcpyAsync(0, 0, n, cudaMemcpyDefault, 0)`, where `n` is 7." in launched
    head = "Sets memory by `cudaMemsetAsync(one, 0, n, 0)`, in each pass of "
    assert head + "`while (n > 1)` and `for (auto one : parts)`." in launched
    assert "Allocates `torch::empty({n}, x.options())`, where `room` is not given." in section(note, "ownership")


BETWEEN = """template <typename T> __global__ void k(T* a, int n) {}
/* @brief Adds.
 *
 * @param rows [n, d] What is added to.
 * @param more [n, d] What is added.
 */
template <typename T>
void launcher(torch::Tensor& rows, torch::Tensor& other, int n) { k<T><<<1, 32>>>(rows.data_ptr<T>(), n); }
void f(torch::Tensor& x, torch::Tensor& y) { launcher<float>(x, y, x.size(0)); }
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""


def test_shapes_that_a_function_on_the_way_documents_are_those_of_what_it_is_passed() -> None:
    host = implementation(BETWEEN, "ns::f").host
    assert host is not None
    assert [(one.name, one.shape_text, [s.kind for s in one.sources]) for one in host.parameters] == [
        ("x", "[n, d]", ["way"]), ("y", None, [])
    ]  # fmt: skip
    assert host.parameters[0].shape_span is not None
    assert host.parameters[0].shape_span.line == 4


CHOSEN = """__global__ void two(float* a) {}
__global__ void four(float* a) {}
__global__ void eight(float* a) {}
auto pick(int n) { if (n == 2) { return two; } return four; }
void by_variable(torch::Tensor& x, int bits, int n) {
  auto kernel = four;
  if (bits == 2) { kernel = two; } else if (bits == 8) { kernel = eight; }
  kernel<<<1, 32>>>(x.data_ptr<float>());
  auto picked = pick(n);
  picked<<<1, 64>>>(x.data_ptr<float>());
}
void by_case(torch::Tensor& x, int bits) {
  switch (bits) {
    case 1: static_assert(true, ""); by_variable(x, 1, 2); break;
    case 2: by_variable(x, 2, 2); break;
    case 4: by_variable(x, 4, 2); break;
    case 8: by_variable(x, 8, 2); break;
    case 9: by_variable(x, 9, 2); break;
  }
}
void f(torch::Tensor& x, int n) {
  if (x.scalar_type() == at::kFloat) { by_case(x, n); }
  else if (x.scalar_type() == at::kHalf) { by_case(x, n + 1); }
  else { TORCH_CHECK(false, "no such type"); }
}
TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }
"""


def test_a_launch_through_a_variable_says_where_it_holds_which_kernel() -> None:
    launches = implementation(CHOSEN, "ns::f").launches
    # What leads into `by_case` raises for every other type: that says nothing of when it runs.
    ways = "bits is 1, 2, 4, 8 or 9"
    assert {(one.kernel, one.block): one.conditions for one in launches} == {
        ("four", "32"): (ways, "bits is neither 2 nor 8"),
        ("two", "32"): (ways, "bits is 2"),
        ("eight", "32"): (ways, "bits is 8"),
        ("two", "64"): (ways, "`pick(n)` gives it"),
        ("four", "64"): (ways, "`pick(n)` gives it"),
    }
