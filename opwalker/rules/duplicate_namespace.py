"""Two `TORCH_LIBRARY` blocks for one namespace in sources of one build.

*Why.* A namespace has one primary block in a process. The second one to be loaded ends the import.

*Flagged*

```cpp first.cpp
#include <torch/library.h>
TORCH_LIBRARY(kit, m) { m.def("scale(Tensor! x) -> ()"); }
```

```cpp second.cpp
#include <torch/library.h>
TORCH_LIBRARY(kit, m) { m.def("shift(Tensor! x) -> ()"); }  // flagged
```

*Clean*

```cpp first.cpp
#include <torch/library.h>
#ifdef USE_ROCM
TORCH_LIBRARY(kit, m) { m.def("scale(Tensor! x) -> ()"); }
#else
TORCH_LIBRARY(kit, m) { m.def("scale(Tensor! x) -> ()"); }
#endif
```

```cpp second.cpp
#include <torch/library.h>
TORCH_LIBRARY_FRAGMENT(kit, m) { m.def("shift(Tensor! x) -> ()"); }
```

```cpp packaged/third.cpp
#include <torch/library.h>
TORCH_LIBRARY(parts, m) { m.def("turn(Tensor! x) -> ()"); }
```

```cpp third.cpp
#include <torch/library.h>
TORCH_LIBRARY(parts, m) { m.def("turn(Tensor! x) -> ()"); }
```

*Use instead.* `TORCH_LIBRARY_FRAGMENT` in all files but one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule

_BLOCK = re.compile(r"^[ \t]*(?:STABLE_)?TORCH_LIBRARY(?:_EXPAND)?\s*\(\s*(\w+)\s*,", re.MULTILINE)
#: What a build names anew for each of its modules.
_BY_BUILD = "TORCH_EXTENSION_NAME"
#: The same in Python: a library object that owns its namespace.
_OWNER = re.compile(r"\bLibrary\(\s*[\"'](\w+)[\"']\s*,\s*(?:kind\s*=\s*)?[\"']DEF[\"']")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    files, scripts = tree.files("cuda", "cpp"), tree.files("python")
    if tree.changed is not None and not any(
        "TORCH_LIBRARY" in tree.text(one) or _OWNER.search(tree.text(one)) for one in tree.changed & {*files, *scripts}
    ):
        return
    places: dict[str, list[tuple[str, int]]] = {}
    live = {(one.file, one.line) for op in tree.every_op for one in op.defs if _with_us(one.builds, tree.build)}
    for file in files:
        text = tree.text(file)
        if "TORCH_LIBRARY" not in text:
            continue
        ends = [line for path, line in live if path == file]
        for found in _BLOCK.finditer(text):
            line = text.count("\n", 0, found.end()) + 1
            closing = text.count("\n", 0, _end(text, found.end())) + 1
            # A block that this build does not read defines none of its ops.
            space = _spelt(tree, file, found[1])
            if space != _BY_BUILD and any(line <= one <= closing for one in ends):
                places.setdefault(space, []).append((file, line))
    for file in scripts:
        text = tree.text(file) if places else ""
        for found in _OWNER.finditer(text):
            # Scripts alone may be run one at a time; beside a block in C++ they load it.
            if found[1] in places and not text[text.rfind("\n", 0, found.start()) + 1 :].lstrip().startswith("#"):
                places[found[1]].append((file, text.count("\n", 0, found.end()) + 1))
    for space, held in sorted(places.items()):
        # A script comes after the library that it loads.
        first, *others = sorted(held, key=lambda at: (at[0].endswith(".py"), at))
        for file, line in others:
            if file != first[0] and tree.text(file) != tree.text(first[0]):  # else a copy: one of the two is built
                related = (Related(first[0], first[1], f"{space} has its primary block here"),)
                yield Draft(file, line, f"namespace {space} has a second primary block", related, space)


def _spelt(tree: CheckedTree, file: str, space: str) -> str:
    """A namespace, or what the macro of that name stands for in a file."""
    if space == _BY_BUILD:
        return space
    for path in tree.included(file):
        for macro in tree.macros(path):
            if macro.name == space and macro.parameters is None and re.fullmatch(r"\s*\w+\s*", macro.body or ""):
                return (macro.body or "").strip()
    return space


def _with_us(builds: tuple[str, ...] | None, build: str) -> bool:
    return builds is None or build in builds


def _end(text: str, at: int) -> int:
    """Where the block behind a position closes."""
    depth = 0
    for number in range(text.find("{", at), len(text)):
        depth += (text[number] == "{") - (text[number] == "}")
        if depth == 0:
            return number
    return len(text)


RULE = Rule("duplicate-namespace", "warning", _run)
