"""A launch that may ask for more than 48 KiB of dynamic shared memory, of a kernel that never opted in.

*Why.* Without `cudaFuncAttributeMaxDynamicSharedMemorySize` such a launch fails on every device.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void tile_kernel(float* x) { x[threadIdx.x] *= 2; }
void run(float* x, cudaStream_t stream) {
  constexpr int bytes = 96 * 1024;
  tile_kernel<<<64, 256, bytes, stream>>>(x);  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void tile_kernel(float* x) { x[threadIdx.x] *= 2; }
__global__ void other_kernel(float* x) { x[threadIdx.x] *= 2; }
void run(float* x, int64_t n, cudaStream_t stream) {
  constexpr int bytes = 96 * 1024;
  cudaFuncSetAttribute(tile_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  tile_kernel<<<64, 256, bytes, stream>>>(x);
  other_kernel<<<64, 256, 32 * 1024, stream>>>(x);
  other_kernel<<<64, 256, n * sizeof(float), stream>>>(x);
}
```

*Use instead.* The attribute, set for the kernel before the launch, with the size that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.rules._launches import locals_of, sites
from opwalker.rules._values import number_of

_LIMIT = 48 * 1024
_SETS = re.compile(r"(?:cuda|hip|cu)FuncSetAttribute\Z|\w*(?:[sS]et\w*[sS]mem|[oO]pt_?in|[sS]hared\w*[aA]ttr)\w*\Z")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    opted = cache(lambda: _opted(tree))
    for routine in tree.routines:
        for site in sites(routine):
            bytes_ = number_of(site.shared or "", locals_of(site))
            if bytes_ is None or bytes_ <= _LIMIT or re.search(rf"\b{re.escape(site.name)}\b", opted()):
                continue
            if opted() and re.fullmatch(r"\w+", site.kernel) and not tree.functions(site.kernel):
                continue  # a kernel in a variable: which one was opted in is not seen by name
            file, line = site.place(routine)
            said = (
                f"{site.name} is given {bytes_} bytes of dynamic shared memory, and nothing opts in to more than 48 KiB"
            )
            yield Draft(file, line, said, symbol=site.name)


def _opted(tree: CheckedTree) -> str:
    """What calls that opt in are given, anywhere in the source."""
    calls = (call for routine in tree.every_routine for one in routine.walk() for call in one.calls)
    return " ".join(argument for call in calls if _SETS.match(call.simple) for argument in call.arguments)


RULE = Rule("smem-optin-missing", "error", _run)
