"""An op without a fake implementation: it cannot be traced.

*Why.* `torch.compile` and `torch.export` run ops on tensors without data. An op with neither a Meta implementation nor
a fake fails there, often only on the hardware and shapes that reach it. An op that only writes marked arguments and
returns nothing is traced without one by torch 2.5 and later: it is told where the source does not ask for such a torch.

*Flagged*

```cpp kit.cpp
#include <torch/library.h>
torch::Tensor pack(const torch::Tensor& x) { return x; }
TORCH_LIBRARY(kit, m) {
  m.def("pack(Tensor x) -> Tensor");  // flagged
  m.def("write(Tensor! x) -> ()");  // flagged
  m.impl("pack", torch::kCUDA, &pack);
}
```

*Clean*

```cpp kit.cpp
#include <torch/library.h>
torch::Tensor pack(const torch::Tensor& x) { return x; }
torch::Tensor fold(const torch::Tensor& x) { return x; }
int64_t width() { return 4; }
TORCH_LIBRARY(kit, m) {
  m.def("pack(Tensor x) -> Tensor");
  m.def("fold(Tensor x) -> Tensor");
  m.def("spread(Tensor x) -> Tensor");
  m.def("width() -> int");
  m.impl("pack", torch::kCUDA, &pack);
  m.impl("fold", c10::DispatchKey::CompositeImplicitAutograd, &fold);
  m.impl("spread", torch::kMeta, &fold);
  m.impl("width", c10::DispatchKey::CompositeExplicitAutograd, &width);
}
```

```python fakes.py
import torch

@torch.library.register_fake("kit::pack")
def _(x):
    return x.new_empty(x.shape)
```

*Use instead.* `torch.library.register_fake("ns::op")` in Python, or an implementation for the key `Meta`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.ops import Op

#: The release from which on torch makes up the fake of an op that writes marked arguments and returns nothing.
_TRACES_WRITERS = (2, 5)
#: Keys whose implementation also serves a tensor without data.
_SERVES = ("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


#: Where ops are made up to try something out.
_TEST = re.compile(r"(?:\A|/)(?:tests?/|test_|conftest)")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        if op.kind not in ("torch_library", "python") or op.schema is None or not op.defs or op.fake:
            continue
        if op.kind == "python" and _TEST.search(op.defs[0].file):
            continue
        if not _has_tensor(op) or (not _decorated(tree, op) and _served(op)):
            continue
        returns = any("Tensor" in one.type for one in op.returns)
        writes = not op.returns and any(one.mutated for one in op.arguments)
        if writes and _decorated(tree, op):
            continue  # torch makes up the fake of such an op
        if writes and tree.settings.torch is not None and tree.settings.torch >= _TRACES_WRITERS:
            continue
        yield Draft(
            op.defs[0].file,
            op.defs[0].line,
            f"{op.name} has no fake implementation: {'torch before 2.5' if writes else 'torch'} cannot trace it",
            tuple(Related(one.file, one.line, f"implementation for {one.key}") for one in op.impls[:2]),
            op.name.rsplit("::", 1)[-1],
            "error" if returns else "warning",
            op.name,
        )


def _served(op: Op) -> bool:
    """Whether an implementation also serves a tensor without data."""
    return any(impl.key is None or impl.key in _SERVES for impl in op.impls)


def _decorated(tree: CheckedTree, op: Op) -> bool:
    """Whether an op is a Python function below ``custom_op``, which torch never runs to trace it, whatever its key."""
    if op.kind != "python":
        return False
    at = op.defs[0]
    lines = tree.text(at.file).splitlines()[at.line - 1 : at.line]
    return any(re.match(r"\s*@(?:[\w.]+\.)?custom_op\(", line) for line in lines)


def _has_tensor(op: Op) -> bool:
    return any("Tensor" in one.type for one in (*op.arguments, *op.returns))


RULE = Rule("missing-fake", "error", _run, spread="own")
