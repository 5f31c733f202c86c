"""Conditions in words: each clause says what its code says, and code stands where there is no word."""

from __future__ import annotations

import pytest

from opwalker.notation.check_words import in_words, listed, said
from opwalker.notation.cpp_expression import parse_expression
from opwalker.notation.tensor_expression import dimension_of, rank_of, stride_of, tensor_of


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("out.is_contiguous()", "out is contiguous"),
        ("!out.is_contiguous()", "out is not contiguous"),
        ("x.is_contiguous(at::MemoryFormat::ChannelsLast)", "x is contiguous in at::MemoryFormat::ChannelsLast"),
        ("q.is_cuda() && k.is_cuda() && v.is_cuda()", "q, k and v are on the GPU"),
        ("x.device().is_cuda()", "x is on the GPU"),
        ("x.device().type() == at::kCPU", "x is on the CPU"),
        ("x.device() == torch::kCUDA", "x is on the GPU"),
        ("x.device().device_type == kDLCUDA", "x is on the GPU"),
        ("x.device().device_type == y.device().device_type", "x and y have the same kind of device"),
        ("x.device().device_id == y.device().device_id", "x and y have the same device number"),
        ("a.device() == b.device()", "a and b are on the same device"),
        ("w.has_value()", "w is given"),
        ("!w.has_value() || w->is_contiguous()", "where w is given, w is contiguous"),
        ("p == nullptr || n > 0", "where p is not null, n is greater than 0"),
        ("p != nullptr", "p is not null"),
        ("o == std::nullopt", "o is not given"),
        ("x.dim() == 1", "x has 1 dimension"),
        ("x.dim() == 1 || x.dim() == 2", "x has 1 or 2 dimensions"),
        ("x.dim() >= 2", "x has at least 2 dimensions"),
        ("x.dim() != 3", "x does not have 3 dimensions"),
        ("x.dim() == y.dim()", "x and y have equally many dimensions"),
        ("hidden % 16 == 0", "hidden is divisible by 16"),
        ("n % 2 != 0", "n is not divisible by 2"),
        ("reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0", "the data of x is aligned to 16 bytes"),
        ("reinterpret_cast<uintptr_t>(p) % 8 != 0", "p is not aligned to 8 bytes"),
        ("w->size(0) == x.size(-1)", "dimension 0 of w equals the last dimension of x"),
        ("a.size(0) == b.size(0)", "a and b have the same size in dimension 0"),
        ("x.stride(-1) == 1", "the stride of x in the last dimension is 1"),
        ("a.scalar_type() == b.scalar_type()", "a and b are of the same type"),
        ("a.dtype() == at::kHalf || a.dtype() == at::ScalarType::BFloat16", "a is of type Half or BFloat16"),
        ("a.dtype() != torch::kFloat32", "a is not of type Float32"),
        ("x.sizes() == y.sizes()", "x and y have the same shape"),
        ("x.sizes() == torch::IntArrayRef({b, d})", "x has shape [b, d]"),
        ("x.numel() == y.numel()", "x and y have equally many elements"),
        ("x.numel() > 0", "x has more than 0 elements"),
        ("d == 64 || d == 128 || d == 256", "d is 64, 128 or 256"),
        ("size <= max_size", "size is at most max_size"),
        ("4 > n", "n is less than 4"),
        ("48 * 1024 <= smem", "smem is at least 48 * 1024"),
        ("a == b", "a equals b"),
        ("n != 1 && n != 2", "n is neither 1 nor 2"),
        ("n != 1 && n != 2 && n != 4", "n is none of 1, 2 and 4"),
        ("t == u || t == at::ScalarType::Float", "t equals u or Float"),
        ("a != b", "a differs from b"),
        ("kind != at::ScalarType::Char", "kind is not Char"),
        ("x.dim() == 2 && n % 8 == 0", "x has 2 dimensions and n is divisible by 8"),
        ("a.dim() == 2 && b.dim() == 2 && c.dim() == 2", "a, b and c have 2 dimensions"),
        (
            "x.is_cuda() && x.dim() == 2 && x.size(1) == n",
            "x is on the GPU, has 2 dimensions, and dimension 1 of x equals n",
        ),
        ("n >= 1 && n <= 16", "n is at least 1 and is at most 16"),
        ("a.device().is_cpu() && b.device().is_cpu()", "a and b are on the CPU"),
        ("x.numel() == y.size(0)", "the number of elements of x equals dimension 0 of y"),
        ("((uint64_t)a.const_data_ptr()) % 16 == 0", "the data of a is aligned to 16 bytes"),
        ("x.sizes().equals(torch::IntArrayRef({b, d}))", "x has shape [b, d]"),
        ("a.has_value() == b.has_value()", "a and b are both given or both not"),
        ("x.dim() == 2 && (n == 1 || causal)", "x has 2 dimensions and (n is 1 or causal)"),
        ("!(a.dim() == 2 && n > 3)", "a does not have 2 dimensions or n is at most 3"),
    ],
)
def test_words(code: str, words: str) -> None:
    assert in_words(code) == words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        # What another part implies goes without saying.
        ("w.has_value() && !(w.value().dim() == 1) && w.value().dim() == 2", "w is given and has 2 dimensions"),
        ("w.dim() != 1 && w.dim() == 2", "w has 2 dimensions"),
        ("n != 3 && n == 4 && n > 0 && !(n < 2)", "n is 4"),
        ("x.scalar_type() != at::kHalf && x.scalar_type() == at::kFloat", "x is of type Float"),
        ('s != "a" && s == "b" && m == 1', 's is "b" and m is 1'),
        ("n != 1 || n == 2", "n is not 1"),
        ("n != 1 || n == 2 || m > 3", "n is not 1 or m is greater than 3"),
        # What is written out as true or false is no condition of anything.
        ("true && n == 2", "n is 2"),
        ("!false && a && true", "a"),
        ("false || n == 2 || m > 3", "n is 2 or m is greater than 3"),
        ("0 || n == 2", "n is 2"),
        ("true && true", "true"),
        ("false && n == 2", "false and n is 2"),
        # What contradicts another part, or says more than it, is told.
        ("n == 4 && n >= 8", "n is 4 and is at least 8"),
        ("n != 1 && n == 1", "n is not 1 and is 1"),
        ("n == 2 && n == 3", "n is 2 and is 3"),
        ("n != 1 || n == 1", "n is not 1 or n is 1"),
        ("n != m && n == 2", "n differs from m and n is 2"),
        ("n >= 2 && n != 3", "n is at least 2 and is not 3"),
    ],
)
def test_what_the_rest_implies_is_left_out(code: str, words: str) -> None:
    assert said(code) == words


