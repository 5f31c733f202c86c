"""Launches in branches that a build does not read, where nothing else was found."""

from __future__ import annotations

import pytest

from opwalker.views.left_out import with_left_out
from tests.trees import follow, tree

SOURCE = """__global__ void k(float* x) {{}}
void inner(float* x) {{
#if {condition}
  {launch};
#endif
}}
void entry(float* x) {{ inner(x); {more} }}
"""
LEFT_OUT = "inner launches under `USE_ROCM`, which the cuda build does not set"
LAUNCH = "k<<<1, 32>>>(x)"


@pytest.mark.parametrize(
    ("condition", "launch", "more", "reasons"),
    [
        ("USE_ROCM", LAUNCH, "", [LEFT_OUT]),
        ("USE_ROCM", "cudaLaunchKernel(k, 1, 32, p, 0, s)", "", [LEFT_OUT]),
        ("USE_ROCM", "count(x)", "", []),
        ("0", LAUNCH, "", []),
        ("1", LAUNCH, "", []),
        ("USE_ROCM", LAUNCH, f"{LAUNCH};", []),
    ],
)
def test_a_launch_in_a_branch_that_is_not_read_is_named(condition, launch, more, reasons) -> None:
    bench = tree({"a.cu": SOURCE.format(condition=condition, launch=launch, more=more)})
    found = with_left_out(bench, bench.unit(), follow(bench, "a.cu", "entry"), "a.cu")
    assert [gap.reason for gap in found.gaps] == reasons
