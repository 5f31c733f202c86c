"""The likeliest experts of each token by softmax of its gating logits, with their shares."""

import numpy as np

from opwalker.views.verify.contract import EXACT, TensorArgument, Tolerance, case

NAMES = ("_moe_C::topk_softmax",)

CHOSEN = "[num_tokens, topk]"
ARGUMENTS = {
    "topk_weights": TensorArgument(CHOSEN, dtype="float32", mutated=True),
    "topk_indices": TensorArgument(CHOSEN, dtype="int32, -1 for padding", mutated=True),
    "token_expert_indices": TensorArgument(CHOSEN, dtype="int32", mutated=True),
    "gating_output": TensorArgument("[num_tokens, num_experts]", dtype="float32, float16 or bfloat16"),
    "bias": TensorArgument("[num_experts]", dtype="float32", optional=True),
    "is_padding": TensorArgument("[num_tokens]", dtype="bool", optional=True),
}
COORDINATES = {"num_tokens": "token", "topk": "choice", "num_experts": "expert"}

CASES = (
    case("one token", tokens=1, experts=8, topk=2),
    case("prime sizes", tokens=13, experts=61, topk=3),
    case("64 experts", tokens=7, experts=64, topk=6),
    case("256 experts, renormalised", tokens=5, experts=256, topk=8, renormalize=True),
    case("fewer experts than lanes", tokens=9, experts=5, topk=2, renormalize=True),
    case("more experts than most have, more chosen than lanes", tokens=3, experts=301, topk=37, renormalize=True),
    case("all experts", tokens=3, experts=8, topk=8),
    case("many equal logits", tokens=11, experts=64, topk=6, levels=4),
    case("a bias that chooses and does not weigh", tokens=9, experts=64, topk=4, biased=True, renormalize=True),
    case("padding", tokens=9, experts=32, topk=4, padded=True),
    case("no token", tokens=0, experts=8, topk=2, empty=True),
    case("large", tokens=16384, experts=128, topk=8, renormalize=True, large=True),
)
BENCH = (case("16384 tokens, 128 experts, 8 chosen", tokens=16384, experts=128, topk=8, dtypes=("bfloat16",)),)

TOLERANCE = {
    "topk_weights": Tolerance("exponentials, sums and a quotient in float32", relative=4e-6, absolute=1e-9),
    "topk_indices": EXACT,
    "token_expert_indices": EXACT,
}

WRONG = {
    "LAST_OF_EQUALS": "of equal logits the last is chosen",
    "BIASED_WEIGHTS": "weights are given with the bias that experts are chosen by",
}


def inputs(draw, dtype, tokens, experts, topk, renormalize=False, levels=None, biased=False, padded=False):
    logits = draw.normal((tokens, experts), dtype)
    if levels:
        logits = draw.values(draw.integers((tokens, experts), "int64", -levels, 0).values() * 0.75, dtype)
    return {
        "topk_weights": draw.output((tokens, topk), "float32"),
        "topk_indices": draw.output((tokens, topk), "int32"),
        "token_expert_indices": draw.output((tokens, topk), "int32"),
        "gating_output": logits,
        "renormalize": renormalize,
        "bias": draw.normal((experts,), "float32", 0.1) if biased else None,
        "is_padding": draw.values(draw.chance(0.4, (tokens,)), "bool") if padded else None,
    }


def golden(topk_weights, gating_output, renormalize, bias, is_padding, **_):
    tokens, topk = topk_weights.shape
    shares = np.exp(gating_output - np.max(gating_output, axis=1, keepdims=True, initial=-np.inf))
    shares /= shares.sum(axis=1, keepdims=True)
    chosen = np.argsort(-(shares + (0 if bias is None else bias)), axis=1, kind="stable")[:, :topk]
    weights = np.take_along_axis(shares, chosen, axis=1)
    if renormalize:
        weights /= weights.sum(axis=1, keepdims=True)
    if is_padding is not None:
        chosen = np.where(is_padding[:, None], -1, chosen)
    rows = np.arange(topk)[None, :] * tokens + np.arange(tokens)[:, None]
    return {"topk_weights": weights, "topk_indices": chosen, "token_expert_indices": rows}
