"""A collective op called on several GPUs of one machine, by one process that reaches all of them.

In: rounds of calls, each with the arguments of every rank. Out: what came of each call. Kernels are launched for one
rank after the other and wait for each other on the devices; nothing waits on the host until all are launched. Where
there are fewer devices than ranks, ranks share them, each with a stream of its own: their kernels run at the same time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from opwalker.views.verify.calling import Called, NotHere
from opwalker.views.verify.contract import tensors
from opwalker.views.verify.on_gpu import GpuOp, failure, kernels_of, laid_out, opcheck
from opwalker.views.verify.ranks import Rounds, communicators, largest

_RANK_DATA = 1 << 20

#: With fewer devices than this, nothing passes from one to another: what a collective op is about is not seen.
_FEWEST = 2


class GpuRanks:
    """One collective op of loaded libraries; rank ``r`` is on device ``r``, modulo the devices that there are.
    ``fewest`` is how many there must be."""

    def __init__(
        self, libraries: Sequence[str], names: Sequence[str], *, fewest: int = _FEWEST, profiled: bool = True
    ) -> None:
        self._one = GpuOp(libraries, names)
        self._fewest = fewest
        self._profiled = profiled
        self._devices = torch.cuda.device_count()
        self._streams: dict[int, torch.cuda.Stream] = {}
        self._space = getattr(torch.ops, self._one.op._schema.name.partition("::")[0])
        self._kept: list[torch.Tensor] = []  # what a communicator holds on to
        self.parameters = self._one.parameters

    def __call__(self, rounds: Rounds, seed: int) -> list[list[Called]]:
        """Calls the op, all rounds in a row. Raises as ``GpuOp`` does, and ``NotHere`` if there are too few devices."""
        ranks = len(rounds[0])
        self.expect(ranks)
        _open_ways(min(ranks, self._devices))
        try:
            with communicators(self._call, ranks, largest(rounds)) as own:
                return self._called(rounds, own)
        except RuntimeError as error:
            raise failure(error) from error

    def opcheck(self, rounds: Rounds) -> tuple[list[str], list[str]]:
        """As ``on_gpu.opcheck``, of the first rank's first call; nothing may be in it that waits for the others."""
        ranks = len(rounds[0])
        with communicators(self._call, ranks, largest(rounds)) as own:
            return opcheck(self._one, {**rounds[0][0], **own[0]})

    def expect(self, ranks: int) -> str | None:
        """How ranks are placed, where they have to share devices; ``NotHere`` where there are too few even for that."""
        if self._devices >= ranks:
            return None
        if self._devices < self._fewest:
            raise NotHere(f"it needs {self._fewest} GPUs, and there are {self._devices}")
        return f"{ranks} ranks shared {self._devices} GPUs"

    def _place(self, rank: int) -> torch.cuda.Stream:
        """The stream of a rank, on its device."""
        if rank not in self._streams:
            self._streams[rank] = torch.cuda.Stream(device=rank % self._devices)
        return self._streams[rank]

    def _called(self, rounds: Rounds, own: Sequence[Mapping[str, Any]]) -> list[list[Called]]:
        laid = [
            [laid_out(arguments, device=self._place(rank).device_index) for rank, arguments in enumerate(each)]
            for each in rounds
        ]
        _wait(self._devices)
        profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) if self._profiled else None
        with profile or contextlib.nullcontext():
            for each in laid:
                for rank, (_, values) in enumerate(each):
                    with torch.cuda.stream(self._place(rank)):
                        given = {**values, **own[rank]}
                        self._one.op(*(given.get(one.name, one.default) for one in self.parameters))
            _wait(self._devices)
        kernels = kernels_of(profile) if profile else ()
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
            self._kept.append(torch.empty(_RANK_DATA, dtype=torch.uint8, device=self._place(rank).device))
            given["rank_data"] = self._kept[-1]
        # A parameter that stands alone may have another name elsewhere.
        values = list(arguments.values()) if len(wanted) == 1 else [given[one] for one in wanted]
        with torch.cuda.stream(self._place(rank)):
            return op(*values)


def _open_ways(devices: int) -> None:
    """Makes every device able to reach every other's memory: torch does so at the first copy between two."""
    for one in range(devices):
        for other in range(devices):
            if one != other:
                torch.zeros(1, device=f"cuda:{one}").to(f"cuda:{other}")
    _wait(devices)


def _wait(devices: int) -> None:
    for device in range(devices):
        torch.cuda.synchronize(device)
