"""A block barrier that some threads of a block may not reach.

*Why.* `__syncthreads` waits for every thread of the block. Threads that have left, or that took another branch, never
come: the block hangs, or the result is undefined.

*Flagged*

```cuda
__global__ void early(float* out, const float* in, int n) {
  __shared__ float tile[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x] = in[i];
  __syncthreads();  // flagged
  out[i] = tile[0];
}
__global__ void inside(float* out, int n) {
  int lane = threadIdx.x % 32;
  if (lane == 0) {
    __syncthreads();  // flagged
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    __syncthreads();  // flagged
  }
}
__global__ void lanes(float* out, int n) {
  const int lane = threadIdx.x;
  if (lane >= n) return;
  __syncthreads();  // flagged
  out[lane] = 0;
}
__global__ void warps(float* out, int n) {
  if (threadIdx.x / 32 >= n) return;
  __syncthreads();  // flagged
  out[threadIdx.x] = 0;
}
void launch(float* out, int n, cudaStream_t stream) {
  lanes<<<4, n, 0, stream>>>(out, n);
  lanes<<<4, 256, 0, stream>>>(out, n);
  warps<<<4, n * 64, 0, stream>>>(out, n);
}
__global__ void unmatched(float* out, int n) {
  if (threadIdx.x < 128) {
    out[threadIdx.x] = 0;
    __syncthreads();  // flagged
    return;
  }
  __syncthreads();  // flagged
  out[threadIdx.x] += 1;
  __syncthreads();  // flagged
}
```

*Clean*

```cuda
__global__ void whole(float* out, const float* in, int n) {
  __shared__ float tile[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x * blockDim.x >= n) return;
  const bool live = i < n;
  tile[threadIdx.x] = live ? in[i] : 0.f;
  __syncthreads();
  if (threadIdx.x < 32) {
    tile[threadIdx.x] += tile[threadIdx.x + 32];
    __syncwarp();
  }
  for (int k = 0; k < n; ++k) {
    __syncthreads();
  }
  if (live) out[i] = tile[threadIdx.x];
  if (i >= n) return;
  out[i] += 1;
}
__global__ void split(float* out, const float* in, int n) {
  __shared__ float tile[256];
  if (threadIdx.x < 128) {
    for (int r = threadIdx.x; r < n; r += 128) out[r] = 0;
    __syncthreads();
    __syncthreads();
    return;
  }
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 128) tile[0] = tile[129];
  __syncthreads();
  out[threadIdx.x] += tile[0];
}
template <typename T>
__global__ void groups(T* out, long n_group) {
  const int warp = threadIdx.x / WARP;
  const int n = static_cast<int>(n_group);
  if (warp >= n || blockDim.x / WARP < n) return;
  __syncthreads();
  out[warp] = 0;
}
__global__ void lanes(float* out, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  out[threadIdx.x] = 0;
}
void launch(float* out, long count, cudaStream_t stream) {
  auto* kernel = &groups<float>;
  cudaLaunchConfig_t config;
  config.gridDim = 4;
  config.blockDim = static_cast<unsigned>(count) * WARP;
  cudaLaunchKernelEx(&config, kernel, out, count);
  lanes<<<4, dim3(count), 0, stream>>>(out, count);
}
template <typename Traits>
__global__ void columns(float* out) {
  constexpr int STEP = Traits::BLOCKS * 32;
  for (int col = blockIdx.x * 32 + threadIdx.x % 32; col < Traits::COLS; col += STEP) {
    __syncthreads();
    out[col] = 0;
  }
}
__global__ void ranks(float* out, int n) {
  if (threadIdx.x < 8) {
    int r = threadIdx.x;
    out[r] = 0;
  }
  for (int r = 0; r < n; r++) {
    __syncthreads();
    out[r] += 1;
  }
}
struct Row {
  int length;
  __device__ Row(const int* lengths, int b, int t) : length(lengths[b]) {}
  __device__ bool ends(int from) const { return from >= length; }
};
__global__ void rows(float* out, const int* lengths, int from) {
  const Row row(lengths, blockIdx.x, threadIdx.x);
  if (row.ends(from)) return;
  __syncthreads();
  const int end = min(from + 64, row.length);
  for (int i = from; i < end; i += 32) {
    __syncthreads();
    out[i + threadIdx.x] = 0;
  }
}
__global__ void rounded(float* out, const float* in, int n) {
  const int rounds = (n + blockDim.x - 1) / blockDim.x * blockDim.x;
  for (int i = threadIdx.x; i < rounds; i += blockDim.x) {
    float x = i < n ? in[i] : 0;
    __syncthreads();
    if (i < n) out[i] = x;
  }
}
```

*Use instead.* A flag that keeps the threads past the end idle until after the last barrier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement
from opwalker.rules._filled import is_filled
from opwalker.rules._threads import Threads
from opwalker.rules._values import is_fixed

#: A quick no: what a barrier has in its text.
_MAY = re.compile(r"sync|barrier|Block[A-Z]|Reduce|Scan")
_NAME = re.compile(r"(?<![\w.>])[A-Za-z_][\w:]*")

_WHOLE_BLOCKS = re.compile(r"/\s*blockDim\s*\.\s*x\s*\)?\s*\*\s*blockDim\s*\.\s*x\W*\Z")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if not routine.on_device or not _may(tree, routine):
            continue
        threads = Threads(routine)
        yield from _block(tree, routine, routine.statements, threads, None)


def _may(tree: CheckedTree, routine: Routine) -> bool:
    """A quick no: whether a routine has something that waits, or calls what does."""
    return any(_MAY.search(one.text) for one in routine.walk()) or any(
        call.simple in _waiting(tree) for one in routine.walk() for call in one.calls
    )


@lru_cache(maxsize=1)
def _waiting(tree: CheckedTree) -> frozenset[str]:
    """The names of the device functions that have a barrier themselves."""
    found = tree.calling_any(("__syncthreads", "__syncthreads_and", "__syncthreads_or", "__syncthreads_count", "sync"))
    return frozenset(one.name.rsplit("::", 1)[-1] for one in found if one.on_device and "global" not in one.flags)


def _block(
    tree: CheckedTree, routine: Routine, statements: Sequence[Statement], threads: Threads, cause: Related | None
) -> Iterator[Draft]:
    """Barriers below ``statements``; ``cause`` is what has already parted the threads."""
    for number, one in enumerate(statements):
        if cause is not None:
            for line, name in (*threads.barriers(one), *_called(tree, routine, one)):
                said = f"{name} is not reached by every thread of the block"
                yield Draft(routine.file, line, said, (cause,), name.rsplit("::", 1)[-1], op=None)
        parted = cause
        if one.kind in ("if", "while", "for", "do", "switch") and threads.differ(one.text, one.line):
            if one.kind == "for" and (_fixed(routine, one, threads) or _rounded(routine, one)):
                yield from _block(tree, routine, one.body, threads, cause)
                continue
            if one.kind == "if" and _matched(one, statements[number + 1 :], threads):
                continue
            parted = Related(routine.file, one.line, f"`{one.text[:80]}` differs between threads")
        yield from _block(tree, routine, one.body, threads, parted)
        yield from _block(tree, routine, one.orelse, threads, parted)
        if one.kind == "if" and parted is not cause and cause is None and _leaves(one):
            if not one.orelse and is_filled(tree, routine, one.text, one.line, threads):
                continue
            cause = Related(routine.file, one.line, f"threads leave here by `{one.text[:80]}`")


def _called(tree: CheckedTree, routine: Routine, one: Statement) -> Iterator[tuple[int, str]]:
    """The calls of a statement whose functions every thread has to pass a barrier of the block in."""
    for call in one.calls:
        targets = tree.targets(routine, call)
        if targets and all(target.on_device and _waits_always(target) for target in targets):
            yield call.line, call.name


def _waits_always(routine: Routine) -> bool:
    """Whether the straight way through a function has a barrier of the block."""
    threads = Threads(routine)
    for one in routine.statements:
        if one.kind in ("if", "if constexpr", "return") and any(o.kind == "return" for o in one.walk()):
            return False
        if one.kind in ("expression", "declaration", "asm", "block") and threads.barriers(one):
            return True
    return False


def _fixed(routine: Routine, one: Statement, threads: Threads) -> bool:
    """Whether a loop's bound is a constant of the build: the threads may all go round equally often, as where it is a
    multiple of the step."""
    names = [found for found in _NAME.findall(one.text) if not threads.differ(found, one.line)]
    return all(is_fixed(routine, name) for name in names)


def _rounded(routine: Routine, one: Statement) -> bool:
    """Whether a loop goes by blocks up to a multiple of a block: every thread goes round equally often."""
    bound = re.fullmatch(r"(\w+)\s*<\s*(\w+)", one.text.strip())
    if bound is None or not re.fullmatch(rf"{bound[1]}\s*\+=\s*blockDim\s*\.\s*x", one.step.strip()):
        return False
    values = [d.value or "" for held in routine.walk() for d in held.declares if d.name == bound[2]]
    return bool(values) and all(_WHOLE_BLOCKS.search(value) for value in values)


def _matched(one: Statement, rest: Sequence[Statement], threads: Threads) -> bool:
    """Whether both ways reach the same number of barriers, one for one: the hardware counts arrivals, not places."""
    ways = [one.body, one.orelse]
    if _ends(one.body) and not one.orelse:
        ways[1] = tuple(rest)
    counts = [_barriers(way, threads) for way in ways]
    return counts[0] is not None and counts[0] == counts[1] and counts[0] > 0


def _barriers(statements: Sequence[Statement], threads: Threads) -> int | None:
    """The barriers on the straight way through statements; None where their number is not plain to see."""
    total = 0
    for one in statements:
        total += len(threads.barriers(one))
        if one.kind == "block":
            inner = _barriers(one.body, threads)
            if inner is None:
                return None
            total += inner
        elif any(threads.barriers(held) for held in one.walk()):
            if one.body or one.orelse:
                return None
    return total


def _leaves(one: Statement) -> bool:
    """Whether some threads leave the routine or its loop by one branch."""
    return any(_ends(branch) for branch in (one.body, one.orelse))


def _ends(branch: Sequence[Statement]) -> bool:
    if not branch:
        return False
    last = branch[-1]
    return last.kind in ("return", "break", "continue") or (last.kind == "block" and _ends(last.body))


RULE = Rule("barrier-divergent", "error", _run, spread="own")
