"""What the contracts of the ops that fill a key-value cache have in common: slots, element types, quantisation."""

import numpy as np

from opwalker.views.verify.numbers import TYPES, decode, encode

COORDINATES = {
    "num_tokens": "token", "num_blocks": "block", "num_heads": "head", "block_size": "offset", "head_size": "",
}  # fmt: skip


def slot_mapping(draw, tokens, slots, order="random", skipped=0.0):
    """A different slot for each token; that of a skipped one is negative."""
    if order == "random":
        chosen = draw.distinct(tokens, "int64", slots)
    else:
        first = 0 if tokens == slots else (slots - tokens) // 2 + 1
        chosen = draw.values(np.arange(first, first + tokens), "int64")
    if skipped:
        chosen.view[draw.chance(skipped, (tokens,))] = np.uint64(2**64 - 1)
    return chosen


def cache(draw, shape, dtype, kv_cache_dtype):
    """A cache with something in it."""
    if kv_cache_dtype == "auto":
        return draw.normal(shape, dtype)
    return draw.integers(shape, "uint8", 0, 256)


def stored(values, kv_cache_dtype, scale):
    """Values as the cache holds them: fp8 as codes."""
    if kv_cache_dtype == "auto":
        return values
    # A scale is a power of two here: the quotient is exact, and there is one right code.
    return encode(values / np.reshape(scale, (-1, 1)), TYPES["float8_e4m3fn"])


def x_of(dtype, kv_cache_dtype):
    """Elements of a cache in 16 bytes."""
    return 16 // (TYPES[dtype].bytes if kv_cache_dtype == "auto" else 1)


def read(codes, kv_cache_dtype, scale):
    """What a cache's contents stand for."""
    if kv_cache_dtype == "auto":
        return codes
    return decode(codes.astype(np.uint8), TYPES["float8_e4m3fn"]) * scale
