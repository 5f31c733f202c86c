"""A collective op called by CPU emulation: a thread for each rank.

In: rounds of calls, each with the arguments of every rank. Out: what came of each call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from opwalker.views.verify.calling import Called, Parameter
from opwalker.views.verify.on_cpu import EmulatedOp
from opwalker.views.verify.ranks import Rounds, communicators, largest


class EmulatedRanks:
    """One collective op of a library built for emulation."""

    def __init__(self, library: str, op: str, parameters: Sequence[Parameter]) -> None:
        self._library = library
        self._op = EmulatedOp(library, op, parameters)
        self.parameters = self._op.parameters

    @staticmethod
    def expect(ranks: int) -> str | None:
        """Any number of ranks can be emulated: there is nothing to remark."""
        return None

    def __call__(self, rounds: Rounds, seed: int) -> list[list[Called]]:
        """Calls the op: each rank all of its rounds, without waiting between them. Raises ``CallFailed``."""
        ranks = len(rounds[0])
        with communicators(self._call, ranks, largest(rounds)) as own:

            def all_rounds(rank: int) -> list[Called]:
                return [self._op({**each[rank], **own[rank]}, seed + rank) for each in rounds]

            with ThreadPoolExecutor(ranks) as pool:
                of_rank = list(pool.map(all_rounds, range(ranks)))
        return [[calls[number] for calls in of_rank] for number in range(len(rounds))]

    def _call(self, rank: int, name: str, arguments: Mapping[str, Any]) -> Any:
        known = {"region_size", "ipc_tensors", "rank", "fa", "size", "buffer"}
        given = {key: value for key, value in arguments.items() if key in known}
        parameters = tuple(Parameter(key, "int", False) for key in given)
        returned = EmulatedOp(self._library, name, parameters)(given, rank).returned
        values = [one if one.shape else int(one.values().item()) for one in returned]
        return values[0] if len(values) == 1 else values
