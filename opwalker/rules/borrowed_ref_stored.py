"""A borrowed reference that is kept beyond the call.

*Why.* A borrowed reference belongs to somebody else. Kept without a count of its own, it points to freed memory once
they let go.

*Flagged*

```cpp
#include <Python.h>
static PyObject* g_callback = nullptr;
static PyObject* install(PyObject* self, PyObject* args) {
  PyObject* f = PyTuple_GetItem(args, 0);
  g_callback = f;  // flagged
  return nullptr;
}
static PyObject* first(PyObject* self, PyObject* args) {
  g_callback = PyTuple_GetItem(args, 0);  // flagged
  return nullptr;
}
```

*Clean*

```cpp
#include <Python.h>
static PyObject* g_callback = nullptr;
static PyObject* install(PyObject* self, PyObject* args) {
  PyObject* f = PyTuple_GetItem(args, 0);
  Py_INCREF(f);
  g_callback = f;
  return nullptr;
}
static PyObject* first(PyObject* self, PyObject* args) {
  PyObject* f;
  f = PyTuple_GetItem(args, 0);
  g_callback = PyTuple_GetItem(args, 0);
  Py_XINCREF(g_callback);
  g_callback = Py_NewRef(PyTuple_GetItem(args, 0));
  return f;
}
```

*Use instead.* `Py_INCREF` (or `Py_NewRef`) before it is kept, and a `Py_XDECREF` of what was there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule

_BORROWS = re.compile(
    r"\bPy(?:Tuple|List)_(?:GetItem|GET_ITEM)\s*\(|\bPyDict_GetItem\w*\s*\(|\bPyImport_AddModule\s*\(|\bPyModule_GetDict\s*\("
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        borrowed = {
            d.name: d.line for one in routine.walk() for d in one.declares if d.value and _BORROWS.search(d.value)
        }
        parsed = [
            argument.strip("& ")
            for one in routine.walk()
            for call in one.calls
            if call.simple.startswith("PyArg_Parse")
            for argument in call.arguments[2:]
        ]
        borrowed.update({name: routine.line for name in parsed if name not in borrowed and re.fullmatch(r"\w+", name)})
        local = {d.name for one in routine.walk() for d in one.declares if not d.static}
        local |= {p.name for p in routine.parameters}
        counted = " ".join(
            call.text for one in routine.walk() for call in one.calls if "INCREF" in call.name or "NewRef" in call.name
        )
        for one in routine.walk():
            for assigned in one.assigns:
                value = assigned.value.strip()
                target = re.split(r"\W", assigned.target.strip())[0]
                outside = target not in local or "->" in assigned.target
                if outside and _BORROWS.match(value) and not re.search(rf"\b{re.escape(target)}\b", counted):
                    related = (Related(routine.file, assigned.line, "the reference is borrowed"),)
                    said = f"a borrowed reference is kept by {assigned.target} beyond the call"
                    yield Draft(routine.file, assigned.line, said, related, target)
                names = (value, target)  # counted by either name
                if (
                    value in borrowed
                    and outside
                    and not any(re.search(rf"\b{re.escape(name)}\b", counted) for name in names)
                ):
                    if _is_object(routine, value):
                        related = (Related(routine.file, borrowed[value], f"{value} is borrowed"),)
                        said = f"{value} is borrowed, and {assigned.target} keeps it beyond the call"
                        yield Draft(routine.file, assigned.line, said, related, value)


def _is_object(routine, name: str) -> bool:
    return any(d.name == name and "PyObject" in d.type for one in routine.walk() for d in one.declares)


RULE = Rule("borrowed-ref-stored", "error", _run, spread="own")
