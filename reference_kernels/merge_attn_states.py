"""Two attentions of the same queries over different keys made one, by the logarithms of their sums of weights."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::merge_attn_states",)

OUTPUT = "[num_tokens, num_heads, head_size]"
LSE = "[num_heads, num_tokens]"
ARGUMENTS = {
    "output": TensorArgument(OUTPUT, layout="heads contiguous", dtype="as the inputs, or fp8", mutated=True),
    "output_lse": TensorArgument(LSE, layout="any strides", dtype="float32", mutated=True, optional=True),
    "prefix_output": TensorArgument(OUTPUT, layout="heads contiguous"),
    "prefix_lse": TensorArgument(LSE, layout="any strides", dtype="float32"),
    "suffix_output": TensorArgument(OUTPUT, layout="heads contiguous"),
    "suffix_lse": TensorArgument(LSE, layout="any strides", dtype="float32"),
    "output_scale": TensorArgument("[1]", dtype="float32", optional=True),
}
COORDINATES = {"num_tokens": "token", "num_heads": "head", "head_size": ""}

CASES = (
    case("one token", tokens=1, heads=2, size=32),
    case("prime sizes", tokens=13, heads=3, size=40),
    case("head size without alignment", tokens=5, heads=3, size=37),
    case("no lse asked for", tokens=7, heads=2, size=64, has_lse=False),
    case("lse as [num_tokens, num_heads]", tokens=7, heads=3, size=64, transposed=True),
    case("heads of a wider tensor", tokens=7, heads=3, size=64, padding=32),
    case("sides without a key", tokens=24, heads=3, size=32, without=0.3),
    case("tokens without a context", tokens=11, heads=2, size=32, with_context=4),
    case("more than one round of a block", tokens=3, heads=40, size=128, dtypes=("bfloat16",)),
    case("output in fp8", tokens=7, heads=2, size=64, scale=0.5),
    case("no token", tokens=0, heads=2, size=32, empty=True),
    case("large", tokens=3000, heads=32, size=128, without=0.1, large=True),
)
BENCH = (case("16384 tokens, 32 heads of 128", tokens=16384, heads=32, size=128, dtypes=("bfloat16",)),)

TOLERANCE = {
    "output": Tolerance("a weighted mean in float32 with fast exponentials, rounded once", steps=1, absolute=4e-5),
    "output_lse": Tolerance("an exponential and a logarithm in float32", relative=1e-6, absolute=4e-6),
}

WRONG = {
    "EQUAL_SHARES": "both sides count the same, whatever their lse",
    "LSE_TRANSPOSED": "lse is taken to be [num_tokens, num_heads]",
}


def inputs(
    draw, dtype, tokens, heads, size,
    has_lse=True, transposed=False, padding=0, without=0.0, with_context=None, scale=None,
):  # fmt: skip
    def output():
        return draw.normal((tokens, heads, size + padding), dtype)[..., :size]

    def lse():
        made = draw.normal((tokens, heads) if transposed else (heads, tokens), "float32", scale=2.0)
        none = draw.chance(without, made.shape)
        made.view[none] = np.float32(-np.inf).view(np.uint32)
        made.view[none & draw.chance(0.3, made.shape)] = np.float32(np.inf).view(np.uint32)
        return made.transpose() if transposed else made

    to_lse = draw.output((heads, tokens), "float32") if has_lse else None
    return {
        "output": draw.output((tokens, heads, size + padding), "float8_e4m3fn" if scale else dtype)[..., :size],
        "output_lse": to_lse,
        "prefix_output": output(),
        "prefix_lse": lse(),
        "suffix_output": output(),
        "suffix_lse": lse(),
        "prefill_tokens_with_context": with_context,
        "output_scale": draw.values([scale], "float32") if scale else None,
    }


def golden(
    prefix_output, prefix_lse, suffix_output, suffix_lse, prefill_tokens_with_context, output_scale, output_lse, **_
):
    p, s = (np.where(np.isinf(lse), -np.inf, lse) for lse in (prefix_lse, suffix_lse))
    lse = np.logaddexp(p, s)
    share = np.where(np.isneginf(lse), 1.0, np.exp(p - lse))
    if prefill_tokens_with_context is not None:
        share[:, prefill_tokens_with_context:] = 0.0
        lse[:, prefill_tokens_with_context:] = suffix_lse[:, prefill_tokens_with_context:]
    share = share.T[..., None]
    output = share * prefix_output + (1 - share) * suffix_output
    results = {"output": output if output_scale is None else output / output_scale}
    return results if output_lse is None else results | {"output_lse": lse}
