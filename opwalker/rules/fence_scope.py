"""Data published to another device after a fence that reaches this one alone.

*Why.* `__threadfence()` orders accesses for the threads of one GPU. A peer that sees the flag may still read old data.

*Flagged*

```cuda
struct Box { uint32_t ready[8]; };
__device__ void give(Box** peers, float* data, int rank, uint32_t tag) {
  data[threadIdx.x] = 1;
  __threadfence();  // flagged
  peers[threadIdx.x]->ready[rank] = tag;
}
```

*Clean*

```cuda
struct Box { uint32_t ready[8]; };
__device__ void give(Box** peers, float* data, int rank, uint32_t tag) {
  data[threadIdx.x] = 1;
  __threadfence_system();
  peers[threadIdx.x]->ready[rank] = tag;
}
__device__ void own(Box* self, float* data, uint32_t tag) {
  data[threadIdx.x] = 1;
  __threadfence();
  self->ready[0] = tag;
}
```

*Use instead.* `__threadfence_system()`, or a release store of system scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._flags import Access, accesses, fences, is_peer

#: Fences and barriers that order memory for this device alone, or for less.
_NEAR = re.compile(r"__threadfence(?:_block)?\Z|(?:fence|membar)\.|__syncthreads\Z")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    told: set[tuple[str, int]] = set()
    for one in accesses(tree):
        if one.kind != "store" or not one.peer:
            continue
        before = [(line, name) for line, name in fences(one.routine) if line <= one.line]
        if not before:
            before = _barriers(one)
        if not before or any(not _NEAR.match(name) for _, name in before):
            continue
        line, name = before[-1]
        if (one.routine.file, line) in told:
            continue
        told.add((one.routine.file, line))
        said = f"{name} reaches this device alone, and {one.field} is published to another"
        yield Draft(one.routine.file, line, said, (Related(one.routine.file, one.line, "published here"),), name)


def _barriers(one: Access) -> list[tuple[int, str]]:
    """The barriers of the block between a plain store to a peer's data and that of the flag behind it, which orders
    nothing."""
    if one.order not in (None, "relaxed", "volatile"):
        return []
    stores = [
        assigned.line
        for held in one.routine.walk()
        for assigned in held.assigns
        if assigned.line < one.line and is_peer(one.routine, assigned.target) and "[" in assigned.target
    ]
    calls = [call for held in one.routine.walk() for call in held.calls if call.simple == "__syncthreads"]
    return [(call.line, call.simple) for call in calls if stores and stores[0] < call.line < one.line]


RULE = Rule("fence-scope", "warning", _run, spread="down")
