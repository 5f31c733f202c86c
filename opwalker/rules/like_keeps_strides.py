"""An output made `_like` an input whose layout nobody checked, handed to a kernel that writes it densely.

*Why.* `empty_like` keeps the strides of a permuted input. A kernel that addresses rows by their length then writes to
other elements than the result shows.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void blur_kernel(float* out, const float* in, int64_t n) { out[threadIdx.x] = in[threadIdx.x]; }
torch::Tensor blur(const torch::Tensor& x, cudaStream_t stream) {
  torch::Tensor out = torch::empty_like(x);  // flagged
  const auto dense = x.contiguous();
  blur_kernel<<<1, 32, 0, stream>>>(out.data_ptr<float>(), dense.data_ptr<float>(), x.numel());
  return out;
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void blur_kernel(float* out, const float* in, int64_t n) { out[threadIdx.x] = in[threadIdx.x]; }
torch::Tensor blur(const torch::Tensor& x, cudaStream_t stream) {
  const auto dense = x.contiguous();
  torch::Tensor out = torch::empty_like(dense);
  blur_kernel<<<1, 32, 0, stream>>>(out.data_ptr<float>(), dense.data_ptr<float>(), x.numel());
  return out;
}
torch::Tensor checked(const torch::Tensor& x, cudaStream_t stream) {
  TORCH_CHECK(x.is_contiguous(), "dense");
  auto out = at::zeros_like(x);
  auto other = torch::empty_like(x, torch::MemoryFormat::Contiguous);
  blur_kernel<<<1, 32, 0, stream>>>(out.data_ptr<float>(), x.data_ptr<float>(), x.numel());
  return out;
}
```

*Use instead.* `torch::empty(x.sizes(), x.options())`, or `empty_like` of what was made contiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.rules._launches import launched_with, locals_of, locals_of_point, points, sites
from opwalker.rules._tensors import contiguous_above, layout_line, made_here, pointers

_LIKE = re.compile(
    r"\b(?:empty|zeros|ones|full|rand|randn)_like\s*\(\s*(\w+)\s*(?:\)|,\s*(?!.*(?:Contiguous|contiguous_format)))"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        made: dict[str, tuple[str, int]] = {}
        for one in routine.walk():
            values = [(d.name, d.value or "", d.line) for d in one.declares]
            values += [(a.target.strip(), a.value, a.line) for a in one.assigns if a.operator == "="]
            for name, value, line in values:
                found = _LIKE.search(value)
                if found and found[1] != name:
                    made[name] = (found[1], line)
        if not made:
            continue
        told: set[str] = set()
        for tensor, launched, line in _launched(tree, routine):
            if tensor not in made or tensor in told:
                continue
            model, at = made[tensor]
            if layout_line(routine, model) is not None or made_here(routine, model):
                continue
            if layout_line(routine, tensor) is not None or contiguous_above(tree, routine, model):
                continue
            told.add(tensor)
            yield Draft(
                routine.file,
                at,
                f"{tensor} keeps the strides of {model}, whose layout is not checked, and {launched} takes its pointer",
                (Related(routine.file, line, f"{launched} is launched here"),),
                tensor,
            )


def _launched(tree: CheckedTree, routine: Routine) -> Iterator[tuple[str, str, int]]:
    """``(tensor, kernel, line)`` of the pointers that launches take, those of called functions too."""
    for site in sites(routine):
        for pointer in pointers(site.arguments, locals_of(site)):
            if not pointer.way:
                yield pointer.tensor, site.name, site.line
    for point in points(routine.statements):
        for call in point.statement.calls:
            given = [one for one in pointers(call.arguments, locals_of_point(point)) if not one.way]
            for number, site in launched_with(tree, routine, call) if given else ():
                for pointer in given:
                    if pointer.number == number:
                        yield pointer.tensor, site.name, call.line


RULE = Rule("like-keeps-strides", "warning", _run, spread="own")
