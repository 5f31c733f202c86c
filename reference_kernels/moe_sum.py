"""The sum over a token's experts of what each of them gives, in a mixture of experts."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_moe_C::moe_sum",)

ARGUMENTS = {
    "input": TensorArgument("[num_tokens, topk, hidden_size]", layout="rows contiguous, anywhere"),
    "output": TensorArgument("[num_tokens, hidden_size]", mutated=True),
    "topk_ids": TensorArgument(
        "[num_tokens, topk]", layout="any strides", dtype="int32, negative for none", optional=True
    ),
    "expert_map": TensorArgument("[num_experts]", dtype="int32, negative for another device's", optional=True),
}
COORDINATES = {"num_tokens": "token"}

CASES = (
    case("one token", tokens=1, topk=2, hidden_size=64),
    case("prime sizes", tokens=7, topk=3, hidden_size=521),
    case("one expert", tokens=5, topk=1, hidden_size=64),
    case("eight experts", tokens=5, topk=8, hidden_size=256),
    case("more than a round of a block", tokens=2, topk=2, hidden_size=5120, dtypes=("bfloat16",)),
    case("rows of a wider tensor", tokens=5, topk=4, hidden_size=128, padding=24),
    case("rows of a wider tensor, no alignment", tokens=5, topk=4, hidden_size=128, padding=3),
    case("tokens that fill up the batch", tokens=9, topk=4, hidden_size=128, unused=0.3),
    case("experts of other devices", tokens=9, topk=4, hidden_size=128, unused=0.2, mapped=True),
    case("no token", tokens=0, topk=2, hidden_size=64, empty=True),
    case("large", tokens=1024, topk=8, hidden_size=4096, large=True),
)
BENCH = (case("4096 tokens, 8 experts, 4096", tokens=4096, topk=8, hidden_size=4096, dtypes=("bfloat16",)),)

TOLERANCE = Tolerance("a sum in float32, in any order, rounded once", steps=0.51, absolute=1e-5)

WRONG = {
    "NO_STRIDE": "rows are taken to lie one behind the other",
    "MAP_IGNORED": "what experts of other devices left there is added too",
}


def inputs(draw, dtype, tokens, topk, hidden_size, padding=0, unused=0.0, mapped=False, experts=16):
    ids = draw.integers((tokens, topk), "int32", 0, experts) if unused else None
    if ids:
        ids.view[draw.chance(unused, ids.shape)] = np.uint32(2**32 - 1)
    expert_map = draw.values(np.arange(experts) // 2 * (np.arange(experts) % 2 * 2 - 1), "int32") if mapped else None
    return {
        "input": draw.normal((tokens, topk, hidden_size + padding), dtype)[..., :hidden_size],
        "output": draw.output((tokens, hidden_size), dtype),
        "topk_ids": ids,
        "expert_map": expert_map,
    }


def golden(input, topk_ids, expert_map, **_):
    used = np.ones(input.shape[:2], dtype=bool)
    if topk_ids is not None:
        used = topk_ids >= 0
        if expert_map is not None:
            used &= expert_map[np.maximum(topk_ids, 0)] >= 0
    return {"output": np.sum(np.where(used[..., None], input, 0.0), axis=1)}
