"""Residual added and normalised: residual = input + residual, input = rms_norm(residual) * weight, both in place."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm")

ARGUMENTS = {
    "input": TensorArgument("[..., hidden_size]", layout="the last dimension contiguous, rows anywhere", mutated=True),
    "residual": TensorArgument("[..., hidden_size]", mutated=True),
    "weight": TensorArgument("[hidden_size]", optional=True),
}
COORDINATES = {"...": "token"}

CASES = (
    case("one token", num_tokens=1, hidden_size=64),
    case("prime sizes", num_tokens=7, hidden_size=521),
    case("a row longer than a block keeps", num_tokens=2, hidden_size=8192 * 4 + 8, dtypes=("float32",)),
    case("rows of a wider tensor", num_tokens=5, hidden_size=256, padding=24),
    case("rows of a wider tensor, no alignment", num_tokens=5, hidden_size=256, padding=3),
    case("no weight", num_tokens=3, hidden_size=128, has_weight=False),
    case("no token", num_tokens=0, hidden_size=64, empty=True),
    case("large", num_tokens=2048, hidden_size=5120, large=True),
)
BENCH = (case("16384 x 4096", num_tokens=16384, hidden_size=4096, dtypes=("bfloat16",)),)

TOLERANCE = {
    "input": Tolerance(
        "the sum is rounded before it is normalised, and a library may round once more before it applies the weight",
        steps=3,
        relative=4e-6,
        absolute=1e-6,
    ),
    "residual": Tolerance("one addition, rounded once", steps=0.5),
}

WRONG = {
    "NO_STRIDE": "rows of input are taken to lie one behind the other",
    "RESIDUAL_NOT_WRITTEN": "the sum is used and not stored",
}


def inputs(draw, dtype, num_tokens, hidden_size, padding=0, has_weight=True):
    return {
        "input": draw.normal((num_tokens, hidden_size + padding), dtype)[:, :hidden_size],
        "residual": draw.normal((num_tokens, hidden_size), dtype),
        "weight": draw.normal((hidden_size,), dtype) if has_weight else None,
        "epsilon": 1e-6,
    }


def golden(input, residual, weight, epsilon):
    total = input + residual
    normed = total / np.sqrt(np.mean(total**2, axis=-1, keepdims=True) + epsilon)
    return {"input": normed if weight is None else normed * weight, "residual": total}
