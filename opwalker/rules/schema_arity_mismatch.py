"""A schema with more or fewer arguments than the function bound to it.

*Why.* The mismatch is found only when the library is loaded, and then as a crash inside static initialisation.

*Flagged*

```cpp
#include <torch/library.h>
void blend(const torch::Tensor& a, torch::Tensor& out);
TORCH_LIBRARY(kit, m) {
  m.def("blend(Tensor a, float gain, Tensor! out) -> ()");
  m.impl("blend", torch::kCUDA, &blend);  // flagged
}
```

*Clean*

```cpp
#include <torch/library.h>
void blend(const torch::Tensor& a, double gain, torch::Tensor& out);
void blend(const torch::Tensor& a);
TORCH_LIBRARY(kit, m) {
  m.def("blend(Tensor a, *, float gain, Tensor! out) -> ()");
  m.impl("blend", torch::kCUDA, &blend);
}
```

*Use instead.* One schema argument for each C++ parameter, in the same order, keyword-only ones included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.rules._schemas import Signature, signatures


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        if op.schema is None or not op.defs or op.kind not in ("torch_library", "python"):
            continue
        for impl in op.impls:
            found = signatures(tree, impl)
            counts = {len(one.parameters) for one in found}
            if not found or len(op.arguments) in counts or len(counts) > 1:
                continue
            names = [argument.name for argument in op.arguments]
            yield Draft(
                impl.file,
                impl.line,
                f"the schema of {op.name} has {len(names)} arguments, and {impl.function} takes {counts.pop()}"
                + _unmatched(names, found),
                (
                    Related(op.defs[0].file, op.defs[0].line, f"schema {op.schema}"),
                    Related(found[0].file, found[0].line, f"{impl.function} as declared"),
                ),
                f"{impl.function}".rsplit("::", 1)[-1],
                op=op.name,
            )


def _unmatched(names: Sequence[str], found: Sequence[Signature]) -> str:
    """What has no partner, where names say it."""
    theirs = [name for _, name in found[0].parameters]
    missing = [name for name in names if name not in theirs]
    extra = [name for name in theirs if name not in names]
    if not extra:
        return f": no parameter for {', '.join(missing)}"
    if not missing:
        return f": no argument for {', '.join(extra)}"
    return ""


RULE = Rule("schema-arity-mismatch", "error", _run, spread="own")
