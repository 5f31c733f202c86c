"""A way out of a function on which the interpreter lock that it took is not given back.

*Why.* `PyGILState_Ensure` without its `PyGILState_Release` leaves the lock with a thread that may never run Python
again.

*Flagged*

```cpp
#include <Python.h>
int ask(PyObject* f) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* r = PyObject_CallObject(f, nullptr);
  if (!r) return 1;  // flagged
  Py_DECREF(r);
  PyGILState_Release(state);
  return 0;
}
void forget(PyObject* f) {
  auto state = PyGILState_Ensure();
  Py_DECREF(f);
}  // flagged
```

*Clean*

```cpp
#include <Python.h>
int ask(PyObject* f) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* r = PyObject_CallObject(f, nullptr);
  if (!r) {
    PyGILState_Release(state);
    return 1;
  }
  Py_DECREF(r);
  PyGILState_Release(state);
  return 0;
}
struct Lock {
  PyGILState_STATE state;
  Lock() { state = PyGILState_Ensure(); }
  ~Lock() { PyGILState_Release(state); }
};
```

*Use instead.* An object that releases when it goes (`py::gil_scoped_acquire`), or a release before every return.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Statement

_TAKES, _GIVES = "PyGILState_Ensure", "PyGILState_Release"


class _Held(Struct, frozen=True):
    """The states that are held on a way, with the line each was taken on."""

    states: tuple[tuple[str, int], ...] = ()

    def taken(self, name: str, line: int) -> _Held:
        return _Held((*self.states, (name, line)))

    def given(self, name: str) -> _Held:
        return _Held(tuple(one for one in self.states if one[0] != name))


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        calls = [call.simple for one in routine.walk() for call in one.calls]
        if _TAKES not in calls:
            continue
        # One that keeps its state in a member is half of a pair: the other half is another function.
        own = {d.name for one in routine.walk() for d in one.declares if not d.static}
        takes = [name for one in routine.walk() for name, _ in _taken(one)]
        if own.isdisjoint(takes):
            continue
        left: list[tuple[int, str, int]] = []
        ends = _follow(routine.statements, {_Held()}, left)
        for held in ends:
            left += [(routine.end_line, name, line) for name, line in held.states]
        for line, name, taken in sorted(set(left)):
            yield Draft(
                routine.file,
                line,
                f"{routine.name} is left here without giving back {name}",
                (Related(routine.file, taken, f"{name} is taken here"),),
                name,
            )


def _follow(statements: Sequence[Statement], ways: set[_Held], left: list[tuple[int, str, int]]) -> set[_Held]:
    """The ways that run past ``statements``; those that leave the routine enter what they hold into ``left``."""
    for one in statements:
        if not ways:
            break
        ways = _step(one, ways, left)
    return ways


def _step(one: Statement, ways: set[_Held], left: list[tuple[int, str, int]]) -> set[_Held]:
    for name, line in _taken(one):
        ways = {way.taken(name, line) for way in ways}
    for call in one.calls:
        if call.simple == _GIVES and call.arguments:
            ways = {way.given(call.arguments[0].strip()) for way in ways}
    if one.kind in ("return", "throw"):
        left += [(one.line, name, line) for way in ways for name, line in way.states]
        return set()
    if one.kind in ("if", "if constexpr"):
        return _follow(one.body, ways, left) | _follow(one.orelse, ways, left)
    if one.kind in ("for", "while", "range for", "switch"):
        return ways | _follow(one.body, ways, left)
    if one.kind == "try":
        return _follow(one.body, ways, left) | _follow(one.orelse, ways, left)
    if one.kind == "goto":
        return set()  # where it leads is not followed
    if one.kind in ("do", "block", "case", "label", "catch"):
        return _follow(one.body, ways, left)
    if any(re.fullmatch(r"(?:std::)?(?:exit|abort|_Exit|quick_exit)", call.name) for call in one.calls):
        return set()
    return ways


def _taken(one: Statement) -> Iterator[tuple[str, int]]:
    """The variables that a statement keeps a state in: declared with it, or set to it."""
    yield from ((d.name, d.line) for d in one.declares if d.value and _TAKES in d.value)
    yield from ((a.target.strip(), a.line) for a in one.assigns if _TAKES in a.value)


RULE = Rule("gilstate-unbalanced", "error", _run, spread="own")
