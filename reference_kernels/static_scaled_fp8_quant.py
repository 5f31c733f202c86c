"""Numbers divided by given scales, in fp8: result = input / scale."""

import numpy as np
from fp8 import limited

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::static_scaled_fp8_quant",)

ARGUMENTS = {
    "result": TensorArgument(
        "[..., hidden_size]", layout="the last dimension contiguous, rows anywhere", dtype="float8_e4m3fn", mutated=True
    ),
    "input": TensorArgument("[..., hidden_size]", layout="the last dimension contiguous, rows anywhere"),
    "scale": TensorArgument(
        "[1] or [num_tokens/group_m, hidden_size/group_n] or [hidden_size] or [num_tokens]",
        layout="any strides",
        dtype="float32",
    ),
}
COORDINATES = {"...": "token"}

CASES = (
    case("one token", shape=(1,), hidden_size=64),
    case("prime sizes", shape=(7,), hidden_size=521),
    case("more than a block takes", shape=(3,), hidden_size=2048),
    case("values beyond the largest", shape=(5,), hidden_size=96, size=900.0),
    case("values in the subnormal range", shape=(5,), hidden_size=96, size=0.004),
    case("rows of wider tensors", shape=(5,), hidden_size=256, padding=24),
    case("rows of wider tensors, no alignment", shape=(5,), hidden_size=256, padding=3),
    case("three dimensions", shape=(3, 5), hidden_size=64, padding=16),
    case("a scale for each token", shape=(6,), hidden_size=80, group=(1, -1)),
    case("a scale for each column", shape=(6,), hidden_size=80, group=(-1, 1)),
    case("a scale for each block of 2 by 16", shape=(6,), hidden_size=80, group=(2, 16), blocks=True),
    case("a scale for each group of 40 of a token", shape=(5,), hidden_size=80, group=(1, 40), blocks=True),
    case("no token", shape=(0,), hidden_size=64, empty=True),
    case("large", shape=(2048,), hidden_size=5120, large=True),
    case("large, a scale for each token", shape=(70001,), hidden_size=128, group=(1, -1), large=True),
)
BENCH = (case("16384 x 4096", shape=(16384,), hidden_size=4096, dtypes=("bfloat16",)),)

TOLERANCE = Tolerance(
    "the nearest fp8 number, of a product with a reciprocal that float32 rounds: near the middle between two it may "
    "be either",
    steps=0.5,
    relative=2.5e-7,
)

WRONG = {
    "NO_STRIDE": "rows are taken to lie one behind the other",
    "NO_SATURATION": "what is too large becomes NaN",
    "GROUPS_SWAPPED": "the strides of the scales are taken for each other",
}


def inputs(draw, dtype, shape, hidden_size, padding=0, size=1.0, group=None, blocks=False):
    tokens = int(np.prod(shape))
    rows, columns = group or (-1, -1)
    scales = (
        1 if rows == -1 else tokens // rows,
        1 if columns == -1 else hidden_size // columns,
    )
    scale = draw.uniform(scales, "float32", 0.02, 0.5)
    return {
        "result": draw.output((*shape, hidden_size + padding), "float8_e4m3fn")[..., :hidden_size],
        "input": draw.normal((*shape, hidden_size + padding), dtype, size)[..., :hidden_size],
        "scale": scale if blocks else scale.reshape(-1),
        "group_shape": list(group) if group else None,
    }


def golden(input, scale, group_shape, **_):
    rows, columns = group_shape or (-1, -1)
    flat = input.reshape(-1, input.shape[-1])
    tokens, hidden_size = flat.shape
    of_row = np.arange(tokens) // (tokens if rows == -1 else rows)
    of_column = np.arange(hidden_size) // (hidden_size if columns == -1 else columns)
    groups = scale.reshape(1 if rows == -1 else -1, 1 if columns == -1 else hidden_size // columns)
    quotient = flat / groups[of_row[:, None], of_column[None, :]] if tokens else flat
    return {"result": limited(quotient).reshape(input.shape)}
