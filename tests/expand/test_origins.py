"""Where template arguments come from: each way in which a value gets to a kernel, with its place and its case."""

from __future__ import annotations

import pytest

from opwalker.model.reach import Reach
from tests.expand.test_launches import reach

DISPATCH = """#define PICK_WIDTH(N, NAME, ...) \\
  switch (N) { \\
    case 2: { constexpr int NAME = 2; __VA_ARGS__(); break; } \\
    default: { constexpr int NAME = 1; __VA_ARGS__(); } \\
  }
#define PICK_BOOL(COND, NAME, ...) \\
  [&] { if (COND) { constexpr bool NAME = true; return __VA_ARGS__(); } \\
        else { constexpr bool NAME = false; return __VA_ARGS__(); } }()
#define PICK_TYPE(TYPE, NAME, ...) \\
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__) \\
                                 AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__))
#define LAUNCH(W) k<W, 7><<<1, 2>>>(a)
#define IF(W) else if (n == W) { k<W><<<1, 2>>>(a); }
#define LABEL(W) case W: { if (ok) { k<W><<<1, 2>>>(a); } break; }
#define BY_KIND(S, FN) if (S == "a") { FN(3, 4); } else { FN(5, 6); }
#define FN_BODY(X, Y) k<X, Y><<<1, 2>>>(a)
"""
KERNELS = (
    f"{DISPATCH}template <int A, int B = 9> __global__ void k(int* a) {{}}\n"
    "template <typename T, int N> __global__ void kt(T* a) {}\n"
    "template <int A,\n          bool LATE = true>\n__global__ void\nkd(int* a) {}\n"
    "constexpr int kWide = 32;\n"
)
DEFAULT_LINE = KERNELS.count("\n", 0, KERNELS.index("__global__")) + 2


def origins(found: Reach, parameter: int) -> list[tuple]:
    """``(value, kind, text, line, case)`` of one parameter, over all launches."""
    listed = [o for site in found.launches for kernel in site.kernels for o in kernel.origins]
    return [(v, o.kind, o.text, o.line, o.case) for number, v, o in dict.fromkeys(listed) if number == parameter]


