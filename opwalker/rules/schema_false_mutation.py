"""An argument that the schema marks as written, though nothing of its function writes it.

*Why.* A false mark keeps a compiler from reordering or removing the call, and makes it copy its inputs.

*Flagged*

```cuda
#include <torch/library.h>
__global__ void sum_kernel(float* out, const float* in) { out[0] = in[threadIdx.x]; }
void sum(torch::Tensor& out, torch::Tensor& src) {
  sum_kernel<<<1, 32, 0, 0>>>(out.data_ptr<float>(), src.data_ptr<float>());
}
TORCH_LIBRARY(kit, m) {
  m.def("sum(Tensor! out, Tensor! src) -> ()");  // flagged
}
TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("sum", &sum); }
```

```python touch.py
import torch

@torch.library.custom_op(  # flagged
    "kitpy::touch", device_types=("cpu", "cuda"),
    mutates_args="unknown",
)
def touch(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y)
```

*Clean*

```cuda
#include <torch/library.h>
void outside(float* p);
__global__ void sum_kernel(float* out, const float* in) { out[0] = in[threadIdx.x]; }
void sum(torch::Tensor& out, torch::Tensor& src) {
  sum_kernel<<<1, 32, 0, 0>>>(out.data_ptr<float>(), src.data_ptr<float>());
  outside(src.data_ptr<float>());
}
void turn(torch::Tensor& to, const torch::Tensor& from, bool back) {
  const torch::Tensor& target = back ? from : to;
  sum_kernel<<<1, 32, 0, 0>>>(target.data_ptr<float>(), from.data_ptr<float>());
}
TORCH_LIBRARY(kit, m) {
  m.def("sum(Tensor! out, Tensor! src) -> ()");
  m.def("turn(Tensor! to, Tensor from, bool back) -> ()");
}
TORCH_LIBRARY_IMPL(kit, CUDA, m) {
  m.impl("sum", &sum);
  m.impl("turn", &turn);
}
```

```python touch.py
import torch

@torch.library.custom_op("kitpy::touch", mutates_args=("x",))
def touch(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y)

@torch.library.custom_op("kitpy::turned", mutates_args=("x",))
def turned(x: torch.Tensor, mode: str = "unknown") -> None:
    x.neg_()
```

*Use instead.* `Tensor` without a mark for what is only read; the names of what is written instead of
`mutates_args="unknown"`, which marks every tensor. The rule speaks where the source shows every use of the
argument; it is off by default, as a few lines of assembly or a library call hide a write from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._python_writes import only_reads
from opwalker.rules._schemas import bound_pairs
from opwalker.rules._writes import Writes

_UNKNOWN = re.compile(r"\bmutates_args\s*=\s*[\"']unknown[\"']")
#: No definition's call is looked at for longer.
_LINES = 20


def _run(tree: CheckedTree) -> Iterator[Draft]:
    writes = Writes(tree)
    for op in tree.ops:
        if not op.defs:
            continue
        found: dict[str, list[tuple[bool, Related]]] = {}
        for _, routine in tree.implementations(op):
            for argument, parameter in bound_pairs(op, routine):
                if not argument.mutated or not argument.type.startswith("Tensor"):
                    continue
                verdict = writes.of(routine, parameter.name)
                idle = verdict.write is None and verdict.sure
                at = Related(routine.file, routine.line, f"{routine.name} does not write {parameter.name}")
                found.setdefault(argument.name, []).append((idle, at))
        for impl in op.impls if op.kind == "python" else ():
            for argument in op.arguments if impl.host is not None and impl.host.file.endswith(".py") else ():
                if argument.mutated and argument.type.startswith("Tensor"):
                    idle = only_reads(tree.text(impl.host.file), impl.host.line, argument.name)
                    at = Related(impl.host.file, impl.host.line, f"{impl.function} does not write {argument.name}")
                    found.setdefault(argument.name, []).append((idle, at))
        for at in op.defs:
            text = "".join(tree.text(at.file).splitlines(keepends=True)[at.line - 1 : at.line + _LINES])
            if op.kind == "python" and _UNKNOWN.search(_call(text)):
                said = f'{op.name} marks every tensor as written: mutates_args is "unknown"'
                yield Draft(at.file, at.line, said, (), op.name.rsplit("::", 1)[-1], op=op.name)
                found.clear()  # each of them is said with it
        for name, verdicts in found.items():
            if all(idle for idle, _ in verdicts):
                message = f"{op.name} marks {name} as written, and nothing writes it"
                at = op.defs[0]
                yield Draft(at.file, at.line, message, tuple(one for _, one in verdicts[:3]), name, op=op.name)


def _call(text: str) -> str:
    """The first call of a text, to where its parentheses close."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == ")" and depth <= 0:
            return text[:at]
    return text


RULE = Rule("schema-false-mutation", "info", _run, default=False, spread="own")
