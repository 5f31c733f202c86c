"""One token for each row of logits, drawn with given random numbers: from its top-k tokens, of these from the top-p."""

import numpy as np

from opwalker.views.verify.contract import EXACT, TensorArgument, case

#: FlashInfer's and SGLang's ops of this kind draw by rejection, with numbers of their own: theirs is another contract.
NAMES = ()

ARGUMENTS = {
    "samples": TensorArgument("[num_seqs]", dtype="int64", mutated=True),
    "logits": TensorArgument("[num_seqs, vocab_size]", layout="rows contiguous, anywhere"),
    "top_k": TensorArgument("[num_seqs]", dtype="int32, 0 for all", optional=True),
    "top_p": TensorArgument("[num_seqs]", dtype="float32", optional=True),
    "uniform": TensorArgument("[num_seqs]", dtype="float32, of [0, 1)"),
}
COORDINATES = {"num_seqs": "sequence", "vocab_size": "token"}

CASES = (
    case("both", seqs=5, vocab=1000),
    case("top-k alone", seqs=3, vocab=515, top_p=False),
    case("top-p alone", seqs=3, vocab=515, top_k=False),
    case("neither", seqs=3, vocab=1031, top_k=False, top_p=False),
    case("the likeliest", seqs=4, vocab=300, k=1),
    case("top-k of all", seqs=2, vocab=64, k=64),
    case("few different logits", seqs=6, vocab=700, levels=5),
    case("equal logits", seqs=3, vocab=520, levels=1),
    case("logits of -inf", seqs=4, vocab=600, masked=0.8),
    case("rows of a wider tensor", seqs=3, vocab=77, padding=5),
    case("one token", seqs=2, vocab=1, top_k=False),
    case("no sequence", seqs=0, vocab=64, empty=True),
    case("large", seqs=64, vocab=128256, large=True),
)
BENCH = (case("64 x 131072", seqs=64, vocab=131072, dtypes=("bfloat16",)),)

TOLERANCE = EXACT

WRONG = {
    "ALL_TIES_KEPT": "of tokens with the logit at the border all are kept, not the first",
    "SHARE_OF_ALL": "top_p is a share of all tokens, not of those that top_k keeps",
}

#: How far a random number, or top_p, stays from where the answer changes: sums of float32 numbers are not exact.
MARGIN = 1e-5


def inputs(draw, dtype, seqs, vocab, top_k=True, top_p=True, k=None, levels=None, masked=0.0, padding=0):
    logits = draw.normal((seqs, vocab + padding), dtype, scale=2.0)
    if levels:
        logits = draw.values(draw.integers((seqs, vocab + padding), "int64", -levels, 0).values() * 0.75, dtype)
    logits = logits[:, :vocab]
    if masked:
        hidden = draw.chance(masked, (seqs, vocab))
        hidden[:, vocab // 2] = False
        logits.view[hidden] = draw.values([-np.inf], dtype).view[0]
    counts = draw.integers((seqs,), "int32", 0, vocab + 1).values() if k is None else np.full(seqs, k)
    shares, uniform = np.ones(seqs), np.zeros(seqs)
    for seq, row in enumerate(logits.values()):
        weights = weights_of(row)
        order = likeliest_first(row)[: counts[seq] if top_k and counts[seq] else vocab]
        if top_p:
            shares[seq] = between(draw, np.cumsum(weights[order]) / weights[order].sum())
        kept = kept_of(row, counts[seq] if top_k else 0, shares[seq])
        uniform[seq] = between(draw, np.cumsum(np.where(kept, weights, 0.0)) / weights[kept].sum())
    return {
        "samples": draw.output((seqs,), "int64"),
        "logits": logits,
        "top_k": draw.values(counts, "int32") if top_k else None,
        "top_p": draw.values(shares, "float32") if top_p else None,
        "uniform": draw.values(uniform, "float32"),
    }


def between(draw, borders):
    """A number of [0, 1) that lies between two neighbouring borders with room on both sides."""
    low = np.concatenate([[0.0], borders[:-1]])
    wide = np.flatnonzero(borders - low > 4 * MARGIN)
    at = wide[int(draw.integers((1,), "int64", 0, len(wide)).values()[0])]
    return float(draw.uniform((1,), "float64", low[at] + MARGIN, borders[at] - MARGIN).values()[0])


def weights_of(row):
    return np.exp(row - row.max())


def likeliest_first(row):
    return np.argsort(-row, kind="stable")


def kept_of(row, k, p):
    """Which tokens may be drawn."""
    order = likeliest_first(row)[: k if k else row.size]
    if p < 1:
        sums = np.cumsum(weights_of(row)[order])
        order = order[: np.searchsorted(sums, p * sums[-1]) + 1]
    kept = np.zeros(row.shape, dtype=bool)
    kept[order] = True
    return kept


def golden(samples, logits, top_k, top_p, uniform):
    for seq, row in enumerate(logits):
        kept = kept_of(row, 0 if top_k is None else top_k[seq], 1.0 if top_p is None else top_p[seq])
        sums = np.cumsum(np.where(kept, weights_of(row), 0.0))
        samples[seq] = np.searchsorted(sums, uniform[seq] * sums[-1], side="right")
    return {"samples": samples}


def bytes_moved(logits, **_):
    return logits.view.size * logits.type.bytes
