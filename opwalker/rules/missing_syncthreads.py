"""Shared memory that one thread writes and another reads, with no barrier between.

*Why.* Threads of a block run in any order. The reader may see what was there before.

*Flagged*

```cuda
__global__ void first(float* out, const float* in) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = tile[255 - threadIdx.x];  // flagged
}
__global__ void once(float* out, float v) {
  __shared__ float total;
  if (threadIdx.x == 0) total = v;
  out[threadIdx.x] = total;  // flagged
}
```

```cuda
__global__ void sums(int* out, const int* in, int n) {
  __shared__ int starts[65];
  starts[threadIdx.x + 1] = in[threadIdx.x];
  if (threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) out[i] = starts[i];  // flagged
  }
}
__global__ void left(int* out, const int* in, int n) {
  __shared__ int starts[65];
  if (threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) starts[i] = in[i];
  }
  out[threadIdx.x] = starts[threadIdx.x];  // flagged
}
```

*Clean*

```cuda
__global__ void first(float* out, const float* in) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[255 - threadIdx.x];
}
__global__ void own(float* out, const float* in) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = tile[threadIdx.x];
}
__global__ void warp(float* out, const float* in) {
  __shared__ float tile[32];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
```

```cuda
__global__ void sums(int* out, const int* in, int n) {
  __shared__ int starts[65];
  starts[threadIdx.x + 1] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    starts[0] = 0;
    for (int i = 0; i < n; ++i) starts[i + 1] += starts[i];
    out[n] = starts[n];
  }
  __syncthreads();
  out[threadIdx.x] = starts[threadIdx.x];
}
```

*Use instead.* `__syncthreads()` between the write and the read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import DeclareText, Routine, Statement

#: A condition that holds for one thread of a block.
_ONE_THREAD = re.compile(r"\s*\(?\s*(?:threadIdx\s*\.\s*x|tid|thread_id|threadId|tidx)\s*==\s*0\s*\)?\s*\Z")
_WAITS = re.compile(r"(?i)sync|barrier|bar_|\bbar\b|wait|arrive|Reduce|Scan|Sort|commit|fence|elect")
#: A pointer to all of the memory of a launch.
_WHOLE = re.compile(r"cast<[^<>]*\*\s*>\s*\(\s*&?\s*\w+(?:\[0\])?\s*\)\s*\Z")
_LOOPS = ("for", "while", "do", "range for", "switch", "try")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if not routine.on_device:
            continue
        shared = {
            d.name: d
            for one in routine.walk()
            for d in one.declares
            if "__shared__" in d.type and ("extern" not in d.type or not _is_carved(routine, d.name))
        }
        shared |= _aliases(routine)
        for name, declared in shared.items():
            if re.search(r"TempStorage|barrier|Barrier|mbar|pipeline", declared.type):
                continue
            found = _race(routine.statements, name, None)
            if isinstance(found, tuple):
                (first, second), done = found, "written"
                said = "is read here as another thread may have written it, with no barrier since"
            else:
                again = _again(routine.statements, name)
                if again is None:
                    continue
                (first, second), done = again, "read"
                said = "is written here as another thread may still read it, with no barrier since the last round"
            before = Related(routine.file, first.line, f"{done} here: `{first.text[:60]}`")
            yield Draft(routine.file, second.line, f"{name} {said}", (before,), name)


def _aliases(routine: Routine) -> dict[str, DeclareText]:
    """The pointer by which alone a kernel uses the memory of its launch: ``T* tile = reinterpret_cast<T*>(raw)``."""
    out: dict[str, DeclareText] = {}
    for raw in (d for one in routine.walk() for d in one.declares if "__shared__" in d.type and "extern" in d.type):
        word = re.compile(rf"\b{re.escape(raw.name)}\b")
        users = [one for one in routine.walk() if word.search(one.text) and all(d is not raw for d in one.declares)]
        made = [d for one in users for d in one.declares if _WHOLE.search(d.value or "")]
        if len(users) == 1 and len(made) == 1:
            out[made[0].name] = made[0]
    return out


def _again(statements: Sequence[Statement], name: str) -> tuple[Statement, Statement] | None:
    """The read at the end of a round of a loop, and the write at the start of the next, that no barrier parts; the two
    have one in between, so that the threads are not all of one warp."""
    for one in (part for first in statements for part in first.walk()):
        if one.kind not in ("for", "while") or not any(_waits(part) for held in one.body for part in held.walk()):
            continue
        body = [part for held in one.body for part in (held.body if held.kind == "block" else (held,))]
        marks = [number for number, part in enumerate(body) if any(_waits(inner) for inner in part.walk())]
        asked = [part.text for held in body for part in held.walk() if part.kind == "if"]
        if not marks or any(map(_ONE_THREAD.search, asked)):
            continue
        first = [part for held in body[: marks[0]] for part in held.walk() if _writes(part, name)]
        last = [part for held in body[marks[-1] + 1 :] for part in held.walk() if _reads(part, name)]
        for read in last:
            if first and not _writes(read, name) and any(_other(text, name, first[0]) for text in _reads(read, name)):
                return read, first[0]
    return None


def _is_carved(routine: Routine, name: str) -> bool:
    """Whether an array is the memory of several others: pointers are made of it, whose parts are not told apart."""
    word = re.compile(rf"\b{re.escape(name)}\b(?!\s*\[)")
    return any(word.search(made.value or "") for one in routine.walk() for made in one.declares)


def _waits(one: Statement) -> bool:
    """Whether a statement may part what stands before it from what follows."""
    return one.kind == "asm" or any(_WAITS.search(call.name) for call in one.calls)


def _race(
    statements: Sequence[Statement], name: str, written: Statement | None
) -> tuple[Statement, Statement] | Statement | None:
    """The write and the read that nothing parts; else the last write that no barrier has followed."""
    for one in statements:
        if _waits(one) or (one.kind in _LOOPS and any(_waits(part) for part in one.walk())):
            found = _race(_before_barrier(one), name, written) if written is not None and not _waits(one) else None
            if isinstance(found, tuple):
                return found
            written = None
            continue
        if written is not None and any(_other(text, name, written) for text in _reads(one, name)):
            return written, one
        if _writes(one, name):
            written = one
        if one.kind == "if" and _ONE_THREAD.search(one.text) and not any(_waits(part) for part in one.walk()):
            # One thread reads what it wrote itself; the others wait to read what it leaves.
            found = _race_of_one(one, name, written)
            if isinstance(found, tuple):
                return found
            written = found
            continue
        for part in (one.head, one.body, one.orelse):
            found = _race(part, name, written)
            if isinstance(found, tuple):
                return found
            # A branch may not be taken, and with it what parts the threads there; a block is passed as a whole.
            if found is not None or one.kind == "block":
                written = found
    return written


def _before_barrier(one: Statement) -> Sequence[Statement]:
    """What the first round of a loop runs before it waits."""
    if one.kind not in ("for", "while"):
        return ()
    body = [part for held in one.body for part in (held.body if held.kind == "block" else (held,))]
    first = next((at for at, held in enumerate(body) if any(_waits(part) for part in held.walk())), len(body))
    return body[:first]


def _race_of_one(
    branch: Statement, name: str, written: Statement | None
) -> tuple[Statement, Statement] | Statement | None:
    """The same of a branch that a single thread of the block takes: what it writes there it may read there."""
    mine = None
    for one in (part for inner in branch.body for part in inner.walk()):
        if written is not None and any(_other(text, name, written) for text in _reads(one, name)):
            return written, one
        if _writes(one, name):
            mine = one
    other = _race(branch.orelse, name, written)
    return other if isinstance(other, tuple) else mine or other


def _reads(one: Statement, name: str) -> list[str]:
    """The expressions of a statement that read the array."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    reads = [*[x.value for x in one.assigns], *[d.value or "" for d in one.declares]]
    if one.kind in ("if", "while", "return", "switch"):
        reads.append(one.text)
    return [text for text in reads if word.search(text)]


def _writes(one: Statement, name: str) -> bool:
    return any(re.match(rf"{re.escape(name)}\b", assigned.target.strip()) for assigned in one.assigns)


def _other(text: str, name: str, written: Statement) -> bool:
    """Whether an expression reads another element than the one that this thread wrote."""
    wrote = {_index(a.target, name) for a in written.assigns}
    indexes = {_index(found.group(), name) for found in re.finditer(rf"\b{re.escape(name)}\b\s*(?:\[[^\]]*\])*", text)}
    if wrote == {""}:
        return True  # a single value, written by some thread
    return bool(indexes - wrote)


def _index(text: str, name: str) -> str:
    return "".join(text.split()).removeprefix(name)


RULE = Rule("missing-syncthreads", "warning", _run, default=False, spread="own")
