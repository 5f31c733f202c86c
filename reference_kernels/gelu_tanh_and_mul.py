"""Gated GELU in its tanh form: out = gelu(gate) * up, where a row of input is [gate, up]."""

import numpy as np
from gated import BENCH, CASES, COORDINATES, arguments
from gated import golden as golden_of
from gated import inputs as inputs_of

from opwalker.views.verify.contract import Tolerance

__all__ = ["ARGUMENTS", "BENCH", "CASES", "COORDINATES", "NAMES", "TOLERANCE", "WRONG", "golden", "inputs"]

NAMES = ("_C::gelu_tanh_and_mul", "sgl_kernel::gelu_tanh_and_mul")

ARGUMENTS = arguments("out")

TOLERANCE = Tolerance(
    "a library may form 1 + tanh(y), which loses, where it is small, what lies below the step of float32 at 1",
    steps=2,
    relative=1e-5,
    absolute=1e-4,
)

WRONG = {
    "HALVES_SWAPPED": "the halves of a row are taken for each other",
    "NO_CUBE": "the cubic term is left out",
}

inputs = inputs_of("out")
golden = golden_of("out", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
