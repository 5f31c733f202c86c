"""Root mean square normalisation: result = input / sqrt(mean(input^2) + epsilon) * weight, row by row."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::rms_norm", "sgl_kernel::rmsnorm")

ARGUMENTS = {
    "result": TensorArgument("[..., hidden_size]", mutated=True),
    "input": TensorArgument("[..., hidden_size]", layout="the last dimension contiguous, rows anywhere"),
    "weight": TensorArgument("[hidden_size]", optional=True),
}
COORDINATES = {"...": "token"}

CASES = (
    case("one token", shape=(1,), hidden_size=64),
    case("prime sizes", shape=(7,), hidden_size=521),
    case("a row longer than a block keeps", shape=(2,), hidden_size=8192 * 4 + 8, dtypes=("float32",)),
    case("rows of a wider tensor", shape=(5,), hidden_size=256, padding=24),
    case("rows of a wider tensor, no alignment", shape=(5,), hidden_size=256, padding=3),
    case("three dimensions", shape=(3, 5), hidden_size=64, padding=16),
    case("heads of a fused QKV tensor", shape=(2, 3, 4), hidden_size=64, padding=64),
    case("no weight", shape=(3,), hidden_size=128, has_weight=False),
    case("small values, where epsilon counts", shape=(4,), hidden_size=96, scale=1e-3, epsilon=1e-5),
    case("no token", shape=(0,), hidden_size=64, empty=True),
    case("large", shape=(2048,), hidden_size=5120, large=True),
    case("more rows than one dimension of a grid", shape=(70001,), hidden_size=128, large=True),
)
BENCH = (case("16384 x 4096", shape=(16384,), hidden_size=4096, dtypes=("bfloat16",)),)

TOLERANCE = Tolerance(
    "the sum is taken in float32, and a library may round the normalised value before it applies the weight",
    steps=2,
    relative=2e-6,
)

WRONG = {
    "NO_STRIDE": "rows are taken to lie one behind the other",
    "NO_EPSILON": "epsilon is left out",
    "TAIL_DROPPED": "what a block cannot keep in registers is left out of the sum",
}


def inputs(draw, dtype, shape, hidden_size, padding=0, has_weight=True, scale=1.0, epsilon=1e-6):
    wide = draw.normal((*shape, hidden_size + padding), dtype, scale)
    return {
        "result": draw.output((*shape, hidden_size), dtype),
        "input": wide[..., :hidden_size],
        "weight": draw.normal((hidden_size,), dtype) if has_weight else None,
        "epsilon": epsilon,
    }


def golden(input, weight, epsilon, **_):
    normed = input / np.sqrt(np.mean(input**2, axis=-1, keepdims=True) + epsilon)
    return {"result": normed if weight is None else normed * weight}
