"""Gated GELU: out = gelu(gate) * up, where a row of input is [gate, up]."""

import math

import numpy as np
from gated import BENCH, CASES, COORDINATES, arguments
from gated import golden as golden_of
from gated import inputs as inputs_of

from opwalker.views.verify.contract import Tolerance

__all__ = ["ARGUMENTS", "BENCH", "CASES", "COORDINATES", "NAMES", "TOLERANCE", "WRONG", "golden", "inputs"]

NAMES = ("_C::gelu_and_mul", "sgl_kernel::gelu_and_mul")

ARGUMENTS = arguments("out")

TOLERANCE = Tolerance(
    "P(X > |x|) is right to 7.5e-8, a library's 1 + erf(x) to the step of float32 at 1, times the size of both halves",
    steps=2,
    relative=1e-5,
    absolute=3e-4,
)

WRONG = {
    "HALVES_SWAPPED": "the halves of a row are taken for each other",
    "SQUARE_NOT_HALVED": "the density is that of a narrower distribution",
}

inputs = inputs_of("out")
golden = golden_of("out", lambda x: x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2))))
