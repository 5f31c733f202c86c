"""As paged_attention_v1, with each sequence split into partitions of 512 tokens whose results are merged."""

import numpy as np
from paged_attention import ARGUMENTS as SHARED
from paged_attention import BENCH, COORDINATES, OUT, bytes_moved, scores_and_values, softmax
from paged_attention import inputs as shared_inputs

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

__all__ = [
    "ARGUMENTS", "BENCH", "CASES", "COORDINATES", "NAMES", "TOLERANCE", "WRONG", "bytes_moved", "golden", "inputs",
]  # fmt: skip

NAMES = ("_C::paged_attention_v2",)

OF_PARTITION = TensorArgument("[num_seqs, num_heads, max_num_partitions]", dtype="float32", mutated=True)
ARGUMENTS = {
    "out": OUT,
    "exp_sums": OF_PARTITION,
    "max_logits": OF_PARTITION,
    "tmp_out": TensorArgument("[num_seqs, num_heads, max_num_partitions, head_size]", mutated=True),
} | SHARED

CASES = (
    case("one partition", lengths=(21,), heads=2, kv_heads=2, size=32),
    case("prime lengths", lengths=(5, 547), heads=2, kv_heads=1, size=24, dtypes=("float32", "bfloat16")),
    case("a whole partition", lengths=(512,), heads=1, kv_heads=1, size=16, dtypes=("float16",)),
    case("partitions of very different weight", lengths=(1100,), heads=2, kv_heads=1, size=16, alibi=True),
    case("grouped queries of a fused QKV tensor", lengths=(33, 18), heads=6, kv_heads=2, size=32, fused=True),
    case("blocks of 32, fp8", lengths=(530,), heads=1, kv_heads=1, size=32, block_size=32, kv_cache_dtype="fp8"),
    case("a sequence without a token", lengths=(0, 7), heads=2, kv_heads=1, size=16),
    case("no sequence", lengths=(), heads=2, kv_heads=1, size=32, empty=True),
    case("large", lengths=(1000, 2777, 8192, 31), heads=32, kv_heads=8, size=128, large=True),
)
_MEANS = "scores and means in float32: an error of a score is one of its weight, and so of the largest values"
TOLERANCE = {
    "out": Tolerance(f"{_MEANS}; the means of partitions are rounded", steps=1, peak=1, relative=1e-5, absolute=2e-4),
    "tmp_out": Tolerance(_MEANS, steps=1, relative=1e-5, absolute=2e-4),
    "exp_sums": Tolerance("a sum in float32 of fast exponentials", relative=1e-4),
    "max_logits": Tolerance("products summed in float32", relative=1e-5, absolute=1e-5),
}

WRONG = {
    "NOT_RESCALED": "the sums of partitions are added as if they had the same largest score",
    "REST_OF_BLOCK_READ": "values behind the end of a sequence count",
}

PARTITION = 512


def inputs(draw, dtype, lengths, heads, kv_heads, size, **how):
    shape = (len(lengths), heads, -(-max([*lengths, 1]) // PARTITION))
    # Partitions that a sequence does not reach keep what is in them.
    scratch = {
        "out": draw.output((len(lengths), heads, size), dtype),
        "exp_sums": draw.normal(shape, "float32"),
        "max_logits": draw.normal(shape, "float32"),
        "tmp_out": draw.normal((*shape, size), dtype),
    }
    return scratch | shared_inputs(draw, dtype, lengths, heads, kv_heads, size, **how)


def golden(out, exp_sums, max_logits, tmp_out, **arguments):
    means = np.zeros(out.shape)
    for seq in np.flatnonzero(arguments["seq_lens"]):
        scores, values = scores_and_values(seq, **arguments)
        means[seq] = softmax(scores, values)[2]
        for part, first in enumerate(range(0, scores.shape[1], PARTITION)):
            mine = slice(first, first + PARTITION)
            highest, sums, mean = softmax(scores[:, mine], values[:, mine])
            max_logits[seq, :, part], exp_sums[seq, :, part], tmp_out[seq, :, part] = highest, sums, mean
    return {"out": means, "exp_sums": exp_sums, "max_logits": max_logits, "tmp_out": tmp_out}
