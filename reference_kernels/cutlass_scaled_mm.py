"""The product of two fp8 matrices with a scale for each of them, or for each row and column, and a bias."""

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::cutlass_scaled_mm",)

ARGUMENTS = {
    "out": TensorArgument("[size_m, size_n]", layout="rows contiguous, anywhere", mutated=True),
    "a": TensorArgument("[size_m, size_k]", layout="rows contiguous, anywhere", dtype="float8_e4m3fn"),
    "b": TensorArgument("[size_k, size_n]", layout="columns contiguous, anywhere", dtype="float8_e4m3fn"),
    "a_scales": TensorArgument("[1] or [size_m, 1]", dtype="float32"),
    "b_scales": TensorArgument("[1] or [1, size_n]", dtype="float32"),
    "bias": TensorArgument("[size_n]", dtype="as out", optional=True),
}
COORDINATES = {"size_m": "row", "size_n": "column"}

NARROW = ("float16", "bfloat16")
CASES = (
    case("one row", m=1, n=64, k=64, dtypes=NARROW),
    case("prime number of rows", m=7, n=48, k=80, dtypes=NARROW),
    case("more than a tile", m=67, n=144, k=32, dtypes=NARROW),
    case("a scale for each row and column", m=19, n=64, k=48, by_row=True, by_column=True, dtypes=NARROW),
    case("a scale for each row", m=19, n=64, k=48, by_row=True, dtypes=NARROW),
    case("bias", m=9, n=64, k=48, by_column=True, has_bias=True, dtypes=NARROW),
    case("rows of wider tensors", m=9, n=64, k=48, padding=16, dtypes=NARROW),
    case("no row", m=0, n=64, k=64, empty=True, dtypes=NARROW),
    case("large", m=512, n=4096, k=4096, by_row=True, by_column=True, large=True, dtypes=NARROW),
)

TOLERANCE = Tolerance(
    "a sum of exact products in float32, in any order; the tensor cores of some GPUs keep fewer bits of it",
    steps=1,
    peak=1,
)

WRONG = {
    "ONE_SCALE": "the first scale is taken for all rows and columns",
    "NO_STRIDE": "rows of a are taken to lie one behind the other",
}


def inputs(draw, dtype, m, n, k, by_row=False, by_column=False, has_bias=False, padding=0):
    fp8 = "float8_e4m3fn"
    return {
        "out": draw.output((m, n + padding), dtype)[:, :n],
        "a": draw.normal((m, k + padding), fp8)[:, :k],
        "b": draw.normal((n, k + padding), fp8)[:, :k].transpose(),
        "a_scales": draw.uniform((m, 1) if by_row else (1,), "float32", 0.1, 2.0),
        "b_scales": draw.uniform((1, n) if by_column else (1,), "float32", 0.1, 2.0),
        "bias": draw.normal((n,), dtype) if has_bias else None,
    }


def golden(a, b, a_scales, b_scales, bias, **_):
    product = a_scales * (a @ b) * b_scales
    return {"out": product if bias is None else product + bias}
