"""Ops and the Python around them: who calls an op, over two levels, and what Python registers.

In: what each file says, resolved, and what each registers. Out: ``PythonOps``, which answers for any op. No C++ is
looked at here, and no file alone: what can be settled for one file is ``python_resolved``'s and ``python_register``'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from opwalker.link.python_compiled import imported_modules
from opwalker.link.python_importers import Imports
from opwalker.link.python_modules import Modules
from opwalker.link.python_register import FileRegistrations, by_function, file_registrations, registrations
from opwalker.link.python_resolved import OpUse, Place, Resolved, ResolvedCall, resolve, spelled
from opwalker.link.python_units import Units, flow_face, names_face, paths_digest
from opwalker.link.stamped import Stamped
from opwalker.model.python import COMPILED, PyFacts, PyForeign, PyLight
from opwalker.model.walk import PythonRef

#: Callers are followed over this many steps above the function that calls the op.
LEVELS = 2


class _Call(Struct, frozen=True):
    """A call in a file, of an op or of a function; ``defined`` is the line of the function around it."""

    path: str
    line: int
    function: str | None
    callee: str
    defined: int | None


class PythonOps:
    """Everything Python says about ops."""

    def __init__(
        self,
        resolved: Mapping[str, Resolved],
        registered: Mapping[str, FileRegistrations],
        compiled: Mapping[str, Iterable[str]],
    ) -> None:
        """``compiled`` are the imports of compiled modules by file, as ``python_compiled`` gives them: a file may have
        been read for one that is none any more."""
        self._modules = {path: set(imported_modules(entries)) for path, entries in compiled.items()}
        self._compiled = {module for modules in self._modules.values() for module in modules}
        self.registrations = registrations(registered)
        self._slots: dict[Place, list[str]] = {}
        for path, one in registered.items():
            for name, op in one.names:
                self._slots.setdefault((path, name), []).append(op)
        self._ops: dict[str, list[_Call]] = {}
        self._references: dict[str, list[_Call]] = {}
        self._calls: dict[Place, list[_Call]] = {}
        for path in sorted(resolved):
            for use in resolved[path].uses:
                if use.op.startswith(COMPILED) and use.op.partition("::")[0] not in self._modules.get(path, ()):
                    continue
                into = self._ops if use.called else self._references
                into.setdefault(use.op, []).append(_used(path, use))
            for call in resolved[path].calls:
                self._enter(path, call)
        self._stand_for = by_function(self.registrations)

    def _enter(self, path: str, call: ResolvedCall) -> None:
        made = _Call(path, call.line, call.function, call.callee, call.defined)
        entered: dict[Place | str, None] = {}
        for target in call.targets:
            if target.kind == "op":
                entered[target.name] = None
            elif target.kind == "function":
                # A class is entered by its constructor.
                entered[target.enters or (target.path, target.name)] = None
            else:
                for op in self._slots.get((target.path, target.name), ()):
                    entered[f"{op}.{target.rest}" if target.rest else op] = None
        for one in entered:
            if isinstance(one, str):
                self._through(one, made)
            else:
                self._calls.setdefault(one, []).append(made)

    def _through(self, op: str, call: _Call) -> None:
        """A call of an op that is spelt from ``torch.ops`` on."""
        parts = op.split(".")[2:]
        if len(parts) in (2, 3) and (not parts[0].startswith(COMPILED) or parts[0] in self._compiled):
            callee = spelled(parts[0], parts[1], parts[2] if len(parts) > 2 else None)
            self._ops.setdefault(f"{parts[0]}::{parts[1]}", []).append(replace(call, callee=callee))

    def names(self) -> list[str]:
        """The full names of all ops that Python calls, by name."""
        return sorted(self._ops)

    def wrappers(self, namespace: str, op: str) -> tuple[PythonRef, ...]:
        """The functions that call an op, at their definitions; calls outside of functions at their own line."""
        found: dict[PythonRef, None] = {}
        for call in self._ops.get(f"{namespace}::{op}", ()):
            found[PythonRef(call.path, call.defined or call.line, call.function)] = None
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
        reached: set[Place] = set()
        level = list(self._ops.get(f"{namespace}::{op}", ()))
        for depth in range(LEVELS + 1):
            above: dict[Place, None] = {}
            for call in sorted(level, key=lambda one: (one.path, one.line)):
                node = (call.path, call.function) if call.function is not None else None
                called = node is not None and bool(self._callers_of(node))
                line = call.defined if called and not depth else None
                key = (call.path, call.line, call.callee)
                found.setdefault(
                    key, PythonRef(call.path, line or call.line, call.function, call.callee, depth, call.line)
                )
                if node is not None and node not in reached:
                    above[node] = None
            reached |= set(above)
            level = [call for node in above for call in self._callers_of(node)]
        return tuple(sorted(found.values(), key=_place))

    def _callers_of(self, function: Place) -> list[_Call]:
        """The calls of a function: by its name, or as an op that it stands behind."""
        found = list(self._calls.get(function, ()))
        for name in self._stand_for.get(function, ()):
            found += self._ops.get(name, ())
        return found


def python_ops(light: Stamped[PyLight], full: Stamped[PyFacts]) -> PythonOps:
    """What Python says of ops, worked out from the facts with nothing kept."""
    modules, paths = Modules(light), paths_digest(light)
    resolved: Units[Resolved] = Units(resolve, names_face, None, paths)
    registered: Units[FileRegistrations] = Units(file_registrations, flow_face, None, paths)
    resolved.renew(light, full, lambda: modules)
    registered.renew(light, full, lambda: modules)
    imports = Imports(paths)
    imports.renew(light, modules)
    return PythonOps(resolved.kept.units, registered.kept.units, imports.compiled)


def foreign(full: Mapping[str, PyFacts]) -> tuple[tuple[str, PyForeign], ...]:
    """``(file, C function)`` of all names that are looked up in C libraries."""
    return tuple((path, one) for path in sorted(full) for one in full[path].foreign)


def _used(path: str, use: OpUse) -> _Call:
    return _Call(path, use.line, use.function, use.callee, use.defined)


def _place(reference: PythonRef) -> tuple[int, str, int, int, str]:
    return reference.depth, reference.file, reference.line, reference.call_line or 0, reference.callee or ""
