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

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._flags import accesses, fences

_NEAR = ("__threadfence", "__threadfence_block")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    told: set[tuple[str, int]] = set()
    for one in accesses(tree):
        if one.kind != "store" or not one.peer:
            continue
        before = [(line, name) for line, name in fences(one.routine) if line <= one.line]
        if not before or any(name not in _NEAR for _, name in before):
            continue
        line, name = before[-1]
        if (one.routine.file, line) in told:
            continue
        told.add((one.routine.file, line))
        said = f"{name} reaches this device alone, and {one.field} is published to another"
        yield Draft(one.routine.file, line, said, (Related(one.routine.file, one.line, "published here"),), name)


RULE = Rule("fence-scope", "warning", _run)
