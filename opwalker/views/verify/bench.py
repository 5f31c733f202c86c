"""How fast an op is: medians of device time over rotating buffers, and what the memory of this GPU gives.

In: an op that can be called, and its arguments. Out: microseconds and bytes moved. Buffers rotate so that no call finds
in the cache what an earlier one left there. Calls are replayed as a CUDA graph where the op allows it: what is timed is
then the device, not the way to it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch

from opwalker.views.verify.arrays import Array
from opwalker.views.verify.contract import Contract, tensors
from opwalker.views.verify.on_gpu import GpuOp, laid_out, seen_on
from opwalker.views.verify.trial import Outcome, named_for

#: Bytes that one round over the buffers touches at least: several times the largest cache.
_ROUND = 512 << 20
_MOST_BUFFERS = 64
_REPEATS = 21
#: Milliseconds of work before times are taken: a device that has waited for its inputs runs slowly at first.
_WARM = 40.0


def measure(contract: Contract, op: GpuOp, arguments: Mapping[str, Any]) -> Outcome:
    """The median time of one call, and the bytes that the contract says it must move."""
    torch.use_deterministic_algorithms(False)  # new tensors need not be filled now
    named = named_for(op.parameters, dict(arguments), contract)
    size = sum({id(a.storage): a.storage.size for a in tensors(arguments).values()}.values())
    count = max(2, min(_MOST_BUFFERS, -(-_ROUND // max(size, 1))))
    storages, _ = laid_out(named)
    sets = []
    for _ in range(count):
        values = seen_on({key: one.clone() for key, one in storages.items()}, named)
        sets.append(tuple(values.get(one.name, one.default) for one in op.parameters))

    def once_each() -> None:
        for values in sets:
            op.op(*values)

    arrays = tensors(arguments)
    moved = contract.bytes_moved(**arguments) if contract.bytes_moved else _moved(op, named)
    return Outcome(
        time_us=_median(once_each) / count,
        bytes=moved,
        shapes={name: one.shape for name, one in arrays.items()},
        dtypes={name: one.type.name for name, one in arrays.items()},
    )


def _moved(op: GpuOp, arguments: Mapping[str, Any]) -> int:
    """Each input read once, each output written once; an argument that was drawn and is mutated, both."""
    total = 0
    for one in op.parameters:
        value = arguments.get(one.name)
        if isinstance(value, Array):
            size = value.view.size * value.type.bytes
            both = one.mutated and not value.poisoned
            total += 2 * size if both else size
    return total


def _median(work: Callable[[], None], *, replayed: bool = True) -> float:
    """Microseconds of device time for ``work``; ``replayed``: as a graph, where it can be captured."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
        stream.synchronize()
        replay = _graph(work, stream) if replayed else work
        times: list[float] = []
        warm = 0.0
        while len(times) < _REPEATS:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record(stream)
            replay()
            end.record(stream)
            end.synchronize()
            took = begin.elapsed_time(end)
            if warm >= _WARM:
                times.append(took * 1000.0)
            warm += max(took, _WARM / 1000)
    return statistics.median(times)


def _graph(work: Callable[[], None], stream: torch.cuda.Stream) -> Callable[[], None]:
    """``work`` as a graph to replay; itself where it cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=stream):
            work()
    except RuntimeError:
        torch.cuda.synchronize()
        return work
    graph.replay()
    stream.synchronize()
    return graph.replay


def copy() -> Outcome:
    """A large copy on the device: its time, and the bytes that it reads and writes. It is not replayed: in a graph it
    would be left to a copy engine, which is slower than the multiprocessors."""
    size = 1 << 30
    source = torch.randint(256, (size,), dtype=torch.uint8, device="cuda")
    targets = [torch.empty_like(source) for _ in range(2)]

    def both() -> None:
        for target in targets:
            target.copy_(source)

    return Outcome(time_us=_median(both, replayed=False), bytes=2 * len(targets) * size)
