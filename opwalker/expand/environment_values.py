"""Types of expressions at a place: the part of ``Environment`` that deduction and overloads ask.

In: an expression's text. Out: its canonical type. Conversions are not judged; what is not known raises Unknown.
"""

from __future__ import annotations

import contextlib
import re

from msgspec.structs import replace

from opwalker.expand.arity import is_pack
from opwalker.expand.deduction import Mismatch, unify
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.fits import Fit
from opwalker.expand.operators import last_member, opening, top_operator
from opwalker.expand.result_types import (
    decayed,
    either,
    function_type,
    like_auto,
    member_type,
    method_type,
    number_of,
    unreferenced,
)  # fmt: skip
from opwalker.expand.shapes import Shape, shape
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import INTEGERS, ConstTerm, ListTerm, Term, TypeTerm, Unknown
from opwalker.expand.tokens import names_any
from opwalker.facts.cpp_brackets import match_angle, match_bracket, split_commas
from opwalker.model.body import LambdaFact
from opwalker.notation.regex import Regex

_CAST = Regex(r"(?:reinterpret_cast|static_cast|const_cast|dynamic_cast|bit_cast|std::bit_cast)\s*<")
_C_CAST = Regex(
    r"\(\s*((?:const\s+|typename\s+|unsigned\s+|signed\s+|long\s+)*[\w:]+(?:\s*<[^()]*>)?(?:::\w+)?(?:\s*const)?\s*[*&]*)\s*\)\s*(?=[\w(&*:\"-])"
)
_DATA = Regex(r"(const_|mutable_)?data(?:_ptr)?\Z")
_PACKED = Regex(r"packed_accessor(32|64)?\Z")
_NEW = Regex(r"new\s+([\w:]+)")
_FORWARD = Regex(r"(?:std::(?:move|forward|as_const|ref|cref|addressof)|static_cast)\s*(<.*?>)?\s*\(", re.DOTALL)
_PLAIN = Regex(r"[A-Za-z_]\w*\Z")
_QUALIFIED = Regex(r"(?:::)?[A-Za-z_]\w*(?:\s*::\s*(?:template\s+)?[A-Za-z_]\w*)*\s*")
_STRING = Regex(r'(?:u8|[uUL])?"')
_COMPARED = frozenset(("||", "&&", "==", "!=", "<=", ">=", "<", ">"))
#: Members of tensors and containers, with what they give.
_GIVES = {
    "size": "long", "numel": "long", "stride": "long", "dim": "long", "storage_offset": "long", "element_size": "long",
    "get_device": "signed char", "is_contiguous": "bool", "defined": "bool", "has_value": "bool", "is_cuda": "bool",
    "nbytes": "unsigned long", "itemsize": "unsigned long",
}  # fmt: skip
_TENSORS = Regex(r"(?:\w+::)*Tensor(?:Base|View)?\Z")


