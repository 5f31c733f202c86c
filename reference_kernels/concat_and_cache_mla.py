"""Compressed key-value and rotated key part of each token, side by side in its slot of a paged cache."""

import numpy as np
from kv_cache import COORDINATES as OF_CACHE
from kv_cache import cache, slot_mapping, stored

from opwalker.views.verify.contract import EXACT, TensorArgument, case

NAMES = ("_C_cache_ops::concat_and_cache_mla",)

ARGUMENTS = {
    "kv_c": TensorArgument("[num_tokens, kv_lora_rank]", layout="rows contiguous, anywhere"),
    "k_pe": TensorArgument("[num_tokens, pe_dim]", layout="rows contiguous, anywhere"),
    "kv_cache": TensorArgument(
        "[num_blocks, block_size, kv_lora_rank + pe_dim]",
        layout="slots contiguous, anywhere",
        dtype="as kv_c, or uint8 for fp8",
        mutated=True,
    ),
    "slot_mapping": TensorArgument("[num_tokens]", dtype="int64, negative for a token to leave out"),
    "scale": TensorArgument("[1]", dtype="float32"),
}
COORDINATES = OF_CACHE

CASES = (
    case("one token", tokens=1, rank=64, pe=16),
    case("sizes of a model", tokens=13, rank=512, pe=64),
    case("prime sizes", tokens=23, rank=61, pe=13),
    case("negative slots", tokens=19, rank=64, pe=32, skipped=0.3),
    case("slices of one tensor", tokens=9, rank=64, pe=32, fused=True),
    case("slots further apart", tokens=9, rank=64, pe=32, padding=16),
    case("slots without alignment", tokens=9, rank=64, pe=32, padding=1),
    case("rows padded", tokens=9, rank=64, pe=32, more=5),
    case("fp8", tokens=21, rank=128, pe=64, kv_cache_dtype="fp8"),
    case("no token", tokens=0, rank=64, pe=16, empty=True),
    case("large", tokens=9000, rank=512, pe=64, blocks=600, skipped=0.02, large=True),
)
BENCH = (case("65536 random slots, 512 + 64", tokens=65536, rank=512, pe=64, blocks=4096, dtypes=("bfloat16",)),)

TOLERANCE = EXACT

WRONG = {
    "NO_STRIDE": "slots are taken to lie one behind the other",
    "PE_DROPPED": "the part that carries the position is not written",
}


def inputs(
    draw, dtype, tokens, rank, pe,
    block_size=16, blocks=5, order="random", skipped=0.0, fused=False, padding=0, more=0, kv_cache_dtype="auto",
):  # fmt: skip
    if fused:
        both = draw.normal((tokens + more, rank + pe), dtype)
        kv_c, k_pe = both[:, :rank], both[:, rank:]
    else:
        kv_c, k_pe = draw.normal((tokens + more, rank), dtype), draw.normal((tokens + more, pe), dtype)
    return {
        "kv_c": kv_c,
        "k_pe": k_pe,
        "kv_cache": cache(draw, (blocks, block_size, rank + pe + padding), dtype, kv_cache_dtype)[..., : rank + pe],
        "slot_mapping": slot_mapping(draw, tokens, blocks * block_size, order, skipped),
        "kv_cache_dtype": kv_cache_dtype,
        "scale": draw.values([0.5], "float32"),
    }


def golden(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    used = slot_mapping >= 0
    block, offset = divmod(slot_mapping[used], kv_cache.shape[1])
    rows = np.concatenate([kv_c, k_pe], axis=-1)[: used.size][used]
    kv_cache[block, offset] = stored(rows, kv_cache_dtype, scale)
    return {"kv_cache": kv_cache}


def bytes_moved(kv_c, k_pe, **_):
    return 2 * (kv_c.view.size + k_pe.view.size) * kv_c.type.bytes
