"""Kernels that are given to lambdas: where they are called, and by the functions that they are passed to."""

from __future__ import annotations

import pytest

from tests.trees import follow, tree

HEAD = """#include <tuple>
struct Narrow { using scalar = float; };
struct Wide { using scalar = double; };
__global__ void plain(float* x) {}
__global__ void other(float* x) {}
template <typename K> __global__ void made(float* x) {}
template <typename F> void give_plain(F cb) { cb(Narrow(), plain); }
template <typename F> void give_both(F cb, int n) { if (n) { cb(Narrow{}, plain); } else { cb(Wide{}, &other); } }
template <typename F> void give_made(F cb) { cb(Narrow(), made<Narrow>); cb(Wide(), made<Wide>); }
template <typename F> void hand_on(F&& cb) { give_made(std::forward<F>(cb)); }
template <typename T, typename F> void give_typed(F cb) { cb(T(), made<T>); }
#define CHOOSE(dtype, cb) [&] { \\
  if constexpr (std::is_same<dtype, float>::value) { give_typed<Narrow>(cb); } else { give_typed<Wide>(cb); } }();
template <typename T> void typed(float* x) {
  auto go = [&](auto tag, auto kernel) { kernel<<<1, 32>>>(x); };
  CHOOSE(T, go);
}
"""
GO = "auto go = [&](auto tag, auto kernel) { kernel<<<1, 32>>>(x); };\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (GO + "give_plain(go);", ["plain"]),
        (GO + "give_both(go, 3);", ["plain", "other"]),
        (GO + "give_made(go);", ["made<Narrow>", "made<Wide>"]),
        (GO + "hand_on(go);", ["made<Narrow>", "made<Wide>"]),
        (GO + "give_typed<Wide>(go);", ["made<Wide>"]),
        (GO + "auto in = [&](auto cb) { cb(Wide(), made<Wide>); };\nin(go);", ["made<Wide>"]),
        (GO + "go(Wide(), other);\ngive_plain(go);", ["other", "plain"]),
        ("give_plain([&](auto tag, auto kernel) { kernel<<<1, 32>>>(x); });", ["plain"]),
        ("give_plain([&](Narrow tag, void (*kernel)(float*)) { kernel<<<1, 32>>>(x); });", ["plain"]),
        (
            "give_made([&](auto tag, auto kernel) { auto k = kernel; cudaLaunchKernelEx(&config, k, x); });",
            ["made<Narrow>", "made<Wide>"],
        ),
        ("auto k = []() { return &made<Wide>; }();\nk<<<1, 32>>>(x);", ["made<Wide>"]),
        (
            "auto k = [&] { if (x) { return plain; } return other; }();\ncudaLaunchKernelEx(&config, k, x);",
            ["plain", "other"],
        ),
        ("typed<float>(x);", ["made<Narrow>"]),
        ("typed<double>(x);", ["made<Wide>"]),
    ],
)
def test_a_kernel_is_what_the_callers_of_the_lambda_pass(text: str, names: list[str]) -> None:
    found = follow(tree({"a.cu": f"{HEAD}void entry(float* x) {{\n{text}\n}}\n"}), "a.cu", "entry")
    shown = [(k.name, k.instances) for site in found.launches for k in site.kernels]
    assert [f"{name}<{one}>" if one else name for name, instances in shown for one in instances] == names
    assert all(k.incomplete is None for site in found.launches for k in site.kernels)
    assert found.gaps == ()


def test_a_function_that_is_not_known_may_pass_others() -> None:
    text = f"{HEAD}void entry(float* x) {{\n{GO}give_made(go);\nunseen(go);\n}}\n"
    found = follow(tree({"a.cu": text}), "a.cu", "entry")
    (site,) = found.launches
    assert [k.incomplete for k in site.kernels] == [
        "not every call that gives a lambda its `kernel` could be followed"
    ] * len(site.kernels)
