"""The way of calls to a place, as values: what the parameters of a function far down are at the host function.

In: the functions that a walk entered, with their steps. Out: ``Values`` of the function in which a step ends, joined to
those of its callers. Where a caller's calls of a function differ, a parameter is each of the values that they give it.
"""

from __future__ import annotations

from opwalker.expand.bodies import Body
from opwalker.expand.configuration import TOOLCHAIN
from opwalker.expand.frames import unit_of
from opwalker.expand.macros import KNOWN
from opwalker.expand.resolve import Candidate
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.body import CallFact
from opwalker.model.cpp import Function
from opwalker.model.reach import Reach
from opwalker.model.walk import PathStep
from opwalker.notation.condition_parse import parse_condition
from opwalker.notation.condition_terms import names_of
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression
from opwalker.notation.regex import Regex
from opwalker.views.constants import constant_seen, takes_reference
from opwalker.views.value_facts import Call, Known
from opwalker.views.values import Values

#: A number, as a default.
_NUMBER = Regex(r"-?(?:\d+\.?\d*|\.\d+)[fFuUlL]*|0[xX][0-9a-fA-F]+|true|false|nullptr")
#: What launches are compiled under beside the flags of a project.
_TOOLCHAIN = TOOLCHAIN | {"__CUDA_ARCH__"}


