"""An untyped data pointer cast to a fixed element type, with no check of the tensor's type.

*Why.* `data_ptr()` without a type checks nothing. A tensor of another type is read as bytes of the wrong meaning.

*Flagged*

```cuda
#include <torch/all.h>
void run(const float* p);
void twice(const torch::Tensor& x) {
  run(reinterpret_cast<const float*>(x.data_ptr()));  // flagged
  run((const float*)x.const_data_ptr());
}
```

*Clean*

```cuda
#include <torch/all.h>
void run(const float* p);
template <typename T> void typed(const T* p);
void twice(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& z, const torch::Tensor& v,
           const torch::Tensor& w) {
  TORCH_CHECK(x.scalar_type() == at::kFloat, "float");
  run(reinterpret_cast<const float*>(x.data_ptr()));
  run(y.data_ptr<float>());
  for (const torch::Tensor* one : {&v, &w}) TORCH_CHECK(one->scalar_type() == at::kFloat, "float");
  run(reinterpret_cast<const float*>(v.data_ptr()));
  run(reinterpret_cast<const float*>(w.data_ptr()));
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "twice", [&] {
    typed<scalar_t>(reinterpret_cast<const scalar_t*>(z.data_ptr()));
  });
}
```

*Use instead.* `x.data_ptr<float>()`, or a check of `scalar_type()`. Off by default: functions that are reached behind
a check made elsewhere are common."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.model.statements import Routine
from opwalker.rules._tensors import stands_for, tensor_parameters

_FIXED = (
    r"(?:float|double|int|int8_t|int32_t|int64_t|uint8_t|uint32_t|half|__half2?|__nv_bfloat162?|c10::Half|c10::BFloat16|"
    r"at::Half|at::BFloat16)"
)
_POINTER = r"(\w+)\s*(?:\.|->)\s*(?:mutable_|const_)?data_ptr\s*\(\s*\)"
_CAST = re.compile(
    rf"(?:reinterpret_cast|static_cast)<\s*(?:const\s+)?({_FIXED})\s*(?:const\s*)?\*\s*(?:const\s*)?>\s*\(\s*{_POINTER}"
    rf"|\(\s*(?:const\s+)?({_FIXED})\s*(?:const\s*)?\*\s*\)\s*\(?\s*{_POINTER}"
)
_TYPE = (
    r"\b{name}\s*(?:\.|->)\s*(?:scalar_type|dtype|element_size|is_floating_point)\b"
    r"|\b\w*(?:CHECK|check|TYPE|Type|dtype|DTYPE)\w*\s*\([^;]*\b{name}\b"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        tensors = set(tensor_parameters(routine))
        if not tensors or routine.on_device or routine.template is not None:
            continue
        told: set[str] = set()
        for one in routine.walk():
            if one.macro is not None:
                continue  # which type a macro casts to is decided where it is used
            for found in _CAST.finditer(one.text):
                kind, tensor = (found[1], found[2]) if found[1] else (found[3], found[4])
                if tensor not in tensors or tensor in told:
                    continue
                told.add(tensor)
                if not _is_asked(routine, tensor):
                    said = f"the data of {tensor} is read as {kind}, and nothing checks its type"
                    yield Draft(routine.file, one.line, said, symbol=tensor)


def _is_asked(routine: Routine, tensor: str) -> bool:
    for name, statements in stands_for(routine, tensor):
        asked = re.compile(_TYPE.format(name=re.escape(name)))
        if any(asked.search(one.text) for one in statements):
            return True
    return False


RULE = Rule("untyped-pointer-cast", "warning", _run, default=False, spread="own")
