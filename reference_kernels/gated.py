"""What the contracts of the gated activations have in common: out = activation(gate) * up."""

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

COORDINATES = {"...": "token"}

CASES = (
    case("one token", shape=(1,), d=32),
    case("prime sizes", shape=(5,), d=509),
    case("three dimensions", shape=(2, 3), d=96),
    case("more than one block a row", shape=(3,), d=4104),
    case("large values", shape=(4,), d=64, scale=10.0),
    case("no token", shape=(0,), d=64, empty=True),
    case("large", shape=(1024,), d=14336, large=True),
    case("more rows than one dimension of a grid", shape=(70001,), d=128, large=True),
)
BENCH = (case("16384 x 2 x 14336", shape=(16384,), d=14336, dtypes=("bfloat16",)),)

TOLERANCE = Tolerance(
    "computed in float32 with fast exponentials, and a library may round the activation before it multiplies",
    steps=2,
    relative=1e-5,
    absolute=1e-6,
)


def arguments(out):
    return {
        out: TensorArgument("[..., d]", mutated=True),
        "input": TensorArgument("[..., 2 * d]", layout="contiguous, gate before up"),
    }


def inputs(out):
    def made(draw, dtype, shape, d, scale=1.0):
        return {out: draw.output((*shape, d), dtype), "input": draw.normal((*shape, 2 * d), dtype, scale)}

    return made


def golden(out, activation):
    def right(input, **_):
        d = input.shape[-1] // 2
        return {out: activation(input[..., :d]) * input[..., d:]}

    return right