class Way:
    """Values along the calls of one implementation. ``body`` is that of its host function."""

    def __init__(self, workbench: Workbench, unit: Unit, reach: Reach, body: Body, root: str) -> None:
        self._workbench = workbench
        self._unit = unit
        self._reach = reach
        self._root = root
        self._references: dict[tuple[str, int], bool] = {}
        self._constants: dict[tuple, str | None] = {}
        self.known = Known(self._constant, self._takes_reference)
        self.host = Values(body, None, self.known)
        self._values: dict[tuple[PathStep, ...], Values | None] = {}
        self._entered: dict[tuple[PathStep, ...], list[tuple[str, Function]]] = {}
        for path, function, steps in reach.functions:
            self._entered.setdefault(steps, []).append((path, function))

    def at(self, steps: tuple[PathStep, ...]) -> Values | None:
        """The values of the function in which the last step stands; None where the way cannot be followed back."""
        if len(steps) < 2:
            return self.host
        before = steps[:-1]
        key = (*before, PathStep(steps[-1].function, steps[-1].file, 0))
        if key not in self._values:
            self._values[key] = self._read(before, steps[-1])
        return self._values[key]

    def of_function(self, path: str, function: Function, steps: tuple[PathStep, ...]) -> Values | None:
        """The values of a function that the walk entered over ``steps``."""
        return self.at((*steps, PathStep(function.qualified_name, path, function.line))) if steps else self.host

    def body_of(self, path: str, function: Function) -> Body:
        """A function's body as the walk reads it."""
        candidate = Candidate(path, function)
        return self._unit.bodies.of(candidate, unit_of(self._workbench.index, candidate, self._root))

    def compiled(self, body: Body, offset: int) -> tuple[str, ...]:
        """The preprocessor conditions that a place stands under and its function does not, with those of the
        definitions of the macros that write it, but for those that the kind of build alone is known to meet: a flag of
        the project may be off."""
        out: dict[str, None] = {}
        position = body.expanded.use_position(offset)
        out.update(self._open(body, body.path, body.conditions_of(body.path, position), position))
        for use in body.expanded.chain(body.expanded.origin(offset)[2]):
            path, event = use.definition.path, use.definition.event
            if path == KNOWN:
                continue
            held = self._workbench.index.facts(path).conditions[event.condition]
            around = self._around(body)
            # That nothing has defined the macro before says nothing of what is compiled.
            terms = tuple(t for t in held if t not in around and names_of(parse_condition(t)) != {event.name})
            out.update(self._open(body, path, terms, event.offset))
        return tuple(out)

    def _around(self, body: Body) -> tuple[str, ...]:
        """The preprocessor conditions that a whole function stands under."""
        function = body.function
        return self._workbench.index.facts(body.path).conditions[function.condition] if function is not None else ()

    def _open(self, body: Body, path: str, terms: tuple[str, ...], position: int) -> dict[str, None]:
        """Those of the conditions of a place that the kind of build leaves open, in order."""
        return {
            term: None
            for term in terms
            if names_of(parse_condition(term)) - _TOOLCHAIN
            or self._unit.macros.truth(path, (term,), position, body.root) is not True
        }

    def _read(self, before: tuple[PathStep, ...], last: PathStep) -> Values | None:
        caller = self.at(before)
        found = self._function(before, last)
        if caller is None or found is None:
            return None
        path, function = found
        calls = [call for call in caller.body.facts.calls if call.simple == function.name]
        if not any(caller.body.use_line(call.start) == before[-1].line for call in calls):
            calls = []  # the way leads through something else that stands on the line
        if not calls:
            return Values(self.body_of(path, function), None, self.known)
        arguments = [self._arguments(caller.body, call, function) for call in calls]
        given = {name for a in arguments for name in a}
        if any(len(a) < len(given) for a in arguments):
            defaults = {name: value for name, value in _defaults(function).items() if name in given}
            arguments = [{**defaults, **a} for a in arguments]
        first = arguments[0]
        same = {
            name: value
            for name, value in first.items()
            if all(print_expression(a.get(name, Expr("raw"))) == print_expression(value) for a in arguments)
        }
        differing = {
            # Where a call gives none, and the default is no plain number, what it is there is not known.
            name: tuple((a[name], call.start) for a, call in zip(arguments, calls, strict=True))
            if all(name in a for a in arguments)
            else ()
            for name in sorted(given - set(same))
        }
        # What differs is known by its own name: a default would be wrong.
        same.update((name, Expr("name", name)) for name in differing)
        call = Call(caller, same, calls[0].start, differing)
        return Values(self.body_of(path, function), call, self.known)

    def _function(self, before: tuple[PathStep, ...], last: PathStep) -> tuple[str, Function] | None:
        """The function that was entered over the steps and in which the last one stands."""
        found = [(p, f) for p, f in self._entered.get(before, ()) if f.qualified_name == last.function]
        if not found:
            # Another way led there first.
            found = [(p, f) for p, f, _ in self._reach.functions if f.qualified_name == last.function]
        found = [(p, f) for p, f in found if p == last.file]
        inside = [(p, f) for p, f in found if f.line <= last.line <= f.end_line] if last.line else []
        return (inside or found or [None])[0]

    @staticmethod
    def _arguments(body: Body, call: CallFact, function: Function) -> dict[str, Expr]:
        out: dict[str, Expr] = {}
        for parameter, span in zip(function.parameters, call.arguments, strict=False):
            if parameter.name:
                out[parameter.name] = parse_expression(body.text(span))
        given = call.template_arguments or ()
        for template, span in zip(template_parameters(function.template), given, strict=False):
            if template.type is not None and template.name:
                out[template.name] = parse_expression(body.text(span))
        return out

    def _constant(self, name: str, body: Body) -> str | None:
        """The value's text of a constant that the body sees, where there is one such text."""
        key = (name, body.root, body.context.scope)
        if key not in self._constants:
            self._constants[key] = constant_seen(self._workbench, self._unit, name, body)
        return self._constants[key]

    def _takes_reference(self, name: str, position: int) -> bool:
        """Whether some function of the tree with this name takes a reference there that is not constant."""
        key = (name, position)
        if key not in self._references:
            self._references[key] = takes_reference(self._workbench, name, position)
        return self._references[key]


def _defaults(function: Function) -> dict[str, Expr]:
    """The defaults of parameters that are plain numbers, which mean the same wherever they are taken."""
    given = [(p.name, p.default) for p in function.parameters]
    given += [(p.name, p.default) for p in template_parameters(function.template) if p.type is not None]
    return {name: parse_expression(text) for name, text in given if name and text and _NUMBER.fullmatch(text.strip())}
