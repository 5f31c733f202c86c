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
```

*Use instead.* `if (x.numel() == 0) return;` before the launch, once for all extents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.rules._launches import Site, locals_of, points, sites
from opwalker.rules._values import checks_before, extents, number_of, terms_of

_AT_LEAST_ONE = re.compile(r"\bmax\s*(?:<\s*\w+\s*>)?\s*\(")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        told: set[str] = set()
        for site in sites(routine):
            if site.grid is None:
                continue
            known = locals_of(site)
            axes = extents(site.grid, known)
            for axis in axes:
                said = _may_be_zero(tree, routine, site, axis, known)
                if said is None or said in told:
                    continue
                told.add(said)
                file, line = site.place(routine)
                made = _declared(site) if site.macro is None else None
                yield Draft(
                    file,
                    made or line,
                    f"the grid of {site.name} is made of {said}, which nothing checks for zero",
                    (Related(routine.file, site.line, f"{site.name} is launched here"),),
                    said,
                )


def _declared(site: Site) -> int | None:
    """The line on which the grid's variable is made."""
    for one in reversed((*site.before, *site.around)):
        for declared in one.declares:
            if declared.name == (site.grid or "").strip() and "dim3" in declared.type:
                return declared.line
    return None


def _may_be_zero(tree: CheckedTree, routine: Routine, site: Site, axis: str, known: Mapping[str, str]) -> str | None:
    """The size that an axis is made of, where nothing is known of it; None where it cannot be zero, or is no size."""
    if number_of(axis, known) is not None or _AT_LEAST_ONE.search(_opened(axis, known)):
        return None
    terms = terms_of(axis, known)
    sized = sorted(one for one in terms if re.search(r"(?:\.|->)(?:size|numel)\(", one))
    if not sized:
        return None
    if _is_checked(terms, site.before, site.around):
        return None
    sites_above = tree.callers(routine)
    if sites_above and all(_checked_above(one.caller, one.call.line) for one in sites_above):
        return None
    own = re.fullmatch(r"\w+", axis.strip())
    return axis.strip() if own else sized[0]


def _opened(axis: str, known: Mapping[str, str]) -> str:
    plain = axis.strip()
    return known.get(plain, plain) if re.fullmatch(r"\w+", plain) else plain


def _is_checked(terms: set[str], before, around) -> bool:
    tensors = {re.split(r"\.|->", one)[0] for one in terms if "." in one or "->" in one}
    for condition, _, _ in checks_before(before, around):
        asked = terms_of(condition, {})
        if not _compares(condition):
            continue
        if re.search(r"\bnumel\(\)\s*(?:==\s*0|>\s*0|<\s*1|!=\s*0)", condition):
            return True  # an empty tensor of any name is dealt with: the extents of the others go with it
        emptied = {f"{one}{dot}numel()" for one in tensors for dot in (".", "->")}
        if asked & terms or asked & emptied:
            return True
    return False


def _compares(condition: str) -> bool:
    """Whether a condition can keep a zero out: a comparison with a number, or the bare value."""
    return bool(re.search(r"[<>=!]=?\s*\d|\d\s*[<>=!]=?|!\s*\w|\A[\w.()>-]+\Z|empty|numel", condition))


def _checked_above(caller: Routine, line: int) -> bool:
    """Whether a caller asks something about a size before a call."""
    for point in points(caller.statements):
        if any(call.line == line for call in point.statement.calls):
            for condition, _, _ in checks_before(point.before, point.around):
                if _compares(condition) and re.search(r"numel|size|num|==\s*0|>\s*0|empty", condition):
                    return True
    return False


RULE = Rule("zero-grid", "warning", _run)
