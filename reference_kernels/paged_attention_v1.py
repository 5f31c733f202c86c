"""Attention of one new token for each sequence over keys and values in a paged cache."""

import numpy as np
from paged_attention import ARGUMENTS as SHARED
from paged_attention import BENCH, COORDINATES, OUT, bytes_moved, scores_and_values, softmax
from paged_attention import inputs as shared_inputs

from opwalker.views.verify.contract import Tolerance, case

__all__ = [
    "ARGUMENTS", "BENCH", "CASES", "COORDINATES", "NAMES", "TOLERANCE", "WRONG", "bytes_moved", "golden", "inputs",
]  # fmt: skip

NAMES = ("_C::paged_attention_v1",)

ARGUMENTS = {"out": OUT} | SHARED

CASES = (
    case("one sequence", lengths=(21,), heads=2, kv_heads=2, size=32),
    case("prime lengths", lengths=(5, 31, 67), heads=3, kv_heads=3, size=40),
    case("grouped queries", lengths=(33, 18), heads=6, kv_heads=2, size=32),
    case("one token", lengths=(1, 2), heads=2, kv_heads=1, size=16),
    case("whole blocks", lengths=(32, 16), heads=2, kv_heads=1, size=32),
    case("more tokens than threads", lengths=(150,), heads=1, kv_heads=1, size=16),
    case("more elements than threads", lengths=(9,), heads=1, kv_heads=1, size=256, dtypes=("bfloat16",)),
    case("blocks of 8", lengths=(19, 8), heads=2, kv_heads=2, size=32, block_size=8),
    case("blocks of 32", lengths=(45,), heads=2, kv_heads=2, size=32, block_size=32),
    case("queries of a fused QKV tensor", lengths=(12, 20), heads=4, kv_heads=2, size=32, fused=True),
    case("biased by distance (ALiBi)", lengths=(40, 17), heads=4, kv_heads=2, size=32, alibi=True),
    case("fp8", lengths=(40, 17), heads=2, kv_heads=1, size=32, kv_cache_dtype="fp8"),
    case("a sequence without a token", lengths=(0, 7), heads=2, kv_heads=1, size=16),
    case("no sequence", lengths=(), heads=2, kv_heads=1, size=32, empty=True),
    case("large", lengths=(1000, 2777, 4096, 31), heads=32, kv_heads=8, size=128, large=True),
    case("more than 48 KiB of shared memory", lengths=(20000,), heads=4, kv_heads=1, size=64, large=True),
)
TOLERANCE = Tolerance(
    "scores and means in float32: an error of a score is one of its weight, and so of the largest values",
    steps=1,
    relative=1e-5,
    absolute=2e-4,
)

WRONG = {
    "BLOCK_TABLE_IGNORED": "the blocks of every sequence are taken to be the first ones of the cache",
    "REST_OF_BLOCK_READ": "values behind the end of a sequence count",
    "HEADS_MODULO": "the heads that share keys are taken to be every n-th, not neighbours",
}


def inputs(draw, dtype, lengths, heads, kv_heads, size, **how):
    out = draw.output((len(lengths), heads, size), dtype)
    return {"out": out} | shared_inputs(draw, dtype, lengths, heads, kv_heads, size, **how)


def golden(out, **arguments):
    means = np.zeros(out.shape)
    for seq in np.flatnonzero(arguments["seq_lens"]):
        means[seq] = softmax(*scores_and_values(seq, **arguments))[2]
    return {"out": means}
