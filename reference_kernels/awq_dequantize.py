"""Weights of AWQ, eight 4-bit numbers to an int32, as plain ones: (q - zero) * scale."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::awq_dequantize",)

ARGUMENTS = {
    "_kernel": TensorArgument("[in_c, out_c/8]", dtype="int32, columns 0 2 4 6 1 3 5 7 from the lowest bits up"),
    "_scaling_factors": TensorArgument("[in_c/G, out_c]", dtype="float16"),
    "_zeros": TensorArgument("[in_c/G, out_c/8]", dtype="int32, packed as _kernel"),
}
COORDINATES = {"in_c": "row", "out_c": "column"}

HALF = ("float16",)
CASES = (
    case("one group", rows=64, columns=64, groups=1, dtypes=HALF),
    case("several groups", rows=64, columns=64, groups=4, dtypes=HALF),
    case("a group for each eight rows", rows=40, columns=128, groups=5, dtypes=HALF),
    case("more than a block takes", rows=128, columns=256, groups=2, dtypes=HALF),
    case("an odd number of groups", rows=56, columns=192, groups=7, dtypes=HALF),
    case("threads given", rows=64, columns=64, groups=2, thx=8, thy=64, dtypes=HALF),
    case("small scales", rows=64, columns=64, groups=2, size=1e-4, dtypes=HALF),
    case("no column", rows=64, columns=0, groups=1, empty=True, dtypes=HALF),
    case("large", rows=4096, columns=4096, groups=32, large=True, dtypes=HALF),
)
BENCH = (case("4096 x 14336, groups of 128", rows=4096, columns=14336, groups=32, dtypes=HALF),)

TOLERANCE = Tolerance("one product, rounded once to float16", steps=0.5)

WRONG = {
    "PLAIN_ORDER": "columns are taken from the lowest bits up",
    "FIRST_GROUP": "all rows are taken for the first group's",
}

#: Which of eight columns each place of an int32 holds, from the lowest bits up.
ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def packed(draw, rows, columns):
    return draw.integers((rows, columns // 8), "int32", -(2**31), 2**31)


def inputs(draw, dtype, rows, columns, groups, size=0.02, thx=0, thy=0):
    return {
        "_kernel": packed(draw, rows, columns),
        "_scaling_factors": draw.normal((groups, columns), dtype, size),
        "_zeros": packed(draw, groups, columns),
        "split_k_iters": 0,
        "thx": thx,
        "thy": thy,
    }


def unpacked(words):
    numbers = np.empty((*words.shape, 8))
    for place, column in enumerate(ORDER):
        numbers[..., column] = words >> 4 * place & 0xF
    return numbers.reshape(words.shape[0], words.shape[1] * 8)


def golden(_kernel, _scaling_factors, _zeros, **_):
    group = np.arange(_kernel.shape[0]) // (_kernel.shape[0] // _zeros.shape[0])
    return {"return 0": (unpacked(_kernel) - unpacked(_zeros)[group]) * _scaling_factors[group]}


def bytes_moved(_kernel, _scaling_factors, _zeros, **_):
    inputs = sum(one.view.size * one.type.bytes for one in (_kernel, _scaling_factors, _zeros))
    return inputs + _kernel.view.size * 8 * 2
