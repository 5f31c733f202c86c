"""What the contracts of both versions of paged attention have in common."""

import numpy as np
from kv_cache import cache, read, x_of

from opwalker.views.verify.contract import TensorArgument, case

COORDINATES = {"num_seqs": "sequence", "num_heads": "head", "head_size": "", "max_num_partitions": "partition"}

OUT = TensorArgument("[num_seqs, num_heads, head_size]", mutated=True)
ARGUMENTS = {
    "query": TensorArgument("[num_seqs, num_heads, head_size]", layout="sequences anywhere"),
    "key_cache": TensorArgument(
        "[num_blocks, num_kv_heads, head_size/x, block_size, x]", dtype="as query, or uint8 for fp8"
    ),
    "value_cache": TensorArgument("[num_blocks, num_kv_heads, head_size, block_size]", dtype="as key_cache"),
    "block_tables": TensorArgument("[num_seqs, max_num_blocks_per_seq]", dtype="int32"),
    "seq_lens": TensorArgument("[num_seqs]", dtype="int32"),
    "alibi_slopes": TensorArgument("[num_heads]", dtype="float32", optional=True),
    "k_scale": TensorArgument("[1]", dtype="float32"),
    "v_scale": TensorArgument("[1]", dtype="float32"),
}

BENCH = tuple(
    case(name, lengths=lengths, heads=32, kv_heads=8, size=128, dtypes=("bfloat16",))
    for name, lengths in (("1 x 8192 tokens, 32 heads", (8192,)), ("64 x 2048 tokens, 32 heads", (2048,) * 64))
)


def inputs(
    draw, dtype, lengths, heads, kv_heads, size,
    block_size=16, fused=False, alibi=False, kv_cache_dtype="auto", spare=3,
):  # fmt: skip
    """The arguments that both versions take. Blocks are handed out in no order; what lies behind the end of a sequence,
    in its last block and in its table, must not be used, and is no number."""
    x = x_of(dtype, kv_cache_dtype)
    counts = [-(-length // block_size) for length in lengths]
    blocks = sum(counts) + spare
    keys = cache(draw, (blocks, kv_heads, size // x, block_size, x), dtype, kv_cache_dtype)
    values = cache(draw, (blocks, kv_heads, size, block_size), dtype, kv_cache_dtype)
    if kv_cache_dtype != "auto":  # codes without those of no number
        keys, values = (draw.values(one.values() & 0xFB, "uint8") for one in (keys, values))
    table = np.full((len(lengths), max([*counts, 1])), 2**31 - 1)
    free = draw.distinct(blocks, "int64", blocks).values()
    for seq, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        table[seq, :count], free = free[:count], free[count:]
        if length % block_size:
            keys.view[table[seq, count - 1], :, :, length % block_size :] = ~keys.type.raw.type(0)
            values.view[table[seq, count - 1], :, :, length % block_size :] = ~values.type.raw.type(0)
    qkv = draw.normal((len(lengths), heads + (2 * kv_heads if fused else 0), size), dtype)
    return {
        "query": qkv[:, :heads],
        "key_cache": keys,
        "value_cache": values,
        "num_kv_heads": kv_heads,
        "scale": size**-0.5,
        "block_tables": draw.values(table, "int32"),
        "seq_lens": draw.values(np.array(lengths), "int32"),
        "block_size": block_size,
        "max_seq_len": max([*lengths, 1]),
        "alibi_slopes": draw.uniform((heads,), "float32", 0.01, 0.2) if alibi else None,
        "kv_cache_dtype": kv_cache_dtype,
        "k_scale": draw.values([2.0**-7], "float32"),
        "v_scale": draw.values([2.0**-6], "float32"),
        "tp_rank": 0,
        "blocksparse_local_blocks": 0,
        "blocksparse_vert_stride": 0,
        "blocksparse_block_size": 64,
        "blocksparse_head_sliding_step": 0,
    }


def scores_and_values(
    seq, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, alibi_slopes,
    kv_cache_dtype, k_scale, v_scale, **_,
):  # fmt: skip
    """Of a sequence: scores [num_heads, seq_len] and values [num_heads, seq_len, head_size]."""
    length = int(seq_lens[seq])
    table = block_tables[seq, : -(-length // block_size)]
    _, heads, size = query.shape
    keys = read(key_cache[table], kv_cache_dtype, k_scale).transpose(1, 0, 3, 2, 4)
    values = read(value_cache[table], kv_cache_dtype, v_scale).transpose(1, 0, 3, 2)
    group = heads // num_kv_heads
    rows = (num_kv_heads, len(table) * block_size, size)
    keys, values = (one.reshape(rows)[:, :length].repeat(group, axis=0) for one in (keys, values))
    scores = np.einsum("hd,htd->ht", query[seq], keys) * scale
    if alibi_slopes is not None:
        scores = scores + alibi_slopes[:, None] * (np.arange(length) - length + 1)
    return scores, values


def softmax(scores, values):
    """Largest score, sum of weights and mean of values, each for every head."""
    highest = scores.max(axis=-1)
    weights = np.exp(scores - highest[:, None])
    return highest, weights.sum(axis=-1), np.einsum("ht,htd->hd", weights, values) / weights.sum(axis=-1)[:, None]


def bytes_moved(key_cache, seq_lens, num_kv_heads, query, **_):
    """Keys and values of all tokens, read once."""
    return int(2 * seq_lens.values().sum()) * num_kv_heads * query.shape[2] * key_cache.type.bytes
