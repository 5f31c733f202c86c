"""Root mean square normalisation whose result is divided by a given scale, in fp8."""

import numpy as np
from fp8 import limited

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::rms_norm_static_fp8_quant",)

ARGUMENTS = {
    "result": TensorArgument("[..., hidden_size]", dtype="float8_e4m3fn", mutated=True),
    "input": TensorArgument("[..., hidden_size]", layout="the last dimension contiguous, rows anywhere"),
    "weight": TensorArgument("[hidden_size]"),
    "scale": TensorArgument("[1]", dtype="float32"),
}
COORDINATES = {"...": "token"}

CASES = (
    case("one token", shape=(1,), hidden_size=64),
    case("prime sizes", shape=(7,), hidden_size=521),
    case("a row longer than a block keeps", shape=(2,), hidden_size=8192 * 4 + 8, dtypes=("float32",), growing=True),
    case("values beyond the largest", shape=(3,), hidden_size=128, by=0.002),
    case("values in the subnormal range", shape=(3,), hidden_size=128, by=300.0),
    case("rows of a wider tensor", shape=(5,), hidden_size=256, padding=24),
    case("rows of a wider tensor, no alignment", shape=(5,), hidden_size=256, padding=3),
    case("small values, where epsilon counts", shape=(4,), hidden_size=96, size=1e-3, epsilon=1e-5),
    case("no token", shape=(0,), hidden_size=64, empty=True),
    case("large", shape=(2048,), hidden_size=5120, large=True),
    case("more rows than one dimension of a grid", shape=(70001,), hidden_size=128, large=True),
)
BENCH = (case("16384 x 4096", shape=(16384,), hidden_size=4096, dtypes=("bfloat16",)),)

TOLERANCE = Tolerance(
    "the nearest fp8 number, of a value that a library may round to the type of input twice before, once as normalised "
    "and once weighted: at most 2 x 2^-9 in bfloat16",
    steps=0.5,
    relative=0.004,
)

WRONG = {
    "NO_STRIDE": "rows are taken to lie one behind the other",
    "NO_EPSILON": "epsilon is left out",
    "NO_SATURATION": "what is too large becomes NaN",
    "TAIL_DROPPED": "what a block cannot keep in registers is left out of the sum",
}


def inputs(draw, dtype, shape, hidden_size, padding=0, size=1.0, epsilon=1e-6, by=0.025, growing=False):
    values = draw.normal((*shape, hidden_size + padding), dtype, size)[..., :hidden_size]
    if growing:  # then the end of a row counts
        values = draw.values(values.values() * np.linspace(0.1, 4.0, hidden_size), dtype)
    return {
        "result": draw.output((*shape, hidden_size), "float8_e4m3fn"),
        "input": values,
        "weight": draw.normal((hidden_size,), dtype),
        "scale": draw.values([by], "float32"),
        "epsilon": epsilon,
    }


def golden(input, weight, scale, epsilon, **_):
    normed = input / np.sqrt(np.mean(input**2, axis=-1, keepdims=True) + epsilon)
    return {"result": limited(normed * weight / scale)}
