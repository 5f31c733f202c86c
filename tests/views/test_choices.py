"""How an implementation chooses: dispatch macros by axis, row and failure; choices that functions write themselves."""

from __future__ import annotations

from opwalker.model.walk import Branching, Dispatch, Implementation
from tests.views.miniatures import LIBRARY, implementation, line_of

KERNEL = "template <typename T, int N = 0> __global__ void k(T* a) {}\n"


def walked(code: str, head: str = "", parameters: str = "torch::Tensor& x, int n, bool wide") -> Implementation:
    text = f"{KERNEL}{head}void f({parameters}) {{\n{code}\n}}\n"
    return implementation(text + 'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n', "ns::f")


def dispatch(code: str, head: str) -> Dispatch:
    (found,) = walked(code, head).dispatch
    return found


def choice(code: str, head: str = "") -> Branching:
    (found,) = walked(code, head).branches
    return found


TWO_AXES = """#define BY_CACHE(SRC, KIND, FN) \\
  Mode MODE = mode_of(KIND); \\
  if (MODE == Mode::kPlain) { \\
    if (SRC == at::ScalarType::Float) { FN(float, float, Mode::kPlain); } \\
    else if (SRC == at::ScalarType::Half) { FN(half, half, Mode::kPlain); } \\
    else { TORCH_CHECK(false, "input type ", SRC); } \\
  } else if (MODE == Mode::kSmall) { \\
    if (SRC == at::ScalarType::Float) { FN(float, uint8_t, Mode::kSmall); } \\
    else if (SRC == at::ScalarType::Half) { FN(half, uint8_t, Mode::kSmall); } \\
    else { TORCH_CHECK(false, "input type ", SRC); } \\
  } else { TORCH_CHECK(false, "cache type"); }
#define CALL(KV_T, CACHE_T, M) k<KV_T, int(M)><<<1, 2>>>(a);
"""


def test_each_name_belongs_to_the_axis_that_decides_it() -> None:
    found = dispatch("BY_CACHE(x.scalar_type(), kind, CALL)", TWO_AXES)
    assert [(axis.on, axis.tests, axis.binds) for axis in found.axes] == [
        ("mode_of(kind)", ("kPlain", "kSmall"), ("M",)),
        ("x.scalar_type()", ("Float", "Half"), ("KV_T",)),
    ]
    assert [(row.under, row.values) for row in found.rows][:2] == [
        (("mode_of(kind) is kPlain", "x is of type Float"), ("float", "float", "Mode::kPlain")),
        (("mode_of(kind) is kPlain", "x is of type Half"), ("half", "half", "Mode::kPlain")),
    ]
    assert len(found.rows) == 4


def test_names_bound_at_several_depths_stand_side_by_side() -> None:
    head = """#define BOTH(A, B, ...) \\
  if (A == at::ScalarType::Float) { using a_t = float; \\
    if (B == at::ScalarType::Half) { using b_t = half; __VA_ARGS__(); } \\
    else if (B == at::ScalarType::Float) { using b_t = float; __VA_ARGS__(); } } \\
  else if (A == at::ScalarType::Half) { using a_t = half; \\
    if (B == at::ScalarType::Half) { using b_t = half; __VA_ARGS__(); } }
"""
    found = dispatch("BOTH(x.scalar_type(), y.scalar_type(), [&] { k<a_t><<<1, 2>>>(a); })", head)
    assert (found.binds, found.values) == ("a_t, b_t", ("float", "half"))
    assert [row.values for row in found.rows] == [("float", "half"), ("float", "float"), ("half", "half")]
    assert [(axis.on, axis.binds) for axis in found.axes] == [
        ("x.scalar_type()", ("a_t",)),
        ("y.scalar_type()", ("b_t",)),
    ]


def test_the_branches_that_raise() -> None:
    found = dispatch("BY_CACHE(x.scalar_type(), kind, CALL)", TWO_AXES)
    assert [(one.words, one.message) for one in found.fails] == [
        ("x is of type Float or Half", '"input type ", x.scalar_type()'),
        ("mode_of(kind) is kPlain or kSmall", '"cache type"'),
    ]


