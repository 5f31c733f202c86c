"""A flag that guards data, stored and polled with relaxed order and no fence.

*Why.* A relaxed access orders nothing around it. What the flag stands for may not be there yet when the flag is seen.

*Flagged*

```cuda
#include <cuda/atomic>
struct Box { uint32_t ready[8]; };
__device__ void meet(Box* self, Box** peers, int rank, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> mine(peers[threadIdx.x]->ready[rank]);
  mine.store(tag, cuda::memory_order_relaxed);  // flagged
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> theirs(self->ready[threadIdx.x]);
  while (theirs.load(cuda::memory_order_relaxed) < tag) {}  // flagged
}
```

*Clean*

```cuda
#include <cuda/atomic>
struct Box { uint32_t ready[8]; };
__device__ void meet(Box* self, Box** peers, int rank, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> mine(peers[threadIdx.x]->ready[rank]);
  mine.store(tag, cuda::memory_order_release);
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> theirs(self->ready[threadIdx.x]);
  while (theirs.load(cuda::memory_order_acquire) < tag) {}
}
__device__ void fenced(Box* self, Box** peers, int rank, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> mine(peers[threadIdx.x]->ready[rank]);
  __threadfence_system();
  mine.store(tag, cuda::memory_order_relaxed);
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> theirs(self->ready[threadIdx.x]);
  while (theirs.load(cuda::memory_order_relaxed) < tag) {}
  __threadfence_system();
}
```

*Use instead.* Release on the store, acquire on the load.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._flags import Access, accesses, fences


def _run(tree: CheckedTree) -> Iterator[Draft]:
    found = accesses(tree)
    stores = [one for one in found if one.kind == "store"]
    polls = [one for one in found if one.kind == "poll"]
    for one in found:
        if one.order != "relaxed" or _fenced(one):
            continue
        others = [other for other in (polls if one.kind == "store" else stores) if other.field == one.field]
        others = [other for other in others if not one.is_apart(other)]
        if not others:
            continue
        word = "stored" if one.kind == "store" else "polled"
        related = tuple(
            Related(o.routine.file, o.line, f"{'polled' if o.kind == 'poll' else 'stored'} here") for o in others[:2]
        )
        yield Draft(
            one.routine.file,
            one.line,
            f"the flag {one.field} is {word} with relaxed order and no fence",
            related,
            one.field,
        )


def _fenced(one: Access) -> bool:
    lines = [line for line, _ in fences(one.routine)]
    return any(line <= one.line if one.kind == "store" else line >= one.line for line in lines)


RULE = Rule("flag-relaxed", "warning", _run, spread="down")
