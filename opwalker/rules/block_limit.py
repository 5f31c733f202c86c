"""A block of more threads than a block, or the kernel's launch bound, may have; or of a number that nothing limits.

*Why.* More than 1024 threads, or more than `__launch_bounds__` says, and the launch fails.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void __launch_bounds__(256) small_kernel(float* x) { x[threadIdx.x] *= 2; }
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void run(torch::Tensor& x, cudaStream_t stream) {
  small_kernel<<<64, 512, 0, stream>>>(x.data_ptr<float>());  // flagged
  twice_kernel<<<64, dim3(64, 32), 0, stream>>>(x.data_ptr<float>());  // flagged
  twice_kernel<<<64, x.size(1), 0, stream>>>(x.data_ptr<float>());  // flagged
  if (x.size(1) == 1) {
    twice_kernel<<<64, x.size(1), 0, stream>>>(x.data_ptr<float>());
  } else {
    twice_kernel<<<64, x.size(1), 0, stream>>>(x.data_ptr<float>());  // flagged
  }
}
```

*Clean*

```cuda
#include <torch/all.h>
inline int threads_for(int work) { return work < 32 ? 32 : std::min(work, 1024); }
__global__ void __launch_bounds__(256) small_kernel(float* x) { x[threadIdx.x] *= 2; }
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void run(torch::Tensor& x, cudaStream_t stream) {
  small_kernel<<<64, 256, 0, stream>>>(x.data_ptr<float>());
  twice_kernel<<<64, dim3(32, 32), 0, stream>>>(x.data_ptr<float>());
  twice_kernel<<<64, std::min<int64_t>(x.size(1), 1024), 0, stream>>>(x.data_ptr<float>());
  const int threads = min(512, x.numel());
  twice_kernel<<<64, threads, 0, stream>>>(x.data_ptr<float>());
  twice_kernel<<<64, threads_for(x.size(1)), 0, stream>>>(x.data_ptr<float>());
  const int64_t n = x.size(1);
  TORCH_CHECK(n <= 1024, "too wide");
  twice_kernel<<<64, n, 0, stream>>>(x.data_ptr<float>());
}
```

*Use instead.* `std::min(n, 1024)` and a loop in the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.rules._bounds import Bounds, opened
from opwalker.rules._launches import Site, locals_of, sites
from opwalker.rules._values import checks_before, extents, limits, number_of, terms_of

_MOST = 1024
_CALL = re.compile(r"(?<![\w.>])(?:\w+::)*([A-Za-z_]\w*)\s*(?:<[\w:, ]*>)?\s*\(")
#: Rounding up to a multiple: it keeps nothing small.
_ROUNDED = re.compile(r"/\s*(\w+)\s*\)*\s*\*\s*\1\b")
#: What is written like a call and keeps a number as it is.
_PLAIN = frozenset("static_cast int int64_t int32_t uint32_t size_t unsigned dim3 max".split())


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        for site in sites(routine):
            if site.block is None:
                continue
            file, line = site.place(tree, routine)
            said, related = _said(tree, routine, site)
            if said:
                yield Draft(file, line, said, related, site.name)


def _said(tree: CheckedTree, routine: Routine, site: Site) -> tuple[str, tuple[Related, ...]]:
    known = locals_of(site)
    axes = extents(site.block or "", known)
    numbers = [number_of(axis, known) for axis in axes]
    if None in numbers:
        known = {**tree.constants(routine.file), **known}
        numbers = [number_of(axis, known) for axis in axes]
    if all(one is not None for one in numbers):
        threads = 1
        for one in numbers:
            threads *= one or 1
        if threads > _MOST:
            return f"{site.name} is launched with {threads} threads a block; 1024 is the most", ()
        bound = _bound(tree, routine, site)
        if bound is not None and threads > bound[0]:
            return f"{site.name} is launched with {threads} threads a block; its launch bound is {bound[0]}", (
                bound[1],
            )
        return "", ()
    checks = list(checks_before(site.before, site.around, site.statement))
    bounds = Bounds(known, checks)
    most = [number if number is not None else bounds.most(axis) for axis, number in zip(axes, numbers, strict=True)]
    if numbers.count(None) == 1 and None not in most:
        threads = prod(one or 0 for one in most)
        bound = _bound(tree, routine, site)
        if threads > _MOST:
            return f"{site.name} may be launched with {threads} threads a block; 1024 is the most", ()
        if bound is not None and threads > bound[0]:
            return f"{site.name} may be launched with {threads} threads a block; its launch bound is {bound[0]}", (
                bound[1],
            )
    for axis, number, limit in zip(axes, numbers, most, strict=True):
        if number is not None or limit is not None:
            continue
        terms = terms_of(axis, known)
        written = _ROUNDED.sub("", " ".join((axis, *(known.get(one, "") for one in sorted(terms)))))
        sized = [one for one in terms if re.search(r"(?:\.|->)(?:size|numel)\(", one)]
        sized += sorted(_given(tree, routine) & terms)
        if not sized or re.search(r"\bmin\b|\?|%|/|>>|&", written) or _works_out(written):
            continue
        if any(True for text, holds, _ in checks for _ in limits(opened(text, known), holds, terms)):
            continue
        return f"the block of {site.name} has {sorted(sized)[0]} threads, and nothing keeps that at 1024", ()
    return "", ()


def _given(tree: CheckedTree, routine: Routine) -> set[str]:
    """The whole numbers that come in from outside the source: an entry's, of any value."""
    if not tree.is_entry(routine) and tree.callers(routine):
        return set()
    return {one.name for one in routine.parameters if re.fullmatch(r"(?:const\s+)?int(?:64_t|32_t)?", one.type.strip())}


def _works_out(text: str) -> bool:
    """Whether a function works the number out: it may keep it within bounds."""
    return any(found[1] not in _PLAIN for found in _CALL.finditer(text))


def _bound(tree: CheckedTree, routine: Routine, site: Site) -> tuple[int, Related] | None:
    for launch in site.statement.launches:
        for kernel in tree.kernels(routine, launch):
            for attribute in kernel.attributes:
                found = re.search(r"__launch_bounds__\s*\(\s*(\d+)", attribute)
                if found:
                    return int(found[1]), Related(kernel.file, kernel.line, f"{kernel.name} has {attribute}")
    return None


RULE = Rule("block-limit", "error", _run, spread="named")
