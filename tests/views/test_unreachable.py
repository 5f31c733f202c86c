# ruff: noqa: E501, ISC004 - an example reads better whole
"""Instances that can never run: only what is certain of a value rules one out, and what is not certain never does."""

from __future__ import annotations

import pytest

from opwalker.model.walk import Launch
from opwalker.views.known_values import Known
from tests.views.miniatures import implementation

HEAD = """#define PICK_WIDTH(N, NAME, ...) \\
  switch (N) { \\
    case 16: { constexpr int NAME = 16; __VA_ARGS__(); break; } \\
    case 8: { constexpr int NAME = 8; __VA_ARGS__(); break; } \\
    case 4: { constexpr int NAME = 4; __VA_ARGS__(); break; } \\
    default: { constexpr int NAME = 1; __VA_ARGS__(); break; } \\
  }
#define PICK_TYPE(TYPE, ...) \\
  AT_DISPATCH_SWITCH(TYPE, "x", AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__) \\
                                AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__) \\
                                AT_DISPATCH_CASE(at::ScalarType::BFloat16, __VA_ARGS__))
template <int A, bool B = false> __global__ void k(float* p) {}
template <typename T, int N = 0> __global__ void kt(T* p) {}
"""
TAIL = 'TORCH_LIBRARY(m, o) { o.def("op(Tensor a, Tensor b, int n, bool flag) -> ()"); o.impl("op", torch::kCUDA, &op); }\n'


def launches(body: str, head: str = "") -> tuple[Launch, ...]:
    text = f"{HEAD}{head}void op(torch::Tensor a, torch::Tensor b, int n, bool flag) {{\n{body}\n}}\n{TAIL}"
    return implementation(text, "m::op").launches


CHANGE = "void adjust(int& w) { w = 16; }\nint keeps(const int& w, int v) { return w; }\n"


def never(body: str, head: str = "") -> list[str]:
    return [one.instance for launch in launches(body, head) for one in launch.unreachable]


