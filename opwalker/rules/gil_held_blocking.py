"""A bound function that blocks while it holds the interpreter lock.

*Why.* No other Python thread runs until it returns. Where it waits for something that another thread does, both wait
for ever.

*Flagged*

```cpp
#include <pybind11/pybind11.h>
namespace py = pybind11;
struct Hub {
  volatile int* seen = nullptr;
  int exchange(int want) {
    while (*seen < want) {}
    return *seen;
  }
};
void drain(cudaStream_t stream) { cudaStreamSynchronize(stream); }
int started(Hub& hub, bool in_background) {
  if (in_background) return 0;
  return hub.exchange(1);
}
int now(Hub& hub) { return started(hub, false); }
PYBIND11_MODULE(kit, m) {
  py::class_<Hub>(m, "Hub").def("exchange", &Hub::exchange);  // flagged
  m.def("now", &now);  // flagged
  m.def("drain", &drain);  // flagged
}
```

*Clean*

```cpp
#include <pybind11/pybind11.h>
namespace py = pybind11;
struct Hub {
  volatile int* seen = nullptr;
  int exchange(int want) {
    while (*seen < want) {}
    return *seen;
  }
  int released(int want) {
    py::gil_scoped_release release;
    while (*seen < want) {}
    return *seen;
  }
  int size() const { return 8; }
  int started(bool wait_for_it) {
    if (!wait_for_it) { return 0; }
    return exchange(1);
  }
  int start() { return started(false); }
};
void order(c10::Stream stream, c10::Event& event) { stream.wait(event); }
PYBIND11_MODULE(kit, m) {
  py::class_<Hub>(m, "Hub")
      .def("exchange", &Hub::exchange, py::call_guard<py::gil_scoped_release>())
      .def("released", &Hub::released)
      .def("size", &Hub::size)
      .def("start", &Hub::start);
  m.def("order", &order);
}
```

*Use instead.* `py::call_guard<py::gil_scoped_release>()` on the binding, or a scoped release around the wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import CallText, Routine, Statement
from opwalker.model.walk import HostRef
from opwalker.rules._bindings import has_call_guard
from opwalker.rules._values import leaves

_WAITS = re.compile(
    r"(?:cuda|hip)(?:StreamSynchronize|DeviceSynchronize|EventSynchronize)|(?:.*::)?(?:join|wait|wait_for|wait_until|recv|"
    r"accept|connect|select|poll|epoll_wait|sleep_for|sleep|usleep|futex)"
)
_OBJECT = re.compile(r"(?i)thread|cond|cv|future|barrier|semaphore|latch|stream|event|work|request")
_HOST_WAITS = re.compile(r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize")
_CALLED = re.compile(r"([A-Za-z_][\w:]*)\s*\(")
_FUTURE = re.compile(r"\bstd::(?:shared_)?future\b")
_TYPE = re.compile(r"\b(?:j?thread|condition_variable(?:_any)?|(?:shared_)?future|barrier|latch|\w*semaphore)\b")
_PLAIN = ("cuda", "hip", "std::this_thread", "recv", "usleep")
_DEVICE = re.compile(r"(?i)stream|event")
_DEEPEST = 5


def _run(tree: CheckedTree) -> Iterator[Draft]:
    told: set[tuple[str, int, str]] = set()
    for op in tree.ops:
        if op.kind not in ("pybind11", "nanobind"):
            continue
        name = op.name.rsplit(".", 1)[-1]
        for impl in op.impls or ():
            key = (impl.file, impl.line, name)  # one binding can stand in several modules
            if impl.host is None or key in told or has_call_guard(tree, impl.file, impl.line, name):
                continue
            routine = tree.routine_at(impl.host.file, impl.host.line)
            way = _blocks(tree, routine, {}, 0, set()) if routine is not None else _in_lambda(tree, impl.host)
            if way is not None:
                told.add(key)
                where = routine.name if routine is not None else "its lambda"
                said = f"{op.name} blocks in {where} while it holds the interpreter lock"
                yield Draft(impl.file, impl.line, said, way, name, op=op.name)


def _in_lambda(tree: CheckedTree, host: HostRef) -> tuple[Related, ...] | None:
    """The steps to a wait from a lambda that is bound where it is written: its text is looked at, and what it calls
    where that can be one function alone."""
    lines = tree.text(host.file).split("\n")[host.line - 1 : host.end_line]
    if any("gil_scoped_release" in line for line in lines):
        return None
    for number, line in enumerate(lines, host.line):
        for found in _CALLED.finditer(line.split("//")[0]):
            simple = found[1].rsplit("::", 1)[-1]
            if _HOST_WAITS.fullmatch(simple):
                return (Related(host.file, number, f"waits here by {found[1]}"),)
            bodies = {(file, one.line) for file, one in tree.functions(simple) if one.is_definition}
            target = tree.routine_at(*next(iter(bodies))) if len(bodies) == 1 else None
            way = _blocks(tree, target, {}, 1, set()) if target is not None else None
            if way is not None:
                return (Related(host.file, number, f"calls {target.name}"), *way)
    return None


def _blocks(
    tree: CheckedTree, routine: Routine, given: Mapping[str, bool], depth: int, seen: set[tuple]
) -> tuple[Related, ...] | None:
    """The steps to a wait that runs with the lock held; ``given`` are parameters whose value the caller fixes."""
    key = (routine.file, routine.line, *sorted(given.items()))
    if key in seen or depth > _DEEPEST or routine.on_device:
        return None
    seen.add(key)
    return _in_block(tree, routine, routine.statements, given, depth, seen)


def _handed(target: Routine, call: CallText, given: Mapping[str, bool]) -> dict[str, bool]:
    """The parameters of a call's target that are a constant ``true`` or ``false`` here."""
    known = {"true": True, "false": False, **given}
    pairs = zip(target.parameters, call.arguments, strict=False)
    return {one.name: known[argument.strip()] for one, argument in pairs if argument.strip() in known}


