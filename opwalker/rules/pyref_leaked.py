"""A new reference that is not given back on some way out of a function.

*Why.* The object is never freed. On an allocation path that runs for every batch, memory grows without end.

*Flagged*

```cpp
#include <Python.h>
int ask(PyObject* f) {
  PyObject* r = PyObject_CallObject(f, nullptr);
  if (!r || !PyTuple_Check(r)) return 1;  // flagged
  Py_DECREF(r);
  return 0;
}
int sized(PyObject* f, long n) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* b = PyBytes_FromStringAndSize(nullptr, n);
#else
  PyObject* b = PyBytes_FromStringAndSize(nullptr, n + 8);
#endif
  if (n > 64) return -1;  // flagged
  Py_DecRef(b);
  return 0;
}
```

*Clean*

```cpp
#include <Python.h>
PyObject* ask(PyObject* f) {
  PyObject* r = PyObject_CallObject(f, nullptr);
  if (!r) return nullptr;
  return r;
}
int told(PyObject* f) {
  PyObject* r = PyObject_CallObject(f, nullptr);
  if (r == nullptr) return 1;
  if (!PyTuple_Check(r)) {
    Py_DECREF(r);
    return 1;
  }
  Py_DECREF(r);
  return 0;
}
int sized(PyObject* f, long n) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* b = PyBytes_FromStringAndSize(nullptr, n);
  if (b == nullptr) return -1;
#else
  if (n > 64) return -1;
  PyObject* b = PyBytes_FromStringAndSize(nullptr, n + 8);
  if (b == nullptr) return -1;
#endif
  Py_DecRef(b);
  return 0;
}
int kept(PyObject* f, PyObject* list) {
  PyObject* item = PyLong_FromLong(3);
  PyTuple_SetItem(list, 0, item);
  return 0;
}
```

*Use instead.* An owning object (`py::object`), or a `Py_XDECREF` before every return.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Statement

#: Calls that return a new reference.
_NEW = re.compile(
    r"(?:=|\A|\()\s*(?:PyObject_Call\w*|PyObject_GetAttr\w*|PyObject_Str|PyObject_Repr|PyLong_From\w+|PyFloat_From\w+|"
    r"PyUnicode_\w*From\w+|PyBytes_From\w+|PyList_New|PyTuple_New|PyTuple_Pack|PyDict_New|Py_BuildValue|PyImport_Import\w*|"
    r"PySequence_GetItem|PyCapsule_New|PyEval_CallObject\w*)\s*\("
)
_GIVES = re.compile(r"Py_X?DECREF|Py_CLEAR|Py_DecRef")
#: Calls that take a reference over.
_TAKES = re.compile(
    r"PyTuple_(?:SetItem|SET_ITEM)|PyList_(?:SetItem|SET_ITEM)|PyModule_AddObject|steal\w*|reinterpret_steal\w*"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        owned = {
            d.name: d.line
            for one in routine.walk()
            for d in one.declares
            if "PyObject" in d.type and d.value and _NEW.search(d.value)
        }
        for name, line in owned.items():
            left: list[int] = []
            if True in _follow(routine.statements, name, frozenset((False,)), left):
                left.append(routine.end_line)
            for at in sorted(set(left)):
                yield Draft(
                    routine.file, at, f"{name} is not given back on this way out of {routine.name}",
                    (Related(routine.file, line, f"{name} is a new reference"),), name,
                )  # fmt: skip


def _follow(statements: Sequence[Statement], name: str, ways: frozenset[bool], left: list[int]) -> frozenset[bool]:
    """Whether the reference is held on the ways that run past ``statements``. A name that is declared twice in a block
    is so in branches of the preprocessor: to which of them a way out before the last belongs is not told."""
    made = [number for number, one in enumerate(statements) if _makes(one, name)]
    for number, one in enumerate(statements):
        if not ways:
            break
        ways = _step(one, name, ways, left if not made or number >= made[-1] else [])
    return ways


def _makes(one: Statement, name: str) -> bool:
    return any(d.name == name and d.value and _NEW.search(d.value) for d in one.declares)


def _step(one: Statement, name: str, ways: frozenset[bool], left: list[int]) -> frozenset[bool]:
    word = re.compile(rf"\b{re.escape(name)}\b")
    if _makes(one, name):
        return frozenset((True,))
    for call in one.calls:
        if (_GIVES.match(call.simple) or _TAKES.match(call.simple)) and any(word.search(a) for a in call.arguments):
            ways = frozenset((False,))
    if any(word.search(a.value) and a.target != name for a in one.assigns):
        ways = frozenset((False,))  # it is kept somewhere
    if any(d.value and re.fullmatch(rf"[=({{\s]*{re.escape(name)}[)}}\s]*", d.value) for d in one.declares):
        ways = frozenset((False,))  # by another name
    if one.kind == "return":
        if True in ways and not word.search(one.text):
            left.append(one.line)
        return frozenset()
    if one.kind in ("throw", "goto"):
        return frozenset()
    if one.kind in ("if", "if constexpr"):
        none = _is_null(one.text, name)
        taken = frozenset((False,)) if none is True else ways
        other = frozenset((False,)) if none is False else ways
        return _follow(one.body, name, taken, left) | _follow(one.orelse, name, other, left)
    if one.kind in ("for", "while", "range for", "switch"):
        return ways | _follow(one.body, name, ways, left)
    if one.kind in ("do", "block", "case", "label", "try"):
        return _follow(one.body, name, ways, left)
    return ways


def _is_null(text: str, name: str) -> bool | None:
    """True where the branch is taken without an object alone, False where with one alone, None for anything else."""
    plain = text.strip()
    if re.fullmatch(rf"!\s*{name}|{name}\s*==\s*(?:nullptr|NULL|0)|(?:nullptr|NULL)\s*==\s*{name}", plain):
        return True
    if re.fullmatch(rf"{name}|{name}\s*!=\s*(?:nullptr|NULL|0)", plain):
        return False
    return None


RULE = Rule("pyref-leaked", "warning", _run, spread="own")
