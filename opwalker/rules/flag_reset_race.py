"""A flag that others write is reset after the signal that lets them write it again.

*Why.* The others may store the next value before the reset, which then wipes it out: they wait for ever.

*Flagged*

```cuda
struct Box { volatile uint32_t ready[8]; };
__device__ void meet(Box* self, Box** peers, int rank) {
  while (self->ready[threadIdx.x] != 1) {}
  peers[threadIdx.x]->ready[rank] = 1;
  self->ready[threadIdx.x] = 0;  // flagged
}
__device__ void meet_again(Box* self, Box** peers, int rank) {
  peers[threadIdx.x]->ready[rank] = 1;
  while (self->ready[threadIdx.x] != 1) {}
  self->ready[threadIdx.x] = 0;  // flagged
}
```

*Clean*

```cuda
struct Box { volatile uint32_t ready[8]; };
__device__ void meet(Box* self, Box** peers, int rank) {
  while (self->ready[threadIdx.x] != 1) {}
  self->ready[threadIdx.x] = 0;
  __threadfence_system();
  peers[threadIdx.x]->ready[rank] = 1;
}
__device__ void counted(Box* self, Box** peers, int rank, uint32_t tag) {
  peers[threadIdx.x]->ready[rank] = tag;
  while (self->ready[threadIdx.x] != tag) {}
}
```

*Use instead.* A value that grows instead of a reset, or the reset before the signal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._flags import Access, accesses


def _run(tree: CheckedTree) -> Iterator[Draft]:
    by_routine: dict[tuple[str, int], list[Access]] = {}
    for one in accesses(tree):
        by_routine.setdefault((one.routine.file, one.routine.line), []).append(one)
    for held in by_routine.values():
        routine = held[0].routine
        polled = {one.field: one for one in held if one.kind == "poll" and not one.peer}
        signals = [one for one in held if one.kind == "store" and one.peer]
        for one in held:
            if one.kind != "store" or one.peer or one.field not in polled or not _resets(one):
                continue
            poll = polled[one.field]
            signal = next((s for s in signals if s.line < one.line and s.field == one.field), None)
            if signal is not None and poll.line < one.line:
                yield Draft(
                    routine.file,
                    one.line,
                    f"the flag {one.field} is reset after the signal that lets the other side store it again",
                    (
                        Related(routine.file, poll.line, "polled here"),
                        Related(routine.file, signal.line, "signalled here"),
                    ),
                    one.field,
                )


def _resets(one: Access) -> bool:
    """Whether a store writes a constant zero."""
    for statement in one.routine.walk():
        for assigned in statement.assigns:
            if assigned.line == one.line and re.search(rf"\b{re.escape(one.field)}\b", assigned.target):
                return bool(re.fullmatch(r"0[uUlL]*|false|nullptr|kIdle\w*", assigned.value.strip()))
    return False


RULE = Rule("flag-reset-race", "warning", _run)
