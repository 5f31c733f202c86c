"""What a source claims (shapes, kernels) against the contract and against what ran."""

from __future__ import annotations

import pytest

from opwalker.model.walk import KernelEntry
from opwalker.notation.shape_alike import same_shape
from opwalker.views.verify.launched import split, unpredicted


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ("[num_tokens, hidden_size]", "[num_tokens, hidden_size]", True),
        ("[num_tokens, hidden_size]", "[T, H]", True),
        ("[..., hidden_size]", "[batch, seq, hidden_size]", True),
        ("[..., hidden_size]", "[hidden_size, num_tokens]", False),
        ("[num_blocks, block_size, d]", "[num_blocks, d, block_size]", False),
        ("[num_blocks, head_size/x, x]", "[num_blocks, head_size // x, x]", True),
        ("[num_tokens, 2]", "[num_tokens, 3]", False),
        ("[num_tokens]", "[num_tokens, 1]", False),
        ("[n, d]", "[n] or [n, d]", True),
    ],
)
def test_shapes(ours: str, theirs: str, same: bool) -> None:
    assert same_shape(ours, theirs) is same


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("void a::k<float, 4>(float*, int)", ("a::k", "float,4")),
        ("a::k(float*)", ("a::k", "")),
        ("void (anonymous namespace)::k<(bool)1, (int)8>(float*)", ("(anonymous namespace)::k", "true,8")),
        ("void a::k<a::Silu, b<int, 2> >(x<y>)", ("a::k", "a::Silu,b<int,2>")),
    ],
)
def test_names_of_kernels(text: str, parts: tuple[str, str]) -> None:
    assert split(text) == parts


def test_a_kernel_that_no_walk_predicts_is_said() -> None:
    known = [KernelEntry("a::k", "a.cu", 1, instances=("float, 4",), complete=True), KernelEntry("a::open", "a.cu", 9)]
    assert unpredicted(["void a::k<float, 4>(int)", "void a::open<int>(int)"], known) == []
    assert "does not predict this instance" in unpredicted(["void a::k<float, 8>(int)"], known)[0]
    assert "does not predict it" in unpredicted(["void a::other<float, 8>(int)"], known)[0]
