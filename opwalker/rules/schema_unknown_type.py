"""A type name in a schema that the schema language does not have.

*Why.* A schema is read when the library is loaded: `int64_t` or `double` in it ends the import.

*Flagged*

```cpp
#include <torch/library.h>
TORCH_LIBRARY(kit, m) {
  m.def("scale(Tensor! out, int64_t rows, double by) -> ()");  // flagged
}
```

*Clean*

```cpp
#include <torch/library.h>
TORCH_LIBRARY(kit, m) {
  m.def("scale(Tensor! out, int rows, float by, __torch__.torch.classes.kit.Plan plan, str? kind=None) -> ()");
}
```

*Use instead.* The schema's own names: `int`, `float`, `str`, `bool`, `Tensor`, `ScalarType`, `Device`, `SymInt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Rule
from opwalker.notation.op_schema import SchemaError, parse_schema


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        for one in op.defs:
            text = one.schema or op.schema
            if text is None or op.kind not in ("torch_library", "python"):
                continue
            try:
                parse_schema(text)
            except SchemaError as error:
                yield Draft(one.file, one.line, f"the schema of {op.name} cannot be read: {error}", op=op.name)


RULE = Rule("schema-unknown-type", "error", _run, spread="own")