RULED_OUT = {
    "a divisor of a constant": (
        "const int w = std::gcd(16 / sizeof(float), n);\nPICK_WIDTH(w, W, [&] { k<W><<<1, 2>>>(p); });",
        ["16, false", "8, false"],
    ),
    "a divisor that depends on the type": (
        "PICK_TYPE(a.scalar_type(), [&] { const int w = std::gcd(16 / sizeof(scalar_t), n);\n"
        "PICK_WIDTH(w, W, [&] { kt<scalar_t, W><<<1, 2>>>(p); }); });",
        ["c10::BFloat16, 16", "c10::Half, 16", "float, 16", "float, 8"],
    ),
    "a least value": (
        "int w = std::min(n, 8);\nif (w == 16) k<16><<<1, 2>>>(p); else k<8><<<1, 2>>>(p);",
        ["16, false"],
    ),
    "a rest": ("if (n % 4 == 4) k<4><<<1, 2>>>(p);", ["4, false"]),
    "a choice of constants": (
        "const int w = flag ? 4 : 8;\nPICK_WIDTH(w, W, [&] { k<W><<<1, 2>>>(p); });",
        ["1, false", "16, false"],
    ),
    "a check on a value": (
        'TORCH_CHECK(n == 4 || n == 8, "no");\nswitch (n) { case 4: k<4><<<1, 2>>>(p); break;\n'
        "case 16: k<16><<<1, 2>>>(p); break; }",
        ["16, false"],
    ),
    "a check of the builds that launch": (
        "#ifdef STRICT\nTORCH_CHECK(n == 4 || n == 8);\nif (n == 4) k<4><<<1, 2>>>(p); else if (n == 16) k<16><<<1, 2>>>(p);\n#endif",
        ["16, false"],
    ),
    "a check on a type": (
        "TORCH_CHECK(a.scalar_type() == at::kHalf || a.scalar_type() == at::kBFloat16);\n"
        "PICK_TYPE(a.scalar_type(), [&] { kt<scalar_t><<<1, 2>>>(p); });",
        ["float, 0"],
    ),
    "two tensors of one type": (
        "TORCH_CHECK(a.dtype() == b.dtype());\nif (a.dtype() == at::kHalf) { if (b.dtype() == at::kFloat) {\n"
        "kt<float><<<1, 2>>>(p); } else { kt<int><<<1, 2>>>(p); } }",
        ["float, 0"],
    ),
    "a branch that raises": (
        'if (n > 8) { throw std::runtime_error("no"); }\nif (n == 16) k<16><<<1, 2>>>(p); else k<4><<<1, 2>>>(p);',
        ["16, false"],
    ),
    "a plain if on a constant": ("if (false) k<4><<<1, 2>>>(p); else k<8><<<1, 2>>>(p);", ["4, false"]),
    "branches that exclude each other": ("if (n > 4) { if (n < 3) k<4><<<1, 2>>>(p); }", ["4, false"]),
    "a size, however it is named": (
        "const int64_t d = a.dim();\nTORCH_CHECK(a.dim() == 2);\nif (d == 3) k<4><<<1, 2>>>(p);",
        ["4, false"],
    ),
    "a cast to an integer": (
        "const int w = static_cast<int>(std::min<int64_t>(n, 4));\nif (w > 4) k<8><<<1, 2>>>(p);",
        ["8, false"],
    ),
    "a ternary between kernels": (
        "TORCH_CHECK(n > 8);\nauto f = n > 3 ? &k<1> : &k<2>;\nf<<<1, 2>>>(p);",
        ["2, false"],
    ),
    "a check on a flag": ("TORCH_CHECK(!flag);\nif (flag) k<4><<<1, 2>>>(p);", ["4, false"]),
}
NOT_RULED_OUT = {
    "a check of some builds": "#ifdef STRICT\nTORCH_CHECK(n == 4 || n == 8);\n#endif\nif (n == 16) k<16><<<1, 2>>>(p);",
    "a parameter": "PICK_WIDTH(n, W, [&] { k<W><<<1, 2>>>(p); });",
    "a value that is assigned": "int w = std::min(n, 4);\nw = n;\nif (w == 16) k<16><<<1, 2>>>(p);",
    "a value that is counted": "int w = std::min(n, 4);\nw++;\nif (w == 5) k<16><<<1, 2>>>(p);",
    "a value that is added to": "int w = std::min(n, 4);\nw += 12;\nif (w == 16) k<16><<<1, 2>>>(p);",
    "a value that is handed out by address": "int w = 4;\nfill(&w);\nif (w == 16) k<16><<<1, 2>>>(p);",
    "a value that a reference is kept of": "int w = 4;\nint& r = w;\nr = 16;\nif (w == 16) k<16><<<1, 2>>>(p);",
    "a check behind the launch": "if (n == 16) k<16><<<1, 2>>>(p);\nTORCH_CHECK(n == 4);",
    "a check in another branch": "if (flag) { TORCH_CHECK(n == 4); }\nif (n == 16) k<16><<<1, 2>>>(p);",
    "a check in a loop that may not run": "for (int i = 0; i < n; i++) { TORCH_CHECK(n == 4); }\nif (n == 16) k<16><<<1, 2>>>(p);",
    "a check in a lambda that nobody calls": "auto f = [&] { TORCH_CHECK(n == 4); };\nif (n == 16) k<16><<<1, 2>>>(p);",
    "a check that release builds leave out": "assert(n == 4);\nif (n == 16) k<16><<<1, 2>>>(p);",
    "a check that a debug build alone has": "TORCH_INTERNAL_ASSERT_DEBUG_ONLY(n == 4);\nif (n == 16) k<16><<<1, 2>>>(p);",
    "a call that may answer otherwise": "if (next() == 1) { if (next() == 2) k<2><<<1, 2>>>(p); }",
    "a fraction between two whole numbers": "float x = n;\nif (x > 0 && x < 1) k<2><<<1, 2>>>(p);",
    "a case that the one above falls into": (
        "TORCH_CHECK(n == 4);\nswitch (n) { case 4: prepare(n); case 8: k<8><<<1, 2>>>(p); break; }"
    ),
    "labels that stand together": "TORCH_CHECK(n == 4);\nswitch (n) { case 4:\n case 8: k<8><<<1, 2>>>(p); break; }",
    "a tensor that another one takes the place of": (
        "TORCH_CHECK(a.scalar_type() == at::kHalf);\na = a.to(at::kFloat);\n"
        "if (a.scalar_type() == at::kFloat) kt<float><<<1, 2>>>(p);"
    ),
    "a shape that is changed in place": (
        "TORCH_CHECK(a.dim() == 2);\na.unsqueeze_(0);\nif (a.dim() == 3) k<2><<<1, 2>>>(p);"
    ),
    "sizes of different dimensions": "TORCH_CHECK(a.size(0) == 4);\nif (a.size(1) == 8) k<8><<<1, 2>>>(p);",
    "an instance that another branch launches": (
        "if (false) k<4><<<1, 2>>>(p);\nPICK_WIDTH(n, W, [&] { if (false) k<2><<<1, 2>>>(p); else k<2><<<1, 2>>>(p); });"
    ),
    "a value that a function may change": "int w = 4;\nadjust(w);\nif (w == 16) k<16><<<1, 2>>>(p);",
    "a value that nobody knows what happens to": "int w = 4;\nelsewhere(w);\nif (w == 16) k<16><<<1, 2>>>(p);",
    "a value that is exchanged": "int w = 4, v = n;\nstd::swap(w, v);\nif (w == 16) k<16><<<1, 2>>>(p);",
    "a capture of the same name": "int w = 4;\nauto f = [w = n] { if (w == 16) k<16><<<1, 2>>>(p); };\nf();",
    "elements of a range": ("for (int x : xs) { for (int y : xs) { if (x == 1) { if (y == 2) k<2><<<1, 2>>>(p); } } }"),
    "a value that is made once": "static const int w = n;\nif (n == 8) { if (w == 16) k<16><<<1, 2>>>(p); }",
    "a list that grows": "std::vector<int> v;\nTORCH_CHECK(v.size() == 0);\nfill(v);\nif (v.size() == 1) k<2><<<1, 2>>>(p);",
    "a name that is declared again": "int w = 4;\nif (flag) { int w = n;\nif (w == 16) k<16><<<1, 2>>>(p); }",
}


