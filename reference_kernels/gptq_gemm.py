"""A matrix times weights of GPTQ: eight 4-bit numbers to an int32 along k, with a zero and a scale for each group."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::gptq_gemm",)

ARGUMENTS = {
    "a": TensorArgument("[size_m, size_k]", dtype="float16"),
    "b_q_weight": TensorArgument("[size_k/8, size_n]", dtype="int32, k from the lowest bits up"),
    "b_gptq_qzeros": TensorArgument("[groups, size_n/8]", dtype="int32, n from the lowest bits up"),
    "b_gptq_scales": TensorArgument("[groups, size_n]", dtype="float16"),
}
COORDINATES = {"size_m": "row", "size_n": "column"}

HALF = ("float16",)
CASES = (
    case("one row", m=1, n=64, k=64, groups=1, dtypes=HALF),
    case("prime number of rows", m=7, n=64, k=128, groups=2, dtypes=HALF),
    case("128 columns", m=7, n=128, k=128, groups=2, dtypes=HALF),
    case("more than a tile", m=67, n=136, k=32, groups=1, dtypes=HALF),
    case("k that is no multiple of a tile's depth", m=5, n=64, k=40, groups=1, dtypes=HALF),
    case("a group for each 32", m=3, n=64, k=128, groups=4, dtypes=HALF),
    case("zeros as they are", m=3, n=64, k=64, groups=2, v2=True, dtypes=HALF),
    case("one row, zeros as they are", m=1, n=128, k=64, groups=1, v2=True, dtypes=HALF),
    case("no row", m=0, n=64, k=64, groups=1, empty=True, dtypes=HALF),
    case("large", m=128, n=4096, k=4096, groups=32, large=True, dtypes=HALF),
)

TOLERANCE = Tolerance("a library may add in float16: each partial sum is then rounded", steps=1, peak=4)

WRONG = {
    "ZERO_AS_STORED": "the first format's zero is taken as it is stored, one too small",
    "DEPTH_CUT": "k beyond whole tiles is left out",
}


def inputs(draw, dtype, m, n, k, groups, v2=False):
    # Zeros leave room for the one that the first format adds: 16 has no place in four bits, and libraries differ on it.
    zeros = draw.integers((groups, n // 8, 8), "int64", 0, 15).values()
    words = (zeros << (4 * np.arange(8))).sum(axis=-1)
    return {
        "a": draw.normal((m, k), dtype),
        "b_q_weight": draw.integers((k // 8, n), "int32", -(2**31), 2**31),
        "b_gptq_qzeros": draw.values(words.astype(np.uint32).view(np.int32), "int32"),
        "b_gptq_scales": draw.uniform((groups, n), dtype, 0.005, 0.02),
        "use_exllama": False,
        "use_v2_format": v2,
        "bit": 4,
    }


def golden(a, b_q_weight, b_gptq_qzeros, b_gptq_scales, use_v2_format, **_):
    shifts = 4 * np.arange(8)
    q = (b_q_weight[:, None, :] >> shifts[None, :, None] & 0xF).reshape(-1, b_q_weight.shape[1])
    zeros = (b_gptq_qzeros[:, :, None] >> shifts & 0xF).reshape(b_gptq_scales.shape) + (0 if use_v2_format else 1)
    group = np.arange(q.shape[0]) // (q.shape[0] // zeros.shape[0])
    return {"return 0": a @ ((q - zeros[group]) * b_gptq_scales[group])}
