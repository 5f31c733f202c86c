"""Rotary position embedding: pairs of elements of query and key turned by the angles of their position, in place."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::rotary_embedding",)

QUERY = (
    "[num_tokens, num_heads, head_size] or [num_tokens, num_heads * head_size] or "
    "[batch_size, seq_len, num_heads, head_size] or [batch_size, seq_len, num_heads * head_size]"
)
ARGUMENTS = {
    "positions": TensorArgument("[num_tokens] or [batch_size, seq_len]", dtype="int64"),
    "query": TensorArgument(QUERY, layout="heads contiguous, tokens at one distance", mutated=True),
    "key": TensorArgument(
        QUERY.replace("num_heads", "num_kv_heads"),
        layout="heads contiguous, tokens at one distance",
        mutated=True,
        optional=True,
    ),
    "cos_sin_cache": TensorArgument("[max_position, rot_dim]", layout="cosines before sines", dtype="any float"),
}
COORDINATES = {"num_tokens": "token", "num_heads": "head", "num_kv_heads": "head", "batch_size": "row", "seq_len": ""}

CASES = (
    case("one token, NeoX", tokens=(1,), heads=2, kv_heads=1, head_size=64),
    case("one token, GPT-J", tokens=(1,), heads=2, kv_heads=1, head_size=64, is_neox=False),
    case("prime sizes", tokens=(7,), heads=5, kv_heads=3, head_size=22, is_neox=False),
    case("part of a head", tokens=(5,), heads=3, kv_heads=3, head_size=96, rot_dim=32),
    case("part of a head behind others", tokens=(5,), heads=3, kv_heads=1, head_size=96, rot_dim=32, offset=64),
    case("turned back", tokens=(4,), heads=2, kv_heads=2, head_size=32, is_neox=False, inverse=True),
    case("slices of a fused QKV tensor", tokens=(6,), heads=4, kv_heads=2, head_size=64, layout="fused"),
    case("slices of a fused QKV tensor, no alignment", tokens=(6,), heads=3, kv_heads=1, head_size=36, layout="fused"),
    case("flat heads", tokens=(3,), heads=4, kv_heads=2, head_size=48, layout="flat"),
    case("batch and sequence", tokens=(2, 3), heads=4, kv_heads=2, head_size=32, is_neox=False),
    case("batch and sequence, flat heads", tokens=(2, 3), heads=4, kv_heads=2, head_size=32, layout="flat"),
    case("heads further apart", tokens=(3,), heads=4, kv_heads=2, head_size=32, layout="padded"),
    case("no key", tokens=(5,), heads=2, kv_heads=0, head_size=64),
    case("angles in float32", tokens=(5,), heads=2, kv_heads=1, head_size=64, angles="float32"),
    case("more than one round of a block", tokens=(2,), heads=70, kv_heads=2, head_size=256, dtypes=("bfloat16",)),
    case("no token", tokens=(0,), heads=2, kv_heads=1, head_size=64, empty=True),
    case("large", tokens=(4096,), heads=32, kv_heads=8, head_size=128, layout="fused", large=True),
    case("large, GPT-J", tokens=(4096,), heads=32, kv_heads=8, head_size=128, is_neox=False, large=True),
)
BENCH = (
    case("16384 tokens, 32 + 8 heads of 128", tokens=(16384,), heads=32, kv_heads=8, head_size=128, layout="flat",
         dtypes=("bfloat16",)),
)  # fmt: skip

TOLERANCE = Tolerance("two products and a sum in float32, rounded once", steps=0.51, absolute=1e-5)

WRONG = {
    "NO_STRIDE": "tokens and heads are taken to lie one behind the other",
    "OTHER_PAIRS": "NeoX pairs are taken for GPT-J's and the other way round",
    "NEW_X_USED": "y is made from the x that is turned already",
}


def inputs(
    draw, dtype, tokens, heads, kv_heads, head_size,
    rot_dim=None, is_neox=True, layout="heads", offset=0, inverse=False, angles=None,
):  # fmt: skip
    rot_dim = rot_dim or head_size
    angle = draw.uniform((97, rot_dim // 2), "float64", -np.pi, np.pi).values()
    wide = heads + 2 * kv_heads if layout == "fused" else heads
    extra = 8 if layout == "padded" else 0
    query = draw.normal((*tokens, wide, head_size + extra), dtype)[..., :head_size]
    key = draw.normal((*tokens, kv_heads, head_size + 2 * extra), dtype)[..., :head_size] if kv_heads else None
    if layout == "fused":
        query, key = query[..., :heads, :], query[..., heads : heads + kv_heads, :]
    if layout in ("fused", "flat"):
        query, key = query.reshape(*tokens, heads * head_size), key.reshape(*tokens, kv_heads * head_size)
    return {
        "positions": draw.integers(tokens, "int64", 0, 97),
        "query": query,
        "key": key,
        "head_size": head_size,
        "cos_sin_cache": draw.values(np.concatenate([np.cos(angle), np.sin(angle)], axis=-1), angles or dtype),
        "is_neox": is_neox,
        "rope_dim_offset": offset,
        "inverse": inverse,
    }


def golden(positions, query, key, head_size, cos_sin_cache, is_neox, rope_dim_offset, inverse):
    cos, sin = np.split(cos_sin_cache[positions], 2, axis=-1)
    half = cos.shape[-1]
    sin = -sin if inverse else sin
    first = rope_dim_offset + np.arange(half) * (1 if is_neox else 2)
    second = first + (half if is_neox else 1)

    def turned(tensor):
        size = int(np.prod(tensor.shape[positions.ndim :]))
        heads = tensor.reshape(*positions.shape, size // head_size, head_size)
        x, y, c, s = heads[..., first], heads[..., second], cos[..., None, :], sin[..., None, :]
        out = heads.copy()
        out[..., first] = x * c - y * s
        out[..., second] = y * c + x * s
        return out.reshape(tensor.shape)

    return {"query": turned(query)} | ({} if key is None else {"key": turned(key)})
