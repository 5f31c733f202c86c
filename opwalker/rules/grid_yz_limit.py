"""A run-time value in the y or z extent of a grid, where 65535 is the most.

*Why.* Only the first axis of a grid reaches 2^31 - 1. A launch with more than 65535 blocks in y or z fails, and a
check against the limit of x lets it through.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[blockIdx.y] *= 2; }
void rows(torch::Tensor& x, cudaStream_t stream) {
  const dim3 grid(4, x.size(0));  // flagged
  twice_kernel<<<grid, 32, 0, stream>>>(x.data_ptr<float>());
}
void wide(float* x, int64_t rows, int64_t groups, cudaStream_t stream) {
  TORCH_CHECK(rows <= INT_MAX, "too many");
  twice_kernel<<<dim3(groups, static_cast<unsigned>(rows)), 32, 0, stream>>>(x);  // flagged
}
void either(torch::Tensor& x, bool wide, cudaStream_t stream) {
  const int64_t rows = x.size(0);
  twice_kernel<<<dim3(4, wide ? rows : 8), 32, 0, stream>>>(x.data_ptr<float>());  // flagged
  const int64_t half = x.size(0) / 2;
  const int64_t lanes = wide ? half : 8;
  twice_kernel<<<dim3(4, lanes), 32, 0, stream>>>(x.data_ptr<float>());  // flagged
}
void others(torch::Tensor& x, cudaStream_t stream) {
  if (x.size(0) == 1) {
    twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
  } else if (x.size(0) > 64) {
    twice_kernel<<<dim3(1, x.size(0)), 32, 0, stream>>>(x.data_ptr<float>());  // flagged
  } else {
    twice_kernel<<<dim3(2, x.size(0)), 32, 0, stream>>>(x.data_ptr<float>());
  }
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[blockIdx.y] *= 2; }
void rows(torch::Tensor& x, cudaStream_t stream) {
  const int64_t rows = x.size(0);
  TORCH_CHECK(rows <= 65535, "too many rows");
  const dim3 grid(4, rows);
  twice_kernel<<<grid, 32, 0, stream>>>(x.data_ptr<float>());
  twice_kernel<<<dim3(rows, 8), 32, 0, stream>>>(x.data_ptr<float>());
  twice_kernel<<<dim3(1, std::min<int64_t>(x.size(1), 65535)), 32, 0, stream>>>(x.data_ptr<float>());
}
void chosen(torch::Tensor& x, cudaStream_t stream) {
  const int64_t rows = x.size(0);
  twice_kernel<<<dim3(rows, rows > 16 ? rows > 32 ? 1 : 2 : 4), 32, 0, stream>>>(x.data_ptr<float>());
  const int64_t lanes = rows > 65535 ? 65535 : rows;
  twice_kernel<<<dim3(4, lanes), 32, 0, stream>>>(x.data_ptr<float>());
  const int64_t num_experts = x.dim() == 3 ? x.size(0) : 1;
  twice_kernel<<<dim3(4, num_experts), 32, 0, stream>>>(x.data_ptr<float>());
}
void inner(float* x, int num_tokens, cudaStream_t stream) {
  twice_kernel<<<dim3(4, num_tokens), 32, 0, stream>>>(x);
}
void outer(torch::Tensor& x, cudaStream_t stream) {
  const int64_t tokens = x.size(0);
  TORCH_CHECK(tokens <= 64, "few tokens");
  inner(x.data_ptr<float>(), tokens, stream);
}
```

*Use instead.* The long axis in x, a stride loop over y, or a check against 65535.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.notation.cpp_expression import parse_expression, print_expression
from opwalker.rules._above import settled_above
from opwalker.rules._bounds import Bounds
from opwalker.rules._launches import Site, extent_line, locals_of, sites
from opwalker.rules._values import checks_before, extents, limits, number_of, size_made, terms_of

_MOST = 65535
#: Names of sizes that grow with the load, not with a model's shape.
_GROWS = re.compile(
    r"(?:\.|->)(?:size\(0\)|numel\()|\b(?:num_|n_|total_)?(?:tokens|rows|batch\w*|seqs?|elements|groups|m)\b"
)
#: Sizes of a model: thousands at the most.
_STAYS = re.compile(r"(?i)head|hidden|dim\b|expert|layer|rank|world|warp|split")

_DEEPEST = 8
_WORDS = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*(?:(?:\.|->)[A-Za-z_]\w*(?:\((?:[^()]|\([^()]*\))*\))?)*")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        told: set[tuple[int, str]] = set()
        for site in sites(routine):
            known = locals_of(site)
            for axis, extent in zip("xyz", extents(site.grid or "", known), strict=False):
                if axis == "x" or not _is_open(tree, routine, site, extent, known):
                    continue
                line = extent_line(site, axis) or site.line
                if (line, axis) in told:
                    continue
                told.add((line, axis))
                file = routine.file
                if site.macro is not None:
                    file, line = site.place(tree, routine)
                value = extent.strip()
                yield Draft(
                    file,
                    line,
                    f"`{value}` is the {axis} extent of the grid of {site.name}, and nothing keeps it below 65536",
                    (
                        Related(routine.file, site.line, f"{site.name} is launched here"),
                        *_other_limit(site, extent, known, routine.file),
                    ),
                    next(iter(re.findall(r"[A-Za-z_]\w*", value.rsplit("(", 1)[-1])), ""),
                )


def _is_open(tree: CheckedTree, routine: Routine, site: Site, extent: str, known: Mapping[str, str]) -> bool:
    plain = extent.strip()
    chosen = parse_expression(known.get(plain, plain).strip().removeprefix("=").strip())
    if chosen.kind == "ternary":
        if re.fullmatch(r"\w+", plain) and _STAYS.search(plain):
            return False
        condition, *ways = (print_expression(one) for one in chosen.parts)
        rest = {name: value for name, value in known.items() if name != plain}
        return any(
            _is_open(tree, routine, site, way, rest) and not _limits(condition, holds, terms_of(way, rest))
            for way, holds in zip(ways, (True, False), strict=True)
        )
    if number_of(extent, known) is not None:
        return False
    terms = terms_of(extent, known)
    if not _grows(extent, known, 0):
        return False
    checks = list(checks_before(site.before, site.around, site.statement))
    numbers = {**tree.constants(routine.file), **known}
    limit = Bounds(numbers, checks).most(extent)
    if limit is not None and limit <= _MOST:
        return False
    opened = " ".join((extent, *(known.get(one, "") for one in sorted(terms))))
    if re.search(r"\bmin\b", opened):
        return False
    if any(_limits(*one[:2], terms, numbers) for one in checks):
        return False
    return not settled_above(tree, routine, terms, _limits)


def _grows(text: str, known: Mapping[str, str], depth: int) -> bool:
    """Whether an extent is made of a size that grows with the load, and not by way of a size of the model."""
    plain = re.sub(r'"[^"]*"', "", text)
    for found in _WORDS.finditer(plain):
        word = "".join(found.group().split())
        if _STAYS.search(word):
            continue
        if _GROWS.search(word):
            return True
        head = re.split(r"\.|->", word, maxsplit=1)[0]
        value = known.get(word) or size_made(word, known.get(head, ""))
        rest = {name: held for name, held in known.items() if name != head}
        if value and depth < _DEEPEST and _grows(value, rest, depth + 1):
            return True
    return False


def _limits(condition: str, holds: bool, terms: set[str], known: Mapping[str, str] | None = None) -> bool:
    """Whether a condition keeps one of the terms at 65535 or below."""
    for limit in limits(condition, holds, terms):
        worked = number_of(limit, known)
        if worked is not None and worked > _MOST + 1:
            continue
        numbers = [int(one) for one in re.findall(r"\b\d+\b", limit)]
        if any(0 < one <= _MOST + 1 for one in numbers) or re.search(r"65535|0xFFFF", limit):
            return True
        if re.search(r"[mM]ax\w*[gG]rid\w*|GRID\w*MAX|MAX\w*GRID|kMaxGrid\w*|maxGridSize", limit):
            return True
    return False


def _other_limit(site: Site, extent: str, known: Mapping[str, str], file: str) -> tuple[Related, ...]:
    terms = terms_of(extent, known)
    for condition, _, line in checks_before(site.before, site.around, site.statement):
        if terms_of(condition, {}) & terms and re.search(r"INT_MAX|numeric_limits|2147483647", condition):
            return (Related(file, line, "this check uses the limit of x"),)
    return ()


RULE = Rule("grid-yz-limit", "warning", _run, spread="own")
