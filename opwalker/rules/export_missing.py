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

```cpp built.cpp
#include <pybind11/pybind11.h>
int add(int a, int b);
PYBIND11_MODULE(_built, m) {
  m.def("add", &add);
  // m.def("less", &add);
#if 0
  m.def("more", &add);
#endif
}
```

```python calls.py
from kit import _built
import kit._built as ext

def step(n):
    _built.less(n, 1)  # flagged
    return _built.add(n, 1) + _built.more(n, 1)  # flagged

def other(n):
    return ext.sub(n, 1)  # flagged

def handed(built, n):
    return built.add(n, 1) + built.less(n, 1)  # flagged
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

```cpp built.cpp
#include <pybind11/pybind11.h>
int add(int a, int b);
void more(py::module_& m) { export_as(m, "mul", &add); }
PYBIND11_MODULE(_built, m) {
#ifdef WITH_SUB
  m.def("sub", &add);
#endif
  m.def("add", &add);
  py::class_<Hub>(m, "Hub").def("run", &Hub::run);
  more(m);
}
PYBIND11_MODULE(named, m) { m.def("add", &add); }
```

```python kit/named.py
def other(n):
    return n
```

```python calls.py
from kit import _built, named, plain

def step(n, ops):
    _built.Hub(n).run()
    ops._built.gone(n)
    plain.gone(n)
    named.other(n)
    print(_built.__file__.lower(), _built.__dir__())
    return _built.add(n, 1) + _built.sub(n, 1) + _built.mul(n, 2)
```

```python broken.py
from kit import _built
_built.gone(
```

*Use instead.* The export, live, under the name that is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from opwalker.model.check import CheckedTree, Draft, Related, Rule

#: An export in a comment: its macro or method, and the exported name.
_EXPORT = re.compile(r"TVM_FFI_DLL_EXPORT\w*\s*\(\s*(\w+)|\bm\s*\.\s*def\s*\(\s*\"(\w+)\"")
_DEFINES = re.compile(r"\.\s*def\s*\(")
_DEAD = re.compile(
    r"^[ \t]*#[ \t]*if[ \t]+0\b(?:(?!^[ \t]*#[ \t]*if).)*?^[ \t]*#[ \t]*(?:endif|else)\b", re.DOTALL | re.MULTILINE
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    callers = tree.files("python")
    if tree.changed is not None and not _dead(tree, sorted(tree.changed.intersection(tree.files("cuda", "cpp")))):
        callers = [file for file in callers if file in tree.changed]
    if not callers:
        return
    dead = _dead(tree, tree.files("cuda", "cpp"))
    live = {op.name.rsplit(".", 1)[-1].rsplit("::", 1)[-1] for op in tree.every_op if op.defs or op.impls}
    missing = {name: at for name, at in dead.items() if name not in live}
    exports = _exports(tree)
    unknown: list[tuple[str, int, str, str]] = []
    for file in callers:
        text = tree.text(file)
        if any(name in text for name in missing):
            yield from _uses(file, text, missing, live)
        if any(name in text for name in exports):
            for node, name, module in _unknown(tree, text, exports):
                if name not in missing and name not in live:  # others are told already, or exported
                    unknown.append((file, node.lineno, name, module))
    quoted = _quoted(tree, {name for _, _, name, _ in unknown})
    for file, line, name, module in unknown:
        # One in quotes may be exported in a way that is not known here.
        if name not in quoted:
            said = f"{name} is called on the built module {module}, which does not export it"
            yield Draft(file, line, said, (), name)


def _dead(tree: CheckedTree, files: Iterable[str]) -> dict[str, tuple[str, int]]:
    """The exports that stand in comments of some files, each with the first place."""
    out: dict[str, tuple[str, int]] = {}
    for file in files:
        text = tree.text(file)
        if "EXPORT" not in text and not _DEFINES.search(text):
            continue
        for comment in _COMMENT.finditer(text):
            for found in _EXPORT.finditer(comment.group()):
                line = text.count("\n", 0, comment.start() + found.start()) + 1
                out.setdefault(found[1] or found[2], (file, line))
    return out


class _Module(Struct):
    """A built module: what it exports, and the modules that it is a part of."""

    names: set[str]
    within: set[str]


def _exports(tree: CheckedTree) -> dict[str, _Module]:
    """The built modules of pybind11 and nanobind by the last part of their names. A module of Python with that name
    may stand in its place: then nothing is said."""
    out: dict[str, _Module] = {}
    for op in tree.every_op:
        if op.kind in ("pybind11", "nanobind"):
            for parent, module, name in zip(["", *(parts := op.name.split("."))], parts, parts[1:], strict=False):
                held = out.setdefault(module, _Module(set(), set()))
                held.names.add(name)
                held.within.add(parent)
    python = {re.split(r"[/.]", f"/{file}")[-2] for file in tree.files("python")}
    return {module: held for module, held in out.items() if module not in python}


def _quoted(tree: CheckedTree, names: Collection[str]) -> set[str]:
    """Those of some names that stand in quotes in what the build reads."""
    out: set[str] = set()
    for file in tree.files("cuda", "cpp") if names else ():
        text = tree.text(file)
        held = {name for name in names if f'"{name}"' in text}
        live = _DEAD.sub("", _COMMENT.sub("", text)) if held - out else ""
        out |= {name for name in held if f'"{name}"' in live}
    return out


def _unknown(tree: CheckedTree, text: str, exports: dict[str, _Module]) -> Iterator[tuple[ast.Call, str, str]]:
    """Calls on an imported module that exports other names alone: the call, the name, the module."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    imported = {
        alias.asname or alias.name: alias.name.rsplit(".", 1)[-1]
        for node in ast.walk(module)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if _may_be_built(tree, node, alias.name, exports)
    }
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            name, held = node.func.attr, imported.get(node.func.value.id, "")
            if held in exports and name not in exports[held].names and not name.startswith("__"):
                yield node, name, held


def _may_be_built(
    tree: CheckedTree, node: ast.Import | ast.ImportFrom, name: str, exports: dict[str, _Module]
) -> bool:  # fmt: skip
    """Whether an import can mean a module that this source builds: by itself, from a package of this source (from any
    where there is none), or from the module that it is a part of. Another package may have one of the same name."""
    *path, last = (*((node.module or "").split(".") if isinstance(node, ast.ImportFrom) else ()), *name.split("."))
    path = [part for part in path if part]
    if last not in exports:
        return False
    if not path or (isinstance(node, ast.ImportFrom) and node.level):
        return True
    if path[-1] in exports[last].within:
        return True
    packages = {folder for file in tree.files("python") for folder in file.split("/")[:-1]}
    return not packages or path[0] in packages


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
