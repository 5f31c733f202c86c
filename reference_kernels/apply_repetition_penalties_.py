"""Logits of tokens that were seen before pushed down, in place: divided by the penalty, or multiplied if negative."""

import numpy as np

from opwalker.views.verify.contract import TensorArgument, Tolerance, case

NAMES = ("_C::apply_repetition_penalties_",)

ARGUMENTS = {
    "logits": TensorArgument("[num_seqs, vocab_size]", mutated=True),
    "prompt_mask": TensorArgument("[num_seqs, vocab_size]", dtype="bool"),
    "output_mask": TensorArgument("[num_seqs, vocab_size]", dtype="bool"),
    "repetition_penalties": TensorArgument("[num_seqs]", dtype="as logits"),
}
COORDINATES = {"num_seqs": "sequence", "vocab_size": "token"}

CASES = (
    case("one sequence", seqs=1, vocab=64),
    case("prime sizes", seqs=3, vocab=1031),
    case("more than one block a sequence", seqs=2, vocab=8208),
    case("every token seen", seqs=2, vocab=96, seen=1.0),
    case("no token seen", seqs=2, vocab=96, seen=0.0),
    case("more sequences than one dimension of a grid", seqs=70001, vocab=16, large=True),
    case("no sequence", seqs=0, vocab=64, empty=True),
    case("large", seqs=32, vocab=128256, large=True),
)
BENCH = (case("64 x 131072, 5 % seen", seqs=64, vocab=131072, seen=0.025, dtypes=("bfloat16",)),)

TOLERANCE = Tolerance("one quotient or product in float32, rounded once", steps=0.51, relative=2e-7)

WRONG = {
    "PROMPT_IGNORED": "only tokens of the output count as seen",
    "SIGN_IGNORED": "negative logits are divided as well, which lifts them",
}


def inputs(draw, dtype, seqs, vocab, seen=0.1):
    return {
        "logits": draw.normal((seqs, vocab), dtype, scale=4.0),
        "prompt_mask": draw.values(draw.chance(seen, (seqs, vocab)), "bool"),
        "output_mask": draw.values(draw.chance(seen, (seqs, vocab)), "bool"),
        "repetition_penalties": draw.uniform((seqs,), dtype, 0.5, 2.0),
    }


def golden(logits, prompt_mask, output_mask, repetition_penalties):
    penalty = repetition_penalties[:, None]
    pushed = np.where(logits > 0, logits / penalty, logits * penalty)
    return {"logits": np.where(prompt_mask | output_mask, pushed, logits)}
