"""A C++ parameter whose type PyTorch does not take for the schema's type.

*Why.* The dispatcher boxes by a fixed table: `int` is `int64_t`, `float` is `double`. Anything else fails to compile
in one place and, through a cast or the stable ABI, reads the wrong bytes in another.

*Flagged*

```cpp
#include <torch/library.h>
void scale(torch::Tensor& out, int rows, float by) {}
TORCH_LIBRARY(kit, m) {
  m.def("scale(Tensor! out, int rows, float by) -> ()");
  m.impl("scale", torch::kCUDA, &scale);  // flagged 2
}
```

*Clean*

```cpp
#include <torch/library.h>
using count_t = int64_t;
void scale(torch::Tensor& out, count_t rows, double by, std::optional<torch::Tensor> x, MyOwnType y) {}
TORCH_LIBRARY(kit, m) {
  m.def("scale(Tensor! out, SymInt rows, float by, Tensor? x, Any y) -> ()");
  m.impl("scale", torch::kCUDA, &scale);
}
```

*Use instead.* `int64_t` for `int`, `double` for `float`, `bool`, `std::string`, `Tensor`, `std::optional<T>` for `T?`,
and a narrowing that is checked inside the function.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.notation.cpp_signature import types_agree
from opwalker.notation.op_schema import SchemaError, parse_schema
from opwalker.notation.schema_text import print_type
from opwalker.rules._schemas import signatures


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for op in tree.ops:
        if op.schema is None or not op.defs:
            continue
        try:
            schema = parse_schema(op.schema)
        except SchemaError:
            continue
        arguments = schema.arguments
        for impl in op.impls:
            found = signatures(tree, impl)
            if len(found) != 1 or len(found[0].parameters) != len(arguments):
                continue
            routine = tree.routine_at(found[0].file, found[0].line)
            if len(schema.returns) == 1:
                kind = schema.returns[0].type
                if types_agree(kind, tree.type_of(found[0].returns, routine)) is False:
                    yield Draft(
                        impl.file,
                        impl.line,
                        f"{op.name} returns {print_type(kind)}, and {impl.function} returns {found[0].returns}",
                        (
                            Related(op.defs[0].file, op.defs[0].line, f"schema {op.schema}"),
                            Related(found[0].file, found[0].line, f"{impl.function} as declared"),
                        ),
                        "return",
                        op=op.name,
                    )
            for argument, (kind, name) in zip(arguments, found[0].parameters, strict=True):
                if types_agree(argument.type, tree.type_of(kind, routine)) is not False:
                    continue
                yield Draft(
                    impl.file,
                    impl.line,
                    f"argument {argument.name} of {op.name} is {print_type(argument.type)}, and {impl.function} takes"
                    f" {kind}",
                    (
                        Related(op.defs[0].file, op.defs[0].line, f"schema {op.schema}"),
                        Related(found[0].file, found[0].line, f"parameter {name}"),
                    ),
                    argument.name,
                    op=op.name,
                )


RULE = Rule("schema-type-mismatch", "error", _run, spread="own")
