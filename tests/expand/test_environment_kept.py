"""Readings that are kept: they say what a reading anew would, whatever name or binding differs between two places."""

from __future__ import annotations

import pytest

from opwalker.expand.environment_kept import KeptReadings
from opwalker.model.reach import Reach
from tests.expand.test_launches import reach

HEAD = """
template <typename T, int A, int B = 1> __global__ void k(T* a) {}
template <int N> struct Traits { static constexpr int kWide = N * 2; using type = float; };
template <> struct Traits<3> { static constexpr int kWide = 7; using type = double; };
struct Left { static constexpr int kValue = Right::kValue + 1; static constexpr int kOwn = 5; };
struct Right { static constexpr int kValue = Left::kValue + 1; static constexpr int kOwn = Left::kOwn + 1; };
template <typename T, int N> void launch(T* a, int n) {
  constexpr int kTwice = N * 2;
  if constexpr (N > 4) { k<T, kTwice, Traits<N>::kWide><<<1, 2>>>(a); }
  else { k<typename Traits<N>::type, N><<<1, 2>>>(nullptr); }
}
template <typename... Ts> void each(Ts*... all) { (launch<Ts, sizeof(Ts)>(all, 1), ...); }
#define WIDTH(N, ...) \\
  switch (N) { case 2: { constexpr int W = 2; __VA_ARGS__(); break; } default: { constexpr int W = 1; __VA_ARGS__(); } }
"""

CASES = {
    "one name in two blocks": (
        "{ constexpr int W = 3; k<int, W><<<1, 2>>>(a); } { constexpr int W = 4; k<int, W><<<1, 2>>>(a); }",
        ["int, 3, 1", "int, 4, 1"],
    ),
    "a name that hides another behind it": (
        "constexpr int W = 3; k<int, W + 1><<<1, 2>>>(a); { constexpr int W = 8; k<int, W + 1><<<1, 2>>>(a); }",
        ["int, 4, 1", "int, 9, 1"],
    ),
    "an alias of two types": (
        "{ using T = float; k<T, 1><<<1, 2>>>(p); } { using T = double; k<T, 1><<<1, 2>>>(p); }",
        ["float, 1, 1", "double, 1, 1"],
    ),
    "a template with two bindings": (
        "launch<int, 8>(a, n); launch<char, 8>(a, n); launch<int, 3>(a, n); launch<int, 2>(a, n);",
        ["int, 16, 16", "char, 16, 16", "double, 3, 1", "float, 2, 1"],
    ),
    "the branches of a macro": ("WIDTH(n, [&] { k<int, W, W * 2><<<1, 2>>>(a); });", ["int, 2, 4", "int, 1, 2"]),
    "the calls of a generic lambda": (
        (
            "auto f = [&](auto tag) { constexpr int W = decltype(tag)::value; k<int, W><<<1, 2>>>(a); };"
            " f(std::integral_constant<int, 6>{}); f(std::integral_constant<int, 7>{});"
        ),
        ["int, 6, 1", "int, 7, 1"],
    ),
    "a lambda's parameter of a type that is another one elsewhere": (
        (
            "using T = float; auto f = [&](T* p) { k<<<1, 2>>>(p); k<T, 2><<<1, 2>>>(p); }; f(nullptr);"
            " { using T = double; auto g = [&](T* p) { k<T, 3><<<1, 2>>>(p); }; g(nullptr); }"
        ),
        ["float, 2, 1", "double, 3, 1"],
    ),
    "the elements of a pack": ("each(a, (double*)a, (char*)a);", ["float, 4, 1", "float, 1, 1", "double, 16, 16"]),
    "members that ask for each other": (
        "k<int, Left::kValue><<<1, 2>>>(a); k<int, Right::kOwn, Left::kOwn><<<1, 2>>>(a);",
        ["int, 6, 5"],
    ),
}


def instances(found: Reach) -> list[str]:
    return [text for site in found.launches for kernel in site.kernels for text in kernel.instances]


@pytest.mark.parametrize("what", CASES)
def test_kept_and_anew(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept says the same as what is read anew each time, and that is right."""
    text, wanted = CASES[what]
    kept = reach(text, HEAD)
    assert instances(kept) == wanted
    monkeypatch.setattr(KeptReadings, "kept", lambda place, kind, told, read: read(told))
    assert reach(text, HEAD) == kept


def test_what_is_asked_for_again_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls that bind the same from two places are read once, but for where they are."""
    read: list[str] = []
    plain = KeptReadings.kept

    def kept(place, kind, text, found):
        def noted(told):
            read.append(told)
            return found(told)

        return plain(place, kind, text, noted)

    monkeypatch.setattr(KeptReadings, "kept", kept)
    reach("constexpr int kMany = 3 * 4 + 1; " + "k<int, kMany><<<1, 2>>>(a); " * 5, HEAD)
    assert read.count("3 * 4 + 1") == 1
