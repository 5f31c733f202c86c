"""An implementation for a name that nothing defines.

*Why.* The dispatcher keeps it for a definition that never comes: the op does not exist, and a misspelt name looks like
a missing one.

*Flagged*

```cpp
#include <torch/library.h>
void scale(torch::Tensor& x) {}
TORCH_LIBRARY(kit, m) { m.def("scale(Tensor! x) -> ()"); }
TORCH_LIBRARY_IMPL(kit, CUDA, m) {
  m.impl("scale", &scale);
  m.impl("scales", &scale);  // flagged
}
```

*Clean*

```cpp
#include <torch/library.h>
void scale(torch::Tensor& x) {}
TORCH_LIBRARY(kit, m) { m.def("scale(Tensor! x) -> ()"); }
TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) { m.impl("add.Tensor", &scale); }
```

```cpp elsewhere.cpp
#include <torch/library.h>
void scale(torch::Tensor& x) {}
void other(torch::Tensor& x) {}
TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("other(Tensor! x) -> ()");
  m.impl("other", &other);
}
TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("scale", &scale); }
```

*Use instead.* The name as the definition spells it, or a definition.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.ops import Op
from opwalker.rules._conditions import uncovered


def _run(tree: CheckedTree) -> Iterator[Draft]:
    defined = {op.name: op for op in tree.every_op if op.defs}
    spaces = {name.partition("::")[0] for name in defined}
    for op in tree.ops:
        space, colons, short = op.name.partition("::")
        if op.defs and op.kind == "torch_library":
            yield from _alone(op, short)
        # Of a namespace that this source defines nothing in, the definitions are elsewhere.
        if op.defs or not colons or space not in spaces or op.kind not in ("torch_library", "python"):
            continue
        # A namespace that the build names: the definition may be of it, under the name that it has there.
        if space.isupper() and any(name.endswith(f"::{short}") for name in defined):
            continue
        known = [name.partition("::")[2] for name in defined if name.startswith(f"{space}::")]
        near = difflib.get_close_matches(short, known, n=1, cutoff=0.8)
        hint, related = "", ()
        if near:
            hint = f"; {space}::{near[0]} is"
            at = defined[f"{space}::{near[0]}"].defs[0]
            related = (Related(at.file, at.line, f"{space}::{near[0]} is defined here"),)
        for impl in op.impls:
            yield Draft(impl.file, impl.line, f"{op.name} is not defined{hint}", related, short, op=op.name)


def _alone(op: Op, short: str) -> Iterator[Draft]:
    """Implementations that some build compiles without the definition that stands in the same file."""
    for impl in op.impls:
        beside = [one for one in op.defs if one.file == impl.file]
        if len(beside) != len(op.defs) or any(one.condition is None for one in beside):
            continue
        missing = uncovered(impl.condition, [one.condition for one in beside])
        if missing is not None:
            related = (Related(beside[0].file, beside[0].line, f"{op.name} is defined here"),)
            yield Draft(impl.file, impl.line, f"{op.name} is not defined when {missing}", related, short, op=op.name)


RULE = Rule("impl-without-def", "error", _run)
