"""Types, functions and expressions at a place: the part of ``Environment`` that reads texts as terms."""

from __future__ import annotations

import re

from opwalker.expand.deduction import QUALIFIER
from opwalker.expand.expressions import evaluate
from opwalker.expand.resolve import visible
from opwalker.expand.scalar_types import cpp_type
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import ConstTerm, FunctionTerm, Term, TypeTerm, Unknown, builtin, join_arguments
from opwalker.facts.cpp_brackets import match_angle


class TypeReading:
    """Texts read as types, functions and constants."""

    def term(self, text: str, parameter: TemplateParameter | None = None) -> Term:
        """A template argument: a type or a constant, by what the parameter asks for."""
        self._deeper()
        text = text.strip()
        if parameter is not None and parameter.type is None:
            return self.type(text)
        if parameter is not None and "(" in (parameter.type or ""):
            return self.function(text)
        if parameter is not None:
            return evaluate(text, self)
        try:
            return self.type(text)
        except Unknown:
            return evaluate(text, self)

    def type(self, text: str) -> TypeTerm:
        """A type in canonical spelling."""
        self._deeper()
        text = " ".join(text.split())
        mapped = cpp_type(text)
        if mapped is not None:
            return TypeTerm(mapped)
        const = bool(re.search(r"\bconst\b", re.sub(r"<.*>", "", text)))
        bare = " ".join(QUALIFIER.sub(" ", text).split()) if "<" not in text else _strip_outer(text)
        suffix = ""
        while bare.endswith(("*", "&")):
            suffix = bare[-1] + suffix
            bare = bare[:-1].rstrip()
            bare = re.sub(r"\s*\bconst\Z", "", bare)
        known = builtin(bare)
        if known is None:
            known = self._type_name(bare)
        if const and suffix.startswith(("*", "&")):
            known = f"{known} const"
        return TypeTerm(known + suffix)

    def _type_name(self, text: str) -> str:
        if text.startswith("decltype"):
            return self._decltype(text)
        head = re.match(r"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*", text)
        if head is None:
            raise Unknown(f"`{text[:80]}` is not a type that could be worked out")
        name, rest = head.group(), text[head.end() :].strip()
        if rest.startswith("<"):
            close = match_angle(rest, 0)
            if close < 0:
                raise Unknown(f"`{text[:80]}` is not a type that could be worked out")
            tail = rest[close:].strip()
            member = tail.removeprefix("::").removeprefix("template ").strip() if tail else None
            found = self.template(name, rest[1 : close - 1], member)
        elif rest:
            raise Unknown(f"`{text[:80]}` is not a type that could be worked out")
        else:
            found = self.name(name)
        if not isinstance(found, TypeTerm):
            raise Unknown(f"`{text[:80]}` is no type")
        return found.text

    def _decltype(self, text: str) -> str:
        if "(" not in text or ")" not in text:
            raise Unknown(f"`{text[:60]}` is not a type that could be worked out")
        inside = text[text.index("(") + 1 : text.rindex(")")].strip()
        tail = text[text.rindex(")") + 1 :].strip()
        found = self.type_of(inside)
        if tail.startswith("::"):
            member = self.member(found, tail[2:].strip())
            if isinstance(member, TypeTerm):
                return member.text
            raise Unknown(f"`{text[:80]}` is no type")
        return found.text

    def function(self, text: str) -> FunctionTerm:
        """A device function given as a template argument: ``&(float ns::f<float>(float const&))``."""
        name = text.strip().lstrip("&").strip()
        inner = None
        at = name.find("<")
        if at >= 0 and match_angle(name, at) == len(name):
            inner, name = name[at + 1 : -1], name[:at].strip()
        found = self.tools.resolver.function(name, self.context, None, kernel=False).candidates
        if len(found) != 1:
            raise Unknown(f"`{text.strip()[:80]}` names {len(found) or 'no'} functions of the source")
        function = found[0].function
        parameters = template_parameters(function.template)
        bound = self.bind(parameters, self._arguments(inner, parameters)) if parameters else {}
        inside = self.elsewhere(found[0].path, function.scope, bound)
        printed = ", ".join((inside.type(p.type).text) for p in function.parameters)
        qualified = "::".join((*visible(function.scope), function.name))
        if not parameters:
            return FunctionTerm(f"&{qualified}({printed})")
        listed = join_arguments(inside.printed(parameters, bound))
        returned = inside.type(function.return_type).text
        return FunctionTerm(f"&({(returned)} {qualified}<{listed}>({printed}))")

    def call(self, text: str, template: str | None, arguments: list[str]) -> Term:
        """A constexpr function of the source whose body is one return statement."""
        self._deeper()
        found = self.tools.resolver.function(text, self.context, len(arguments), kernel=False).candidates
        if len(found) != 1:
            raise Unknown(f"`{text}(…)` is not a constant function of the source")
        candidate = found[0]
        function = candidate.function
        body = self.tools.resolver.source(candidate.path, function.body_start, function.body_end)
        returned = re.fullmatch(r"\{\s*return\s+(.*?);\s*\}", body, re.DOTALL)
        if returned is None or "constexpr" not in function.flags:
            raise Unknown(f"`{text}(…)` is not a constant function of the source")
        bound: dict[str, Term | None] = {}
        parameters = template_parameters(function.template)
        if template is not None:
            bound.update(self.bind(parameters, self._arguments(template, parameters)))
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            bound[parameter.name] = evaluate(argument, self)
        inside = self.elsewhere(candidate.path, function.scope, bound)
        return evaluate(returned.group(1), inside)

    def type_of(self, text: str) -> TypeTerm:
        """The type of an expression, as far as deduction needs it."""
        self._deeper()
        text = text.strip()
        made = re.match(r"(?:reinterpret_cast|static_cast|const_cast)\s*<", text)
        if made:
            close = match_angle(text, made.end() - 1)
            return self.type(text[made.end() : close - 1])
        cast = re.match(r"\(\s*((?:const\s+)?[\w:]+(?:\s*<[^()]*>)?(?:\s*const)?\s*\*+)\s*\)\s*[\w(&]", text)
        if cast:
            return self.type(cast.group(1))
        data = re.search(
            r"(?:\.|->)\s*(?:template\s+)?(const_|mutable_)?data(?:_ptr)?\s*<(.*)>\s*\(\s*\)\Z", text, re.DOTALL
        )
        if data:
            inner = self.type(data.group(2)).text
            return TypeTerm(f"{inner}{' const' if data.group(1) == 'const_' else ''}*")
        braces = re.match(r"([\w:]+(?:\s*<.*>)?)\s*(?:\{\s*\}|\(\s*\))\Z", text, re.DOTALL)
        if braces:
            return self.type(braces.group(1))
        if re.fullmatch(r"[A-Za-z_]\w*", text):
            return self._type_of_name(text)
        term = evaluate(text, self)
        if isinstance(term, ConstTerm):
            return TypeTerm(term.type)
        raise Unknown(f"the type of `{text[:60]}` is not known")

    def _type_of_name(self, name: str) -> TypeTerm:
        if self.body is not None:
            held = self.body.enclosing_lambdas(self.offset)
            best = None
            for local in self.body.locals.get(name, ()):
                block = self.body.facts.blocks[local.block] if local.block >= 0 else None
                if local.start < self.offset and (block is None or block.start <= self.offset < block.end):
                    best = local
            for inner in held:
                for number, (kind, parameter) in enumerate(inner.parameters):
                    if parameter == name and (best is None or best.start < inner.start):
                        call = self.choices.get(inner.start)
                        if "auto" not in kind:
                            return self.type(kind)
                        if call is not None and number < len(call.arguments):
                            found = self.at(call.start).type_of(self.body.text(call.arguments[number])).text
                            return TypeTerm(found)
            if best is not None:
                kind = re.sub(r"\b(?:constexpr|static)\b", "", best.type).strip()
                if re.sub(r"\bconst\b|[*&\s]", "", kind) == "auto" and best.value is not None:
                    return self.at(best.start).type_of(self.body.text(best.value).strip("= "))
                return self.at(best.start).type(kind)
        function = self.frame.candidate.function if self.frame is not None and self.frame.candidate else None
        for parameter in function.parameters if function else ():
            if parameter.name == name:
                return self.type(parameter.type)
        raise Unknown(f"the type of `{name}` is not known")


def _strip_outer(text: str) -> str:
    """A template type without the qualifiers outside of its arguments."""
    at = text.find("<")
    close = match_angle(text, at)
    head = " ".join(QUALIFIER.sub(" ", text[:at]).split())
    tail = " ".join(re.sub(r"\b(?:const|volatile)\b", " ", text[close:]).split()) if close > 0 else ""
    return f"{head}{text[at:close]}{tail}" if close > 0 else text