def test_the_default_of_a_library_macro_raises() -> None:
    (found,) = implementation(LIBRARY, "mini::norm").dispatch
    assert [(axis.on, axis.tests, axis.binds) for axis in found.axes] == [
        ("input.scalar_type()", ("Float", "Half"), ("scalar_t",))
    ]
    assert [(one.words, one.kind) for one in found.fails] == [("input is of type Float or Half", "TORCH_CHECK")]


def test_a_default_that_does_not_raise_is_a_value_like_others() -> None:
    head = (
        "#define BY_N(N, ...) switch (N) { case 8: { constexpr int V = 8; __VA_ARGS__(); break; } "
        "default: { constexpr int V = 1; __VA_ARGS__(); } }\n"
    )
    found = dispatch("BY_N(n, [&] { k<float, V><<<1, 2>>>(a); })", head)
    assert [(axis.on, axis.tests) for axis in found.axes] == [("n", ("8", "otherwise"))]
    assert [(row.under, row.values) for row in found.rows] == [
        (("n is 8",), ("8",)),
        (("n is anything else",), ("1",)),
    ]
    assert found.fails == ()


def test_one_dispatch_inside_another_keeps_its_own_failure() -> None:
    head = """#define RANK(N, ...) switch (N) { case 2: { constexpr int R = 2; __VA_ARGS__(); break; } \\
  case 3: { constexpr int R = 3; __VA_ARGS__(); break; } default: TORCH_CHECK(false, "rank"); }
#define WIDTH(N, ...) switch (N) { case 4: { constexpr int W = 4; __VA_ARGS__(); break; } \\
  case 8: { constexpr int W = 8; __VA_ARGS__(); break; } default: TORCH_CHECK(false, "width"); }
"""
    found = walked("RANK(n, [&] { WIDTH(m, [&] { k<float, R * W><<<1, 2>>>(a); }); })", head).dispatch
    assert [(d.macro, [one.message for one in d.fails]) for d in found] == [
        ("RANK", ['"rank"']),
        ("WIDTH", ['"width"']),
    ]


# -- choices of the function's own ----------------------------------------------------------------------------


def test_a_switch() -> None:
    code = """switch (x.scalar_type()) {
      case at::ScalarType::Float:
        k<float><<<1, 2>>>(a);
        break;
      case at::ScalarType::Half:
      case at::ScalarType::BFloat16:
        k<half><<<1, 2>>>(a);
        break;
      default:
        throw std::runtime_error("type");
    }"""
    found = choice(code)
    assert (found.kind, found.on, found.function, found.line) == ("switch", "x.scalar_type()", "f", 3)
    assert [(row.under, row.values) for row in found.rows] == [
        (("x is of type Float",), ("k<float>",)),
        (("x is of type Half or BFloat16",), ("k<half>",)),
    ]
    assert [(one.words, one.message) for one in found.fails] == [("x is of type Float, Half or BFloat16", '"type"')]


def test_a_branch_that_is_cut_at_compile_time_is_no_choice() -> None:
    head = """__global__ void soft(float* a) {}
__global__ void hard(float* a) {}
template <int KIND> void go(float* a) {
  if constexpr (KIND == 0) { soft<<<1, 2>>>(a); } else if constexpr (KIND == 1) { hard<<<1, 2>>>(a); }
}
"""
    assert walked("go<0>(a);", head).branches == ()


def test_a_message_keeps_what_is_joined_to_it() -> None:
    code = """switch (n) { case 2: k<float><<<1, 2>>>(a); break; case 4: k<half><<<1, 2>>>(a); break;
      default: throw std::runtime_error("not " "for " + std::to_string(n) + ", sorry"); }"""
    (fails,) = choice(code).fails
    assert fails.message == '"not " "for ", std::to_string(n), ", sorry"'


