"""What a ``T&&`` deduces: a reference from a variable, the type alone from any other value, as nvcc names them."""

from __future__ import annotations

import pytest

from tests.trees import follow, tree

HEAD = """struct Op { int n; };
template <typename A, typename B> struct Pair {};
template <typename F> __global__ void k(float* x) {}
template <typename F> __global__ void by_value(float* x, F f) {}
template <typename F> void plain(float* x, F&& f) { k<F><<<1, 32>>>(x); }
template <typename F> void pass_on(float* x, F&& f) { plain(x, std::forward<F>(f)); }
template <typename F> void decayed(float* x, F&& f) { k<std::decay_t<F>><<<1, 32>>>(x); }
template <typename F> void stripped(float* x, F&& f) { k<std::remove_reference_t<F>><<<1, 32>>>(x); }
template <typename F> void within(float* x, F&& f) { k<Pair<F, int>><<<1, 32>>>(x); }
template <typename F> void declared(float* x, F&& f) { k<decltype(f)><<<1, 32>>>(x); }
template <typename F> void copied(float* x, F&& f) { by_value<<<1, 32>>>(x, f); }
template <typename F> void constant(float* x, const F& f) { k<F><<<1, 32>>>(x); }
"""


@pytest.mark.parametrize(
    ("call", "instance"),
    [
        ("plain(x, op)", "Op&"),
        ("plain(x, fixed)", "Op const&"),
        ("plain(x, ops[2])", "Op&"),
        ("plain(x, op.n)", "int&"),
        ("plain(x, Op{4})", "Op"),
        ("plain(x, std::move(op))", "Op"),
        ("plain(x, 3)", "int"),
        ("plain<Op>(x, Op())", "Op"),
        ("pass_on(x, op)", "Op&"),
        ("pass_on(x, Op())", "Op"),
        ("decayed(x, fixed)", "Op"),
        ("stripped(x, op)", "Op"),
        ("within(x, op)", "Pair<Op&, int> "),
        ("within(x, Op())", "Pair<Op, int> "),
        ("declared(x, op)", "Op&"),
        ("declared(x, Op())", "Op&&"),
        ("copied(x, op)", "Op"),
        ("constant(x, op)", "Op"),
    ],
)
def test_what_is_passed_decides(call: str, instance: str) -> None:
    text = f"{HEAD}void entry(float* x, Op* ops) {{\nOp op{{3}};\nconst Op fixed{{1}};\n{call};\n}}\n"
    found = follow(tree({"a.cu": text}), "a.cu", "entry")
    assert [(k.instances, k.incomplete) for site in found.launches for k in site.kernels] == [((instance,), None)]
