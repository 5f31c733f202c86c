"""A stride that is worked out from sizes, of a tensor whose layout nobody checked.

*Why.* `x.size(1) * x.size(2)` is the stride of dimension 0 of a dense tensor alone.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void turn_kernel(float* q, int64_t stride) { q[blockIdx.x * stride] = 0; }
void turn(torch::Tensor& q, cudaStream_t stream) {
  const int64_t row_stride = q.size(1) * q.size(2);  // flagged
  turn_kernel<<<4, 128, 0, stream>>>(q.data_ptr<float>(), row_stride);
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void turn_kernel(float* q, int64_t stride) { q[blockIdx.x * stride] = 0; }
void turn(torch::Tensor& q, cudaStream_t stream) {
  TORCH_CHECK(q.is_contiguous(), "dense");
  const int64_t row_stride = q.size(1) * q.size(2);
  turn_kernel<<<4, 128, 0, stream>>>(q.data_ptr<float>(), row_stride);
}
void asked(torch::Tensor& q, cudaStream_t stream) {
  const int64_t row_stride = q.stride(0);
  const int64_t elements = q.size(1) * q.size(2);
  turn_kernel<<<4, 128, 0, stream>>>(q.data_ptr<float>(), row_stride + elements);
}
```

*Use instead.* `x.stride(0)`, or a check that the tensor is contiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.rules._tensors import contiguous_above, layout_line, tensor_parameters

_NAMED = re.compile(r"(?i)stride|pitch\Z|\Ald[a-z]?\Z|leading_dim")
_SIZE = re.compile(r"\b(\w+)\s*(?:\.|->)\s*size\s*\(")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        tensors = set(tensor_parameters(routine))
        if not tensors or routine.on_device:
            continue
        for one in routine.walk():
            for declared in one.declares:
                value = declared.value or ""
                if not _NAMED.search(declared.name) or "stride(" in value:
                    continue
                for tensor in dict.fromkeys(found[1] for found in _SIZE.finditer(value)):
                    if tensor in tensors and layout_line(routine, tensor) is None:
                        if not contiguous_above(tree, routine, tensor):
                            said = f"{declared.name} is worked out from sizes of {tensor}, whose layout is not checked"
                            yield Draft(routine.file, declared.line, said, symbol=declared.name)


RULE = Rule("derived-stride", "warning", _run)
