"""Times of ops, one after the other in one process: ours, a library's of the same op, the next op.

In: contracts with what is timed under each. Out: an outcome for each case, and the rate of a copy. One process, since
it loads a library once, and the same buffers are made for all that are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from opwalker.views.verify.contract import Contract
from opwalker.views.verify.trial import Outcome, Subject, Trial
from opwalker.views.verify.workers import outcomes

#: Number of the subject, what was tried, what came of it, 1e9 bytes a second.
Timed = tuple[int, Trial, Outcome, float | None]


def measured_in_turn(
    timed: Sequence[tuple[Contract, Subject]], seed: int, deadline: float, until: float = math.inf
) -> tuple[float | None, list[Timed]]:
    """The rate of a copy, None where it could not be measured, and the times. Entries of one op lie together: each of
    its cases is measured for all of them before the next."""
    trials = [
        Trial(number, dtype, seed + number, "bench", subject)
        for first, (contract, _) in enumerate(timed)
        if first == 0 or timed[first - 1][0] is not contract
        for number, case in enumerate(contract.bench)
        for dtype in case.dtypes
        for subject, (other, _) in enumerate(timed)
        if other is contract
    ]
    if not trials:
        return None, []
    subjects = [subject for _, subject in timed]
    copy = None
    found: list[Timed] = []
    trials = [Trial(0, "", 0, "copy", trials[0].subject), *trials]
    for trial, outcome in zip(trials, outcomes(subjects, trials, deadline, until), strict=False):
        rate = outcome.bytes / outcome.time_us / 1e3 if outcome.time_us and outcome.bytes else None
        if trial.kind == "copy":
            copy = rate
        else:
            found.append((trial.subject, trial, outcome, rate))
    return copy, found
