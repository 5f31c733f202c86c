"""Device functions on the way of a value or a pointer: which one a call means, and how its parameters are bound.

In: a call's name and the values passed. Out: a reader of the function's body, or the value that a short one returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.expand.device_names import device_function
from opwalker.expand.device_types import DeviceTypes
from opwalker.expand.lambdas import lambda_calls
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import LambdaCall, Number, Pointer, Several, Unread, Value, World
from opwalker.expand.workbench import Unit
from opwalker.facts.cpp_brackets import split_commas
from opwalker.link.index import Index
from opwalker.model.body import CallFact, LambdaFact, Span2
from opwalker.notation.polynomial import poly, replace, symbol

#: How deep helpers are looked through.
MAX_DEPTH = 3
#: A function that is looked through for its value has at most this many characters.
_SHORT = 400


class DeviceCalls:
    """Looks through calls in one unit."""

    def __init__(self, unit: Unit, index: Index, world: World, types: DeviceTypes) -> None:
        self._unit = unit
        self._world = world
        self._types = types
        self._index = index
        self._depth = 0

    def value(self, name: str, template: str | None, arguments: tuple[Value, ...], reader: ValueReader) -> Value | None:
        """What a call gives: the returned expression of a short function of the tree; the hook of ``ValueReader``."""
        if name.startswith("sizeof "):
            size = self._types.size(name.removeprefix("sizeof "), reader)
            return Number(size) if size is not None else None
        if name.startswith("constant "):
            return self._constant(name.removeprefix("constant "), reader)
        inner = self.reader(name, template, arguments, reader)
        if inner is None:
            return None
        returns = inner.body.facts.returns
        if len(returns) != 1 or len(inner.body.expanded.text) > _SHORT:
            return None
        found = inner.span(returns[0])
        return found if isinstance(found, Number) else None

    def _constant(self, name: str, reader: ValueReader) -> Value | None:
        """The value of a constant at namespace or class level, where the unit has one of the name."""
        simple = name.rsplit("::", 1)[-1]
        near = self._index.near(reader.body.root, reader.body.path)
        found = {
            variable.value
            for path, variable in self._index.entries(simple, ("variable",), lambda facts: facts.variables)
            if variable.constant and variable.value is not None and path in near and variable.name == simple
        }
        if len(found) != 1 or self._depth > MAX_DEPTH:
            return None
        self._depth += 1
        value = reader.text(found.pop().strip("{} "), 0)
        self._depth -= 1
        if not isinstance(value, Number):
            return None
        known = {a: c for a, c in self._world.constants.items() if c is not None}
        return Number(replace(value.poly, lambda atom: poly(known[atom]) if atom in known else None))

    def candidate(self, name: str, count: int, reader: ValueReader) -> Candidate | None:
        """The only definition that a call can mean."""
        body = reader.body
        context = Context(body.path, body.root, body.context.scope, body.context.usings, body.context.aliases)
        found = device_function(self._index, self._unit.resolver, name, context, count)
        return found.candidates[0] if len(found.candidates) == 1 and not found.loose else None

    def reader(
        self, name: str, template: str | None, arguments: Sequence[Value], reader: ValueReader
    ) -> ValueReader | None:
        """A reader of the called function's body with its parameters bound; None where there is none to look into."""
        if reader.depth >= MAX_DEPTH:
            return None
        candidate = self.candidate(name, len(arguments), reader)
        if candidate is None or candidate.function is reader.body.function:
            return None
        function = candidate.function
        body = self._unit.bodies.of(candidate, reader.body.root, device=True)
        bound: dict[str, Value] = {}
        kinds = template_parameters(function.template)
        given = [template[a:b].strip() for a, b in split_commas(template)] if template else []
        for number, parameter in enumerate(kinds):
            if number < len(given) and parameter.type is not None:
                bound[parameter.name] = reader.text(given[number], len(reader.body.expanded.text))
        for parameter, value in zip(function.parameters, arguments, strict=False):
            bound[parameter.name] = passed(value, parameter.type, {p.name for p in kinds})
        for parameter in function.parameters[len(arguments) :]:
            bound[parameter.name] = Number(symbol(f"{function.name}.{parameter.name}"))
        return ValueReader(body, self._world, bound, reader.keep, self.value, depth=reader.depth + 1)

    @staticmethod
    def of_lambda(held: LambdaFact, call: CallFact, reader: ValueReader) -> ValueReader:
        """A reader of a lambda's body for one of its calls."""
        templates = {p.name for p in template_parameters(held.template)} if held.template else set()
        values = (reader.span(span) for span in call.arguments)
        bound = {
            name: passed(value, kind, templates)
            for (kind, name), value in zip(held.parameters, values, strict=False)
        }  # fmt: skip
        return reader.within(held, LambdaCall(call.start, bound))


class Inside:
    """The part of a body that is read at once: a span of it without the lambdas that are read at their calls."""

    def __init__(self, reader: ValueReader, span: Span2 | None = None) -> None:
        self._reader = reader
        self._span = span
        body = reader.body
        self._apart = [
            held
            for held in body.facts.lambdas
            if held.parameters and held.start not in reader.lambdas and reader.depth < MAX_DEPTH
            and any(call.simple in body.locals for call in lambda_calls(body, held))
        ]  # fmt: skip

    def __contains__(self, at: int) -> bool:
        within = self._span is None or self._span[0] <= at < self._span[1]
        return within and not any(held.body[0] <= at < held.body[1] for held in self._apart)

    def lambda_calls(self) -> Iterator[tuple[LambdaFact, CallFact]]:
        """The calls within of lambdas that are read apart."""
        for held in self._apart:
            for call in lambda_calls(self._reader.body, held):
                if call.simple in self._reader.body.locals and call.start in self:
                    yield held, call


def passed(value: Value, kind: str, templates: set[str]) -> Value:
    """A value as the parameter that it is passed for sees it."""
    if "*" not in kind:
        return value
    value = ValueReader.pointer(value)
    if isinstance(value, Several):
        return value.each(lambda one: passed(one, kind, templates))
    element = " ".join(re.sub(r"\b(?:const|volatile|__restrict__|__restrict)\b|[*&]", " ", kind).split())
    if isinstance(value, Pointer) and element in templates:
        return Pointer(value.root, value.offset, value.step, element)
    if isinstance(value, Pointer) and value.element not in (element, "") and element != "void":
        return Unread(f"a `{value.element}` passed as a `{element}`")
    return value
