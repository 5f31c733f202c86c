"""Each group of a row's elements divided by a scale of its own, in fp8: scale = max |input| / 448."""

import numpy as np
from fp8 import LARGEST, limited

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::per_token_group_fp8_quant", "sgl_kernel::sgl_per_token_group_quant_fp8")

ARGUMENTS = {
    "input": TensorArgument("[..., hidden_size]"),
    "output_q": TensorArgument("[..., hidden_size]", dtype="float8_e4m3fn", mutated=True),
    "output_s": TensorArgument(
        "[num_tokens, hidden_size/group_size]", layout="rows or columns contiguous", dtype="float32", mutated=True
    ),
}
COORDINATES = {"...": "token", "num_tokens": "token", "hidden_size/group_size": "group"}

CASES = (
    case("one token", tokens=1, hidden_size=128, group_size=128),
    case("prime number of tokens", tokens=7, hidden_size=384, group_size=128),
    case("groups of 64", tokens=5, hidden_size=256, group_size=64),
    case("more than a block takes", tokens=9, hidden_size=512, group_size=64),
    case("groups without alignment", tokens=3, hidden_size=111, group_size=37),
    case("scales in columns", tokens=6, hidden_size=384, group_size=128, transposed=True),
    case("scales in columns, padded", tokens=6, hidden_size=384, group_size=128, transposed=True, padding=2),
    case("scales that are powers of two", tokens=5, hidden_size=256, group_size=64, ue8m0=True),
    case("powers of two in columns", tokens=6, hidden_size=384, group_size=128, ue8m0=True, transposed=True),
    case("small values, where eps counts", tokens=5, hidden_size=256, group_size=128, size=1e-4, eps=1e-3),
    case("no token", tokens=0, hidden_size=128, group_size=128, empty=True),
    case("large", tokens=2048, hidden_size=7168, group_size=128, transposed=True, large=True),
)
BENCH = (case("16384 x 4096, groups of 128", tokens=16384, hidden_size=4096, group_size=128, dtypes=("bfloat16",)),)

TOLERANCE = {
    "output_q": Tolerance(
        "the nearest fp8 number, of a quotient that float32 rounds: near the middle between two it may be either",
        steps=0.5,
        relative=4e-7,
    ),
    "output_s": Tolerance("one division in float32", relative=2.5e-7),
}

WRONG = {
    "HALF_OF_GROUP": "the largest element is looked for in half of a group",
    "POWER_BELOW": "scales are rounded down to a power of two, and values fall out of range",
    "SCALES_IN_ROWS": "scales are taken to lie one behind the other",
}


def inputs(draw, dtype, tokens, hidden_size, group_size, transposed=False, padding=0, ue8m0=False, size=1.0, eps=1e-10):
    groups = hidden_size // group_size
    if transposed:
        scales = draw.output((groups, tokens + padding), "float32")[:, :tokens].transpose()
    else:
        scales = draw.output((tokens, groups), "float32")
    return {
        "input": draw.normal((tokens, hidden_size), dtype, size),
        "output_q": draw.output((tokens, hidden_size), "float8_e4m3fn"),
        "output_s": scales,
        "group_size": group_size,
        "eps": eps,
        "fp8_min": -LARGEST,
        "fp8_max": LARGEST,
        "scale_ue8m0": ue8m0,
        "dummy_is_scale_transposed": transposed,
        "dummy_is_tma_aligned": False,
    }


def golden(input, output_s, group_size, eps, fp8_max, scale_ue8m0, **_):
    groups = input.reshape(*output_s.shape, group_size)
    scales = np.maximum(np.max(np.abs(groups), axis=-1, initial=0.0), eps) / fp8_max
    if scale_ue8m0:
        scales = np.exp2(np.ceil(np.log2(np.maximum(scales, 1e-10))))
    return {"output_q": limited(groups / scales[..., None]).reshape(input.shape), "output_s": scales}