@pytest.mark.parametrize("code", ["causal", "!causal", "is_ok(x)", "false", "a && b", "[&] { return x; }()"])
def test_what_has_no_word_stays_code(code: str) -> None:
    assert in_words(code) is None
    assert said(code) == code


def test_a_disjunction_over_different_things_is_not_drawn_together() -> None:
    assert in_words("x.dim() == 1 || y.dim() == 2") == "x has 1 dimension or y has 2 dimensions"


@pytest.mark.parametrize(
    ("code", "tensor"),
    [("w.value()", "w"), ("*w", "w"), ("w->get()", "w"), ("p.x", "p.x"), ("static_cast<T>(w)", "w")],
)
def test_what_an_expression_speaks_of(code: str, tensor: str) -> None:
    assert tensor_of(parse_expression(code)) == tensor


def test_sizes_strides_and_ranks_by_all_their_spellings() -> None:
    for code in ("x.size(1)", "x.sizes()[1]", "x->size(1)", "x.shape[1]", "x.value().size(1)"):
        assert dimension_of(parse_expression(code)) == ("x", 1), code
    assert dimension_of(parse_expression("x.size(i)")) is None
    assert stride_of(parse_expression("x.stride(-2)")) == ("x", -2)
    assert rank_of(parse_expression("x.ndim()")) == "x"


def test_a_list_of_words() -> None:
    assert [listed(("a", "b", "c")[:n], "or") for n in range(4)] == ["", "a", "a or b", "a, b or c"]