@pytest.mark.parametrize("name", RULED_OUT)
def test_what_can_never_run(name: str) -> None:
    body, wanted = RULED_OUT[name]
    assert never(body) == wanted


@pytest.mark.parametrize("name", NOT_RULED_OUT)
def test_what_may_run(name: str) -> None:
    found = {one.instance for launch in launches(NOT_RULED_OUT[name], CHANGE) for one in launch.unreachable}
    assert not found - {"4, false"}


def test_a_value_that_functions_only_read_stays() -> None:
    body = "int w = 4;\nkeeps(w, w);\ncudaSetDevice(w);\nstd::max(w, n);\nif (w == 16) k<16><<<1, 2>>>(p);"
    assert never(body, CHANGE) == ["16, false"]


def test_the_reason_names_the_condition_and_what_the_value_is_made_from() -> None:
    (launch,) = launches("const int w = std::gcd(4, n);\nif (w == 8) k<8><<<1, 2>>>(p);")
    (one,) = launch.unreachable
    line = HEAD.count("\n") + 3
    assert (one.reason, one.line) == (f"w == 8 (:{line}), and std::gcd(4, n) (:{line - 1}) is 1, 2 or 4", line)


def test_the_reason_names_the_check() -> None:
    (launch,) = launches("TORCH_CHECK(n <= 4);\nif (n == 8) k<8><<<1, 2>>>(p);")
    line = HEAD.count("\n") + 2
    assert launch.unreachable[0].reason == f"n == 8 (:{line + 1}) contradicts the check n <= 4 (:{line})"


LAUNCHER = "template <int W> void go(int m, float* p) { if (m == 4) k<W><<<1, 2>>>(p); }\n"
CALLERS = {
    "a check of the caller": ("TORCH_CHECK(n == 8);\ngo<2>(n, p);", ["2, false"]),
    "a branch of the caller": ("if (n > 6) go<2>(n, p);", ["2, false"]),
    "a constant that the caller passes": ("go<2>(8, p);", []),
    "a call that is never made": ("if (false) go<2>(n, p);", ["2, false"]),
    "another way to get there": ("if (n > 6) go<2>(n, p);\nif (n < 5) go<2>(n, p);", []),
    "another way for another width": ("if (n > 6) go<2>(n, p);\nif (n < 5) go<3>(n, p);", ["2, false"]),
}


@pytest.mark.parametrize("name", CALLERS)
def test_what_leads_to_a_launcher_counts(name: str) -> None:
    body, wanted = CALLERS[name]
    assert never(body, LAUNCHER) == wanted


