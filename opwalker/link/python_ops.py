"""Ops and the Python around them: who calls an op, over two levels, and what Python registers.

In: light facts of all Python files and full facts of those that matter. Out: ``PythonOps``, which answers for any op;
``callers`` and ``python_registrations`` are its answers in one call each. No C++ is looked at here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from opwalker.link.python_flow import Flow
from opwalker.link.python_graph import Graph, Node
from opwalker.link.python_modules import Modules
from opwalker.link.python_register import PythonRegistrations, by_function, registrations
from opwalker.link.python_results import op_names
from opwalker.model.python import PyAlias, PyFacts, PyForeign, PyLight, PyOpCall
from opwalker.model.walk import PythonRef

#: Callers are followed over this many steps above the function that calls the op.
LEVELS = 2


@dataclass(frozen=True, slots=True)
class _Call:
    """A call in a file: of an op where ``target`` is None, else of a function."""

    path: str
    line: int
    function: str | None
    callee: str


class PythonOps:
    """Everything Python says about ops, resolved once."""

    def __init__(
        self, light: Mapping[str, PyLight], full: Mapping[str, PyFacts], modules: Modules | None = None
    ) -> None:
        self.graph = Graph(modules or Modules(light), full)
        flow = Flow(self.graph)
        self.registrations: PythonRegistrations = registrations(flow)
        for path, alias in op_names(flow):
            self.graph.add_alias(path, alias)
        self._ops: dict[str, list[_Call]] = {}
        self._references: dict[str, list[_Call]] = {}
        self._calls: dict[Node, list[_Call]] = {}
        self._collect()
        self._stand_for = by_function(self.registrations)

    def _collect(self) -> None:
        for path, facts in self.graph.full.items():
            for use in facts.op_calls:
                into = self._ops if use.called else self._references
                callee = _spelled(use.namespace, use.op, use.overload)
                call = _Call(path, use.line, use.function, callee)
                into.setdefault(f"{use.namespace}::{use.op}", []).append(call)
            for made in facts.calls:
                call = _Call(path, made.line, made.function, made.callee)
                for meaning in dict.fromkeys(self.graph.meanings(path, made)):
                    if isinstance(meaning, PyAlias):
                        self._through_alias(meaning, call)
                    else:
                        self._calls.setdefault(self._entered(meaning), []).append(call)

    def _entered(self, meaning: Node) -> Node:
        """The function that a call of ``meaning`` enters: a class is entered by its constructor."""
        if meaning.qualname in self.graph.classes(meaning.path):
            found = self.graph.method(meaning.path, meaning.qualname, "__init__")
            return found or meaning
        return meaning

    def _through_alias(self, alias: PyAlias, call: _Call) -> None:
        parts = alias.target.split(".")[2:]
        if len(parts) in (2, 3):
            namespace, op, *overload = parts
            use = PyOpCall(namespace, op, overload[0] if overload else None, call.line, call.function, call.callee)
            spelled = replace(call, callee=_spelled(use.namespace, use.op, use.overload))
            self._ops.setdefault(f"{namespace}::{op}", []).append(spelled)

    def names(self) -> list[str]:
        """The full names of all ops that Python calls, by name."""
        return sorted(self._ops)

    def foreign(self) -> tuple[tuple[str, PyForeign], ...]:
        """``(file, C function)`` of all names that are looked up in C libraries."""
        return tuple((path, one) for path in sorted(self.graph.full) for one in self.graph.full[path].foreign)

    def wrappers(self, namespace: str, op: str) -> tuple[PythonRef, ...]:
        """The functions that call an op, at their definitions; calls outside of functions at their own line."""
        found: dict[PythonRef, None] = {}
        for call in self._ops.get(f"{namespace}::{op}", ()):
            line = self._definition_line(call)
            found[PythonRef(call.path, line or call.line, call.function)] = None
        return tuple(sorted(found, key=_place))

    def references(self, namespace: str, op: str) -> tuple[PythonRef, ...]:
        """Where an op is handed on or stored without being called."""
        uses = self._references.get(f"{namespace}::{op}", ())
        return tuple(sorted((PythonRef(one.path, one.line, one.function, one.callee) for one in uses), key=_place))

    def callers(self, namespace: str, op: str) -> tuple[PythonRef, ...]:
        """The calls of an op, and of the functions that call it, two levels up; by depth, file and line.

        ``line`` is where the call stands. A function that calls the op and is itself called from elsewhere is a
        wrapper: it stands for the op there, and ``line`` is where it is defined; ``call_line`` always is the call's own
        line.
        """
        found: dict[tuple[str, int, str | None], PythonRef] = {}
        reached: set[Node] = set()
        level = list(self._ops.get(f"{namespace}::{op}", ()))
        for depth in range(LEVELS + 1):
            above: dict[Node, None] = {}
            for call in sorted(level, key=lambda one: (one.path, one.line)):
                node = Node(call.path, call.function) if call.function is not None else None
                called = node is not None and bool(self._callers_of(node))
                line = self._definition_line(call) if called and not depth else None
                key = (call.path, line or call.line, call.callee)
                found.setdefault(
                    key, PythonRef(call.path, line or call.line, call.function, call.callee, depth, call.line)
                )
                if node is not None and node not in reached:
                    above[node] = None
            reached |= set(above)
            level = [call for node in above for call in self._callers_of(node)]
        return tuple(sorted(found.values(), key=_place))

    def _callers_of(self, node: Node) -> list[_Call]:
        """The calls of a function: by its name, or as an op that it stands behind."""
        found = list(self._calls.get(node, ()))
        for name in self._stand_for.get((node.path, node.qualname), ()):
            found += self._ops.get(name, ())
        return found

    def _definition_line(self, call: _Call) -> int | None:
        """Where the function around a call is defined: the last definition above the call."""
        if call.function is None:
            return None
        known = self.graph.functions(call.path).get(call.function, ())
        return max((one.line for one in known if one.line <= call.line), default=None)


def _place(reference: PythonRef) -> tuple[int, str, int, int, str]:
    return reference.depth, reference.file, reference.line, reference.call_line or 0, reference.callee or ""


def _spelled(namespace: str, op: str, overload: str | None) -> str:
    return f"torch.ops.{namespace}.{op}" + (f".{overload}" if overload else "")


def callers(
    namespace: str, op: str, light: Mapping[str, PyLight], full: Mapping[str, PyFacts]
) -> tuple[PythonRef, ...]:
    """The calls of one op over two levels: see ``PythonOps.callers``. For several ops, make one ``PythonOps``."""
    return PythonOps(light, full).callers(namespace, op)


def python_registrations(light: Mapping[str, PyLight], full: Mapping[str, PyFacts]) -> PythonRegistrations:
    """All registrations made in Python: see ``PythonRegistrations``."""
    return registrations(Flow(Graph(Modules(light), full)))
