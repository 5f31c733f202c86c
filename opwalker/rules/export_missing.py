"""A function that Python calls on a built module, and that no live export names.

*Why.* The contract between a generator in Python and a C++ binding is text. An export that was commented out, or
renamed, is found only when the call is made.

*Flagged*

```cpp bind.cu
int64_t Plan(int64_t n);
int64_t Run(int64_t n);
// TVM_FFI_DLL_EXPORT_TYPED_FUNC(kit_run, Run);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(kit_plan, Plan);
```

```python step.py
def step(mod, n):
    mod.kit_plan(n)
    return mod.kit_run(n)  # flagged
```

*Clean*

```cpp bind.cu
int64_t Plan(int64_t n);
int64_t Run(int64_t n);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(kit_run, Run);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(kit_plan, Plan);
// TVM_FFI_DLL_EXPORT_TYPED_FUNC(old_run, Run);
```

```python step.py
def step(mod, n):
    mod.kit_plan(n)
    return mod.kit_run(n)
```

*Use instead.* The export, live, under the name that is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule

#: An export in a comment: its macro or method, and the exported name.
_EXPORT = re.compile(r"TVM_FFI_DLL_EXPORT\w*\s*\(\s*(\w+)|\bm\s*\.\s*def\s*\(\s*\"(\w+)\"")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    dead: dict[str, tuple[str, int]] = {}
    for file in tree.files("cuda", "cpp"):
        text = tree.text(file)
        if "EXPORT" not in text and ".def(" not in text.replace(" ", ""):
            continue
        for comment in _COMMENT.finditer(text):
            for found in _EXPORT.finditer(comment.group()):
                line = text.count("\n", 0, comment.start() + found.start()) + 1
                dead.setdefault(found[1] or found[2], (file, line))
    live = {op.name.rsplit(".", 1)[-1].rsplit("::", 1)[-1] for op in tree.ops if op.defs or op.impls}
    missing = {name: at for name, at in dead.items() if name not in live}
    if not missing:
        return
    for file in tree.files("python"):
        text = tree.text(file)
        if not any(name in text for name in missing):
            continue
        yield from _uses(file, text, missing, live)


def _uses(file: str, text: str, missing: dict[str, tuple[str, int]], live: set[str]) -> Iterator[Draft]:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    # What is a module object shows by what else is called on it: a live export.
    modules = {ast.unparse(node.func.value) for node in calls if node.func.attr in live}
    for node in calls:
        name = node.func.attr
        if name in missing and ast.unparse(node.func.value) in modules:
            at = missing[name]
            yield Draft(
                file,
                node.lineno,
                f"{name} is called on a built module, and no live export has that name",
                (Related(at[0], at[1], "the export stands in a comment"),),
                name,
            )


RULE = Rule("export-missing", "error", _run)