class ValueTypes:
    """The types of expressions."""

    def type_of(self, text: str) -> TypeTerm:
        """The type of an expression, as far as deduction needs it."""
        return self.kept("type of", text, self._of_expression)

    def _of_expression(self, text: str) -> TypeTerm:
        self._deeper()
        text = text.strip()
        while text.startswith("(") and match_bracket(text, 0) == len(text):
            text = text[1:-1].strip()
        made = _CAST.match(text)
        if made:
            close = match_angle(text, made.end() - 1)
            if close > 0 and match_bracket(text, close) == len(text):
                return self.type(text[made.end() : close - 1])
        split = top_operator(text)
        if split is not None:
            return self._of_operation(*split)
        cast = _C_CAST.match(text)
        if cast:
            try:
                return self.type(cast.group(1))
            except Unknown:
                if "*" in cast.group(1):
                    raise
        if text[:1] in ("*", "&", "-", "+", "!", "~"):
            return self._of_unary(text[0], text[1:].strip())
        if _STRING.match(text):
            return TypeTerm("char const*")
        fresh = _NEW.match(text)
        if fresh:
            kind = re.match(r"new\s+(.*?)\s*(?:[({\[]|\Z)", text, re.DOTALL)
            return TypeTerm(self.type(kind.group(1)).text + "*")
        forwarded = _FORWARD.match(text)
        if forwarded and match_bracket(text, forwarded.end() - 1) == len(text):
            return self.type_of(text[forwarded.end() : -1])
        if text == "this" and self.around:
            return TypeTerm(f"{self.around}*")
        if _PLAIN.match(text) and text not in ("true", "false"):
            return self._type_of_name(text)
        return self._of_postfix(text)

    # -- operators --------------------------------------------------------------------------------------------------

    def _of_unary(self, operator: str, operand: str) -> TypeTerm:
        held = shape(self.type_of(operand).text)
        marks = held.marks
        while marks and marks[-1] in ("&", "&&"):
            marks = marks[:-1]
        if operator == "&":
            return TypeTerm(Shape(held.base, held.const, (*marks, "*"), held.parameters).text)
        if operator == "*":
            if not marks or marks[-1] in ("&", "&&"):
                raise Unknown(f"what `*{operand[:60]}` gives is not known")
            return TypeTerm(Shape(held.base, held.const, marks[:-1]).text)
        if operator == "!":
            return TypeTerm("bool")
        return TypeTerm(number_of(held.base, "int")) if held.base in INTEGERS else TypeTerm(held.base)

    def _of_operation(self, left: str, operator: str, right: str) -> TypeTerm:
        if operator == "?":
            found = either(*(self._known_type(part) for part in right.split("\0", 1)))
            if found is None:
                raise Unknown(f"the type of `{right[:60]}` is not known")
            return TypeTerm(found)
        if operator in _COMPARED:
            return TypeTerm("bool")
        one, two = decayed(shape(self.type_of(left).text)), decayed(shape(self.type_of(right).text))
        if one.marks and one.marks[-1] == "*":
            return TypeTerm("long" if two.marks else one.text)
        if two.marks and two.marks[-1] == "*":
            return TypeTerm(two.text)
        if {one.base, two.base} <= INTEGERS | {"float", "double"}:
            return TypeTerm(number_of(one.base, two.base if operator not in ("<<", ">>") else "int"))
        if one.text == two.text:
            return TypeTerm(one.text)
        raise Unknown(f"the type of `{left[:30]} {operator} {right[:30]}` is not known")

    # -- names, calls and members -----------------------------------------------------------------------------------

    def _of_postfix(self, text: str) -> TypeTerm:
        """A name, call, index or member, read from its end."""
        if text[-1:] in ")]}":
            opened = opening(text)
            before = text[:opened].rstrip()
            if before:
                return self._of_bracket(before, text[opened:], text)
        owner, _, name = last_member(text)
        if owner is not None:
            return self._of_field(owner, name)
        term = evaluate(text, self)
        number = value_of(term)
        if isinstance(term, ListTerm) and term.type:
            return TypeTerm(term.type)
        if number is not None:
            return TypeTerm(number.type)
        raise Unknown(f"the type of `{text[:60]}` is not known")

    def _of_bracket(self, before: str, bracket: str, text: str) -> TypeTerm:
        if bracket[0] == "[":
            return self._element(self.type_of(before).text)
        if bracket[0] == "{":
            return self.type(before)
        owner, _, name = last_member(before)
        arguments = [bracket[1:-1][a:b].strip() for a, b in split_commas(bracket[1:-1])]
        if owner is not None:
            return self._of_method(owner, name, arguments)
        try:
            return self.type(before)
        except Unknown:
            pass
        try:
            return self._returned(before, arguments)
        except Unknown:
            term = value_of(evaluate(text, self))
            if term is None:
                raise
            return TypeTerm(term.type)

    def _element(self, kind: str) -> TypeTerm:
        held = shape(kind)
        marks = held.marks[:-1] if held.marks and held.marks[-1] in ("&", "&&") else held.marks
        if marks:
            return TypeTerm(Shape(held.base, held.const, marks[:-1]).text)
        listed = held.arguments
        if listed and held.name.rsplit("::", 1)[-1] in ("vector", "array", "span", "ArrayRef", "initializer_list"):
            return TypeTerm(listed[0])
        for found, inside in self.methods(held.base, "operator[]", 1) if not marks else ():
            return inside.type(found.return_type)
        raise Unknown(f"what an element of `{kind[:60]}` is is not known")

    def _of_field(self, owner: str, name: str) -> TypeTerm:
        """``a.b`` or ``a->b``: a data member."""
        held = _value(self.type_of(owner))
        return TypeTerm(member_type(held.text, name) or self._member_type(TypeTerm(held.base), name).text)

    def _member_type(self, owner: TypeTerm, name: str) -> TypeTerm:
        place = self.located(owner.text)
        if place is None:
            raise Unknown(f"the members of `{owner.text[:60]}` are not known")
        inside = self.standing_in(place)
        for variable in self.tools.index.declared(place.path).variables:
            if variable.name == name and place.made.body_start < variable.offset < place.made.body_end:
                return inside.type(variable.type)
        before = self.standing_before(place)
        for base in place.made.bases:
            found = before.type(base)
            try:
                return self._member_type(found, name)
            except Unknown:
                continue
        raise Unknown(f"`{owner.text[:60]}` has no member `{name}` in the source")

    def _of_method(self, owner: str, name: str, arguments: list[str]) -> TypeTerm:
        """What a member call gives."""
        word = re.match(r"(?:template\s+)?(\w+)\s*", name)
        simple = word.group(1) if word else name
        template = name[word.end() :] if word else ""
        data, packed = _DATA.match(simple), _PACKED.match(simple)
        if packed and template.startswith("<"):
            return self._accessor(template[1 : match_angle(template, 0) - 1], packed.group(1))
        held = _value(self.type_of(owner)) if not (data and template) else None
        if data and template.startswith("<"):
            close = match_angle(template, 0)
            inner = self.type(template[1 : close - 1]).text
            return TypeTerm(f"{inner}{' const' if data.group(1) == 'const_' and not inner.endswith('*') else ''}*")
        if simple == "item" and template.startswith("<"):
            return self.type(template[1 : match_angle(template, 0) - 1])
        if held is not None and (known := method_type(held.text, simple)):
            return TypeTerm(known)
        if held is not None and simple in _GIVES and (_TENSORS.match(held.base) or simple != "size"):
            return TypeTerm(_GIVES[simple])
        if held is not None:
            for found, inside in self.methods(held.base, simple, len(arguments)):
                if found.return_type not in ("auto", ""):
                    return self._method_result(found, inside, template, arguments)
            if data and held.arguments and not template:
                return TypeTerm(held.arguments[0] + "*")
            if simple == "get" and held.arguments:
                return TypeTerm(held.arguments[0] + "*")
        raise Unknown(f"what `{owner[:40]}.{name[:40]}` gives is not known")

    def _accessor(self, arguments: str, width: str | None) -> TypeTerm:
        """What ``packed_accessor32<T, N, Traits>()`` of a tensor gives."""
        parts = [arguments[a:b].strip() for a, b in split_commas(arguments)]
        count = value_of(evaluate(parts[1], self)) if len(parts) > 1 else None
        if count is None:
            raise Unknown(f"the dimensions of an accessor `{arguments[:60]}` are not known")
        traits = parts[2].rsplit("::", 1)[-1] if len(parts) > 2 else "DefaultPtrTraits"
        index = self.type(parts[3]).text if len(parts) > 3 else "int" if width == "32" else "long"
        kind = self.type(parts[0]).text
        return TypeTerm(f"at::GenericPackedTensorAccessor<{kind}, {count.value}ul, at::{traits}, {index}>")

    def _method_result(self, function, inside, template: str, arguments: list[str]) -> TypeTerm:
        """What a member function of a class gives, with the template arguments that a call writes or passes."""
        parameters = template_parameters(function.template) if function.class_depth else ()
        if not parameters:
            return inside.type(function.return_type)
        given = template[1 : match_angle(template, 0) - 1] if template.startswith("<") else None
        bound = dict(zip((p.name for p in parameters), self._arguments(given, parameters), strict=False))
        missing = {p.name for p in parameters if p.name not in bound}
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            if names_any(parameter.type, missing):
                with contextlib.suppress(Mismatch):
                    bound.update(unify(parameter.type, self.type_of(argument).text, missing))
        held = self.elsewhere(inside.context.path, inside.context.scope, {**inside.bound, **bound}, inside.owner)
        return held.type(function.return_type)

    def methods(self, owner: str, name: str, count: int | None):
        """The functions of a class, or its bases, of a name: ``(function, the environment inside its class)``."""
        place = self.located(owner)
        if place is None:
            return
        inside = self.standing_in(place)
        for function in self.tools.index.facts(place.path).functions:
            if function.name == name and place.made.body_start < function.offset < place.made.body_end:
                most = function.parameters
                if count is None or count <= len(most) or (most and is_pack(most[-1])):
                    yield function, inside
        before = self.standing_before(place)
        for base in place.made.bases:
            try:
                found = before.type(base).text
            except Unknown:
                continue
            yield from self.methods(found, name, count)

    def _returned(self, callee: str, arguments: list[str]) -> TypeTerm:
        """What a call of a function of the source gives."""
        head = _QUALIFIED.match(callee)
        if head is None:
            raise Unknown(f"what `{callee[:60]}(…)` gives is not known")
        name, rest = "".join(head.group().split()), callee[head.end() :]
        template = rest[1 : match_angle(rest, 0) - 1] if rest.startswith("<") else None
        if name.rsplit("::", 1)[-1] in ("make_pair", "make_tuple", "pair", "tuple"):
            kinds = [_value(self.type_of(a)).text for a in arguments]
            return TypeTerm(f"std::{name.rsplit('::', 1)[-1].removeprefix('make_')}<{', '.join(kinds)}>")
        if known := function_type(name, template, [self._known_type(argument) for argument in arguments]):
            return TypeTerm(known)
        found = self.tools.resolver.function(name, self.context, len(arguments), kernel=False).candidates
        fits: list[Fit] = []
        for candidate in found:
            function = candidate.function
            parameters = template_parameters(function.template)
            bound: dict[str, Term | None] = dict(
                zip((p.name for p in parameters), self._arguments(template, parameters), strict=False)
            )
            missing = {p.name for p in parameters if p.name not in bound}
            if missing:
                try:
                    for parameter, argument in zip(function.parameters, arguments, strict=False):
                        if names_any(parameter.type, missing):
                            bound.update(unify(parameter.type, self.type_of(argument).text, missing))
                except Mismatch:
                    continue
            fits.append(Fit(candidate, bound))
        if len(fits) > 1:
            from opwalker.expand.overloads import best

            types = tuple(self._known_type(argument) for argument in arguments)
            fits = best([replace(fit, types=types) for fit in fits], self.tools)
        kinds: set[str] = set()
        for fit in fits:
            function = fit.candidate.function
            if function.return_type in ("auto", ""):
                raise Unknown(f"what `{callee[:60]}(…)` gives is not written")
            kinds.add(self.elsewhere(fit.candidate.path, function.scope, fit.bound).type(function.return_type).text)
        if len(kinds) != 1:
            raise Unknown(f"what `{callee[:60]}(…)` gives is not known")
        return TypeTerm(kinds.pop())

    def _known_type(self, argument: str) -> str | None:
        try:
            return self.type_of(argument).text
        except Unknown:
            return None

    def _type_of_name(self, name: str) -> TypeTerm:
        if name in self.bound or (self.frame is not None and name in self.frame.bound):
            held = self.bound.get(name) or (self.frame.bound.get(name) if self.frame else None)
            if isinstance(held, ConstTerm):
                return TypeTerm(held.type)
        best = self.holder(name)
        if isinstance(best, LambdaFact):
            return self._type_of_passed(best, name)
        if best is not None:
            return self._type_of_local(best)
        function = self.frame.candidate.function if self.frame is not None and self.frame.candidate else None
        for parameter in function.parameters if function else ():
            if parameter.name == name:
                if self.frame is not None and name in self.frame.given:
                    return TypeTerm(self.frame.given[name])
                return self.type(parameter.type.replace("...", "") if is_pack(parameter) else parameter.type)
        if self.around:
            try:
                return self._member_type(TypeTerm(self.around), name)
            except Unknown:
                pass
        return self._type_of_global(name)

    def _type_of_passed(self, held: LambdaFact, name: str) -> TypeTerm:
        """A parameter of a lambda: as declared, or the type of what is passed."""
        for number, (kind, parameter) in enumerate(held.parameters):
            if parameter != name:
                continue
            if "auto" not in kind:
                return self.type(kind)
            call = self.choices.get(held.start)
            found = self._passed_type(call, number) if call is not None else None
            if found is not None:
                return TypeTerm(like_auto(kind, found))
        raise Unknown(f"the type of `{name}` is not known")

    def _type_of_local(self, best) -> TypeTerm:
        kind = re.sub(r"\b(?:constexpr|static)\b", "", best.type).strip()
        if re.sub(r"\bconst\b|[*&\s]", "", kind) == "auto" and best.value is not None:
            value = self.body.text(best.value).strip("= ")
            if value[:1] in "({" and match_bracket(value, 0) == len(value):
                value = value[1:-1]
            found = self.at(best.start).type_of(value)
            each = self.body.expanded.full[: best.value[0]].rstrip().endswith(":")  # `for (auto x : xs)`
            return TypeTerm(like_auto(kind, (self._element(found.text) if each else found).text))
        return self.at(best.start).type(kind)

    def _type_of_global(self, name: str) -> TypeTerm:
        index = self.tools.index
        entries = index.entries(name, ("variable",), lambda facts: facts.variables)
        for path, variable in self._meant(entries, ()):
            if not variable.scope or visible_from(variable.scope, self.context.scope):
                kind = re.sub(r"\b(?:constexpr|static|inline)\b", "", variable.type).strip()
                return self.elsewhere(path, variable.scope).type(kind)
        raise Unknown(f"the type of `{name}` is not known")


def visible_from(scope: tuple[str, ...], place: tuple[str, ...]) -> bool:
    """Whether a scope is one of those around a place."""
    return scope == place[: len(scope)]


def _value(kind: TypeTerm) -> Shape:
    """A type without its references."""
    return unreferenced(shape(kind.text))
