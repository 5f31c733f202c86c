"""A load or store of a flag whose scope is smaller than the distance to the other agent.

*Why.* Device scope orders accesses among the threads of one GPU. A flag that a peer writes is outside of it: the poll
may never see the value, or see it before the data.

*Flagged*

```cuda
#include <cuda/atomic>
struct Box { uint32_t ready[8]; };
__device__ void meet(Box* self, Box** peers, int rank, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> mine(peers[threadIdx.x]->ready[rank]);
  mine.store(tag, cuda::memory_order_release);
  cuda::atomic_ref<uint32_t, cuda::thread_scope_device> theirs(self->ready[threadIdx.x]);  // flagged
  while (theirs.load(cuda::memory_order_acquire) < tag) {}
}
```

```cuda assembly.cu
struct Post { uint32_t sent[8]; };
static __device__ void give(uint32_t* at, uint32_t tag) {
  asm volatile("st.release.sys.global.u32 [%1], %0;" ::"r"(tag), "l"(at) : "memory");
}
static __device__ uint32_t look(uint32_t* at) {
  uint32_t seen;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(at));
  return seen;
}
__device__ void meet(Post* self, Post** peers, int rank, uint32_t tag) {
  uint32_t* theirs = &peers[threadIdx.x]->sent[rank];
  give(theirs, tag);
  while (look(&self->sent[threadIdx.x]) != tag) {}  // flagged
}
__global__ void wait(uint32_t* mark) {
  while (look(mark) == 0) {}  // flagged
}
__global__ void put(uint32_t* mark, uint32_t tag) { give(mark, tag); }
```

*Clean*

```cuda
#include <cuda/atomic>
struct Box { uint32_t ready[8]; uint32_t local; };
__device__ void meet(Box* self, Box** peers, int rank, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> mine(peers[threadIdx.x]->ready[rank]);
  mine.store(tag, cuda::memory_order_release);
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> theirs(self->ready[threadIdx.x]);
  while (theirs.load(cuda::memory_order_acquire) < tag) {}
  cuda::atomic_ref<uint32_t, cuda::thread_scope_device> own(self->local);
  own.store(tag, cuda::memory_order_release);
  while (own.load(cuda::memory_order_acquire) < tag) {}
}
```

```cuda assembly.cu
struct Post { uint32_t sent[8], local; };
static __device__ void give(uint32_t* at, uint32_t tag) {
  asm volatile("st.release.sys.global.u32 [%1], %0;" ::"r"(tag), "l"(at) : "memory");
}
static __device__ void give_here(uint32_t* at, uint32_t tag) {
  asm volatile("st.release.gpu.global.u32 [%1], %0;" ::"r"(tag), "l"(at) : "memory");
}
static __device__ uint32_t look(uint32_t* at) {
  uint32_t seen;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(at));
  return seen;
}
__device__ void meet(Post* self, Post** peers, int rank, uint32_t tag) {
  give(&peers[threadIdx.x]->sent[rank], tag);
  while (look(&self->sent[threadIdx.x]) != tag) {}
  uint32_t first;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(first) : "l"(&self->local));
  give_here(&self->local, tag);
}
__device__ void wait_here(uint32_t* at) {
  uint32_t seen;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(at));
  } while (seen == 0 || look(at) == 0);
}
__device__ void put_far(uint32_t* at, uint32_t tag) { give(at, tag); }
__device__ void put_all(Post* self, Post** peers, int lane, uint32_t tag) {
  give(slot_of(peers, lane), tag);
  while (look(&self->sent[lane]) != tag) {}
  give_here(mine_of(self, lane), tag);
}
```

*Use instead.* The scope of the farther side on both: `thread_scope_system` between devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._flags import accesses

_REACH = {"thread": 0, "block": 1, "workgroup": 1, "device": 2, "agent": 2, "system": 3}


def _run(tree: CheckedTree) -> Iterator[Draft]:
    # A counter of this device alone says nothing of what its value is used for.
    found = [one for one in accesses(tree) if one.scope in _REACH and (one.how != "changed" or one.peer)]
    told: set[tuple[str, int]] = set()
    for one in found:
        others = [other for other in found if other.field == one.field and other.kind != one.kind]
        wider = next((other for other in others if _REACH[other.scope or ""] > _REACH[one.scope or ""]), None)
        needed = "system" if one.peer and _REACH[one.scope or ""] < 3 else None
        if wider is None and needed is None:
            continue
        key = (one.routine.file, one.at)
        if key in told:
            continue
        told.add(key)
        said = f"the flag {one.field} is accessed with {one.scope} scope, and the other side is farther away"
        related = (Related(wider.routine.file, wider.line, f"{wider.kind} with {wider.scope} scope"),) if wider else ()
        yield Draft(one.routine.file, one.at, said, related, one.field)


RULE = Rule("scope-too-narrow", "warning", _run, spread="down")
