"""A collective op called on every rank: what its ranks need of each other, set up through the op's own library.

In: rounds of calls, each with the arguments of every rank. Out: what came of each. The library's ops for this have the
names that vLLM gives them: ``allocate_shared_buffer_and_handle``, ``init_custom_ar``, ``register_buffer`` and so on.
Ranks are of one process here: addresses need no handle to be opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opwalker.views.verify.contract import tensors

Rounds = Sequence[Sequence[Mapping[str, Any]]]

#: Calls an op of the library by name, on a rank: ``call(rank, name, arguments)``.
Call = Callable[[int, str, Mapping[str, Any]], Any]

#: The part that each rank adds is never larger than the whole input; some bytes more for its rounding.
_SPARE = 4096


def largest(rounds: Rounds) -> int:
    """Bytes of the largest tensor of any call."""
    sizes = [one.view.size * one.type.bytes for ranks in rounds for each in ranks for one in tensors(each).values()]
    return max([1, *sizes])


@contextmanager
def communicators(call: Call, ranks: int, size: int) -> Iterator[list[dict[str, Any]]]:
    """Gives, for each rank, the arguments that every call needs beside its tensors. ``size`` is in bytes."""
    region = int(call(0, "meta_size", {})) + size + _SPARE
    shared: list[int] = []

    def allocated(rank: int, room: int) -> int:
        address, _ = call(rank, "allocate_shared_buffer_and_handle", {"size": room})
        shared.append(int(address))
        return shared[-1]

    regions = [allocated(rank, region) for rank in range(ranks)]
    buffers = [allocated(rank, size) for rank in range(ranks)]
    made = []
    try:
        for rank in range(ranks):
            setting = {"ipc_tensors": regions, "region_size": region, "rank": rank, "fully_connected": True}
            made.append(int(call(rank, "init_custom_ar", setting)))
            call(rank, "register_buffer", {"fa": made[-1], "ipc_tensors": buffers})
        yield [
            {"fa": handle, "reg_buffer": buffers[rank], "reg_buffer_sz_bytes": size} for rank, handle in enumerate(made)
        ]
    finally:
        for rank, handle in enumerate(made):
            call(rank, "dispose", {"fa": handle})
        for number, address in enumerate(shared):
            call(number % ranks, "free_shared_buffer", {"buffer": address})
