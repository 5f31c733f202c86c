"""Keys and values moved to their slots of a paged cache in which a token's elements stay together."""

from kv_cache import COORDINATES as OF_CACHE
from kv_cache import cache, slot_mapping, stored

from opwalker.views.verify.contract import EXACT, TensorArgument, case

NAMES = ("_C_cache_ops::reshape_and_cache_flash",)

ROWS = "the heads of a token one behind the other, tokens anywhere"
CACHE = TensorArgument(
    "[num_blocks, block_size, num_heads, head_size]",
    layout="head_size contiguous, the rest anywhere, as in the other cache",
    dtype="as key, or uint8 for fp8",
    mutated=True,
)
ARGUMENTS = {
    "key": TensorArgument("[num_tokens, num_heads, head_size]", layout=ROWS),
    "value": TensorArgument("[num_tokens, num_heads, head_size]", layout=ROWS),
    "key_cache": CACHE,
    "value_cache": CACHE,
    "slot_mapping": TensorArgument("[num_tokens]", dtype="int64, negative for a token to leave out"),
    "k_scale": TensorArgument("[1] or [num_heads]", dtype="float32"),
    "v_scale": TensorArgument("[1] or [num_heads]", dtype="float32"),
}
COORDINATES = OF_CACHE

CASES = (
    case("one token", tokens=1, heads=2, head_size=32),
    case("prime sizes", tokens=23, heads=3, head_size=37),
    case("negative slots", tokens=19, heads=2, head_size=64, skipped=0.3),
    case("in order, the first slot too", tokens=48, heads=1, head_size=64, order="sequential", blocks=3),
    case("heads before tokens", tokens=17, heads=4, head_size=32, heads_first=True),
    case("one tensor for both caches", tokens=17, heads=2, head_size=32, together=True),
    case("slices of a fused QKV tensor", tokens=9, heads=2, head_size=64, fused=True),
    case("key and value padded", tokens=9, heads=2, head_size=32, more=5),
    case("more than one round of a block", tokens=3, heads=40, head_size=128, dtypes=("float32",)),
    case("fp8", tokens=21, heads=2, head_size=64, kv_cache_dtype="fp8"),
    case("fp8, a scale for each head", tokens=21, heads=4, head_size=40, kv_cache_dtype="fp8", scales=4),
    case("no token", tokens=0, heads=2, head_size=32, empty=True),
    case("large", tokens=9000, heads=8, head_size=128, blocks=600, skipped=0.02, large=True),
)
BENCH = (
    case("65536 random slots, 8 heads of 128", tokens=65536, heads=8, head_size=128, blocks=4096, dtypes=("bfloat16",)),
)  # fmt: skip

TOLERANCE = EXACT

WRONG = {
    "HEAD_STRIDE": "heads are taken to lie one behind the other in the cache",
    "LAST_FOR_PADDING": "slot 0 is taken for padding, and negative slots are written",
}


def inputs(
    draw, dtype, tokens, heads, head_size, block_size=16, blocks=5, order="random", skipped=0.0, fused=False, more=0,
    heads_first=False, together=False, kv_cache_dtype="auto", scales=1,
):  # fmt: skip
    parts = 3 if fused else 2
    qkv = draw.normal((tokens + more, parts, heads, head_size), dtype)
    shape = (blocks, heads, block_size, head_size) if heads_first else (blocks, block_size, heads, head_size)
    if together:
        both = cache(draw, (blocks, 2, *shape[1:]), dtype, kv_cache_dtype)
        key_cache, value_cache = both[:, 0], both[:, 1]
    else:
        key_cache, value_cache = (cache(draw, shape, dtype, kv_cache_dtype) for _ in range(2))
    if heads_first:
        key_cache, value_cache = key_cache.transpose(0, 2, 1, 3), value_cache.transpose(0, 2, 1, 3)
    return {
        "key": qkv[:, parts - 2],
        "value": qkv[:, parts - 1],
        "key_cache": key_cache,
        "value_cache": value_cache,
        "slot_mapping": slot_mapping(draw, tokens, blocks * block_size, order, skipped),
        "kv_cache_dtype": kv_cache_dtype,
        "k_scale": draw.values([0.5, 2.0, 0.125, 1.0][:scales], "float32"),
        "v_scale": draw.values([0.25, 0.5, 4.0, 1.0][:scales], "float32"),
    }


def golden(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    used = slot_mapping >= 0
    block, offset = divmod(slot_mapping[used], key_cache.shape[1])
    key_cache[block, offset] = stored(key[: used.size][used], kv_cache_dtype, k_scale)
    value_cache[block, offset] = stored(value[: used.size][used], kv_cache_dtype, v_scale)
    return {"key_cache": key_cache, "value_cache": value_cache}


def bytes_moved(key, value, **_):
    return 2 * (key.view.size + value.view.size) * key.type.bytes