def _holds(one: Statement, given: Mapping[str, bool]) -> bool | None:
    """Whether a branch is taken, where the given parameters say it."""
    name = one.text.strip().strip("()").strip()
    value = given.get(name.removeprefix("!").strip()) if one.kind in ("if", "if constexpr") else None
    return None if value is None else value != name.startswith("!")


def _in_block(
    tree: CheckedTree,
    routine: Routine,
    statements: Sequence[Statement],
    given: Mapping[str, bool],
    depth: int,
    seen: set[tuple],
) -> tuple[Related, ...] | None:
    for one in statements:
        if any("gil_scoped_release" in d.type for d in one.declares) or any(
            "gil_scoped_release" in c.name for c in one.calls
        ):
            return None  # from here on the lock is released
        if any(call.simple in ("PyEval_SaveThread", "Py_BEGIN_ALLOW_THREADS") for call in one.calls):
            return None
        if _spins(one):
            return (Related(routine.file, one.line, f"spins here: `{one.text[:60]}`"),)
        for call in one.calls:
            if _WAITS.fullmatch(call.name) and (call.receiver is None or _waits(tree, routine, call.receiver)):
                if call.arguments and _DEVICE.search(call.receiver or ""):
                    continue  # one stream is told to wait for another: the host goes on
                # Of plain functions, only those whose name can mean nothing else.
                if call.receiver is not None or call.name.startswith(_PLAIN):
                    return (Related(routine.file, call.line, f"waits here by {call.name}"),)
            if call.simple == "get" and not call.arguments and _FUTURE.search(_type_of(tree, routine, call.receiver)):
                return (Related(routine.file, call.line, f"waits here by {call.receiver}.get"),)
            for target in tree.targets(routine, call):
                way = _blocks(tree, target, _handed(target, call, given), depth + 1, seen)
                if way is not None:
                    return (Related(routine.file, call.line, f"calls {target.name}"), *way)
        holds = _holds(one, given)
        for part, taken in ((one.body, holds is not False), (one.orelse, holds is not True)):
            way = _in_block(tree, routine, part, given, depth, seen) if taken else None
            if way is not None:
                return way
            if holds is not None and taken and part and leaves(part):
                return None
    return None


def _waits(tree: CheckedTree, routine: Routine, receiver: str) -> bool:
    """Whether an object is one that is waited for, by its name or by its type."""
    return bool(_OBJECT.search(receiver) or _TYPE.search(_type_of(tree, routine, receiver)))


def _type_of(tree: CheckedTree, routine: Routine, receiver: str | None) -> str:
    """The type of an object that is named: a local, a parameter, a member of the class; empty for others."""
    name = (receiver or "").removeprefix("this->").strip()
    kinds = [d.type for one in routine.walk() for d in one.declares if d.name == name]
    kinds += [one.type for one in routine.parameters if one.name == name]
    owners = tree.classes(routine.scope[-1]) if routine.classes else ()
    kinds += [kind for file, owner in owners for field, kind, _ in tree.fields(file, owner) if field == name]
    return next(iter(kinds), "")


def _spins(one: Statement) -> bool:
    """An empty loop that waits for a value in memory."""
    if one.kind not in ("while", "for", "do"):
        return False
    waits = re.search(r"\*\s*\w|\.load\(|->|\[|volatile", one.text)
    idle = all(
        (held.kind in ("block",) and not held.body)
        or any(re.search(r"pause|yield|relax|nanosleep", c.name) for c in held.calls)
        for held in one.body
    )
    return bool(waits) and idle and not one.assigns


RULE = Rule("gil-held-blocking", "warning", _run, spread="down")
