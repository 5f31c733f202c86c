"""A contract that is small enough to be read in a test: an op that doubles its argument in place."""

CONTRACT = """
\"\"\"Doubled.\"\"\"
from opwalker.views.verify.contract import EXACT, TensorArgument, case

NAMES = ()
ARGUMENTS = {"x": TensorArgument("[n]", mutated=True)}
CASES = (case("one", n=5, dtypes=("float32",)),)
BENCH = (case("few", n=5, dtypes=("float16",)), case("many", n=50, dtypes=("float16",)))
TOLERANCE = EXACT
WRONG = {}


def inputs(draw, dtype, n):
    return {"x": draw.normal((n,), dtype), "times": 2}


def golden(x, times):
    return {"x": x * times}
"""
