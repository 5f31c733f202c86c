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

```cuda assembly.cu
struct Post { uint32_t sent; };
__global__ void meet(Post* self, Post** peers) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&peers[1]->sent), "r"(1));
  while (self->sent == 0) {}  // flagged
}
struct Far { uint32_t sent, taken; };
static __device__ uint32_t look(const uint32_t* at) {
  uint32_t seen;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(at));
  return seen;
}
__global__ void give(Far* self, Far** peers) {
  peers[1]->taken = 1;  // flagged
  while (look(&self->taken) == 0) {}
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
struct Lock { int turn; };
__device__ void lock(Lock* self, int turn) {
  int seen;
  do {
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(seen) : "l"(&self->turn));
  } while (seen != turn);
}
__device__ void reset(Lock* self) { self->turn = 0; }
__device__ void meet(uint32_t* mailbox, uint32_t tag) {
  uint32_t *signal, *other;
  signal = mailbox + 8;
  wait(signal, tag);
}
struct Door {
  int* bell;
  __device__ Door(char* all) { bell = reinterpret_cast<int*>(all + 64); }
  __device__ void wait(int turn) {
    cuda::atomic_ref<int, cuda::thread_scope_system> rings(*bell);
    while (rings.load(cuda::memory_order_acquire) != turn) {}
  }
};
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
        if one.how in ("atomic", "changed") or one.order is not None:
            continue
        other = next((o for o in strong if o.field == one.field and o.kind != one.kind), None)
        # Where its own side has an ordered access too, the plain one may be a fast path before it.
        if other is None or any(o.field == one.field and o.kind == one.kind for o in strong):
            continue
        if one.kind == "store" and not one.peer and other.scope == "device":
            continue  # a lock of one device, set up or taken back between kernels
        lines = [line for line, _ in fences(one.routine)]
        if any(line <= one.line if one.kind == "store" else line >= one.line for line in lines):
            continue
        word = "stored plainly" if one.kind == "store" else "polled plainly"
        order = f"{other.kind} with {other.order} order"
        said = f"the flag {one.field} is {word}, and the other side relies on order"
        yield Draft(one.routine.file, one.line, said, (Related(other.routine.file, other.line, order),), one.field)


RULE = Rule("release-without-acquire", "warning", _run, spread="down")
