"""A collective op called on several GPUs of one machine, by one process that reaches all of them.

In: rounds of calls, each with the arguments of every rank. Out: what came of each call. Kernels are launched on one
device after the other and wait for each other there; nothing waits on the host until all are launched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from opwalker.views.verify.calling import Called, NotHere
from opwalker.views.verify.contract import tensors
from opwalker.views.verify.on_gpu import GpuOp, failure, kernels_of, laid_out
from opwalker.views.verify.ranks import Rounds, communicators, largest

_RANK_DATA = 1 << 20


class GpuRanks:
    """One collective op of loaded libraries; rank ``r`` is device ``r``."""

    def __init__(self, libraries: Sequence[str], names: Sequence[str]) -> None:
        self._one = GpuOp(libraries, names)
        self._space = getattr(torch.ops, self._one.op._schema.name.partition("::")[0])
        self._kept: list[torch.Tensor] = []  # what a communicator holds on to
        self.parameters = self._one.parameters

    def __call__(self, rounds: Rounds, seed: int) -> list[list[Called]]:
        """Calls the op, all rounds in a row. Raises as ``GpuOp`` does, and ``NotHere`` if there are too few devices."""
        ranks = len(rounds[0])
        self.expect(ranks)
        _open_ways(ranks)
        try:
            with communicators(self._call, ranks, largest(rounds)) as own:
                return self._called(rounds, own)
        except RuntimeError as error:
            raise failure(error) from error

    @staticmethod
    def expect(ranks: int) -> None:
        """Raises ``NotHere`` where this machine has fewer devices than ranks are wanted."""
        if torch.cuda.device_count() < ranks:
            raise NotHere(f"it needs {ranks} GPUs, and there are {torch.cuda.device_count()}")

    def _called(self, rounds: Rounds, own: Sequence[Mapping[str, Any]]) -> list[list[Called]]:
        laid = [[laid_out(arguments, device=rank) for rank, arguments in enumerate(each)] for each in rounds]
        _wait(len(own))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for each in laid:
                for rank, (_, values) in enumerate(each):
                    with torch.cuda.device(rank):
                        given = {**values, **own[rank]}
                        self._one.op(*(given.get(one.name, one.default) for one in self.parameters))
            _wait(len(own))
        kernels = kernels_of(profile)
        for calls, on_devices in zip(rounds, laid, strict=True):
            for arguments, (storages, _) in zip(calls, on_devices, strict=True):
                for one in tensors(arguments).values():
                    one.storage[...] = storages[id(one.storage)].cpu().numpy()
        return [[Called((), kernels) for _ in each] for each in rounds]

    def _call(self, rank: int, name: str, arguments: Mapping[str, Any]) -> Any:
        packet = getattr(self._space, name)
        op = getattr(packet, packet.overloads()[0])
        wanted = [one.name for one in op._schema.arguments]
        given = dict(arguments)
        if "rank_data" in wanted:
            self._kept.append(torch.empty(_RANK_DATA, dtype=torch.uint8, device=f"cuda:{rank}"))
            given["rank_data"] = self._kept[-1]
        # A parameter that stands alone may have another name elsewhere.
        values = list(arguments.values()) if len(wanted) == 1 else [given[one] for one in wanted]
        with torch.cuda.device(rank):
            return op(*values)


def _open_ways(ranks: int) -> None:
    """Makes every device able to reach every other's memory: torch does so at the first copy between two."""
    for one in range(ranks):
        for other in range(ranks):
            if one != other:
                torch.zeros(1, device=f"cuda:{one}").to(f"cuda:{other}")
    _wait(ranks)


def _wait(ranks: int) -> None:
    for rank in range(ranks):
        torch.cuda.synchronize(rank)
