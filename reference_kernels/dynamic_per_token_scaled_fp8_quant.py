"""Each row divided by a scale of its own, in fp8: scale = max |input| / 448, result = input / scale."""

import numpy as np
from fp8 import LARGEST, limited

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::dynamic_per_token_scaled_fp8_quant",)

ROWS = "the last dimension contiguous, rows anywhere"
ARGUMENTS = {
    "result": TensorArgument("[..., hidden_size]", layout=ROWS, dtype="float8_e4m3fn", mutated=True),
    "input": TensorArgument("[..., hidden_size]", layout=ROWS),
    "scale": TensorArgument("[num_tokens, 1]", dtype="float32", mutated=True),
    "scale_ub": TensorArgument("[1]", dtype="float32", optional=True),
}
COORDINATES = {"...": "token", "num_tokens": "token"}

CASES = (
    case("one token", shape=(1,), hidden_size=64),
    case("prime sizes", shape=(7,), hidden_size=521),
    case("a row longer than a block keeps", shape=(2,), hidden_size=8192 * 4 + 8, dtypes=("float32",), peak=-1),
    case("the largest is negative", shape=(5,), hidden_size=96, peak=17),
    case("a bound for the scale", shape=(5,), hidden_size=96, bound=1.5),
    case("small values", shape=(5,), hidden_size=96, size=1e-5),
    case("rows of zeros", shape=(3,), hidden_size=64, size=0.0),
    case("rows of wider tensors", shape=(5,), hidden_size=256, padding=24),
    case("rows of wider tensors, no alignment", shape=(5,), hidden_size=256, padding=3),
    case("three dimensions", shape=(3, 5), hidden_size=64),
    case("no token", shape=(0,), hidden_size=64, empty=True),
    case("large", shape=(2048,), hidden_size=5120, large=True),
    case("more rows than one dimension of a grid", shape=(70001,), hidden_size=128, large=True),
)
BENCH = (case("16384 x 4096", shape=(16384,), hidden_size=4096, dtypes=("bfloat16",)),)

TOLERANCE = {
    "result": Tolerance(
        "the nearest fp8 number, of a quotient that float32 rounds: near the middle between two it may be either",
        steps=0.5,
        relative=4e-7,
    ),
    "scale": Tolerance("one division in float32", relative=1.3e-7),
}

WRONG = {
    "NO_STRIDE": "rows are taken to lie one behind the other",
    "SIGN_KEPT": "the largest value is looked for, not the largest size",
    "TAIL_DROPPED": "what a block cannot keep in registers is left out of the maximum",
    "NO_BOUND": "scale_ub is ignored",
}


def inputs(draw, dtype, shape, hidden_size, padding=0, size=1.0, bound=None, peak=None):
    values = draw.normal((*shape, hidden_size + padding), dtype, size)[..., :hidden_size]
    if peak is not None:
        values.view[..., peak] = draw.values([-40.0], dtype).view[0]
    return {
        "result": draw.output((*shape, hidden_size + padding), "float8_e4m3fn")[..., :hidden_size],
        "input": values,
        "scale": draw.output((int(np.prod(shape)), 1), "float32"),
        "scale_ub": draw.values([bound], "float32") if bound else None,
    }


def golden(input, scale, scale_ub, **_):
    largest = np.max(np.abs(input), axis=-1, keepdims=True, initial=0.0)
    if scale_ub is not None:
        largest = np.minimum(largest, scale_ub)
    scales = np.maximum(largest / LARGEST, 1 / (LARGEST * 512))
    return {"result": limited(input / scales), "scale": scales.reshape(scale.shape)}
