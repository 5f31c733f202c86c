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

from msgspec.structs import replace

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement
from opwalker.rules._bindings import has_call_guard

_HELD = re.compile(
    r"\b(?:py|pybind11|nb|nanobind)::(?:object|function|list|dict|tuple|str|array|handle|bytes|callable)\b|\bPyObject\b"
)
_TOUCHES = re.compile(
    r"Py_(?:X?DECREF|X?INCREF|CLEAR|BuildValue)|Py(?:Object|Tuple|List|Dict|Long|Float|Unicode|Bytes|Err|Module|Import)_\w+"
)


_ACQUIRES = re.compile(r"gil_scoped_acquire|PyGILState_Ensure")
#: What starts a thread, which has no lock of its own.
_THREAD = re.compile(r"\bstd::j?thread\b|\bstd::async\b")
_DEEPEST = 3


def _run(tree: CheckedTree) -> Iterator[Draft]:
    yield from _guarded(tree)
    for routine in tree.routines:
        yield from _in_threads(routine)
        text = " ".join(d.type for one in routine.walk() for d in one.declares)
        released = "gil_scoped_release" in text or any("PyEval_SaveThread" in one.text for one in routine.walk())
        if not released or routine.on_device:
            continue
        names = _objects(routine)
        loops = [one for one in routine.walk() if one.kind == "range for" and one.text.strip() in names]
        names |= {d.name for one in loops for d in one.declares}
        yield from _block(routine, routine.statements, names - {""}, None)


def _objects(routine: Routine) -> set[str]:
    """The parameters and locals of a routine that are Python objects."""
    names = {p.name for p in routine.parameters if _HELD.search(p.type)}
    return names | {d.name for one in routine.walk() for d in one.declares if _HELD.search(d.type)}


def _in_threads(routine: Routine) -> Iterator[Draft]:
    """What a thread that a routine starts does with Python objects, where it takes no lock."""
    for one in () if routine.on_device else routine.walk():
        if one.lambdas and _THREAD.search(" ".join((one.text, *(d.type for d in one.declares)))):
            for held in one.lambdas:
                for draft in _block(routine, held.body, _objects(routine) - {""}, one.line):
                    related = (Related(routine.file, one.line, "a thread that holds no lock is started here"),)
                    said = f"{draft.symbol} is used in a thread without the lock"
                    yield replace(draft, message=said, related=related)


def _guarded(tree: CheckedTree) -> Iterator[Draft]:
    """Python objects that are used below a binding whose call guard releases the lock."""
    told: set[tuple[str, int]] = set()
    for op in tree.every_op:  # what several reach is told of the first
        if op.kind not in ("pybind11", "nanobind"):
            continue
        for impl in op.impls or ():
            name = op.name.rsplit(".", 1)[-1]
            if impl.host is None or not has_call_guard(tree, impl.file, impl.line, name):
                continue
            routine = tree.routine_at(impl.host.file, impl.host.line)
            if routine is None:
                continue
            at = Related(impl.file, impl.line, f"the call guard of {op.name} releases the lock")
            for draft in _below(tree, routine, impl.line, 0):
                if (draft.file, draft.line) not in told:
                    told.add((draft.file, draft.line))
                    yield replace(draft, related=(at,), op=op.name)


def _below(tree: CheckedTree, routine: Routine, since: int, depth: int) -> Iterator[Draft]:
    """The uses of Python objects in a routine and in what it calls, where nothing takes the lock."""
    if depth > _DEEPEST or any(_ACQUIRES.search(d.type) for one in routine.walk() for d in one.declares):
        return
    if any(_ACQUIRES.search(call.name) for one in routine.walk() for call in one.calls):
        return
    members = set()
    for file, made in tree.classes(routine.scope[-1]) if routine.classes else ():
        members |= {name for name, kind, _ in tree.fields(file, made) if _HELD.search(kind)}
    yield from _block(routine, routine.statements, (_objects(routine) | members) - {""}, since)
    for one in routine.walk():
        for call in one.calls:
            for target in tree.targets(routine, call):
                if target is not routine:
                    yield from _below(tree, target, since, depth + 1)


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
                    yield Draft(routine.file, call.line, said, related, call.receiver or call.name)
        yield from _block(routine, one.body, names, since)
        yield from _block(routine, one.orelse, names, since)


RULE = Rule("pyobj-without-gil", "error", _run, spread="down")
