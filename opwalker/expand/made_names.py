"""Functions that a macro names: ``Tensor EXPORT_NAME(Tensor a) { … }`` in a source that several others include, each
with a name of its own for it, and ``__global__ void NAMED(scale)(float* x) { … }``.

In: the functions of a tree whose written names are macros. Out: by file, a copy of each for every name that some
translation unit gives it, with that unit, and the places of those that no unit knows by the name that is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.macros import MacroChoice, MacroTable
from opwalker.expand.preprocess import Preprocessor
from opwalker.expand.resolve import is_header
from opwalker.facts.cpp_functions import placed_parameters
from opwalker.facts.cpp_heads import parse_function
from opwalker.facts.cpp_text import negated
from opwalker.link.index import Index
from opwalker.model.cpp import Function

#: Names of macros that lead from one to the next.
_MAX_STEPS = 16


class Named(Struct, frozen=True):
    """The functions of a file under the names that macros give them; ``instead`` are the offsets of those that no unit
    knows by the name that stands there."""

    functions: tuple[Function, ...]
    instead: tuple[int, ...]


def named_by_macros(index: Index, macros: MacroTable, preprocessor: Preprocessor) -> dict[str, Named]:
    """The functions whose names are macros, by file, under the names that translation units give them."""
    reader = _Reader(index, macros, preprocessor)
    found: dict[str, list[tuple[Function, Mapping[Function, list[str]]]]] = {}
    written = index.names_of_kind("function") | index.names_of_kind("kernel")
    for name in sorted(index.names_of_kind("macro") & written):
        events = [event for _, event in index.entries(name, ("macro",), lambda facts: facts.macros)]
        if not any(event.body and (event.parameters is not None or _is_name(event.body)) for event in events):
            continue
        for path, function in index.functions(name):
            if function.body_end and not function.class_depth:
                found.setdefault(path, []).append((function, reader.by_name(path, function)))
    out = {path: _of_file(named) for path, named in found.items()}
    return {path: named for path, named in out.items() if named.functions}


def _of_file(found: list[tuple[Function, Mapping[Function, list[str]]]]) -> Named:
    functions: list[Function] = []
    instead: list[int] = []
    for function, names in found:
        made = {one: units for one, units in names.items() if one != function}
        # What every unit calls the same is like any function of its file.
        functions += [replace(one, unit=units[0] if len(made) > 1 else None) for one, units in made.items()]
        if made and len(made) == len(names):
            instead.append(function.offset)
    return Named(tuple(functions), tuple(instead))


class _Reader:
    def __init__(self, index: Index, macros: MacroTable, preprocessor: Preprocessor) -> None:
        self._index = index
        self._macros = macros
        self._preprocessor = preprocessor

    def by_name(self, path: str, function: Function) -> dict[Function, list[str]]:
        """What each unit that reads a function takes it for, with these units."""
        found: dict[Function, list[str]] = {}
        readers = self._index.includers(path)
        # A header that no unit includes is read as it stands.
        for unit in [one for one in readers if not is_header(one)] or readers:
            found.setdefault(self._in_unit(path, function, unit), []).append(unit)
        return found

    def _in_unit(self, path: str, function: Function, unit: str) -> Function:
        name = function.name
        for _ in range(_MAX_STEPS):
            choice = self._macros.lookup(name, path, function.offset, unit)
            if choice is None or self._excludes(path, function, choice):
                break
            if choice.event.parameters is not None:
                return self._expanded(path, function, unit)
            if not _is_name(choice.event.body):
                break
            name = choice.event.body.strip()
        return replace(function, name=name) if name != function.name else function

    def _excludes(self, path: str, function: Function, choice: MacroChoice) -> bool:
        """Whether a macro stands in another branch of the ``#if`` that the function stands in."""
        if choice.path != path:
            return False
        conditions = self._index.facts(path).conditions
        ours, theirs = conditions[function.condition], conditions[choice.event.condition]
        return any(negated(term) in ours for term in theirs) or any(negated(term) in theirs for term in ours)

    def _expanded(self, path: str, function: Function, unit: str) -> Function:
        """A function whose name, and perhaps its parameters, a macro with arguments makes."""
        text = "void " + self._preprocessor.span(path, function.offset, function.body_start, unit).full
        head = parse_function(text, None)
        if head is None or head.name == function.name or head.name in self._index.names_of_kind("macro"):
            return function
        listed = head.parameters_start, head.parameters_end
        parameters = placed_parameters(text, listed, function.offset, function.body_start)
        scope = (*function.scope, *head.qualifiers)
        return replace(function, name=head.name, scope=scope, parameters=parameters)


def _is_name(body: str | None) -> bool:
    return body is not None and body.strip().isidentifier()
