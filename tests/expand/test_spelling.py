"""Arguments whose printed form is not the one in the binary."""

from __future__ import annotations

import pytest

from tests.expand.instance_sections import predicted

KIT = """
template <float (*op)(float, float), typename A> __global__ void combine(const A* a) {{}}
namespace kit {{
{head} __device__ float add(float a, float b) {{ return a + b; }}
template <typename T> {head} __device__ float mul(float a, float b) {{ return a * b; }}
}}
template <float (*op)(float, float)> struct Combine {{
  template <typename A> void operator()(const A* a) {{ combine<op><<<1, 1>>>(a); }}
}};
template <class F> void run(const float* a) {{ F()(a); }}
void h(const float* a) {{ run<Combine<{named}>>(a); }}
"""


@pytest.mark.parametrize("named", ["kit::add", "&kit::add", "kit::mul<int>"])
def test_a_static_function_in_the_arguments_of_a_class_has_a_hash(named: str) -> None:
    found, reasons = predicted(KIT.format(head="static", named=named))
    assert len(found["combine"]) == 1
    assert "a hash of its own" in reasons["combine"]


@pytest.mark.parametrize("named", ["kit::add", "kit::mul<int>"])
def test_a_function_that_other_units_see_has_none(named: str) -> None:
    found, reasons = predicted(KIT.format(head="inline", named=named))
    assert len(found["combine"]) == 1
    assert not reasons


def test_arguments_that_cannot_be_told_from_a_comparison_are_not_left_out() -> None:
    code = """
template <bool... given> __global__ void k() {}
constexpr int sizes[] = {3, 5};
void h() { k<true, sizes[0] < sizes[1]><<<1, 1>>>(); }
"""
    found, reasons = predicted(code)
    assert found == {"k": set()}
    assert "may be a comparison" in reasons["k"]
