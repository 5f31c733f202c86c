"""An op that is defined and, in some build, has no implementation for a device.

*Why.* The op is listed and its calls fail, with "not implemented for CUDA", in the build that left the entry out.

*Flagged*

```cpp
#include <torch/library.h>
torch::Tensor unpack(const torch::Tensor& w) { return w; }
TORCH_LIBRARY(kit, m) {
  m.def("unpack(Tensor w) -> Tensor");  // flagged
#ifdef KIT_HAVE_CUDA
  m.impl("unpack", torch::kCUDA, &unpack);
#endif
  m.impl("unpack", torch::kMeta, &unpack);
  m.def("gone(Tensor w) -> Tensor");  // flagged
  m.impl("gone", torch::kMeta, &unpack);
}
```

*Clean*

```cpp
#include <torch/library.h>
torch::Tensor unpack(const torch::Tensor& w) { return w; }
TORCH_LIBRARY(kit, m) {
  m.def("unpack(Tensor w) -> Tensor");
  m.impl("unpack", torch::kCUDA, &unpack);
  m.def("composed(Tensor w) -> Tensor", &unpack);
#ifndef KIT_SMALL
  m.def("large(Tensor w) -> Tensor");
  m.impl("large", torch::kCUDA, &unpack);
#endif
  m.def("either(Tensor w) -> Tensor");
#ifdef KIT_FAST
  m.impl("either", torch::kCUDA, &unpack);
#else
  m.impl("either", torch::kCUDA, &unpack);
#endif
}
```

*Use instead.* The definition under the same condition as its implementation, or an implementation that says what is
missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.ops import Op
from opwalker.rules._conditions import uncovered

#: Keys that run nothing on a device.
_TRACES = frozenset("Meta FakeTensor Autograd AutogradCUDA AutogradCPU ADInplaceOrView Autocast AutocastCUDA".split())


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        if op.kind != "torch_library" or op.schema is None or not op.defs:
            continue
        if not any("Tensor" in one.type for one in (*op.arguments, *op.returns)):
            continue
        draft = _judged(op)
        if draft is not None:
            yield draft


def _judged(op: Op) -> Draft | None:
    at = op.defs[0]
    real = [one for one in op.impls if one.key not in _TRACES]
    related = tuple(Related(one.file, one.line, f"implementation for {one.key}") for one in op.impls[:4])
    if not real:
        if not op.impls:
            return None  # implemented where this source does not show it: a library that only declares ops
        return Draft(at.file, at.line, f"{op.name} has no implementation for a device", related, _short(op), op=op.name)
    if any(one.condition is None for one in real):
        return None
    missing = uncovered(at.condition, [one.condition for one in real])
    if missing is None:
        return None
    keys = ", ".join(sorted({one.key or "every key" for one in real}))
    return Draft(
        at.file,
        at.line,
        f"{op.name} has no implementation for {keys} when {missing}",
        related,
        _short(op),
        op=op.name,
    )


def _short(op: Op) -> str:
    return op.name.rsplit("::", 1)[-1]


RULE = Rule("def-without-impl", "warning", _run, spread="own")
