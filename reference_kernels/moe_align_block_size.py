"""Tokens put in order of their experts, each expert's filled up to whole blocks."""

import numpy as np

from opwalker.views.verify.contract import EXACT, TensorArgument, case

#: vLLM's op puts the tokens of an expert in an order that depends on its threads: see ``allowed``.
NAMES = ("_moe_C::moe_align_block_size",)

ARGUMENTS = {
    "topk_ids": TensorArgument("[num_tokens, topk]", dtype="int32, negative for none"),
    "sorted_token_ids": TensorArgument("[max_num_tokens_padded]", dtype="int32", mutated=True),
    "experts_ids": TensorArgument("[max_num_m_blocks]", dtype="int32", mutated=True),
    "num_tokens_post_pad": TensorArgument("[1]", dtype="int32", mutated=True),
    "maybe_expert_map": TensorArgument("[num_experts]", dtype="int32, -1 for another device's", optional=True),
}
COORDINATES = {"max_num_tokens_padded": "place", "max_num_m_blocks": "block"}

INT = ("int32",)
CASES = (
    case("one token", tokens=1, topk=2, experts=8, block_size=16, dtypes=INT),
    case("prime number of tokens", tokens=37, topk=3, experts=8, block_size=16, dtypes=INT),
    case("more experts than warps", tokens=29, topk=4, experts=71, block_size=8, dtypes=INT),
    case("blocks of one", tokens=13, topk=2, experts=5, block_size=1, dtypes=INT),
    case("one expert", tokens=33, topk=1, experts=1, block_size=32, dtypes=INT),
    case("all tokens to two experts", tokens=50, topk=2, experts=16, block_size=16, used=2, dtypes=INT),
    case("experts of other devices", tokens=40, topk=2, experts=16, block_size=16, mapped=True, dtypes=INT),
    case("choices that are none", tokens=40, topk=2, experts=16, block_size=16, unused=0.3, dtypes=INT),
    case("choices for several blocks", tokens=400, topk=8, experts=16, block_size=16, dtypes=INT),
    case("no token", tokens=0, topk=2, experts=8, block_size=16, empty=True, dtypes=INT),
    case("large", tokens=4096, topk=8, experts=256, block_size=64, large=True, dtypes=INT),
)
BENCH = (case("4096 tokens, 8 of 256 experts", tokens=4096, topk=8, experts=256, block_size=64, dtypes=INT),)

TOLERANCE = EXACT

WRONG = {
    "MAP_IGNORED": "tokens of other devices' experts are taken in",
    "EARLIER_FORGOTTEN": "a block does not leave room for the tokens of those before it",
    "REST_LEFT": "blocks behind the last have no expert written",
}


def inputs(draw, dtype, tokens, topk, experts, block_size, used=None, mapped=False, unused=0.0):
    ids = draw.integers((tokens, topk), dtype, 0, used or experts)
    if unused:
        ids.view[draw.chance(unused, ids.shape)] = np.uint32(2**32 - 1)
    longest = -(-(tokens * topk + experts * (block_size - 1)) // block_size) * block_size
    local = np.where(np.arange(experts) % 2 == 1, np.arange(experts) // 2, -1)
    return {
        "topk_ids": ids,
        "num_experts": experts,
        "block_size": block_size,
        "sorted_token_ids": draw.output((longest,), dtype),
        # Poison would be -1 here, which is right for blocks behind the last.
        "experts_ids": draw.integers((longest // block_size,), dtype, 0, experts),
        "num_tokens_post_pad": draw.output((1,), dtype),
        "maybe_expert_map": draw.values(local, dtype) if mapped else None,
    }


def golden(topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, maybe_expert_map, **_):
    ids = topk_ids.reshape(-1)
    if maybe_expert_map is not None:
        ids = np.where(ids >= 0, maybe_expert_map[np.maximum(ids, 0)], -1)
    sorted_token_ids[:] = ids.size
    experts_ids[:] = -1
    at = 0
    for expert in range(num_experts):
        mine = np.flatnonzero(ids == expert)
        blocks = -(-mine.size // block_size)
        sorted_token_ids[at : at + mine.size] = mine
        experts_ids[at // block_size : at // block_size + blocks] = expert
        at += blocks * block_size
    return {
        "sorted_token_ids": sorted_token_ids, "experts_ids": experts_ids, "num_tokens_post_pad": np.array([at])
    }  # fmt: skip


def allowed(expected, observed, block_size, **_):
    """The golden results with the tokens of each expert in the order given, where they are the same tokens."""
    right, got = expected["sorted_token_ids"].copy(), observed["sorted_token_ids"]
    owners = expected["experts_ids"]
    for expert in np.unique(owners[owners >= 0]):
        (blocks,) = np.nonzero(owners == expert)
        places = slice(blocks[0] * block_size, (blocks[-1] + 1) * block_size)
        if np.array_equal(np.sort(right[places]), np.sort(got[places])):
            right[places] = got[places]
    return {**expected, "sorted_token_ids": right}
