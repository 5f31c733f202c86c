"""A declaration and its definition that name the same parameters in another order.

*Why.* The types agree, so nothing complains. Callers go by the header, and two sizes change places.

*Flagged*

```cpp kit.h
void launch(float* x, int rows, int cols);
```

```cpp kit.cpp
#include "kit.h"
void launch(float* x, int cols, int rows) {}  // flagged
```

*Clean*

```cpp kit.h
void launch(float* x, int rows, int cols);
void scale(float* x, int n);
void scale(double* x, int n);
```

```cpp kit.cpp
#include "kit.h"
void launch(float* x, int rows, int num_cols) {}
void scale(float* y, int count) {}
```

*Use instead.* One order; a compiler checks it where sizes have types of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        names = [one.name for one in routine.parameters if one.name]
        if len(names) < 2 or routine.on_device:
            continue
        short = routine.name.rsplit("::", 1)[-1]
        for file, function in tree.functions(short):
            if (
                function.body_end
                or function.qualified_name != routine.name
                or len(function.parameters) != len(routine.parameters)
            ):
                continue
            theirs = [one.name for one in function.parameters if one.name]
            kinds = [_bare(one.type) for one in function.parameters]
            if kinds != [_bare(one.type) for one in routine.parameters]:
                continue
            if theirs != names and sorted(theirs) == sorted(names) and len(set(names)) == len(names):
                swapped = [name for name, other in zip(names, theirs, strict=True) if name != other]
                said = f"{routine.name} takes {', '.join(swapped)} in another order than its declaration"
                yield Draft(
                    routine.file, routine.line, said, (Related(file, function.line, "declared here"),), swapped[0]
                )
                break


def _bare(kind: str) -> str:
    return "".join(kind.replace("const", " ").split())


RULE = Rule("decl-def-param-order", "error", _run, spread="own")