def test_what_a_launcher_says_itself_counts_however_it_is_called() -> None:
    head = "template <int W> void go(int m, float* p) { if (m > 4) { if (m < 3) k<W><<<1, 2>>>(p); } }\n"
    assert never("go<2>(n, p);\ngo<2>(n + 1, p);", head) == ["2, false"]


def test_a_lambda_runs_where_it_is_called() -> None:
    body = (
        "auto go = [&](auto w) { k<decltype(w)::value><<<1, 2>>>(p); };\nTORCH_CHECK(n == 4);\n"
        "if (n == 4) go(std::integral_constant<int, 4>{}); else go(std::integral_constant<int, 8>{});"
    )
    assert never(body) == ["8, false"]


RANKS = """#define PICK(N) case N: { if (world_ == 2) { k<N><<<1, 2>>>(p); } else if (n < 8) { k<N + 1><<<1, 2>>>(p); } break; }
class Ranks {
 public:
  Ranks(int world) : world_(world) {}
  void run(float* p, int n) { switch (world_) { PICK(2) PICK(4) } }
  %s
  int world_;
};
"""


@pytest.mark.parametrize(
    ("method", "ruled_out"),
    [
        ("int world() const { return world_; }", ["3, false", "4, false"]),
        ("void grow() { world_ = 8; }", []),
        ("int* where() { return &world_; }", []),
    ],
)
def test_a_member_that_only_constructors_set_stays(method: str, ruled_out: list[str]) -> None:
    body = "Ranks ranks(n);\nranks.run(p, n);"
    assert sorted(never(body, RANKS % method)) == ruled_out


UNROLL = """template <int B, int E> struct Unroll {
  static void go(int n) { if (n == B) { k<B><<<1, 2>>>(nullptr); } else { Unroll<B + 1, E>::go(n); } }
};
template <int E> struct Unroll<E, E> {
  static void go(int n) { if (n == E) { k<E><<<1, 2>>>(nullptr); } else { TORCH_CHECK(false, "too many"); } }
};
"""


def test_a_chain_of_conditions_is_weighed_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of an unrolled loop stands behind those before it: what they say is not weighed again at each."""
    held: list[str] = []
    hold = Known.hold
    monkeypatch.setattr(Known, "hold", lambda *given: held.append(given[3]) or hold(*given))
    counts = []
    for steps in (4, 12):
        held.clear()
        check = f'TORCH_CHECK(n >= 3 && n <= {steps}, "no");'
        assert never(f"{check} Unroll<1, {steps}>::go(n);", UNROLL) == ["1, false", "2, false"]
        counts.append(len(held))
    assert counts[1] < 4 * counts[0]


def _through_variable(code: str) -> dict[str, list[str]]:
    """Why the launch of a variable's kernels never starts them, by kernel."""
    text = f"""template <typename T> __global__ void some(T* a) {{}}
__global__ void none(float* a) {{}}
auto pick(int n) {{
  auto kernel = none;
  if (n == 1) kernel = some<float>;
  return kernel;
}}
void f(torch::Tensor& x, int n, bool wide) {{
  auto kernel = pick(n);
  {code}
  kernel<<<n, 32>>>(x.data_ptr<float>());
}}
TORCH_LIBRARY(ns, m) {{ m.impl("f", torch::kCUDA, &f); }}
"""
    launches = implementation(text, "ns::f").launches
    return {one.kernel: [never.reason for never in one.unreachable] for one in launches}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("if (kernel == none) { TORCH_CHECK(false, n); }", ["the check kernel != none (:10) raises before"]),
        ("if (kernel == &none) throw 1;", ["the check kernel != &none (:10) raises before"]),
        ("TORCH_CHECK(kernel != ::none);", ["the check kernel != ::none (:10) raises before"]),
        # It is not the check of each launch, or of this kernel, or the variable is another one behind it.
        ("if (wide) { TORCH_CHECK(kernel != none); }", []),
        ("#ifdef STRICT\nTORCH_CHECK(kernel != none);\n#endif", []),
        ("TORCH_CHECK(kernel != nullptr);", []),
        ("TORCH_CHECK(kernel != none); if (wide) kernel = none;", []),
        ("ASK(kernel != none);", []),
        ("", []),
    ],
)
def test_a_kernel_that_a_check_before_its_launch_turns_away(code: str, why: list[str]) -> None:
    assert _through_variable(code) == {"none": why, "some": []}
