"""Types, functions and expressions at a place: the part of ``Environment`` that reads texts as terms."""

from __future__ import annotations

import re

from opwalker.expand.deduction import literal_term
from opwalker.expand.expressions import evaluate
from opwalker.expand.resolve import visible
from opwalker.expand.scalar_types import cpp_type
from opwalker.expand.shapes import Shape, shape
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import (
    ConstTerm,
    FunctionTerm,
    NoType,
    TemplateTerm,
    Term,
    TypeTerm,
    Unknown,
    builtin,
    join_arguments,
)
from opwalker.expand.traits import PLAIN_TEMPLATES
from opwalker.facts.cpp_brackets import match_angle, match_bracket
from opwalker.notation.regex import Regex

_NUMBER = Regex(r"-?\d[\w.]*|true|false")
_TEMPLATE = Regex(r"::\s*template\s+")
#: A pointer that is constant itself, and what is volatile.
_QUALIFIED_POINTER = Regex(r"\*\s*const\s*\Z|\bvolatile\b")
_NO_FUNCTION = frozenset(("nullptr", "NULL", "0"))
_NAME = Regex(r"(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*")


class TypeReading:
    """Texts read as types, functions and constants."""

    def term(self, text: str, parameter: TemplateParameter | None = None) -> Term:
        """A template argument: a type or a constant, by what the parameter asks for."""
        self._deeper()
        text = text.strip()
        if parameter is None:
            try:
                return self._qualified_type(text)
            except Unknown:
                return evaluate(text, self)
        if parameter.type is None:
            if _NUMBER.fullmatch(text):
                raise NoType(f"`{text}` is no type")
            return self._qualified_type(text)
        if parameter.is_template:
            return self._template_name(text)
        if "(" in parameter.type or self._is_function(parameter.type):
            return self.function(text)
        if parameter.type == "auto" and self._names_function(text):
            return self.function(text)
        return evaluate(text, self)

    def _qualified_type(self, text: str) -> TypeTerm:
        """A type that is a template argument: there a qualifier of the whole type counts."""
        found = self.type(text)
        if "const" not in text and "volatile" not in text:
            return found
        held, after = shape(text), shape(found.text)
        if _QUALIFIED_POINTER.search(text) or (held.const and not held.marks and after.marks):
            raise Unknown(f"how a demangler spells `{text[:60]}` is not known")
        whole = held.const and not held.marks and after.parameters is None
        return TypeTerm(Shape(after.base, True).text) if whole else found

    def _template_name(self, text: str) -> Term:
        scope, _, simple = text.removeprefix("::").rpartition("::")
        if simple in PLAIN_TEMPLATES.get(scope, ()):
            return TemplateTerm(f"{scope}::{simple}")
        found = self.name(text)
        if isinstance(found, TypeTerm):
            return TemplateTerm(found.text)
        if isinstance(found, TemplateTerm):
            return found
        raise Unknown(f"`{text[:80]}` is no template that is known")

    def _is_function(self, kind: str) -> bool:
        """Whether the declared type of a constant is an alias of a pointer to a function."""
        bare = kind.strip()
        if builtin(bare) is not None or not _NAME.fullmatch(bare):
            return False
        simple = bare.rsplit("::", 1)[-1]
        if simple not in self.tools.index.names_of_kind("alias"):
            return False
        try:
            return shape(self.type(bare).text).parameters is not None
        except Unknown:
            return False

    def _names_function(self, text: str) -> bool:
        name = re.match(r"&?\s*((?:::)?[\w:]+)", text)
        simple = name.group(1).rsplit("::", 1)[-1] if name else ""
        return simple in self.tools.index.names_of_kind("function")

    def type(self, text: str) -> TypeTerm:
        """A type in canonical spelling."""
        plain = builtin(text)
        return TypeTerm(plain) if plain is not None else self.kept("type", text, self._type)

    def _bound_by_name(self, name: str) -> TypeTerm | None:
        """What a template parameter is that was deduced for a ``T&&`` from a variable."""
        bound = self.frame.bound.get(name) if self.frame is not None else None
        return bound if isinstance(bound, TypeTerm) and bound.by_name else None

    def _type(self, text: str) -> TypeTerm:
        self._deeper()
        text = _TEMPLATE.sub("::", " ".join(text.split()))
        mapped = cpp_type(text)
        if mapped is not None:
            return TypeTerm(mapped)
        bound = self._bound_by_name(text)
        if bound is not None:
            return bound
        held = shape(text)
        if held.parameters is not None:
            result = self.type(held.base).text
            listed = tuple(self.type(p).text for p in held.parameters)
            return TypeTerm(Shape(result, False, held.marks, listed).text)
        known = builtin(held.base)
        if known is None:
            known = self._type_name(held.base)
            if self._bound_by_name(held.base) is not None and not held.const:
                known += "&"
        inner = shape(known)
        marks = tuple(self._extent(mark) for mark in held.marks)
        if marks and marks[0] in ("&", "&&") and inner.marks and inner.marks[-1] in ("&", "&&"):
            marks = marks[1:]  # a reference to a reference is one
        const = held.const and bool(marks or inner.marks)
        if inner.parameters is not None or (inner.marks and not marks):
            return TypeTerm(known)
        if inner.marks:
            return TypeTerm(known + "".join(marks))
        return TypeTerm(Shape(inner.base, inner.const or const, marks).text)

    def _extent(self, mark: str) -> str:
        if not mark.startswith("[") or mark == "[]":
            return mark
        found = evaluate(mark[1:-1], self)
        return f"[{found.value}]" if isinstance(found, ConstTerm) else mark

    def _type_name(self, text: str) -> str:
        if text.startswith("decltype"):
            return self._decltype(text)
        head = _NAME.match(text)
        if head is None:
            raise Unknown(f"`{text[:80]}` is not a type that could be worked out")
        name, rest = "".join(head.group().split()), text[head.end() :].strip()
        if rest.startswith("<"):
            close = match_angle(rest, 0)
            if close < 0:
                raise Unknown(f"`{text[:80]}` is not a type that could be worked out")
            tail = rest[close:].strip()
            member = tail.removeprefix("::").strip().removeprefix("template ").strip() if tail else None
            if member and not re.fullmatch(r"\w+", member):
                found = self._members(self.template(name, rest[1 : close - 1], None), member)
            else:
                found = self.template(name, rest[1 : close - 1], member)
        elif rest:
            raise Unknown(f"`{text[:80]}` is not a type that could be worked out")
        else:
            found = self.name(name)
        if not isinstance(found, TypeTerm):
            raise Unknown(f"`{text[:80]}` is no type")
        return found.text

    def _members(self, owner: Term, chain: str) -> Term:
        """Members of members: ``B<int>::C::type``."""
        found = owner
        while chain:
            if not isinstance(found, TypeTerm):
                break
            word = re.match(r"(?:template\s+)?(\w+)\s*", chain)
            if word is None:
                raise Unknown(f"`{chain[:60]}` is not a type that could be worked out")
            name, chain = word.group(1), chain[word.end() :]
            if chain.startswith("<"):
                close = match_angle(chain, 0)
                inner = self.spelt(chain[1 : close - 1]) if close > 0 else ""
                name, chain = f"{name}<{inner}>", chain[close:].lstrip()
            found = self.member(found, name)
            chain = chain.removeprefix("::").strip()
        return found

    def spelt(self, arguments: str) -> str:
        """Template arguments in canonical spelling, so that they mean the same elsewhere."""
        return join_arguments(self._printed_parts(self.parts(arguments))).strip()

    def _decltype(self, text: str) -> str:
        opened = text.find("(")
        close = match_bracket(text, opened) if opened >= 0 else -1
        if close < 0:
            raise Unknown(f"`{text[:60]}` is not a type that could be worked out")
        inside, tail = text[opened + 1 : close - 1].strip(), text[close:].strip()
        found = self.type_of(inside)
        if re.fullmatch(r"\*\s*\w+|\(.*\)|[\w.>-]+\s*\[.*\]", inside, re.DOTALL) and not tail:
            # The type of such an expression is a reference.
            found = TypeTerm(found.text.rstrip("&") + "&")
        if tail.startswith("::"):
            held = TypeTerm(found.text.rstrip("&"))
            member = self._members(held, tail[2:].strip())
            if isinstance(member, TypeTerm):
                return member.text
            raise Unknown(f"`{text[:80]}` is no type")
        return found.text

    def function(self, text: str) -> FunctionTerm | ConstTerm:
        """A device function given as a template argument: ``&(float ns::f<float>(float const&))``; or none of them."""
        name = text.strip().lstrip("&").strip()
        if name in _NO_FUNCTION:
            return ConstTerm(0, "std::nullptr_t")
        held = self.bound.get(name) if name in self.bound else self.frame.bound.get(name) if self.frame else None
        if isinstance(held, FunctionTerm | ConstTerm):
            return held
        inner = None
        at = name.find("<")
        if at >= 0 and match_angle(name, at) == len(name):
            inner, name = name[at + 1 : -1], name[:at].strip()
        found = self.tools.resolver.function(name, self.context, None, kernel=False).candidates
        if len(found) != 1:
            raise Unknown(f"`{text.strip()[:80]}` names {len(found) or 'no'} functions of the source")
        function = found[0].function
        parameters = template_parameters(function.template)
        qualified = "::".join((*visible(function.scope), function.name))
        internal = "static" in function.flags and "member" not in function.flags
        if not parameters:
            if internal or "::" in qualified:
                return FunctionTerm(f"&{qualified}", internal)
            return FunctionTerm(f"&({qualified}({', '.join(self._parameter_types(found[0].path, function, {}))}))")
        bound = self.bind(parameters, self._arguments(inner, parameters)) if parameters else {}
        inside = self.elsewhere(found[0].path, function.scope, bound)
        printed = ", ".join(self._parameter_types(found[0].path, function, bound))
        listed = join_arguments(inside.printed(parameters, bound))
        returned = inside.type(function.return_type).text
        return FunctionTerm(f"&({(returned)} {qualified}<{listed}>({printed}))", internal)

    def _parameter_types(self, path: str, function, bound) -> list[str]:
        inside = self.elsewhere(path, function.scope, bound)
        return [inside.type(p.type).text for p in function.parameters]


__all__ = ["TypeReading", "literal_term"]
