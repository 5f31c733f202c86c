"""Keys and values moved to their slots of a paged cache, keys in vectors of x elements, values with tokens last."""

from kv_cache import COORDINATES as OF_CACHE
from kv_cache import cache, slot_mapping, stored, x_of

from opwalker.views.verify.contract import EXACT, TensorArgument, case

NAMES = ("_C_cache_ops::reshape_and_cache",)

ROWS = "the heads of a token one behind the other, tokens anywhere"
ARGUMENTS = {
    "key": TensorArgument("[num_tokens, num_heads, head_size]", layout=ROWS),
    "value": TensorArgument("[num_tokens, num_heads, head_size]", layout=ROWS),
    "key_cache": TensorArgument(
        "[num_blocks, num_heads, head_size/x, block_size, x]", dtype="as key, or uint8 for fp8", mutated=True
    ),
    "value_cache": TensorArgument(
        "[num_blocks, num_heads, head_size, block_size]", dtype="as key, or uint8 for fp8", mutated=True
    ),
    "slot_mapping": TensorArgument("[num_tokens]", dtype="int64, negative for a token to leave out"),
    "k_scale": TensorArgument("[1]", dtype="float32"),
    "v_scale": TensorArgument("[1]", dtype="float32"),
}
COORDINATES = OF_CACHE

CASES = (
    case("one token", tokens=1, heads=2, head_size=32),
    case("prime number of tokens", tokens=23, heads=3, head_size=80),
    case("a block filled in part, in order", tokens=41, heads=2, head_size=64, order="sequential"),
    case("negative slots", tokens=19, heads=2, head_size=64, skipped=0.3),
    case("blocks of 8", tokens=29, heads=2, head_size=32, block_size=8),
    case("blocks of 12", tokens=29, heads=2, head_size=32, block_size=12),
    case("blocks of 32, all full", tokens=64, heads=2, head_size=48, block_size=32, blocks=2),
    case("slices of a fused QKV tensor", tokens=9, heads=2, head_size=64, fused=True),
    case("rows without alignment", tokens=9, heads=2, head_size=32, padding=3),
    case("key and value padded", tokens=9, heads=2, head_size=32, more=5),
    case("fp8", tokens=21, heads=2, head_size=64, kv_cache_dtype="fp8"),
    case("fp8, rows without alignment", tokens=21, heads=2, head_size=32, kv_cache_dtype="fp8", padding=1),
    case("no token", tokens=0, heads=2, head_size=32, empty=True),
    case("large", tokens=9000, heads=8, head_size=128, blocks=600, skipped=0.02, large=True),
)
BENCH = (
    case("65536 random slots, 8 heads of 128", tokens=65536, heads=8, head_size=128, blocks=4096, dtypes=("bfloat16",)),
    case("65536 slots in order, 8 heads of 128", tokens=65536, heads=8, head_size=128, blocks=4096, order="sequential",
         dtypes=("bfloat16",)),
)  # fmt: skip

TOLERANCE = EXACT

WRONG = {
    "NO_STRIDE": "keys are taken to lie one behind the other",
    "AXES_SWAPPED": "key_cache is written as [.., block_size, head_size/x, x]",
    "ALL_TAKEN_FOR_FULL": "slots that no token goes to are written along with their neighbours",
}


def inputs(
    draw, dtype, tokens, heads, head_size,
    block_size=16, blocks=5, order="random", skipped=0.0, fused=False, padding=0, more=0, kv_cache_dtype="auto",
):  # fmt: skip
    x = x_of(dtype, kv_cache_dtype)
    size = heads * head_size
    qkv = draw.normal((tokens + more, 3 * size if fused else 2 * (size + padding)), dtype)
    key, value = (qkv[:, size:], qkv[:, 2 * size :]) if fused else (qkv, qkv[:, size + padding :])
    return {
        "key": key[:, :size].reshape(tokens + more, heads, head_size),
        "value": value[:, :size].reshape(tokens + more, heads, head_size),
        "key_cache": cache(draw, (blocks, heads, head_size // x, block_size, x), dtype, kv_cache_dtype),
        "value_cache": cache(draw, (blocks, heads, head_size, block_size), dtype, kv_cache_dtype),
        "slot_mapping": slot_mapping(draw, tokens, blocks * block_size, order, skipped),
        "kv_cache_dtype": kv_cache_dtype,
        "k_scale": draw.values([0.5], "float32"),
        "v_scale": draw.values([0.25], "float32"),
    }


def golden(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    used = slot_mapping >= 0
    block, offset = divmod(slot_mapping[used], key_cache.shape[3])
    x = key_cache.shape[4]
    keys, values = key[: used.size][used], value[: used.size][used]
    vectors = (*keys.shape[:2], keys.shape[2] // x, x)
    key_cache[block, :, :, offset] = stored(keys, kv_cache_dtype, k_scale).reshape(vectors)
    value_cache[block, :, :, offset] = stored(values, kv_cache_dtype, v_scale)
    return {"key_cache": key_cache, "value_cache": value_cache}


def bytes_moved(key, value, **_):
    return 2 * (key.view.size + value.view.size) * key.type.bytes
