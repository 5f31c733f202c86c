"""A tensor of any layout, handed by raw pointer to a kernel that steps over its rows by their length.

*Why.* A slice of a fused projection has rows that lie further apart than they are long. The kernel then reads its
neighbours.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void turn_kernel(float* q, int64_t len) {
  float* row = q + int64_t(blockIdx.x) * len;
  for (int i = threadIdx.x; i < len; i += blockDim.x) row[i] = -row[i];
}
void turn(torch::Tensor& q, cudaStream_t stream) {
  const int64_t rows = q.size(0), len = q.size(1);
  turn_kernel<<<rows, 128, 0, stream>>>(q.data_ptr<float>(), len);  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void turn_kernel(float* q, int64_t pitch, int64_t len) {
  float* row = q + int64_t(blockIdx.x) * pitch;
  for (int i = threadIdx.x; i < len; i += blockDim.x) row[i] = -row[i];
}
__global__ void flat_kernel(float* q, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) q[i] = -q[i];
}
void strided(torch::Tensor& q, cudaStream_t stream) {
  TORCH_CHECK(q.stride(-1) == 1, "dense rows");
  turn_kernel<<<q.size(0), 128, 0, stream>>>(q.data_ptr<float>(), q.stride(0), q.size(1));
}
void dense(torch::Tensor& q, cudaStream_t stream) {
  TORCH_CHECK(q.is_contiguous(), "dense");
  turn_kernel<<<q.size(0), 128, 0, stream>>>(q.data_ptr<float>(), q.size(1), q.size(1));
}
void made(const torch::Tensor& x, cudaStream_t stream) {
  auto q = x.contiguous();
  turn_kernel<<<q.size(0), 128, 0, stream>>>(q.data_ptr<float>(), q.size(1), q.size(1));
}
void vector(torch::Tensor& q, cudaStream_t stream) {
  flat_kernel<<<(q.numel() + 127) / 128, 128, 0, stream>>>(q.data_ptr<float>(), q.numel());
}
```

*Use instead.* The stride as an argument, a check of the layout, or `.contiguous()` into a name. Off by default: many
libraries demand contiguous tensors by convention alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.notation.cpp_expression import parse_expression, walk
from opwalker.rules._launches import locals_of, sites
from opwalker.rules._tensors import contiguous_above, layout_line, pointers, tensor_parameters
from opwalker.rules._values import terms_of

_BLOCK = re.compile(r"\bblockIdx\b")
_WORD = re.compile(r"[A-Za-z_]\w*")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        tensors = set(tensor_parameters(routine))
        if not tensors or routine.on_device:
            continue
        told: set[str] = set()
        for site in sites(routine):
            launched = [one for launch in site.statement.launches for one in tree.kernels(routine, launch)]
            known = locals_of(site)
            for pointer in pointers(site.arguments, known):
                if pointer.tensor not in tensors or pointer.tensor in told or pointer.way:
                    continue
                sized = [not _strided(one, known) for one in site.arguments]
                stepping = next((s for k in launched if (s := _steps(k, pointer.number, sized)) is not None), None)
                if stepping is None or layout_line(routine, pointer.tensor) is not None:
                    continue
                if contiguous_above(tree, routine, pointer.tensor):
                    continue
                told.add(pointer.tensor)
                file, line = site.place(tree, routine)
                said = f"{site.name} steps over rows of {pointer.tensor} by their length, and nothing checks its layout"
                yield Draft(file, line, said, (stepping,), pointer.tensor)


def _strided(argument: str, known: dict[str, str]) -> bool:
    """Whether an argument is made of a stride."""
    return any("stride(" in one + known.get(one, "") for one in terms_of(argument, known))


def _steps(kernel: Routine, number: int, sized: list[bool]) -> Related | None:
    """Where a kernel addresses rows of one of its parameters: a product of a block index and what is given a size."""
    if number >= len(kernel.parameters):
        return None
    name = kernel.parameters[number].name
    given = zip(kernel.parameters, sized, strict=False)
    sizes = {one.name for one, by_size in given if by_size and "*" not in one.type}
    blocks = {d.name for one in kernel.walk() for d in one.declares if _BLOCK.search(d.value or "")} | {"blockIdx"}
    rows = _row_locals(kernel, sizes, blocks)
    for one in kernel.walk():
        for text in (one.text, *(a.target for a in one.assigns)):
            for found in re.finditer(rf"\b{re.escape(name)}\s*(?:\+\s*([^;,]*)|\[([^\]]*)\])", text):
                inside = found[1] or found[2]
                if _is_row(inside, sizes, blocks) or any(re.search(rf"\b{re.escape(row)}\b", inside) for row in rows):
                    return Related(kernel.file, one.line, f"`{inside.strip()[:60]}` in {kernel.name}")
    return None


def _row_locals(kernel: Routine, sizes: set[str], blocks: set[str]) -> set[str]:
    return {d.name for one in kernel.walk() for d in one.declares if d.value and _is_row(d.value, sizes, blocks)}


def _is_row(text: str, sizes: set[str], blocks: set[str]) -> bool:
    """``blockIdx.x * len``: a product of a block's number, which a local may hold, and a size."""
    if blocks.isdisjoint(_WORD.findall(text)):
        return False
    for node in walk(parse_expression(text.strip().removeprefix("=").strip())):
        if node.kind == "binary" and node.text == "*":
            left, right = ({held.text for held in walk(part) if held.kind == "name"} for part in node.parts)
            if any(one & blocks and other & sizes for one, other in ((left, right), (right, left))):
                return True
    return False


RULE = Rule("assume-contiguous", "warning", _run, default=False, spread="down")
