"""Instances of kernels that are named outside of the bodies of functions: in initialisers, aliases, default arguments.

In: a workbench, and what a build compiles. Out: the instances that initialisers name; and for one kernel, the place
that may compile more of them than were found, in words. What a class template's static members hold is looked up where
they are used (``expand/kernels.py``).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from opwalker.expand.environment import Environment
from opwalker.expand.explicit import Explicit
from opwalker.expand.instances import InstanceReader
from opwalker.expand.mentions import mentions
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.specialised import Specialisations, is_full
from opwalker.expand.terms import Unknown, join_arguments
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import CppFacts, Function
from opwalker.model.reach import Origin
from opwalker.notation.regex import Regex
from opwalker.views.compiled import Compiled

_WORD = Regex(r"[A-Za-z_]\w*")
_LAUNCHED = Regex(r"\b([A-Za-z_]\w*)\s*<<<")
#: Parameters with a default argument, which look like an initialiser where a declaration is not read as one.
_PARAMETERS = Regex(r"\(.*[\w)]\s*=(?!=)", re.DOTALL)


class _Place(Struct, frozen=True):
    """A name with template arguments: where it stands, what in, and in which scope."""

    path: str
    line: int
    holder: str
    written: str
    context: Context


class Outside:
    """Reads what stands outside of functions, each file once."""

    def __init__(self, workbench: Workbench, compiled: Compiled) -> None:
        self._bench = workbench
        self._index = workbench.index
        self._compiled = compiled
        unit = workbench.unit()
        self._unit = unit
        self._reader = InstanceReader(unit.tools, unit.bodies)
        self._places: dict[str, list[_Place]] | None = None

    def kernels(self) -> Iterator[Explicit]:
        """The instances that initialisers of variables name, outside of functions and templates."""
        for found, variable, context, _, written in self._compiled.named(kernels=True):
            inside = _classes(self._index.facts(context.path), variable.offset)
            if _PARAMETERS.match(variable.value or ""):
                continue
            if variable.template is not None or any(c.template for c in inside):
                continue
            for candidate in found:
                if candidate.function.template is None:
                    continue
                one, made = self._reader.written(candidate, Environment(self._unit.tools, context), (written,), found)
                if made.texts or made.reason:
                    origin = Origin("argument", written, context.path, variable.line)
                    yield Explicit(one, {}, "".join(made.texts), made.reason, origin)

    def specialised(self) -> Iterator[Explicit]:
        """The full specialisations of kernels: each is compiled where it is defined, whatever launches it."""
        known = Specialisations(self._unit.tools)
        for path in self._index.paths_with("kernel"):
            for function in self._index.facts(path).functions:
                if "global" not in function.flags or not function.body_end or not is_full(function):
                    continue
                if not self._compiled.is_compiled(path, function):
                    continue
                try:
                    found = known.own(Candidate(path, function))
                except Unknown:
                    continue
                if found is not None:
                    origin = Origin("instantiation", function.qualified_name, path, function.line)
                    yield Explicit(Candidate(path, function), {}, join_arguments(found[1]), None, origin)

    def elsewhere(self, path: str, function: Function, instances: set[str]) -> str | None:
        """A place outside of functions that names an instance of a kernel which was not found, in words."""
        if self._places is None:
            self._places = self._read()
        for place in self._places.get(function.name, ()):
            if path != place.path and path not in self._index.closure(place.context.root):
                continue
            environment = Environment(self._unit.tools, place.context)
            given = (place.written,) if place.written else ()
            _, made = self._reader.written(Candidate(path, function), environment, given)
            if not made.texts or not instances.issuperset(made.texts):
                return f"{place.holder} ({place.path}:{place.line}) names it too, and what that compiles is not known"
        return None

    def _read(self) -> dict[str, list[_Place]]:
        out: dict[str, list[_Place]] = {}
        named = self._in_variables()
        for path, root in self._compiled.read_files():
            view, facts = self._bench.files.view(path), self._index.facts(path)
            plain, names = view.blanked.plain, self._index.names_of_kind("kernel")
            functions = sorted(facts.functions, key=lambda f: f.offset)
            starts = [f.offset for f in functions]
            launched = [(m[1], m.start(1), ()) for m in _LAUNCHED.finditer(plain)] + mentions(plain, launched=True)
            lambdas = {start for _, start, _ in launched}
            for name, start, given in (*mentions(plain), *launched):
                simple = name.rsplit("::", 1)[-1]
                if simple not in names or plain[:start].rstrip().endswith(("using", "class", "struct", "template")):
                    continue
                if any(f.body_start < start < f.body_end for f in (*functions, *facts.invocations)):
                    continue
                terms = view.conditionals.conditions[view.conditionals.at(start)]
                if terms and self._unit.resolver.holds(path, terms, start) is False:
                    continue
                around = functions[bisect_right(starts, start) - 1] if starts and starts[0] <= start else None
                held = self._holder(facts, plain, start, around, named)
                if start in lambdas:
                    held = "a lambda outside of functions", held[1] if held is not None else ()
                if held is not None:
                    holder, scope = held
                    written = ", ".join(plain[a:b].strip() for a, b in given)
                    place = _Place(path, view.blanked.line(start), holder, written, Context(path, root, scope))
                    out.setdefault(simple, []).append(place)
        return out

    def _in_variables(self) -> frozenset[str]:
        """The words of all initialisers outside of functions and class templates."""
        out: set[str] = set()
        for path, _ in self._compiled.read_files():
            facts = self._index.facts(path)
            for variable in facts.variables:
                if variable.value and not any(c.template for c in _classes(facts, variable.offset)):
                    out.update(_WORD.findall(variable.value))
        return frozenset(out)

    @staticmethod
    def _holder(facts: CppFacts, plain: str, start: int, before: Function | None, named: frozenset[str]):
        """What a name stands in, and its scope; None for a variable that is read where it is used."""
        if before is not None and (start < before.body_start or not before.body_end):
            between = plain[before.offset : start]
            if ";" not in between and "}" not in between:
                return f"the head of {before.qualified_name}", before.scope
        inside = _classes(facts, start)
        scope = (*inside[-1].scope, inside[-1].name) if inside else ()
        for variable in facts.variables:
            if variable.value and variable.offset <= start <= variable.offset + len(variable.value) + 200:
                if ";" in plain[variable.offset : start] or _PARAMETERS.match(variable.value):
                    continue
                static = "static" in variable.type or not inside or variable.constant
                generic = any(c.template for c in inside)
                if (static and variable.name not in named) or not generic:
                    return None
                return f"the member {variable.name} of a class template", scope
        alias = any(a.offset <= start and ";" not in plain[a.offset : start] for a in facts.aliases)
        return "an alias" if alias else "a declaration outside of functions", scope


def _classes(facts: CppFacts, offset: int):
    """The classes around a place, the outermost first."""
    return [c for c in facts.classes if c.body_start < offset < c.body_end]