def test_a_chain_of_ifs() -> None:
    code = """if (n >= 90) { go<90>(a); }
    else if (n >= 80) { go<80>(a); }
    else { TORCH_CHECK(false, "too old"); }"""
    found = choice(code, "template <int A> void go(float* a) { k<float, A><<<1, 2>>>(a); }\n")
    assert (found.kind, found.on) == ("if", "n")
    assert [(row.under, row.values) for row in found.rows] == [
        (("n is at least 90",), ("go<90>",)),
        (("n is less than 90", "n is at least 80"), ("go<80>",)),
    ]
    assert [one.message for one in found.fails] == ['"too old"']


def test_a_chain_that_begins_with_a_branch_for_nothing() -> None:
    head = """#define CASE(TYPE, T) else if (x.scalar_type() == at::TYPE) { k<T><<<1, 1>>>(nullptr); }
"""
    code = """if (false) {
  }
  CASE(kFloat, float)
  CASE(kHalf, half)
  else { TORCH_CHECK(false, "type"); }"""
    found = walked(code, head)
    (made,) = found.branches
    assert [row.under for row in made.rows] == [("x is of type Float",), ("x is of type Half",)]
    assert [fail.words for fail in made.fails] == ["x is of type Float or Half"]
    assert [one.conditions for one in found.launches] == [("x is of type Float",), ("x is of type Half",)]
    assert [check.words for check in found.host.checks] == ["x is of type Float or Half"]


def test_a_run_of_early_returns() -> None:
    code = """if (n >= 90) {
      go<90>(a);
      return;
    }
    if (n == 80) {
      go<80>(a);
      return;
    }"""
    found = choice(code, "template <int A> void go(float* a) { k<float, A><<<1, 2>>>(a); }\n")
    assert [(row.under, row.values) for row in found.rows] == [
        (("n is at least 90",), ("go<90>",)),
        (("n is 80",), ("go<80>",)),
    ]


def test_branches_that_lead_to_the_same_or_nowhere_are_no_choice() -> None:
    assert walked("if (wide) { n = 1; } else { n = 2; } k<float><<<1, n>>>(a);").branches == ()
    assert walked("if (wide) { k<float><<<1, 2>>>(a); } else { report(n); }").branches == ()


def test_a_choice_in_a_function_that_another_way_reached_first() -> None:
    head = """void last(float* a) { k<float><<<1, 2>>>(a); }
void one(float* a) { last(a); }
void two(float* a) { last(a); }
"""
    found = choice("if (wide) { one(a); } else { two(a); }", head)
    assert [row.values for row in found.rows] == [("one",), ("two",)]


def test_a_choice_of_functions_that_are_passed_on() -> None:
    head = """void one_kernel(float* a) { k<float><<<1, 2>>>(a); }
void two_kernel(float* a) { k<float><<<1, 3>>>(a); }
template <typename F> void relay(float* a, F run) { run(a); }
void one(float* a) { relay(a, one_kernel); }
void two(float* a) { relay(a, two_kernel); }
"""
    found = choice("if (wide) { one(a); } else { two(a); }", head)
    assert [row.values for row in found.rows] == [("one",), ("two",)]


# -- functions on the way -------------------------------------------------------------------------------------


def test_functions_on_the_way_say_what_their_bodies_say() -> None:
    head = """void check(torch::Tensor& t) { TORCH_CHECK(t.dim() == 2); }
void idle(int n) { int m = n; }
void go(torch::Tensor& rows, int count) {
  const at::cuda::OptionalCUDAGuard guard(device_of(rows));
  int width = rows.size(1);
  check(rows);
  idle(count);
  k<float><<<width, 1, 0, at::cuda::getCurrentCUDAStream()>>>(a);
}
"""
    made = walked("go(x, n);", head)
    assert [(one.name, [(p.name, p.argument) for p in one.parameters]) for one in made.helpers] == [
        ("go", [("rows", None), ("count", None)]),
        ("check", [("t", None)]),
    ]
    go, check = made.helpers
    assert [(g.of, g.line) for g in go.guards] == [("device_of(rows)", line_of(KERNEL + head, "const at::cuda"))]
    assert [s.name for s in go.sizes] == ["width"]
    assert [c.words for c in check.checks] == ["t has 2 dimensions"]


