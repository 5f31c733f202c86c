"""Gated SiLU: result = silu(gate) * up, where a row of input is [gate, up]."""

import numpy as np
from gated import BENCH, CASES, COORDINATES, TOLERANCE, arguments
from gated import golden as golden_of
from gated import inputs as inputs_of

__all__ = ["ARGUMENTS", "BENCH", "CASES", "COORDINATES", "NAMES", "TOLERANCE", "WRONG", "golden", "inputs"]

NAMES = ("_C::silu_and_mul", "sgl_kernel::silu_and_mul")

ARGUMENTS = arguments("result")

WRONG = {
    "HALVES_SWAPPED": "the halves of a row are taken for each other",
    "SIGMOID_ALONE": "the gate is not multiplied by itself",
}

inputs = inputs_of("result")
golden = golden_of("result", lambda x: x / (1 + np.exp(-x)))
