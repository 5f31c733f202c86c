"""Objects of constant expressions at a place: the part of ``Environment`` that makes them by constructors and calls
what they are: methods on an object, lambdas of constexpr functions.

In: objects as lists of their fields. Out: terms. What a constructor does besides giving its fields values is not run:
such an object stays the list of what it was made from.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from opwalker.expand.arithmetic import cast
from opwalker.expand.arity import accepts
from opwalker.expand.constexpr_run import run
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.shapes import shape
from opwalker.expand.terms import SIZES, ClosureTerm, ConstTerm, ListTerm, PackTerm, Term, TypeTerm, Unknown
from opwalker.expand.value_words import initialiser_value
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.facts.cpp_heads import parse_parameters
from opwalker.model.cpp import Function
from opwalker.notation.regex import Regex

_INITIALISED = Regex(r"\s*(\w+)\s*[({](.*)[)}]\s*\Z", re.DOTALL)
_PAIR = ("first", "second")


class ConstantObjects:
    """Objects that constant expressions make."""

    def object_of(self, made: ListTerm) -> ListTerm:
        """An object that was made of a list: each of its fields, where a constructor or the pair that it is says."""
        if made.type.startswith("std::pair<"):
            return self._pair(made)
        place = self.located(made.type) if made.items and made.type else None
        if place is None:
            return made
        if len(made.items) == 1 and isinstance(made.items[0], ListTerm) and made.items[0].type == made.type:
            return made.items[0]
        makers = [
            f
            for f in self.tools.index.facts(place.path).functions
            if f.name == place.made.name
            and place.made.body_start < f.offset < place.made.body_end
            and "constexpr" in f.flags
            and f.body_end
            and accepts(f, len(made.items))
        ]
        fields = self._by_constructor(place, makers[0], made) if len(makers) == 1 else None
        return ListTerm(fields, made.type) if fields is not None else made

    def constructed(self, text: str, kind: str) -> ListTerm | None:
        """The object of a class that an initialiser in brackets makes by a constructor; None for any other."""
        inside = initialiser_value(text)
        if inside is text or kind in SIZES or self.located(kind) is None:
            return None
        plain = ListTerm(tuple(evaluate(inside[a:b], self) for a, b in split_commas(inside)), kind)
        made = self.object_of(plain)
        return made if made is not plain else None

    def _by_constructor(self, place, function: Function, made: ListTerm) -> tuple[Term, ...] | None:
        """The fields that a constructor gives values, in order; None where it does more, or leaves one out."""
        source = self.tools.resolver.source
        if source(place.path, function.body_start, function.body_end).strip("{} \n\t"):
            return None
        head = source(place.path, function.offset, function.body_start)
        close = match_bracket(head, head.index("("))
        listed = head[close:].partition(":")[2]
        given = [_INITIALISED.match(listed[a:b]) for a, b in split_commas(listed)] if listed.strip() else []
        values = {one.group(1): one.group(2) for one in given if one}
        inside = self.standing_in(place)
        for number, parameter in enumerate(function.parameters):
            if number < len(made.items):
                inside.bound[parameter.name] = converted(made.items[number], parameter.type, inside)
            else:
                inside.bound[parameter.name] = evaluate(parameter.default or "", self.standing_in(place))
        fields = self.fields(place)
        if len(values) != len(given) or {v.name for v in fields} != values.keys():
            return None
        return tuple(converted(evaluate(values[v.name], inside), v.type, inside) for v in fields)

    def _pair(self, made: ListTerm) -> ListTerm:
        kinds = shape(made.type).arguments or ()
        items = made.items or (ConstTerm(0),) * len(kinds)
        if len(items) != 2 or len(kinds) != 2:
            return made
        return ListTerm(tuple(converted(item, kind, self) for item, kind in zip(items, kinds, strict=True)), made.type)

    def field_of(self, value: ListTerm, name: str) -> Term:
        """A field of an object, or ``first`` or ``second`` of a pair."""
        if value.type.startswith("std::pair<") and name in _PAIR and len(value.items) == len(_PAIR):
            return value.items[_PAIR.index(name)]
        return self.field(value, name)

    def returned(self, made: Term, kind: str) -> Term:
        """What a function returns, in the type that it says."""
        if not isinstance(made, ListTerm) or made.type or not kind or "auto" in kind.split():
            return made
        found = self.type(kind).text
        return self._pair(ListTerm(made.items, found)) if found.startswith("std::pair<") else made

    def call_on(self, held: ListTerm, name: str, arguments: list[str]) -> Term | None:
        """A constexpr method, called on an object; None where its class has none of that name."""
        found = [f for f, _ in self.methods(held.type, name, len(arguments)) if "constexpr" in f.flags]
        return self.call_member(TypeTerm(held.type), name, None, arguments, held) if found else None

    def call_closure(self, held: ClosureTerm, arguments: list[str]) -> Term:
        """A lambda of a constexpr function, called."""
        self._deeper()
        text = held.text
        opened = match_bracket(text, 0)
        if opened < 0 or not text[opened:].lstrip().startswith("("):
            raise Unknown(f"`{text[:60]}` is not called")
        opened = text.index("(", opened)
        close = match_bracket(text, opened)
        body = text.index("{", close)
        scope = held.scope
        inside = replace(scope, bound=dict(scope.bound), depth=max(scope.depth, self.depth) + 1)
        values = [evaluate(argument, self) for argument in arguments]
        for value, (kind, name, *_) in zip(values, parse_parameters(text, opened + 1, close - 1), strict=True):
            if name:
                inside.bound[name] = converted(value, kind, inside)
        return inside.returned(run(text[body:], inside), text[close:body].partition("->")[2].strip())

    def spread_out(self, arguments: list[str]) -> list[str]:
        """The arguments of a call with the packs among them spread, each element under a name of its own."""
        out: list[str] = []
        for argument in arguments:
            name = argument.removesuffix("...").rstrip()
            held = self.bound.get(name) if argument.endswith("...") else None
            if not isinstance(held, PackTerm):
                out.append(argument)
                continue
            for number, item in enumerate(held.items):
                out.append(f"{name}__{number}")
                self.bound[out[-1]] = item
        return out


def converted(value: Term, declared: str, inside) -> Term:
    """An argument in the type of its parameter, where that is a number's."""
    number = value_of(value)
    if number is None:
        return value
    try:
        kind = inside.type(declared).text.removesuffix("&").removesuffix("&")
    except Unknown:
        return value
    return cast(number, kind) if kind in SIZES else value