def test_parameters_of_functions_on_the_way_are_the_schemas_arguments() -> None:
    text = f"""{KERNEL}
void go(torch::Tensor& rows, int64_t count) {{ TORCH_CHECK(count > 0); k<float><<<count, 1>>>(a); }}
void f(torch::Tensor& x, int64_t n) {{ go(x, n); }}
TORCH_LIBRARY(ns, m) {{ m.def("f(Tensor input, int size) -> ()"); m.impl("f", torch::kCUDA, &f); }}
"""
    (helper,) = implementation(text, "ns::f").helpers
    assert [(p.name, p.argument) for p in helper.parameters] == [("rows", "input"), ("count", "size")]


# -- what a launch stands under -------------------------------------------------------------------------------


def test_conditions_in_a_macro_that_is_no_dispatch_are_told_with_the_launch() -> None:
    head = """#define RUN(N) \\
  if (one) { k<float, N><<<1, 2>>>(a); } \\
  else { k<half, N><<<1, 2>>>(a); }
"""
    made = walked("if (x.dim() == 2) { RUN(4) }", head)
    assert [launch.conditions for launch in made.launches] == [
        ("x has 2 dimensions", "one"),
        ("x has 2 dimensions", "!one"),
    ]


def test_copies_of_one_launch_say_only_what_holds_for_all() -> None:
    head = "#define TWICE(...) if (one) { __VA_ARGS__ } else { __VA_ARGS__ }\n"
    (launch,) = walked("if (x.dim() == 2) { TWICE({ k<float><<<1, 2>>>(a); }) }", head).launches
    assert launch.conditions == ("x has 2 dimensions",)


def test_what_a_dispatch_tests_is_not_told_again() -> None:
    found = walked("BY_CACHE(x.scalar_type(), kind, CALL)", TWO_AXES)
    assert [launch.conditions for launch in found.launches] == [()]


def test_a_dispatch_in_a_branch_of_a_macro_says_what_that_macro_tests() -> None:
    head = """#define BY_WIDTH(N, NAME, ...) \\
  if (N == 8) { constexpr int NAME = 8; __VA_ARGS__(); } else { constexpr int NAME = 1; __VA_ARGS__(); }
#define LAUNCH(A) \\
  if (wide) { BY_WIDTH(n, W, [&] { k<float, W><<<1, 2>>>(A); }) } else { k<float, 4><<<1, 2>>>(A); }
"""
    alone = "float* a = nullptr; BY_WIDTH(n, W, [&] { k<float, W><<<1, 2>>>(a); })"
    assert dispatch("float* a = nullptr; LAUNCH(a)", head).under == ("wide",)
    assert dispatch(alone, head).under == ()
    # What gets a use as an argument is a dispatch itself: its branches are told of it.
    both = "float* a = nullptr; BY_WIDTH(n, W, [&] {\n BY_WIDTH(m, V, [&] { k<float, W + V><<<1, 2>>>(a); }) })"
    found = walked(both, head, "int n, int m, bool wide").dispatch
    assert [one.under for one in found] == [(), ()]


def test_branches_that_some_builds_alone_have_say_so() -> None:
    code = (
        "#ifdef NEW\nif (n > 8) { k<float><<<1, 8>>>(a); return; }\n#endif\n"
        "#ifdef OLD\nif (n > 4) { k<half><<<1, 4>>>(a); return; }\n#endif\nif (n > 2) { k<int><<<1, 2>>>(a); return; }"
    )
    rows = [(row.under, row.values) for row in choice(code).rows]
    assert rows == [
        (("n is greater than 8", "#if NEW"), ("k<float>",)),
        (("n is greater than 4", "#if OLD"), ("k<half>",)),
        (("n is greater than 2",), ("k<int>",)),
    ]
    # What all of them stand under is told with the launches.
    plain = "\n".join(line for line in code.splitlines() if not line.startswith("#"))
    alone = choice(f"#ifdef NEW\n{plain}\n#endif")
    assert [row.under for row in alone.rows] == [row[0][:1] for row in rows]
