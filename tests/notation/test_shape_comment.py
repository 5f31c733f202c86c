"""Shapes in comments: the field's habits, what is none, and the way back to text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.notation.shape_comment import ShapeComment, comment_text, named_shapes, parse_shape, print_shape

SHAPES = [
    ("// [num_tokens, num_heads, head_size]", [("num_tokens", "num_heads", "head_size")]),
    ("// (B, H)", [("B", "H")]),
    ("// [..., d]", [("...", "d")]),
    ("// [*, d]", [("*", "d")]),
    ("// [1] or [num_heads]", [("1",), ("num_heads",)]),
    (
        "// [num_blocks, num_heads, head_size/x, block_size, x]",
        [("num_blocks", "num_heads", "head_size/x", "block_size", "x")],
    ),
    ("// [batch, 2 * d]", [("batch", "2 * d")]),
    ("// [E, N // 2, K]", [("E", "N // 2", "K")]),
    ("// [M, ceil(K/128)]", [("M", "ceil(K/128)")]),
    ("// [num_tokens, 4096]", [("num_tokens", "4096")]),
    ("// [rows, (nq + nk) * head_dim]", [("rows", "(nq + nk) * head_dim")]),
    ("// [ (n - 1)*k + 1 ]", [("(n - 1)*k + 1",)]),
    ("// (batch,) or (N, max_seqlen)", [("batch",), ("N", "max_seqlen")]),
    ("// (N + 1,)", [("N + 1",)]),
    ("// [BATCH, ]", [("BATCH",)]),
    ("// [T, d] or [E, T, d], gated", [("T", "d"), ("E", "T", "d")]),
    ("// a: (*, K, N / 8) || b: (*, K / 8, N)", [("*", "K", "N / 8"), ("*", "K / 8", "N")]),
    ("// 4D (batch, T, nheads) or 3D (total, nheads, dim)", [("batch", "T", "nheads"), ("total", "nheads", "dim")]),
    ("// (batch, T, dim) / (1, tokens, dim) under varlen", [("batch", "T", "dim"), ("1", "tokens", "dim")]),
    ("// [totalRequests][nbQHeads]", [("totalRequests", "nbQHeads")]),
    ("// [M x K]", [("M", "K")]),
    ("// batch_size x seqlen_q x (head_size / 2)", [("batch_size", "seqlen_q", "(head_size / 2)")]),
    ("// batch_size x round_up(head_size, 8)", [("batch_size", "round_up(head_size, 8)")]),
    ("// num_heads or batch_size x num_heads", [("num_heads",), ("batch_size", "num_heads")]),
    ("// [num_tokens, d_qk=576]", [("num_tokens", "d_qk=576")]),
    ("// [>=num_rows, dim]", [(">=num_rows", "dim")]),
    ("// [blocks, ENTRIES...]", [("blocks", "ENTRIES...")]),
    ("// [B, H or 1, D]", [("B", "H or 1", "D")]),
    ("// [params.batch, cfg::kHeads]", [("params.batch", "cfg::kHeads")]),
    ("// [T]", [("T",)]),
    ("// [1]", [("1",)]),
    ("// weights for the key [head_dim]", [("head_dim",)]),
    ("// Optional [batch, s_q, 2] for (max, sum)", [("batch", "s_q", "2")]),
    ("// packed tensor of shape (rows, 6 * n)", [("rows", "6 * n")]),
    ("// q_norm - [128]", [("128",)]),
    ("// (E, T, H) [OUT]", [("E", "T", "H")]),
    ("/// [num_heads]", [("num_heads",)]),
    ("///< [num_heads]", [("num_heads",)]),
    ("/* [num_heads] */,", [("num_heads",)]),
    ("[num_heads]", [("num_heads",)]),
    ("// [num_seqs, num_heads,\n            //  head_size]", [("num_seqs", "num_heads", "head_size")]),
    ("/* [num_seqs,\n *  head_size /\n *    x] */", [("num_seqs", "head_size / x")]),
    ("// @param[in] x [B, H]", [("B", "H")]),
]


@pytest.mark.parametrize(("comment", "alternatives"), SHAPES)
def test_the_habits_of_the_field(comment: str, alternatives: list[tuple[str, ...]]) -> None:
    shape = parse_shape(comment)
    assert shape is not None
    assert shape.alternatives == tuple(alternatives)
    assert shape.text in comment_text(comment)
    assert "".join(print_shape(shape).split()) == "".join(shape.text.split())


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "// the output",
        "// (see above)",
        "// (optional)",
        "// [out]",
        "// [in, out] the cache",
        "// [0]",
        "// [OUT]",
        "// [NOTE] slow",
        "// a[i]",
        "// reads slice[slice_id] first",
        "// f(a, b)",
        "// input.stride(-2)",
        "// = q.size(0)",
        "// [i, j]",
        "// (row, col)",
        "// [i * 4, i * 4 + 3]",
        "// value in [lo, hi]",
        "// in the range [1, 8]",
        "// one of [1, 2, 4]",
        "// [-1, 1]",
        "// [begin, N)",
        "// split (1, 2, or 4)",
        "// launch of (2, 1, 1)",
        "// Grid: (num_layers, num_pairs)",
        "// Stride: (1, stride_keys, stride_heads)",
        "// scalar float (1 / scale)",
        "// elements (fp8 == bytes)",
        "// rows (slots) per block",
        "// 16x16 blocks",
        "// is 2 x faster",
        "// v x x x x",
        "// __half x 8",
        "// [&](auto x) { run(x); }",
        "// [a_b, c_d](int n)",
        "// (a_b, c_d);",
        "// foo = [a_b, c_d] = bar",
        "// (m, n) -> block",
        "// [id0, id1, ...]",
        "// [byte0, byte1, byte2]",
        "// [10, 11] [90, 91]",
        '// [2] "A paper about flows"',
        "// see [flash_attention]",
        "// (int, int, _1)",
        "// [num_seqs, num_heads,",
        "// head_size]",
        "// [a, b))",
        "// ((Mma_M, Mma_K), NumMma_M)",
        "// (4, 4)-swizzled",
        "// NOLINT(readability, performance)",
        "// H (no padding)",
        "// batch x rows, x width",
        "// batch x rows x heads, x round_up(width, 8)",
    ],
)
def test_what_is_no_shape(comment: str) -> None:
    assert parse_shape(comment) is None


@pytest.mark.parametrize(
    ("comment", "text", "dtype", "prose"),
    [
        ("// key cache: [n, h, d] (bf16)", "[n, h, d]", "bf16", "key cache (bf16)"),
        ("// (num_tokens, hidden_size), bf16", "(num_tokens, hidden_size)", "bf16", "bf16"),
        ("// [num_tokens, topk] int32", "[num_tokens, topk]", "int32", "int32"),
        ("// [T, H, 128] bf16/fp16", "[T, H, 128]", "bf16/fp16", "bf16/fp16"),
        ("// [T, k], float32 or bf16", "[T, k]", "float32 or bf16", "float32 or bf16"),
        ("// [N, H] fp8 e4m3, in place", "[N, H]", "fp8 e4m3", "fp8 e4m3, in place"),
        ("// [N, H], in place (bf16)", "[N, H]", "bf16", "in place (bf16)"),
        ("// scratch: f32 (batch, nheads, T_pad)", "(batch, nheads, T_pad)", "f32", "scratch: f32"),
        ("// [T, 64] same dtype as k", "[T, 64]", None, "same dtype as k"),
        ("// [num_rows] lengths", "[num_rows]", None, "lengths"),
        ("// [num_rows] InT values", "[num_rows]", None, "InT values"),
        ("// [nb,nkv,2*128] or nullptr", "[nb,nkv,2*128]", None, "or nullptr"),
        ("// [1]  or   [OC]", "[1] or [OC]", None, ""),
    ],
)
def test_what_stands_beside(comment: str, text: str, dtype: str | None, prose: str) -> None:
    shape = parse_shape(comment)
    assert shape is not None
    assert (shape.text, shape.dtype, shape.prose) == (text, dtype, prose)


def test_shapes_given_to_names() -> None:
    comment = """/**
     * Mixes two tensors on a grid of (num_rows, 4) blocks.
     * - q: [B, H, D] bf16
     * @param[out] out (B, D)
     *   weight   fp32 [D], row-major
     *   scale:   [1]
     * Grid: (B, H)
     * the mask, see [num_rows]
     * x: y, then [B, H]
     */"""
    assert [(name, shape.text, shape.dtype) for name, shape in named_shapes(comment)] == [
        ("q", "[B, H, D]", "bf16"),
        ("out", "(B, D)", None),
        ("weight", "[D]", "fp32"),
        ("scale", "[1]", None),
    ]


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ("pairs is expected to be a tensor of shape (num_pairs, 2)", "pairs", "(num_pairs, 2)"),
        ("`mask` must be a boolean tensor of shape [rows, cols].", "mask", "[rows, cols]"),
        ("scale has shape (rows,)", "scale", "(rows,)"),
        ("logits: The logits tensor of shape [rows, vocab_size].", "logits", "[rows, vocab_size]"),
        # The shape of something else than what the line begins with.
        ("out: the product with a tensor of shape [rows, cols]", None, None),
        ("x is multiplied by y of shape (rows, cols)", None, None),
        ("x is a view of y with shape (rows, cols)", None, None),
        ("x: y, and a tensor of shape [rows, cols]", None, None),
    ],
)
def test_a_sentence_gives_a_shape_to_what_it_begins_with(line: str, name: str | None, text: str | None) -> None:
    assert [(found, shape.text) for found, shape in named_shapes(line)] == ([(name, text)] if name else [])


_names = st.sampled_from(["B", "H", "num_tokens", "head_dim", "N", "kBlock", "d_v", "nheads", "hidden_size"])
_atoms = _names | st.integers(1, 9999).map(str)
_dims = st.one_of(
    _atoms,
    st.builds("{} {} {}".format, _names, st.sampled_from(["+", "-", "*", "/", "//", "%"]), _atoms),
    st.builds("ceil({} / {})".format, _names, st.integers(2, 256)),
    st.builds("({} + {}) * {}".format, _names, _names, _atoms),
)


@st.composite
def shapes(draw: st.DrawFn) -> ShapeComment:
    """One to three alternatives, each with at least one name that says what it counts."""
    count = draw(st.integers(1, 3))
    style = draw(st.sampled_from(["[,]", "(,)"]))
    heads = st.sampled_from([("num_tokens",), ("batch_size",), ("...", "head_dim"), ("*", "head_dim")])
    alternatives = tuple(draw(heads) + tuple(draw(st.lists(_dims, max_size=4))) for _ in range(count))
    joiners = tuple(draw(st.sampled_from([" or ", " || ", " / "])) for _ in alternatives[1:])
    return ShapeComment(alternatives, "", None, "", (style,) * len(alternatives), joiners)


@given(shapes(), st.sampled_from(["{}", "// {}", "/* {} */", "// out: {}", "// {} bf16, written", "// {} (see below)"]))
def test_a_printed_shape_reads_as_itself(shape: ShapeComment, frame: str) -> None:
    text = print_shape(shape)
    again = parse_shape(frame.format(text))
    assert again is not None
    assert (again.alternatives, again.styles, again.joiners) == (shape.alternatives, shape.styles, shape.joiners)
    assert again.text == text == print_shape(again)


@given(shapes(), st.data())
def test_wrapping_says_nothing(shape: ShapeComment, data: st.DataObject) -> None:
    words = print_shape(shape).split(" ")
    breaks = data.draw(st.lists(st.sampled_from([" ", "\n   // "]), min_size=len(words) - 1, max_size=len(words) - 1))
    wrapped = "// " + words[0] + "".join(gap + word for gap, word in zip(breaks, words[1:], strict=True))
    again = parse_shape(wrapped)
    assert again is not None and again.alternatives == shape.alternatives
    assert again.text == print_shape(shape)


@given(st.text(alphabet='aBn_1x ,.*/+-()[]=|:\n"', max_size=60))
def test_any_text_gets_an_answer(text: str) -> None:
    shape = parse_shape(text)
    if shape is not None:
        assert shape.text in comment_text(text)
        assert "".join(print_shape(shape).split()) == "".join(shape.text.split())
    named_shapes(text)


@pytest.mark.parametrize(
    "text", ["(" * 20000, "[a, " * 5000, "[a]" * 5000, "a x " * 5000, "[" + "(" * 190 + "n" + ")" * 190 + "]"]
)
def test_long_texts_are_read_in_time(text: str) -> None:
    parse_shape(text)
    named_shapes(text)
