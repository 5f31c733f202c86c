"""A flag between agents that is written and polled through `volatile` alone.

*Why.* `volatile` keeps the compiler from leaving the access out. It orders nothing: the other side can see the flag
before the data that it stands for.

*Flagged*

```cuda
struct Mailbox { alignas(128) volatile uint32_t ready[8]; };
__device__ void meet(Mailbox* self, Mailbox** peers, int rank, uint32_t tag) {
  peers[threadIdx.x]->ready[rank] = tag;  // flagged
  while (self->ready[threadIdx.x] != tag) {}  // flagged
}
```

```cuda plain.cu
struct Door { uint32_t shut[8]; };
__device__ void close(Door* self, Door** peers, int rank, uint32_t tag) {
  peers[threadIdx.x]->shut[rank] = tag;  // flagged
  while (*(volatile uint32_t*)&self->shut[threadIdx.x] != tag) {}  // flagged
}
```

```cuda casts.cu
struct Gate { uint32_t open[8]; };
__device__ void pass(Gate* self, Gate** peers, int rank, uint32_t* step, uint32_t tag) {
  *(volatile uint32_t*)&peers[threadIdx.x]->open[rank] = tag;  // flagged
  while (*(volatile uint32_t*)&self->open[threadIdx.x] != tag) {}  // flagged
  self->open[threadIdx.x] = 0;
  *reinterpret_cast<volatile uint32_t*>(step) = tag;  // flagged
  while (*reinterpret_cast<volatile uint32_t*>(step) < tag) {}  // flagged
}
```

*Clean*

```cuda
struct Mailbox { alignas(128) uint32_t ready[8]; };
struct Counter { volatile int steps; };
__device__ void meet(Mailbox* self, Mailbox** peers, int rank, uint32_t tag) {
  asm volatile("st.release.sys.global.u32 [%1], %0;" ::"r"(tag), "l"(&peers[threadIdx.x]->ready[rank]));
  uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(&self->ready[threadIdx.x]));
  } while (seen != tag);
}
__device__ void count(Counter* c) { c->steps = c->steps + 1; }
struct Pack { int steps; float item[8]; };
__device__ void fill(Pack* pack) {
  pack->steps = 8;
  for (int i = 0; i < pack->steps; i++) pack->item[i] = 0;
}
```

```cuda halves.cu
#include <cuda/atomic>
struct Door { uint32_t shut[8]; };
__device__ void close(Door* self, Door** peers, int rank, uint32_t tag) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> theirs(peers[threadIdx.x]->shut[rank]);
  theirs.store(tag, cuda::memory_order_release);
  while (*(volatile uint32_t*)&self->shut[threadIdx.x] != tag) {}
}
```

```cuda assembly.cu
struct Lock { uint32_t taken[8]; };
static __device__ void give(uint32_t* at, uint32_t tag) {
  asm volatile("st.volatile.global.u32 [%1], %0;" ::"r"(tag), "l"(at) : "memory");
}
static __device__ uint32_t look(const uint32_t* at) {
  uint32_t seen;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(seen) : "l"(at));
  return seen;
}
__device__ void meet(Lock* self, Lock** peers, int rank, uint32_t tag) {
  uint32_t* theirs = &peers[threadIdx.x]->taken[rank];
  give(theirs, tag);
  while (look(&self->taken[threadIdx.x]) != tag) {}
}
```

```cuda counters.cuh
struct Tally { volatile int seen; };
```

```cuda packs.cu
struct Row { int seen; };
__device__ void open(Row* row) { row->seen = 0; }
__device__ void wait(Row* row) {
  while (row->seen != 1) {}
}
```

*Use instead.* A release store and an acquire load of system scope; or fences before the one and after the other (then
the rule only informs)."""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._flags import Access, accesses, fences


def _run(tree: CheckedTree) -> Iterator[Draft]:
    every = accesses(tree)
    declared = tree.volatile if every else {}
    found = [
        one
        for one in every
        if one.how == "volatile"
        or (one.field in declared and declared[one.field][0] in tree.included(one.routine.file))
    ]
    polled = {(one.routine.file, one.field) for one in found if one.kind == "poll"}
    found += [
        one
        for one in every
        if one.kind == "store" and one.peer and one.how == "plain" and (one.routine.file, one.field) in polled
        if one not in found
    ]
    stores = {one.field: one for one in found if one.kind == "store"}
    polls = {one.field: one for one in found if one.kind == "poll"}
    shared = stores.keys() & polls.keys()
    for one in found:
        if one.field not in shared or one.how == "atomic":
            continue
        fenced = _fenced(stores[one.field], True) and _fenced(polls[one.field], False)
        word = "stored" if one.kind == "store" else "polled"
        related = tuple(
            Related(other.routine.file, other.line, f"{'stored' if other.kind == 'store' else 'polled'} here")
            for other in (stores[one.field], polls[one.field])
            if other.line != one.line
        )
        if one.field in declared:
            related = (*related, Related(*declared[one.field], f"{one.field} is declared here"))
        yield Draft(
            one.routine.file, one.line, f"the flag {one.field} is {word} without an order: volatile gives it none",
            related, one.field, "info" if fenced else None,
        )  # fmt: skip


def _fenced(one: Access, before: bool) -> bool:
    """Whether a fence stands before a store, or after a poll."""
    lines = [line for line, _ in fences(one.routine)]
    return any(line <= one.line if before else line >= one.line for line in lines)


RULE = Rule("flag-volatile", "warning", _run, spread="down")
