"""A flag with order on one side alone: a release that nothing acquires, or the reverse.

*Why.* Order needs both. A release store seen by a plain load orders nothing for the reader.

*Flagged*

```cuda
#include <cuda/atomic>
struct Box { uint32_t ready; };
__device__ void give(Box* box, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> mine(box->ready);
  mine.store(tag, cuda::memory_order_release);
}
__device__ void take(Box* box, uint32_t tag) {
  while (box->ready != tag) {}  // flagged
}
```

*Clean*

```cuda
#include <cuda/atomic>
struct Box { uint32_t ready; };
__device__ void give(Box* box, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> mine(box->ready);
  mine.store(tag, cuda::memory_order_release);
}
__device__ void take(Box* box, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> theirs(box->ready);
  while (theirs.load(cuda::memory_order_acquire) != tag) {}
}
__device__ void wait(uint32_t* signal, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> theirs(*signal);
  while (theirs.load(cuda::memory_order_acquire) != tag) {}
}
__device__ void meet(uint32_t* mailbox, uint32_t tag) {
  uint32_t *signal, *other;
  signal = mailbox + 8;
  wait(signal, tag);
}
```

*Use instead.* Acquire where the other side releases, and release where it acquires.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._flags import accesses, fences

_STRONG = {"store": ("release", "acq_rel", "seq_cst"), "poll": ("acquire", "acq_rel", "seq_cst", "consume")}


def _run(tree: CheckedTree) -> Iterator[Draft]:
    found = accesses(tree)
    strong = [one for one in found if one.order in _STRONG[one.kind]]
    for one in found:
        if one.how == "atomic" or one.order is not None:
            continue
        other = next((o for o in strong if o.field == one.field and o.kind != one.kind), None)
        # Where its own side has an ordered access too, the plain one may be a fast path before it.
        if other is None or any(o.field == one.field and o.kind == one.kind for o in strong):
            continue
        if fences(one.routine):
            continue
        word = "stored plainly" if one.kind == "store" else "polled plainly"
        order = f"{other.kind} with {other.order} order"
        said = f"the flag {one.field} is {word}, and the other side relies on order"
        yield Draft(one.routine.file, one.line, said, (Related(other.routine.file, other.line, order),), one.field)


RULE = Rule("release-without-acquire", "warning", _run)
