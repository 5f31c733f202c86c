"""A Python object handled while the interpreter lock is released.

*Why.* Counting a reference or calling an object without the lock races with every other thread: corruption that shows
much later.

*Flagged*

```cpp
#include <pybind11/pybind11.h>
namespace py = pybind11;
void tell(py::object callback) {
  py::gil_scoped_release release;
  callback(1);  // flagged
}
void each(std::vector<py::object>& callbacks) {
  py::gil_scoped_release release;
  for (auto& callback : callbacks) callback(1);  // flagged
}
void count(PyObject* f) {
  PyThreadState* state = PyEval_SaveThread();
  Py_DECREF(f);  // flagged
  PyEval_RestoreThread(state);
}
```

*Clean*

```cpp
#include <pybind11/pybind11.h>
namespace py = pybind11;
void tell(py::object callback, int n) {
  {
    py::gil_scoped_release release;
    n += 1;
  }
  callback(n);
}
void each(std::vector<py::object>& callbacks, const std::vector<Work>& works) {
  py::gil_scoped_release release;
  for (auto& work : works) work(1);
}
void again(py::object callback) {
  py::gil_scoped_release release;
  py::gil_scoped_acquire acquire;
  callback(1);
}
```

*Use instead.* `py::gil_scoped_acquire` around what touches Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement

_HELD = re.compile(
    r"\b(?:py|pybind11|nb|nanobind)::(?:object|function|list|dict|tuple|str|array|handle|bytes|callable)\b|\bPyObject\b"
)
_TOUCHES = re.compile(
    r"Py_(?:X?DECREF|X?INCREF|CLEAR|BuildValue)|Py(?:Object|Tuple|List|Dict|Long|Float|Unicode|Bytes|Err|Module|Import)_\w+"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        text = " ".join(d.type for one in routine.walk() for d in one.declares)
        released = "gil_scoped_release" in text or any("PyEval_SaveThread" in one.text for one in routine.walk())
        if not released or routine.on_device:
            continue
        names = {p.name for p in routine.parameters if _HELD.search(p.type)}
        names |= {d.name for one in routine.walk() for d in one.declares if _HELD.search(d.type)}
        loops = [one for one in routine.walk() if one.kind == "range for" and one.text.strip() in names]
        names |= {d.name for one in loops for d in one.declares}
        yield from _block(routine, routine.statements, names - {""}, None)


def _block(routine: Routine, statements: Sequence[Statement], names: set[str], since: int | None) -> Iterator[Draft]:
    for one in statements:
        for declared in one.declares:
            if "gil_scoped_release" in declared.type:
                since = one.line
            elif "gil_scoped_acquire" in declared.type:
                since = None
        if "PyEval_SaveThread" in one.text:
            since = one.line
            continue
        if "PyEval_RestoreThread" in one.text or "PyGILState_Ensure" in one.text:
            since = None
            continue
        if since is not None:
            for call in one.calls:
                if _TOUCHES.fullmatch(call.simple) or call.name in names or call.receiver in names:
                    related = (Related(routine.file, since, "the lock is released here"),)
                    said = f"{call.receiver or call.name} is used while the interpreter lock is released"
                    yield Draft(routine.file, call.line, said, related, call.name)
        yield from _block(routine, one.body, names, since)
        yield from _block(routine, one.orelse, names, since)


RULE = Rule("pyobj-without-gil", "error", _run)
