"""Functions that a macro names: ``Tensor EXPORT_NAME(Tensor a) { … }`` in a source that several others include, each
with a name of its own for it.

In: the functions of a tree whose names are object-like macros. Out: by file, a copy of each for every name that some
translation unit gives it, with that unit.
"""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.expand.macros import MacroTable
from opwalker.link.index import Index
from opwalker.model.cpp import Function

_ON_DEVICE = frozenset(("global", "device"))
#: Names of macros that lead from one to the next.
_MAX_STEPS = 16


def named_by_macros(index: Index, macros: MacroTable) -> dict[str, list[Function]]:
    """The host functions whose names are macros, by file, under the names that translation units give them."""
    out: dict[str, list[Function]] = {}
    for name in sorted(index.names_of_kind("macro") & index.names_of_kind("function")):
        events = [event for _, event in index.entries(name, ("macro",), lambda facts: facts.macros)]
        if not any(event.parameters is None and _is_name(event.body) for event in events):
            continue
        for path, function in index.functions(name):
            if function.body_end and not function.class_depth and _ON_DEVICE.isdisjoint(function.flags):
                found = _by_name(index, macros, path, function)
                # What every unit calls the same is like any function of its file.
                out.setdefault(path, []).extend(
                    replace(function, name=made, unit=units[0] if len(found) > 1 else None)
                    for made, units in found.items()
                )
    return {path: functions for path, functions in out.items() if functions}


def _by_name(index: Index, macros: MacroTable, path: str, function: Function) -> dict[str, list[str]]:
    """The units that read a function, by the names that they give it."""
    found: dict[str, list[str]] = {}
    for unit in index.includers(path):
        name = function.name
        for _ in range(_MAX_STEPS):
            choice = macros.lookup(name, path, function.offset, unit)
            if choice is None or choice.event.parameters is not None or not _is_name(choice.event.body):
                break
            name = choice.event.body.strip()
        if name != function.name:
            found.setdefault(name, []).append(unit)
    return found


def _is_name(body: str | None) -> bool:
    return body is not None and body.strip().isidentifier()
