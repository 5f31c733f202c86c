"""Which functions can lead to a launch: by what they name, through functions, macros, classes, what they are given."""

from __future__ import annotations

import pytest

from opwalker.expand.leading import Leading
from opwalker.expand.resolve import Candidate
from tests.trees import function, tree

HEAD = """
template <typename T> __global__ void k(T* a) {}
#define GO(a) k<float><<<1, 1>>>(a)
template <typename T> void one(T* a) { k<T><<<1, 1>>>(a); }
struct Runner { void operator()(float* a) const { one(a); } };
using Fast = Runner;
template <auto F> void gives(int n) { F(n); }
template <auto V> int ignores() { return 1; }
int plain(int n) { return n + 1; }
int again(int n) { return n ? again(n - 1) : plain(n); }
"""
CASES = [
    ("void f(float* a) { k<float><<<1, 1>>>(a); }", True),
    ("void f(float* a) { auto p = &k<float>; }", True),
    ("void f(float* a) { GO(a); }", True),
    ("void f(float* a) { one(a); }", True),
    ("void f(float* a) { Runner r; r(a); }", True),
    ("void f(float* a) { Fast r; r(a); }", True),
    ("void f(void* p) { cudaLaunchKernel(p, 1, 1, nullptr, 0, nullptr); }", True),
    ("template <typename F> void f(F&& g) { g(1); }", True),
    ("template <typename F> void f(F g) { std::forward<F>(g)(1); }", True),
    ("template <typename F> void f(F g) { g.template operator()<int>(); }", True),
    ("template <typename F> void f() { F{}(1); }", True),
    ("template <typename F> void f() { F made; made(1); }", True),
    ("void f(std::function<void(int)> g) { g(1); }", True),
    ("int f(int n) { return plain(n); }", False),
    ("int f(int n) { return again(n) + n; }", False),
    ("template <typename T> T f(T n) { return n * T(2); }", False),
    ("template <typename F> void f(F g) { gives<g>(1); }", True),
    ("template <typename F> void f() { constexpr F g{}; gives<g>(1); }", True),
    ("template <typename F> void f() { constexpr F g{}; elsewhere<g>(1); }", True),
    (
        "template <typename T, int N> int f() { constexpr T g = T(N); return ignores<g>() ? f<T, N + 1>() : N; }",
        False,
    ),
    ("void f(float* a) { /* k<float><<<1, 1>>>(a) */ }", False),
]


@pytest.mark.parametrize(("text", "wanted"), CASES)
def test_what_leads_to_a_launch(text: str, wanted: bool) -> None:
    bench = tree({"a.cu": HEAD + text})
    candidate = Candidate("a.cu", function(bench.index.facts("a.cu"), "f"))
    assert Leading(bench.index, bench.files).leads(candidate) is wanted


def test_a_no_is_kept_for_all_that_was_looked_at() -> None:
    bench = tree({"a.cu": HEAD + "int f(int n) { return again(n); }\nint g(float* a) { one(a); return again(1); }"})
    leading = Leading(bench.index, bench.files)
    facts = bench.index.facts("a.cu")
    assert [leading.leads(Candidate("a.cu", function(facts, name))) for name in ("f", "g", "again")] == [
        False,
        True,
        False,
    ]
