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
from opwalker.model.statements import CallText, Routine
from opwalker.rules._flags import Access, accesses
from opwalker.rules._launches import points

#: An atomic that counts arrivals, and what waits for the whole grid.
_ARRIVES = re.compile(r"atomic(?:Add|Inc)\Z")
_GRID = re.compile(r"(?i)grid.*sync|grid_?barrier|\bsync_?grid")
_ZERO = re.compile(r"0[uUlL]*|false")
#: A zero that assembly is given.
_STORED = re.compile(r'"[rln]"\s*\(\s*(?:\([^()]*\)\s*)?0[uUlL]*\s*\)')
_SPACE = re.compile(r"\s+")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    yield from _counters(tree)
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
            if signal is not None and not _signals_again(held, one):
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


def _counters(tree: CheckedTree) -> Iterator[Draft]:
    """Counters of arriving blocks that are set back by a block which need not be the last."""
    for routine in tree.routines:
        if "global" not in routine.flags:
            continue
        pointers = {one.name for one in routine.parameters if "*" in one.type}
        for call in (call for one in routine.walk() for call in one.calls if _ARRIVES.match(call.simple)):
            counter = _SPACE.sub("", call.arguments[0]).removeprefix("&") if call.arguments else ""
            compared = re.compile(rf"{re.escape(call.text)}\s*(?:\+\s*1\w*\s*)?[=!]=|[=!]=\s*{re.escape(call.text)}")
            if re.split(r"\W", counter, maxsplit=1)[0] not in pointers:
                continue
            last = _depend(routine, call)
            texts = [text for one in routine.walk() for text in (one.text, *(d.value or "" for d in one.declares))]
            if not any(compared.search(text) or _is_compared(text, last) for text in texts):
                continue
            for point in points(routine.statements):
                for assigned in point.statement.assigns:
                    target = _SPACE.sub("", assigned.target)
                    if target not in (f"*{counter}", counter, f"{counter}[0]"):
                        continue
                    if not _ZERO.fullmatch(assigned.value.strip()):
                        continue
                    around = [one.text for one in point.around] + [o.text for o in point.before if o.kind == "if"]
                    waits = any(_GRID.search(call.name) for one in point.before for call in one.calls)
                    known = any(call.text in text or any(_names(text, name) for name in last) for text in around)
                    if waits or known:
                        continue
                    said = f"the counter {counter} is set back by a block that need not be the last to count"
                    yield Draft(
                        routine.file, assigned.line, said, (Related(routine.file, call.line, "counted here"),), counter
                    )  # fmt: skip


def _depend(routine: Routine, call: CallText) -> set[str]:
    """The variables that are made of what a call answers."""
    names: set[str] = set()
    for _ in range(3):
        for one in routine.walk():
            for name, value in (
                *((d.name, d.value or "") for d in one.declares),
                *((a.target.strip(), a.value) for a in one.assigns),
            ):
                if call.text in value or any(_names(value, held) for held in names):
                    names.add(name)
    return names


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.>]){re.escape(name)}(?!\w)", text) is not None


def _is_compared(text: str, names: set[str]) -> bool:
    return any(re.search(rf"(?<![\w.>]){re.escape(name)}\s*(?:\+\s*1\w*\s*)?[=!]=", text) for name in names)


def _signals_again(held: list[Access], reset: Access) -> bool:
    """Whether another flag goes to the peers behind the reset, and theirs is waited for: they store after that."""
    later = {one.field for one in held if one.kind == "store" and one.peer and one.line > reset.line}
    return any(o.kind == "poll" and o.line > reset.line and o.field in later - {reset.field} for o in held)


def _resets(one: Access) -> bool:
    """Whether a store writes a constant zero."""
    for statement in one.routine.walk():
        for assigned in statement.assigns:
            if assigned.line == one.line and re.search(rf"\b{re.escape(one.field)}\b", assigned.target):
                return bool(re.fullmatch(r"0[uUlL]*|false|nullptr|kIdle\w*", assigned.value.strip()))
        if one.how == "atomic" and statement.line == one.line:
            if any(_ZERO.fullmatch(given.strip()) for call in statement.calls for given in call.arguments):
                return True  # by a method or a function that stores
            if statement.kind == "asm" and _STORED.search(statement.text):
                return True
    return False


RULE = Rule("flag-reset-race", "warning", _run, spread="down")
