"""A grid made of a size that nobody checks for zero.

*Why.* A launch with a grid of 0 fails. A rank without tokens, an empty batch or an empty expert is enough; when the
launch is not checked, a later call is blamed.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x, int64_t n) { x[blockIdx.x] *= 2; }
void rows(torch::Tensor& x, cudaStream_t stream) {
  const int64_t d = x.size(-1);
  const dim3 grid(x.numel() / d);  // flagged
  twice_kernel<<<grid, 32, 0, stream>>>(x.data_ptr<float>(), d);
}
void tokens(torch::Tensor& x, cudaStream_t stream) {
  int num_tokens = x.size(0);
  twice_kernel<<<num_tokens, 32, 0, stream>>>(x.data_ptr<float>(), 1);  // flagged
}
void configured(torch::Tensor& x, int width, cudaStream_t stream) {
  int num_tokens = x.size(0);
  cudaLaunchConfig_t config{.gridDim = dim3(width, num_tokens), .blockDim = dim3(32, 4), .stream = stream};
  cudaLaunchKernelEx(&config, twice_kernel, x.data_ptr<float>(), 1);  // flagged
}
void few(torch::Tensor& x, cudaStream_t stream) {
  if (x.size(0) < 8) {
    twice_kernel<<<x.size(0), 32, 0, stream>>>(x.data_ptr<float>(), 1);  // flagged
  } else {
    twice_kernel<<<8, 32, 0, stream>>>(x.data_ptr<float>(), 1);
  }
}
bool ready(int device);
void waited(torch::Tensor& x, cudaStream_t stream) {
  while (!ready(0)) twice_kernel<<<x.size(0), 32, 0, stream>>>(x.data_ptr<float>(), 1);  // flagged
}
void made(torch::Tensor& x, cudaStream_t stream) {
  TORCH_CHECK(x.size(0) > 0, "empty");
  torch::Tensor y = torch::empty({x.size(0), x.size(1)}, x.options());
  twice_kernel<<<y.size(1), 32, 0, stream>>>(y.data_ptr<float>(), 1);  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x, int64_t n) { x[blockIdx.x] *= 2; }
void rows(torch::Tensor& x, cudaStream_t stream) {
  const int64_t d = x.size(-1);
  if (x.numel() == 0) return;
  const dim3 grid(x.numel() / d);
  twice_kernel<<<grid, 32, 0, stream>>>(x.data_ptr<float>(), d);
}
void tokens(torch::Tensor& x, cudaStream_t stream) {
  int num_tokens = x.size(0);
  TORCH_CHECK(num_tokens > 0, "empty");
  twice_kernel<<<num_tokens, 32, 0, stream>>>(x.data_ptr<float>(), 1);
  twice_kernel<<<std::max(1, num_tokens), 32, 0, stream>>>(x.data_ptr<float>(), 1);
  if (num_tokens > 4) {
    twice_kernel<<<num_tokens / 4, 32, 0, stream>>>(x.data_ptr<float>(), 1);
  }
  int rows = x.size(1);
  if (rows < 8) {
    x.zero_();
  } else {
    twice_kernel<<<rows, 32, 0, stream>>>(x.data_ptr<float>(), 1);
  }
  twice_kernel<<<132, 32, 0, stream>>>(x.data_ptr<float>(), 1);
  RuntimeCheck(x.size(1) != 0, "no columns");
  twice_kernel<<<x.size(1), 32, 0, stream>>>(x.data_ptr<float>(), 1);
  torch::Tensor y = torch::empty({4, num_tokens, 8}, x.options());
  twice_kernel<<<y.size(-2), 32, 0, stream>>>(y.data_ptr<float>(), 1);
}
void inner(float* x, int64_t n, cudaStream_t stream) { twice_kernel<<<n, 32, 0, stream>>>(x, n); }
void outer(torch::Tensor& x, cudaStream_t stream) {
  if (x.numel() > 0) inner(x.data_ptr<float>(), x.numel(), stream);
}
bool settled(const torch::Tensor& x);
void step(torch::Tensor& x, cudaStream_t stream) {
  twice_kernel<<<x.size(0), 32, 0, stream>>>(x.data_ptr<float>(), 1);
}
void settle(torch::Tensor& x, cudaStream_t stream) {
  while (!settled(x)) step(x, stream);
}
```

*Use instead.* `if (x.numel() == 0) return;` before the launch, once for all extents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from opwalker.model.check import CallSite, CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement
from opwalker.rules._launches import Point, Site, extent_line, locals_of, locals_of_point, points, sites
from opwalker.rules._values import checks_before, extents, number_of, split, terms_of
from opwalker.rules._zero import FIXED, excludes_zero, zero_with

_SIZED = re.compile(r"(?:\.|->)(?:size|numel)\(")
_LOAD = re.compile(r"(?i)token|row|batch|seq|\bm\Z|num_?el")
#: How many axes a tensor has, as a check asks for it.
_RANK = re.compile(r"(?P<tensor>\w+(?:\.|->))n?dim(?:ension)?\(\)\s*\)?\s*(?P<sign>[=!]=)\s*\(?\s*(?P<rank>\d)\b")
_DEEPEST = 4


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        told: set[str] = set()
        for site in sites(routine):
            if site.grid is None:
                continue
            known = locals_of(site)
            axes = extents(site.grid, known)
            for letter, axis in zip("xyz", axes, strict=False):
                found = _may_be_zero(tree, routine, site, axis, known)
                if found is None:
                    continue
                if found[0] in told:
                    break
                said, way = found
                told.add(said)
                file, line = site.place(tree, routine)
                made = extent_line(site, letter) if site.macro is None else None
                yield Draft(
                    file,
                    made or line,
                    f"the grid of {site.name} is made of {said}, which nothing checks for zero",
                    (*way, Related(routine.file, site.line, f"{site.name} is launched here")),
                    said,
                )
                break


def _may_be_zero(
    tree: CheckedTree, routine: Routine, site: Site, axis: str, known: Mapping[str, str]
) -> tuple[str, tuple[Related, ...]] | None:
    """The size that an axis is made of, where nothing is known of it, and the calls that it came in by; None where it
    cannot be zero, or is no size."""
    if number_of(axis, known) is not None:
        return None
    terms = zero_with(axis, known)
    parameters = {one.name for one in routine.parameters}
    sizes = sorted((one for one in terms if _SIZED.search(one)), key=lambda one: ("size(0)" not in one, one))
    given = sorted(one for one in terms & parameters if not _is_of_model(one))
    for size in (*sizes, *given):
        same = {one for one in terms if one == size or size in zero_with(one, known)}
        way = _unchecked(tree, routine, site, same, known, 0)
        if way is not None:
            return axis.strip() if re.fullmatch(r"\w+", axis.strip()) else size, way
    return None


def _is_of_model(name: str) -> bool:
    """Whether a parameter is a size of the model by its name; a single letter may mean anything, and a grid is none."""
    return len(name) > 1 and "grid" not in name.lower() and FIXED.search(name) is not None


def _unchecked(
    tree: CheckedTree, routine: Routine, point: Point | Site, terms: set[str], known: Mapping[str, str], depth: int
) -> tuple[Related, ...] | None:
    """The calls by which a size comes in that nobody checks; none where it is taken here, None where there is none."""
    checks = list(checks_before(point.before, point.around, point.statement))
    if any(excludes_zero(text, holds, terms, known) for text, holds, _ in checks):
        return None
    if any(_raised(one, terms, known) or _is_told_apart(one, terms, known) for one in point.before):
        return None
    if any(_goes_on(one, terms) for one in point.around):
        return None
    sizes = {one for one in terms if _SIZED.search(one)}
    last = {axis for text, holds, _ in checks for axis in _last_axes(text, holds)}
    growing = {one for one in sizes if _grows(one, terms, known, last)}
    terms = terms - (sizes - growing)
    own = {one.name for one in routine.parameters} & {re.split(r"\.|->", one)[0] for one in terms}
    sites_above = tree.callers(routine) if own and depth < _DEEPEST else ()
    for site in sites_above:
        passed, above, point_above = _passed(routine, site, terms)
        if point_above is None:
            continue
        way = _unchecked(tree, site.caller, point_above, passed, above, depth + 1)
        if way is not None:
            return (*way, Related(site.caller.file, site.call.line, f"called by {site.caller.name}"))
    return () if growing and not sites_above else None


def _last_axes(condition: str, holds: bool) -> Iterator[str]:
    """The last axes of the tensors whose rank a condition tells: ``x.dim() == 2`` → ``x.size(1)``."""
    for found in _RANK.finditer(condition):
        if (found["sign"] == "==") is holds and int(found["rank"]):
            yield f"{found['tensor']}size({int(found['rank']) - 1})"


def _grows(size: str, terms: set[str], known: Mapping[str, str], last: Collection[str]) -> bool:
    """Whether a size comes with the load. Weights are never empty, nor is the last axis of a tensor; a variable that
    is made of the size alone may say so (``num_heads``), or the opposite."""
    called = [one for one in terms if {held for held in zero_with(one, known) if _SIZED.search(held)} == {size}]
    if any(FIXED.search(one) and not _counts(one, known) for one in (size, *called)):
        return False
    return not ("size(-1)" in size or size in last) or any(_LOAD.search(one) for one in called)


def _counts(name: str, known: Mapping[str, str]) -> bool:
    """Whether ``n`` is how many there are: a matrix has an ``m`` or a ``k`` beside its ``n``."""
    return name in ("n", "N") and known.keys().isdisjoint("mMkK")


def _raised(one: Statement, terms: set[str], known: Mapping[str, str]) -> bool:
    """``if (grid == 0) grid = 1;``"""
    assigned = {assigned.target.strip() for held in one.body for assigned in held.assigns}
    return one.kind == "if" and bool(assigned & terms) and excludes_zero(one.text, False, terms, known)


def _is_told_apart(one: Statement, terms: set[str], known: Mapping[str, str]) -> bool:
    """``x.view({x.size(0), -1})``: an extent of -1 cannot be worked out beside one of 0, and torch says so."""
    for call in one.calls:
        if call.simple in ("view", "reshape") and call.receiver is not None:
            extents = [part.strip() for argument in call.arguments for part in split(argument.strip("{} "))]
            if "-1" in extents and any(zero_with(part, known) & terms for part in extents):
                return True
    return False


def _goes_on(one: Statement, terms: set[str]) -> bool:
    """Whether a statement is a loop that a function of what the terms are about keeps going: of nothing, it may say at
    once that all is done."""
    roots = {re.split(r"\.|->", term)[0] for term in terms}
    given = (argument.strip("&* ") for call in one.calls if call.receiver is None for argument in call.arguments)
    return one.kind == "while" and not roots.isdisjoint(given)


def _passed(routine: Routine, site: CallSite, terms: set[str]) -> tuple[set[str], dict[str, str], Point | None]:
    """What terms about a routine's parameters are at a call, with the locals in sight there, and where it stands."""
    point = next((one for one in points(site.caller.statements) if site.call in one.statement.calls), None)
    known = locals_of_point(point) if point is not None else {}
    given = dict(zip((one.name for one in routine.parameters), site.call.arguments, strict=False))
    out: set[str] = set()
    for term in terms:
        root = re.split(r"\.|->", term)[0]
        if root in given:
            argument = given[root].strip("&* ")
            out |= zero_with(argument, known) if term == root else terms_of(argument + term[len(root) :], known)
    return out, known, point


RULE = Rule("zero-grid", "warning", _run, spread="up")
