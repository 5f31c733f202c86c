"""Which functions can give a kernel, by their words."""

from __future__ import annotations

import pytest

from opwalker.expand.resolve import Candidate
from opwalker.expand.returning import Returning
from tests.trees import function, tree

KERNELS = """
__global__ void fill(float* x) {}
__global__ void scale(float* x) {}
"""

CASES = [
    ("it returns one", "void* f() { return (void*)fill; }", True, True),
    ("with arguments", "template <int N> __global__ void k() {}\nvoid* f() { return (void*)k<3>; }", True, True),
    ("its address", "auto f() { auto held = &scale; return held; }", True, True),
    ("one of two", "auto f(bool b) { return b ? fill : scale; }", True, True),
    ("what another returns", "auto g() { return &fill; }\nauto f() { auto found = g(); return found; }", True, True),
    ("through a variable", "static void* const t[] = {(void*)fill};\nvoid* f(int i) { return t[i]; }", True, True),
    ("through a macro", "#define PICK(X) return X##ale\nauto f() { PICK(sc); }", True, True),
    ("a macro that names one", "#define PICKED &fill\nauto f() { return PICKED; }", True, True),
    ("a number", "int f() { return 3; }", False, False),
    ("a parameter of its name", "auto f(int fill) { return fill + 1; }", False, False),
    ("a variable of its name", "auto f() { auto fill = 3; return fill; }", False, False),
    ("a member of its name", "auto f(X x) { return x.fill + x.scale; }", False, False),
    ("a function of its name", "namespace n { int fill(int); }\nauto f() { return n::fill(3); }", False, False),
    ("nothing of what it calls besides", "auto g() { return &fill; }\nauto f() { g(); return 3; }", False, False),
    ("each other", "auto g();\nauto f() { return g(); }\nauto g() { return f(); }", False, False),
    ("and one of them one", "auto g();\nauto f() { return g(); }\nauto g() { return 1 ? f() : &fill; }", True, True),
    ("what device code calls", "#define B __host__ __device__\nauto g() { return &fill; }\nB auto f() { return g(); }",
     False, False),
    ("a method in sight", "struct S { auto get() { return &fill; } };\nauto f(S s) { return s.get(); }", True, True),
    ("what it includes", '#include "a.h"\nauto f() {\n#include "body.inc"\n}', True, False),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "gives", "returns"), CASES, ids=[case[0] for case in CASES])
def test_by_words_and_by_reading(what: str, text: str, gives: bool, returns: bool) -> None:
    """A no by words is one by reading, too."""
    bench = tree({"a.cu": KERNELS + text, "a.h": "", "body.inc": "return 3;"})
    unit = bench.unit()
    candidate = Candidate("a.cu", function(bench.index.facts("a.cu"), "f"))
    assert unit.bodies.giving(bench.index).gives(candidate, "a.cu") is gives
    assert Returning(bench.index, unit.resolver, unit.bodies).may_return(candidate, "a.cu") is returns


def test_what_another_unit_holds_counts_where_it_is_declared() -> None:
    files = {
        "a.cu": "auto f() { return get(); }",
        "b.cu": '#include "get.h"\nauto f() { return get(); }',
        "get.h": "void* get();",
        "get.cu": KERNELS + "void* get() { return (void*)fill; }",
        "other.cuh": "inline void* get() { return (void*)fill; }",
    }
    bench = tree(files)
    giving = bench.unit().bodies.giving(bench.index)
    candidates = [Candidate(path, function(bench.index.facts(path), "f")) for path in ("a.cu", "b.cu")]
    assert [giving.gives(one, one.path) for one in candidates] == [False, True]


def test_a_long_way_of_functions_is_followed() -> None:
    """However many return what the next one returns."""
    count = 3000
    text = "".join(f"auto f{n}() {{ return f{n + 1}(); }}\n" for n in range(count))
    bench = tree({"a.cu": f"{KERNELS}{text}auto f{count}() {{ return &fill; }}\n"})
    unit = bench.unit()
    returning = Returning(bench.index, unit.resolver, unit.bodies)
    assert returning.may_return(Candidate("a.cu", function(bench.index.facts("a.cu"), "f0")), "a.cu")
