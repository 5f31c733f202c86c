"""An offset whose product is formed in 32 bits.

*Why.* A block's number times two sizes passes 2^31 for tensors that fit on one GPU. The offset wraps: reads out of
range, or silently wrong values.

*Flagged*

```cuda
__global__ void merge(float* out, const float* a, int heads, int dim) {
  const int token = blockIdx.x, head = blockIdx.y;
  const int offset = token * heads * dim + head * dim;  // flagged
  for (int i = threadIdx.x; i < dim; i += blockDim.x) out[offset + i] = a[offset + i];
}
__global__ void row(float* out, int dim) {
  float* y = out + blockIdx.x * dim;  // flagged
  out[blockIdx.x * dim + threadIdx.x] = y[0];  // flagged
  const int64_t late = static_cast<int64_t>(blockIdx.x * dim);  // flagged
  out[late] = 0;
}
```

*Clean*

```cuda
__global__ void merge(float* out, const float* a, int heads, int dim, int64_t stride) {
  const int token = blockIdx.x, head = blockIdx.y;
  const int64_t offset = (int64_t(token) * heads + head) * dim;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) out[offset + i] = a[offset + i];
  float* y = out + blockIdx.x * stride;
  __shared__ float tile[1024];
  tile[threadIdx.x * 4 + head] = y[threadIdx.x * 4];
  const int64_t wide = static_cast<int64_t>(blockIdx.x) * dim;
  out[wide] = 0;
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < dim) out[n] = 1;
}
```

*Use instead.* `int64_t` for the first factor: `static_cast<int64_t>(blockIdx.x) * dim`. Off by default: how large the
sizes of a model become is not in the source, and many such products stay small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.model.statements import Routine
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression, walk
from opwalker.rules._widths import Widths

_POINTER = re.compile(r"\*")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if routine.on_device:
            yield from _judged(tree, routine)


def _judged(tree: CheckedTree, routine: Routine) -> Iterator[Draft]:
    widths = Widths(tree, routine)
    pointers = {one.name for one in routine.parameters if "*" in one.type}
    shared: set[str] = set()
    offsets: dict[str, tuple[int, Expr]] = {}
    told: set[int] = set()
    for one in routine.walk():
        for declared in one.declares:
            if "__shared__" in declared.type or "[" in declared.type:
                shared.add(declared.name)
            if "*" in declared.type:
                pointers.add(declared.name)
            value = (declared.value or "").strip().removeprefix("=").strip()
            if "*" not in value:
                continue
            expr = parse_expression(value)
            product = widths.narrow_product(expr)
            if product is None:
                continue
            if "*" in declared.type:
                if not _leads(expr, shared):
                    told.add(declared.line)
                    yield _draft(routine, declared.line, product)
            elif widths.of_type(declared.type) in (32, 64):
                offsets.setdefault(declared.name, (declared.line, product))
    used = _indexed(routine, pointers - shared, widths, told)
    for line, product, names in used:
        if product is not None:
            yield _draft(routine, line, product)
        for name in names:
            if name in offsets and offsets[name][0] not in told:
                told.add(offsets[name][0])
                yield _draft(routine, *offsets[name])


def _leads(expr: Expr, pointers: set[str]) -> bool:
    """Whether one of some names is in an expression."""
    return any(one.kind == "name" and one.text in pointers for one in walk(expr))


def _indexed(
    routine: Routine, pointers: set[str], widths: Widths, told: set[int]
) -> Iterator[tuple[int, Expr | None, set[str]]]:
    """Indexes of and additions to pointers: the narrow product in each, and the names that it uses."""
    for one in routine.walk():
        texts = [(a.target, a.line) for a in one.assigns] + [(a.value, a.line) for a in one.assigns]
        texts += [(d.value.strip().removeprefix("="), d.line) for d in one.declares if d.value]
        texts += [(one.text, one.line)] if one.kind == "return" else []
        texts += [(argument, call.line) for call in one.calls for argument in call.arguments]
        for text, line in texts:
            if not any(name in text for name in pointers) or ("[" not in text and "+" not in text):
                continue
            for part in walk(parse_expression(text)):
                index = _index_of(part, pointers)
                if index is None:
                    continue
                product = widths.narrow_product(index)
                names = {held.text for held in walk(index) if held.kind == "name"}
                if product is not None and line not in told:
                    told.add(line)
                    yield line, product, names
                else:
                    yield line, None, names


def _index_of(part: Expr, pointers: set[str]) -> Expr | None:
    if part.kind == "index" and part.parts[0].kind == "name" and part.parts[0].text in pointers and len(part.parts) > 1:
        return part.parts[1]
    if part.kind == "binary" and part.text == "+":
        for side, other in (part.parts, part.parts[::-1]):
            if side.kind == "name" and side.text in pointers:
                return other
            if side.kind == "binary" and _index_of(side, pointers) is not None:
                return other
    return None


def _draft(routine: Routine, line: int, product: Expr) -> Draft:
    text = print_expression(product)
    return Draft(routine.file, line, f"`{text}` is formed in 32 bits and used as an offset", symbol=text.split(" ")[0])


RULE = Rule("narrow-index", "warning", _run, default=False, spread="own")
