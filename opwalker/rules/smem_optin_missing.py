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
void rows(torch::Tensor& x, cudaStream_t stream) {
  const int64_t d = x.size(-1);
  tile_kernel<<<x.size(0), 256, 2 * d * sizeof(float), stream>>>(x.data_ptr<float>());  // flagged
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
void rows(torch::Tensor& x, cudaStream_t stream) {
  const int64_t d = x.size(-1);
  TORCH_CHECK(d <= 4096, "too wide");
  other_kernel<<<x.size(0), 256, 2 * d * sizeof(float), stream>>>(x.data_ptr<float>());
}
```

*Use instead.* The attribute, set for the kernel before the launch, with the size that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.model.statements import Routine
from opwalker.rules._bounds import Bounds, opened
from opwalker.rules._launches import Site, locals_of, sites
from opwalker.rules._values import checks_before, number_of, terms_of

_LIMIT = 48 * 1024
_SETS = re.compile(r"(?:cuda|hip|cu)FuncSetAttribute\Z|\w*(?:[sS]et\w*[sS]mem|[oO]pt_?in|[sS]hared\w*[aA]ttr)\w*\Z")

_SIZE = re.compile(r"(?:\.|->)(?:size|numel)\(")
#: What keeps a value small, or works it out elsewhere.
_CHOSEN = re.compile(r"\bmin\b|\?|%|>>|(?<!sizeof)(?<!_cast>)(?<!size)(?<!numel)(?<!max)(?<!dim3)(?<=\w)\(")
#: An array that a block shares.
_ARRAY = re.compile(r"(?:static\s+)?__shared__\s+(?:(?:alignas|__align__)\(\d+\)\s+)?([\w:]+)((?:\s*\[[^\[\]]+\])+)")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    opted = cache(lambda: _opted(tree))
    for routine in tree.routines:
        for site in sites(routine):
            bytes_ = _bytes(tree, routine, site)
            size = _unbounded(site) if bytes_ is None else None
            if size is None and (bytes_ is None or bytes_ <= _LIMIT - _fixed(tree, routine, site)):
                continue
            if re.search(rf"\b{re.escape(site.name)}\b", opted()):
                continue
            if opted() and re.fullmatch(r"\w+", site.kernel) and not tree.functions(site.kernel):
                continue  # a kernel in a variable: which one was opted in is not seen by name
            file, line = site.place(tree, routine)
            beside = _fixed(tree, routine, site)
            more = f" beside {beside} of its own" if beside else ""
            said = f"{site.name} is given {bytes_} bytes of dynamic shared memory{more}"
            if size is not None:
                said = f"the dynamic shared memory of {site.name} grows with {size}, which nothing bounds"
            yield Draft(file, line, f"{said}, and nothing opts in to more than 48 KiB", symbol=site.name)


def _bytes(tree: CheckedTree, routine: Routine, site: Site) -> int | None:
    """The most that a launch can ask for; None where nothing says it."""
    shared, known = site.shared or "", locals_of(site)
    found = number_of(shared, known)
    if found is None and shared.strip():
        known = {**tree.constants(routine.file), **known}
        found = Bounds(known, checks_before(site.before, site.around, site.statement)).most(shared)
    return found


def _unbounded(site: Site) -> str | None:
    """A size that the amount is made of and that nothing looks at; None where there is none."""
    known = locals_of(site)
    terms = terms_of(site.shared or "", known)
    sizes = sorted(one for one in terms if _SIZE.search(one))
    written = " ".join((site.shared or "", *(known.get(one, "") for one in sorted(terms))))
    if not sizes or _CHOSEN.search(written):
        return None
    looked = [opened(text, known) for text, _, _ in checks_before(site.before, site.around, site.statement)]
    looked += [one.text for one in site.around if one.kind in ("switch", "if constexpr")]
    return None if any(terms_of(text, {}) & terms for text in looked) else sizes[0]


def _fixed(tree: CheckedTree, routine: Routine, site: Site) -> int:
    """The bytes of the arrays of fixed length that the kernel declares, as far as their text says."""
    if not site.statement.launches:
        return 0
    kernels = [one for launch in site.statement.launches for one in tree.kernels(routine, launch)]
    return max((_declared(tree, one) for one in kernels if one.template is None), default=0)


def _declared(tree: CheckedTree, kernel: Routine) -> int:
    total = 0
    for made in (made for one in kernel.walk() for made in one.declares):
        found = _ARRAY.fullmatch(made.type.strip()) if "extern" not in made.type else None
        if found is not None:
            length = "*".join(re.findall(r"\[([^\[\]]+)\]", found[2]))
            size = number_of(f"sizeof({found[1]}) * {length}", tree.constants(kernel.file))
            total += size or 0
    return total


def _opted(tree: CheckedTree) -> str:
    """What calls that opt in are given, anywhere in the source."""
    calls = (call for routine in tree.every_routine for one in routine.walk() for call in one.calls)
    return " ".join(argument for call in calls if _SETS.match(call.simple) for argument in call.arguments)


RULE = Rule("smem-optin-missing", "error", _run, spread="own")
