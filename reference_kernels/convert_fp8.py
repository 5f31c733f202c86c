"""A cache converted to the codes of fp8, divided by a scale, or back, multiplied by it."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case
from opwalker.views.verify.numbers import TYPES, decode, encode

NAMES = ("_C_cache_ops::convert_fp8",)

ARGUMENTS = {
    "dst_cache": TensorArgument(
        "[num_blocks, ...]", dtype="uint8, or a float type where src_cache is uint8", mutated=True
    ),
    "src_cache": TensorArgument("[num_blocks, ...]", dtype="a float type, or uint8"),
}
COORDINATES = {"num_blocks": "block"}

CASES = (
    case("one block", shape=(1, 16)),
    case("prime sizes", shape=(7, 13, 11)),
    case("more than all threads at once", shape=(9, 4, 32, 64), dtypes=("bfloat16",)),
    case("values beyond the largest", shape=(3, 64), size=900.0),
    case("values in the subnormal range", shape=(3, 64), size=0.004),
    case("fp8_e4m3", shape=(3, 2, 16), kv_cache_dtype="fp8_e4m3"),
    case("back from fp8", shape=(5, 4, 16), back=True),
    case("back from fp8, prime sizes", shape=(7, 13, 11), back=True),
    case("a scale that is no power of two", shape=(5, 4, 16), scale=0.3),
    case("no block", shape=(0, 16), empty=True),
    case("large", shape=(1024, 8, 16, 128), large=True),
)
BENCH = (case("4096 blocks of 16 x 8 x 128", shape=(4096, 16, 8, 128), dtypes=("bfloat16",)),)

TOLERANCE = Tolerance(
    "one product or quotient in float32, and the nearest number of the type", steps=0.5, relative=1.3e-7
)

WRONG = {
    "SCALE_INVERTED": "values are multiplied by the scale on their way to fp8",
    "NO_SATURATION": "what is too large becomes NaN",
    "ONE_ROUND": "what lies beyond the first round of the grid is left out",
}


def inputs(draw, dtype, shape, size=1.0, back=False, scale=0.25, kv_cache_dtype="fp8"):
    if back:  # every code but those of NaN
        codes = draw.integers(shape, "uint8", 0, 127).values() + 128 * draw.chance(0.5, shape)
        source, to = draw.values(codes, "uint8"), dtype
    else:
        source, to = draw.normal(shape, dtype, size), "uint8"
    return {"dst_cache": draw.output(shape, to), "src_cache": source, "scale": scale, "kv_cache_dtype": kv_cache_dtype}


def golden(dst_cache, src_cache, scale, **_):
    of = TYPES["float8_e4m3fn"]
    by = np.float64(np.float32(scale))
    if dst_cache.dtype != np.int64:
        return {"dst_cache": decode(src_cache.astype(np.uint8), of) * by}
    # Codes are compared as they are: the quotient is taken as float32 rounds it.
    return {"dst_cache": encode((src_cache / by).astype(np.float32), of)}
