"""The sum of a tensor over all ranks, on every rank, through memory that the GPUs read of each other."""

import numpy as np

from opwalker.views.verify.contract import EXACT, TensorArgument, case

NAMES = ("_C_custom_ar::all_reduce",)

#: Every call is one of each rank: `inputs` gives rounds of calls, `golden` takes the arguments of all ranks.
COLLECTIVE = True

#: Seconds for a case of a wrong variant: ranks that wait for ever are to be found soon.
DEADLINE = 15.0

ARGUMENTS = {
    "inp": TensorArgument("[...]"),
    "out": TensorArgument("[...]", layout="contiguous, not inp", mutated=True),
}
COORDINATES = {"...": ""}

CASES = (
    case("2 ranks, one stage", ranks=2, elements=1024),
    case("2 ranks, two stages", ranks=2, elements=300 * 1024 + 8, rounds=2, dtypes=("bfloat16",)),
    case("2 ranks, a prime number of elements", ranks=2, elements=521),
    case("2 ranks, many rounds", ranks=2, elements=4096, rounds=10, dtypes=("float16",)),
    case("3 ranks", ranks=3, elements=640),
    case("4 ranks, two stages", ranks=4, elements=132 * 1024, rounds=1, dtypes=("float32",)),
    case("4 ranks, one stage", ranks=4, elements=2048, dtypes=("bfloat16",)),
    case("8 ranks", ranks=8, elements=256, rounds=2, dtypes=("bfloat16",)),
    case("no element", ranks=2, elements=0, empty=True),
    case("2 ranks, large", ranks=2, elements=8 << 20, large=True),
    case("2 ranks, many rounds of one stage", ranks=2, elements=32768, rounds=500, dtypes=("bfloat16",), large=True),
)

TOLERANCE = EXACT

WRONG = {
    "NO_END_BARRIER": "a rank does not wait until its input, or its sums, are used up",
    "ONE_FLAG_SET": "both barriers of a call use the same flags",
}


def inputs(draw, dtype, ranks, elements, rounds=4):
    """Numbers whose sums float32 holds exactly, whatever their order: the result is rounded once."""
    return [
        [
            {
                "inp": draw.values(draw.integers((elements,), "int64", -512, 512).values() / 8, dtype),
                "out": draw.output((elements,), dtype),
            }
            for _ in range(ranks)
        ]
        for _ in range(rounds)
    ]


def golden(ranks):
    total = np.sum([arguments["inp"] for arguments in ranks], axis=0)
    return [{"out": total} for _ in ranks]
