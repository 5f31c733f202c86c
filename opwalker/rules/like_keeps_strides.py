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
from opwalker.rules._launches import locals_of, sites
from opwalker.rules._tensors import contiguous_above, layout_line, made_here, pointers

_LIKE = re.compile(
    r"\b(?:empty|zeros|ones|full|rand|randn)_like\s*\(\s*(\w+)\s*(?:\)|,\s*(?!.*(?:Contiguous|contiguous_format)))"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        made: dict[str, tuple[str, int]] = {}
        for one in routine.walk():
            for declared in one.declares:
                found = _LIKE.search(declared.value or "")
                if found and found[1] != declared.name:
                    made[declared.name] = (found[1], declared.line)
        if not made:
            continue
        told: set[str] = set()
        for site in sites(routine):
            for pointer in pointers(site.arguments, locals_of(site)):
                if pointer.tensor not in made or pointer.tensor in told or pointer.way:
                    continue
                model, line = made[pointer.tensor]
                if layout_line(routine, model) is not None or made_here(routine, model):
                    continue
                if layout_line(routine, pointer.tensor) is not None or contiguous_above(tree, routine, model):
                    continue
                told.add(pointer.tensor)
                yield Draft(
                    routine.file,
                    line,
                    f"{pointer.tensor} keeps the strides of {model}, whose layout is not checked, and {site.name} takes"
                    " its pointer",
                    (Related(routine.file, site.line, f"{site.name} is launched here"),),
                    pointer.tensor,
                )


RULE = Rule("like-keeps-strides", "warning", _run)