CASES = {
    "a dispatch macro's branches": (
        "PICK_WIDTH(n, W, [&] { k<W, 3><<<1, 2>>>(a); });",
        0,
        [("2", "macro", "PICK_WIDTH", 3, "2"), ("1", "macro", "PICK_WIDTH", 3, "default")],
    ),
    "a macro's if and else": (
        "\nPICK_BOOL(n > 4, W, [&] { k<W><<<1, 2>>>(a); });",
        0,
        [("1", "macro", "PICK_BOOL", 4, "n > 4"), ("0", "macro", "PICK_BOOL", 4, "!(n > 4)")],
    ),
    "a macro within a macro is known by the one that is used": (
        'PICK_TYPE(t, "x", [&] { kt<scalar_t, 3><<<1, 2>>>(p); });',
        0,
        [
            ("float", "macro", "PICK_TYPE", 3, "at::ScalarType::Float"),
            ("c10::Half", "macro", "PICK_TYPE", 3, "at::ScalarType::Half"),
        ],
    ),
    "a macro that is passed to a macro": (
        "BY_KIND(s, FN_BODY)",
        0,
        [("3", "macro", "BY_KIND", 3, 's == "a"'), ("5", "macro", "BY_KIND", 3, '!(s == "a")')],
    ),
    "written where the macro is used": ("LAUNCH(8);", 0, [("8", "argument", "8", 3, None)]),
    "an argument that the macro tests": (
        "if (false) {} IF(4) IF(8) else { other(); }",
        0,
        [("4", "macro", "IF", 3, "n == 4"), ("8", "macro", "IF", 3, "n == 8")],
    ),
    "a label that is the argument": (
        "switch (n) {\n LABEL(4)\n LABEL(1)\n}",
        0,
        [("4", "switch", "n", 3, "4"), ("1", "switch", "n", 3, "1")],
    ),
    "written in the macro": ("LAUNCH(8);", 1, [("7", "argument", "7", 13, None)]),
    "a switch of the function": (
        "switch (n) {\n case 4: k<4><<<1, 2>>>(a); break;\n case 8: LAUNCH(8); break;\n}",
        0,
        [("4", "switch", "n", 3, "4"), ("8", "switch", "n", 3, "8")],
    ),
    "an if chain of the function": (
        "if (n == 4) {\n k<4><<<1, 2>>>(a);\n} else if (n == 8) {\n k<8><<<1, 2>>>(a);\n} else {\n k<1><<<1, 2>>>(a);}",
        0,
        [
            ("4", "branch", "4", 4, "n == 4"),
            ("8", "branch", "8", 6, "n == 8"),
            ("1", "branch", "1", 8, "!(n == 8)"),
        ],
    ),
    "of nested branches the one that is there for the value": (
        "if (n == 4) {\n if (ok) k<4><<<1, 2>>>(a);\n}",
        0,
        [("4", "branch", "4", 4, "n == 4")],
    ),
    "an explicit argument": ("k<3><<<1, 2>>>(a);", 0, [("3", "argument", "3", 3, None)]),
    "a default argument": ("k<3><<<1, 2>>>(a);", 1, [("9", "default", "9", DEFAULT_LINE, None)]),
    "a default on a line of its own": ("kd<3><<<1, 2>>>(a);", 1, [("true", "default", "true", DEFAULT_LINE + 3, None)]),
    "a named constant": ("k<kWide><<<1, 2>>>(a);", 0, [("32", "argument", "kWide", 3, None)]),
    "a constant of the function": (
        "constexpr int w = 16;\nk<w><<<1, 2>>>(a);",
        0,
        [("16", "local", "16", 3, None)],
    ),
    "a ternary between kernels": (
        "auto f = n > 3 ? &k<1> : &k<2>;\nf<<<1, 2>>>(a);",
        0,
        [("1", "branch", "1", 3, "n > 3"), ("2", "branch", "2", 3, "!(n > 3)")],
    ),
    "calls of a generic lambda": (
        """auto go = [&](auto w) { k<decltype(w)::value><<<1, 2>>>(a); };
if (n) go(std::integral_constant<int, 4>{});
else go(std::integral_constant<int, 8>{});""",
        0,
        [
            ("4", "branch", "std::integral_constant<int, 4>{}", 4, "n"),
            ("8", "branch", "std::integral_constant<int, 8>{}", 5, "!(n)"),
        ],
    ),
    "worked out from another": (
        "constexpr int w = 16;\nk<w, w / 4><<<1, 2>>>(a);",
        1,
        [("4", "computed", "w / 4", 4, None)],
    ),
    "deduced from what is passed": (
        "float* p = q;\nauto f = [&] {};\nkt<float, 3><<<1, 2>>>(p);",
        0,
        [("float", "argument", "float", 5, None)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_where_a_value_comes_from(name: str) -> None:
    text, parameter, wanted = CASES[name]
    assert origins(reach(text, KERNELS), parameter) == wanted


def test_a_value_keeps_its_origin_through_launchers() -> None:
    head = (
        f"{KERNELS}template <int W> void inner(int* a) {{ k<W><<<1, 2>>>(a); }}\n"
        "template <int W, bool B> void outer(int* a) { inner<W>(a); }\n"
    )
    text = "if (n == 2) outer<2, true>(a);\nelse outer<1, true>(a);"
    assert origins(reach(text, head), 0) == [("2", "branch", "2", 3, "n == 2"), ("1", "branch", "1", 4, "!(n == 2)")]


def test_a_launchers_parameter_deduced_from_a_pointer() -> None:
    head = f"{KERNELS}template <typename T> void go(T* p) {{ kt<T, 3><<<1, 2>>>(p); }}\n"
    text = 'PICK_TYPE(t, "x", [&] { go(x.data_ptr<scalar_t>()); });'
    assert origins(reach(text, head), 0) == [
        ("float", "macro", "PICK_TYPE", 3, "at::ScalarType::Float"),
        ("c10::Half", "macro", "PICK_TYPE", 3, "at::ScalarType::Half"),
    ]
    plain = origins(reach("float* q = b;\ngo(q);", head), 0)
    assert plain == [("float", "deduced", "q", 4, None)]


def test_arguments_of_a_class_whose_member_is_called() -> None:
    head = f"{KERNELS}template <int W, int U> struct S {{ static void go(int* a) {{ k<W, U><<<1, 2>>>(a); }} }};\n"
    found = reach("if (n == 4) S<4, 5>::go(a);", head)
    assert origins(found, 0) == [("4", "branch", "4", 3, "n == 4")]
    assert origins(found, 1) == [("5", "branch", "5", 3, "n == 4")]


def test_what_is_not_followed_has_no_origin() -> None:
    head = f"{KERNELS}template <int W> void go(int* a) {{ k<W><<<1, 2>>>(a); }}\n"
    found = reach("go<unknown_thing>(a);", head)
    assert origins(found, 0) == []


def test_what_a_computed_argument_is_made_from() -> None:
    head = (
        f"{KERNELS}template <int W, bool B> struct Shape {{}};\ntemplate <typename S> __global__ void ks(int* a) {{}}\n"
    )
    head += "template <typename S> void run(int* a) { ks<S><<<1, 2>>>(a); }\n"
    text = "if (n == 2) { PICK_BOOL(n > 4, B, [&] { using S = Shape<2, B>; run<S>(a); }); }"
    found = reach(text, head)
    listed = [o for site in found.launches for kernel in site.kernels for _, _, o in kernel.origins]
    assert [(o.kind, o.text) for o in listed] == [("computed", "Shape<2, B>")] * 2
    assert [[(name, value, o.text, o.case) for name, value, o in one.parts] for one in listed] == [
        [("B", "true", "PICK_BOOL", "n > 4")],
        [("B", "false", "PICK_BOOL", "!(n > 4)")],
    ]
