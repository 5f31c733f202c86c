"""An argument that the schema does not mark as written, though its function writes it.

*Why.* A schema without `!` says that the op is free of effects. With `-> ()` a compiler may drop or reorder the call,
because nothing that it returns is used.

*Flagged*

```cuda
#include <torch/library.h>
__global__ void pack_kernel(float* dst, const float* src) { dst[threadIdx.x] = src[threadIdx.x]; }
void pack(torch::Tensor& dst, const torch::Tensor& src) {
  float* target = dst.data_ptr<float>();
  pack_kernel<<<1, 32, 0, 0>>>(target, src.data_ptr<float>());
}
void clear(torch::Tensor& x) { x.zero_(); }
TORCH_LIBRARY(kit, m) {
  m.def("pack(Tensor dst, Tensor src) -> ()");  // flagged
  m.def("clear(Tensor x) -> ()");  // flagged
}
TORCH_LIBRARY_IMPL(kit, CUDA, m) {
  m.impl("pack", &pack);
  m.impl("clear", &clear);
}
```

*Clean*

```cuda
#include <torch/library.h>
__global__ void pack_kernel(float* dst, const float* src) { dst[threadIdx.x] = src[threadIdx.x]; }
void pack(torch::Tensor& dst, torch::Tensor& src) {
  pack_kernel<<<1, 32, 0, 0>>>(dst.data_ptr<float>(), src.data_ptr<float>());
}
torch::Tensor packed(torch::Tensor& src) {
  auto dst = torch::empty_like(src);
  dst.copy_(src);
  return dst;
}
TORCH_LIBRARY(kit, m) {
  m.def("pack(Tensor! dst, Tensor src) -> ()");
  m.def("packed(Tensor src) -> Tensor");
}
TORCH_LIBRARY_IMPL(kit, CUDA, m) {
  m.impl("pack", &pack);
  m.impl("packed", &packed);
}
```

*Use instead.* `Tensor! name`, or `Tensor(a!) name`, for every argument that is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._schemas import bound_pairs
from opwalker.rules._writes import Writes


def _run(tree: CheckedTree) -> Iterator[Draft]:
    writes = Writes(tree)
    for op in tree.ops:
        told: set[str] = set()
        for _, routine in tree.implementations(op):
            for argument, parameter in bound_pairs(op, routine):
                if argument.mutated or argument.name in told or not argument.type.startswith("Tensor"):
                    continue
                if argument.alias is not None or not op.defs:
                    continue
                verdict = writes.of(routine, parameter.name)
                if verdict.write is None:
                    continue
                told.add(argument.name)
                silent = not op.returns and not any(one.mutated for one in op.arguments)
                yield Draft(
                    op.defs[0].file,
                    op.defs[0].line,
                    f"{op.name} writes its argument {argument.name}, and the schema does not mark it",
                    (
                        Related(routine.file, routine.line, f"bound to {routine.name}, parameter {parameter.name}"),
                        Related(verdict.write.file, verdict.write.line, verdict.write.how),
                    ),
                    argument.name,
                    "error" if silent else "warning",
                    op.name,
                )


RULE = Rule("schema-missing-mutation", "error", _run, spread="down")
