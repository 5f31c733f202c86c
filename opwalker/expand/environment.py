"""What names mean at a place of a body: locals of the branch, lambda parameters, template parameters, the tree.

In: a body, the frame it is followed in, an offset, and the call that each generic lambda around is read for. Out: terms.
``Environment`` is the ``Scope`` of ``expand/expressions.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from opwalker.expand.bodies import Body
from opwalker.expand.expressions import evaluate
from opwalker.expand.frames import Frame
from opwalker.expand.resolve import Candidate, Context, Resolver, strip_arguments, visible
from opwalker.expand.scalar_types import cpp_type, enumerator_value
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import (
    INTEGERS,
    ConstTerm,
    FunctionTerm,
    Term,
    TypeTerm,
    Unknown,
    builtin,
    join_arguments,
    print_term,
)
from opwalker.expand.tokens import tokenize
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.link.index import Index
from opwalker.model.body import CallFact, LambdaFact, LocalFact
from opwalker.model.cpp import ClassDef

_MAX_DEPTH = 40
_QUALIFIER = re.compile(r"\b(?:const|volatile|typename|constexpr|static|struct|class|enum)\b|\b__restrict__\b")
_STD_SAME = frozenset(("is_same_v", "is_same"))
_IDENTITY = {
    "decay_t": "", "remove_cv_t": "", "remove_cvref_t": "&", "remove_reference_t": "&", "remove_const_t": "",
    "remove_pointer_t": "*", "decay": "", "remove_pointer": "*", "remove_cv": "", "remove_reference": "&",
    "remove_cvref": "&", "type_identity_t": "",
}  # fmt: skip


@dataclass(frozen=True)
class Tools:
    """What every environment of a follower shares. ``expand`` gives a text of a file with its macros expanded."""

    index: Index
    resolver: Resolver
    expand: Callable[[str, str, int], str] = lambda path, text, offset: text


@dataclass(frozen=True)
class Environment:
    """A place where names are looked up. ``choices`` gives, by the start of a lambda, the call it is read for;
    ``bound`` are further bindings, such as a class template's parameters."""

    tools: Tools
    context: Context
    body: Body | None = None
    frame: Frame | None = None
    offset: int = 0
    choices: dict[int, CallFact] = field(default_factory=dict)
    bound: dict[str, Term | None] = field(default_factory=dict)
    depth: int = 0

    def at(self, offset: int) -> Environment:
        """The same body at another offset."""
        return replace(self, offset=offset, depth=self.depth + 1)

    def _deeper(self) -> None:
        if self.depth > _MAX_DEPTH:
            raise Unknown("definitions that refer to each other too deeply")

    # -- terms ------------------------------------------------------------------------------------------------------

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
        bare = " ".join(_QUALIFIER.sub(" ", text).split()) if "<" not in text else _strip_outer(text)
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
        inside = Environment(
            self.tools, Context(found[0].path, self.context.root, function.scope), bound=bound, depth=self.depth + 1
        )
        printed = ", ".join(_spaced(inside.type(p.type).text) for p in function.parameters)
        qualified = "::".join((*visible(function.scope), function.name))
        if not parameters:
            return FunctionTerm(f"&{qualified}({printed})")
        listed = join_arguments(inside.printed(parameters, bound))
        returned = inside.type(function.return_type).text
        return FunctionTerm(f"&({_spaced(returned)} {qualified}<{listed}>({printed}))")

    # -- names ------------------------------------------------------------------------------------------------------

    def name(self, text: str) -> Term:
        """A name without template arguments."""
        self._deeper()
        if "::" in text:
            return self._qualified(text)
        if text in self.bound:
            return self._known(self.bound[text], text)
        found = self._local(text)
        if found is not None:
            return found
        if self.frame is not None and text in self.frame.bound:
            if self.frame.bound[text] is None and self.frame.unbound:
                raise Unknown(self.frame.unbound)
            return self._known(self.frame.bound[text], text)
        return self._global(text)

    @staticmethod
    def _known(term: Term | None, name: str) -> Term:
        if term is None:
            raise Unknown(f"the template parameter `{name}` has no value that could be worked out")
        return term

    def _local(self, name: str) -> Term | None:
        """A local of an enclosing block, or a parameter of an enclosing lambda."""
        if self.body is None:
            return None
        best: LocalFact | None = None
        for local in self.body.locals.get(name, ()):
            block = self.body.facts.blocks[local.block] if local.block >= 0 else None
            if local.start < self.offset and (block is None or block.start <= self.offset < block.end):
                best = local
        held = self.body.enclosing_lambdas(self.offset)
        inner = next((f for f in held if self._binds(f, name)), None)
        if inner is not None and (best is None or best.start < inner.start):
            return self._lambda_term(inner, name)
        if best is None:
            return None
        if best.type in ("using", "namespace"):
            return self.at(best.start).type(self.body.text(best.value))
        if best.value is None or not re.search(r"\bconst(?:expr|eval)?\b", best.type):
            raise Unknown(f"`{name}` is a variable of the run")
        value = self.body.text(best.value).strip()
        if value[:1] in "({" and value[-1:] in ")}":
            value = value[1:-1]
        term = self.at(best.start).term_of_value(value)
        kind = re.sub(r"\b(?:constexpr|const|static|inline)\b", "", best.type).strip()
        if kind not in ("auto", "") and isinstance(term, ConstTerm):
            return _as(term, self.at(best.start).type(kind).text)
        return term

    def term_of_value(self, text: str) -> Term:
        """The value of an initialiser."""
        return evaluate(text, self)

    @staticmethod
    def _binds(held: LambdaFact, name: str) -> bool:
        if any(p == name for _, p in held.parameters):
            return True
        return any(p.name == name for p in template_parameters(held.template))

    def _lambda_term(self, held: LambdaFact, name: str) -> Term:
        call = self.choices.get(held.start)
        if call is None:
            raise Unknown(f"`{name}` is a parameter of a lambda whose call could not be followed")
        outside = self.at(call.start)
        parameters = template_parameters(held.template)
        for number, parameter in enumerate(parameters):
            if parameter.name != name:
                continue
            given = call.template_arguments or ()
            if number < len(given):
                return outside.term(self.body.text(given[number]), parameter)
            for (kind, _), span in zip(held.parameters, call.arguments, strict=False):
                found = deduce(kind, outside.type_of(self.body.text(span)).text, {name})
                if name in found:
                    return found[name]
            raise Unknown(f"the lambda's template parameter `{name}` is not given at its call")
        raise Unknown(f"`{name}` is a parameter of the run")

    def _global(self, name: str) -> Term:
        """A name of the class or namespace around, or of any that is visible."""
        index = self.tools.index
        scopes = visible(self.context.scope)
        for path, variable in self._seen(index.entries(name, ("variable",), lambda facts: facts.variables)):
            if variable.constant and variable.value is not None and self._in_reach(variable.scope, scopes):
                inside = Environment(
                    self.tools, Context(path, self.context.root, variable.scope), bound=self.bound, depth=self.depth + 1
                )
                value = self.tools.expand(path, variable.value, variable.offset).strip()
                if value[:1] == "{" and value[-1:] == "}":
                    value = value[1:-1]
                term = evaluate(value, inside)
                kind = re.sub(r"\b(?:constexpr|const|static|inline)\b", "", variable.type).strip()
                return _as(term, inside.type(kind).text) if kind != "auto" and isinstance(term, ConstTerm) else term
        for path, alias in self._seen(index.entries(name, ("alias",), lambda facts: facts.aliases)):
            if alias.kind in ("type", "using") and alias.template is None and self._in_reach(alias.scope, scopes):
                if alias.target == name:
                    # `typedef struct {…} name;` is a class of its own.
                    return TypeTerm("::".join((*visible(alias.scope), name)))
                if strip_arguments(alias.target).split("::")[-1] == name and alias.kind == "using":
                    return Environment(self.tools, Context(path, self.context.root, ()), depth=self.depth + 1).type(
                        alias.target
                    )
                return Environment(
                    self.tools, Context(path, self.context.root, alias.scope), bound=self.bound, depth=self.depth + 1
                ).type(alias.target)
        enumerator = self._enumerator(name, ())
        if enumerator is not None:
            return enumerator
        for _, made in self._seen(index.entries(name, ("class",), lambda facts: facts.classes)):
            if made.template is None and self._in_reach(made.scope, scopes):
                return TypeTerm("::".join((*visible(made.scope), made.name)))
        for _, enum in self._seen(index.entries(name, ("enum",), lambda facts: facts.enums)):
            if self._in_reach(enum.scope, scopes):
                return TypeTerm("::".join((*visible(enum.scope), enum.name)))
        raise Unknown(f"`{name}` is not known in the source")

    def _seen(self, entries):
        """Entries of files that the translation unit reads, in conditions that may hold; nearest scope first."""
        closure = self.tools.index.closure(self.context.root) | {self.context.path}
        out = []
        for path, entry in entries:
            if path not in closure:
                continue
            facts = self.tools.index.facts(path)
            terms = facts.conditions[entry.condition]
            if terms and self.tools.resolver.holds(path, terms, entry.offset) is False:
                continue
            out.append((path, entry))
        return sorted(out, key=lambda item: -len(item[1].scope))

    def _in_reach(self, scope: tuple[str, ...], from_scope: tuple[str, ...]) -> bool:
        seen = visible(scope)
        if seen == from_scope[: len(seen)]:
            return True
        return any(seen == used for used in self.tools.resolver.used_namespaces(self.context))

    def _enumerator(self, name: str, qualifiers: tuple[str, ...]) -> ConstTerm | None:
        if name not in self.tools.index.names_of_kind("enumerator"):
            return None
        found: dict[str, ConstTerm] = {}
        for path in self.tools.index.store.paths_of(name, ("enumerator",)):
            facts = self.tools.index.facts(path)
            for _, enum in self._seen((path, e) for e in facts.enums if any(m == name for m, _ in e.members)):
                names = (*visible(enum.scope), enum.name)
                if (
                    qualifiers
                    and names[-len(qualifiers) :] != qualifiers
                    and names[:-1][-len(qualifiers) :] != qualifiers
                ):
                    continue
                if not qualifiers and enum.scoped:
                    continue
                found["::".join(names)] = ConstTerm(self._enum_value(path, enum, name), "::".join(names))
        return next(iter(found.values())) if len(found) == 1 else None

    def _enum_value(self, path: str, enum, name: str) -> int:
        value = -1
        inside = Environment(self.tools, Context(path, self.context.root, enum.scope), depth=self.depth + 1)
        for member, text in enum.members:
            if text is None:
                value += 1
            else:
                term = evaluate(text, inside)
                if not isinstance(term, ConstTerm):
                    raise Unknown(f"the value of `{member}` is not a number")
                value = int(term.value)
            if member == name:
                return value
        raise Unknown(f"`{name}` is no member of `{enum.name}`")

    def _qualified(self, text: str) -> Term:
        parts = tuple(p for p in text.split("::") if p)
        simple = parts[-1]
        if text in ("std::true_type", "std::false_type"):
            return TypeTerm(f"std::integral_constant<bool, {'true' if 'true' in text else 'false'}>")
        known = builtin(text)
        if known is not None:
            return TypeTerm(known)
        value = enumerator_value(text)
        if value is not None:
            return ConstTerm(value, "c10::ScalarType")
        found = self._enumerator(simple, parts[:-1])
        if found is not None:
            return found
        owner: Term | None = None
        why = ""
        try:
            owner = self.name("::".join(parts[:-1])) if len(parts) > 1 else None
        except Unknown as unknown:
            why = str(unknown)
        if isinstance(owner, TypeTerm):
            return self.member(owner, simple)
        index = self.tools.index
        for path, made in self._seen(index.entries(simple, ("class",), lambda facts: facts.classes)):
            scope = visible(made.scope)
            if made.template is None and scope[-len(parts) + 1 :] == parts[:-1]:
                return TypeTerm("::".join((*scope, made.name)))
        for path, enum in self._seen(index.entries(simple, ("enum",), lambda facts: facts.enums)):
            if visible(enum.scope)[-len(parts) + 1 :] == parts[:-1]:
                return TypeTerm("::".join((*visible(enum.scope), enum.name)))
        for path, alias in self._seen(index.entries(simple, ("alias",), lambda facts: facts.aliases)):
            if (
                alias.kind == "type"
                and alias.template is None
                and visible(alias.scope)[-len(parts) + 1 :] == parts[:-1]
            ):
                return Environment(
                    self.tools, Context(path, self.context.root, alias.scope), depth=self.depth + 1
                ).type(alias.target)
        for path, variable in self._seen(index.entries(simple, ("variable",), lambda facts: facts.variables)):
            if variable.constant and variable.value and visible(variable.scope)[-len(parts) + 1 :] == parts[:-1]:
                inside = Environment(self.tools, Context(path, self.context.root, variable.scope), depth=self.depth + 1)
                return evaluate(self.tools.expand(path, variable.value, variable.offset), inside)
        raise Unknown(why or f"`{text}` is not known in the source")

    # -- templates --------------------------------------------------------------------------------------------------

    def template(self, text: str, arguments: str, member: str | None) -> Term:
        """``text<arguments>`` or a member of it."""
        self._deeper()
        parts = [arguments[a:b].strip() for a, b in split_commas(arguments)]
        simple = text.rsplit("::", 1)[-1]
        if simple in _STD_SAME and len(parts) == 2:
            return ConstTerm(int(self.type(parts[0]) == self.type(parts[1])), "bool")
        if simple in ("conditional_t", "conditional") and len(parts) == 3:
            chosen = evaluate(parts[0], self)
            return self.type(parts[1] if isinstance(chosen, ConstTerm) and chosen.value else parts[2])
        if simple in ("integral_constant", "bool_constant", "Int", "C"):
            return self._constant_type(simple, parts, member)
        if simple in _IDENTITY and len(parts) == 1:
            found = self.type(parts[0]).text
            mark = _IDENTITY[simple]
            if mark == "*" and found.endswith("*"):
                found = found[:-1]
            while found.endswith("&"):
                found = found[:-1]
            return TypeTerm(found.removesuffix(" const"))
        mapped = cpp_type(f"{text}<{arguments}>" + (f"::{member}" if member else ""))
        if mapped is not None:
            return TypeTerm(mapped)
        return self._class_template(text, parts, member)

    def _constant_type(self, simple: str, parts: list[str], member: str | None) -> Term:
        value = evaluate(parts[-1], self)
        if not isinstance(value, ConstTerm):
            raise Unknown(f"`{parts[-1]}` is not a number")
        kind = "bool" if simple == "bool_constant" else self.type(parts[0]).text if len(parts) > 1 else "int"
        if member in ("value", "kValue"):
            return _as(value, kind)
        return TypeTerm(f"std::integral_constant<{kind}, {print_term(_as(value, kind), kind)}>")

    def _class_template(self, text: str, parts: list[str], member: str | None) -> Term:
        simple = text.rsplit("::", 1)[-1]
        wanted = tuple(p for p in text.split("::") if p)[:-1]
        index = self.tools.index
        for path, alias in self._seen(index.entries(simple, ("alias",), lambda facts: facts.aliases)):
            if alias.template is not None and alias.kind == "type":
                parameters = template_parameters(alias.template)
                bound = self.bind(parameters, self._arguments_of(parts, parameters))
                inside = Environment(
                    self.tools, Context(path, self.context.root, alias.scope), bound=bound, depth=self.depth + 1
                )
                found = inside.type(alias.target)
                return self.member(found, member) if member else found
        for path, variable in self._seen(index.entries(simple, ("variable",), lambda facts: facts.variables)):
            if variable.template is not None and variable.value is not None and member is None:
                parameters = template_parameters(variable.template)
                bound = self.bind(parameters, self._arguments_of(parts, parameters))
                return evaluate(
                    self.tools.expand(path, variable.value, variable.offset),
                    Environment(
                        self.tools, Context(path, self.context.root, variable.scope), bound=bound, depth=self.depth + 1
                    ),
                )
        made = [
            (path, c)
            for path, c in self._seen(index.entries(simple, ("class",), lambda facts: facts.classes))
            if (c.template is not None or c.specialisation is not None)
            and (not wanted or visible(c.scope)[-len(wanted) :] == wanted)
        ]
        primary = next(((p, c) for p, c in made if c.specialisation is None), None)
        if not made:
            raise Unknown(f"`{text}<…>` is not defined in the source")
        parameters = template_parameters(primary[1].template) if primary else ()
        terms = self._arguments_of(parts, parameters)
        if primary:
            bound = self.bind(parameters, terms, Context(primary[0], self.context.root, primary[1].scope))
            printed = self.printed(parameters, bound)
        else:
            bound = {}
            printed = [print_term(t, None) for t in terms]
        qualified = "::".join((*visible(made[0][1].scope), simple))
        found = TypeTerm(f"{qualified}<{join_arguments(printed)}>")
        return self.member(found, member) if member else found

    def _arguments(self, text: str | None, parameters) -> list[Term]:
        if not text:
            return []
        return self._arguments_of([text[a:b].strip() for a, b in split_commas(text)], parameters)

    def _arguments_of(self, parts: list[str], parameters) -> list[Term]:
        return [self.term(part, parameters[i] if i < len(parameters) else None) for i, part in enumerate(parts)]

    def bind(self, parameters, given: list[Term], context: Context | None = None) -> dict[str, Term | None]:
        """Template parameters with the terms given for them, then their defaults. Raises Unknown for one without."""
        bound: dict[str, Term | None] = {}
        for number, parameter in enumerate(parameters):
            if parameter.pack:
                raise Unknown(f"the pack `{parameter.name}` is not followed")
            key = parameter.name or f"#{number}"
            if number < len(given):
                term = given[number]
                if isinstance(term, ConstTerm) and parameter.type is not None:
                    term = self._typed(term, parameter, bound, context)
                bound[key] = term
            elif parameter.default is not None:
                inside = Environment(self.tools, context or self.context, bound=dict(bound), depth=self.depth + 1)
                term = inside.term(parameter.default, parameter)
                bound[key] = self._typed(term, parameter, bound, context) if isinstance(term, ConstTerm) else term
            else:
                raise Unknown(f"the template parameter `{parameter.name}` is not given")
        return bound

    def _typed(self, term: ConstTerm, parameter: TemplateParameter, bound, context) -> ConstTerm:
        if parameter.type in (None, "auto"):
            return term
        inside = Environment(self.tools, context or self.context, bound=dict(bound), depth=self.depth + 1)
        return _as(term, inside.type(parameter.type).text)

    def printed(self, parameters, bound: dict[str, Term | None]) -> list[str]:
        """The arguments in the order of the parameters, as a demangler prints them."""
        out = []
        for number, parameter in enumerate(parameters):
            term = self._known(bound.get(parameter.name or f"#{number}"), parameter.name)
            out.append(print_term(term, None))
        return out

    # -- members ----------------------------------------------------------------------------------------------------

    def member(self, owner: TypeTerm, member: str) -> Term:
        """A constant or type inside a class, or of a class template with its arguments."""
        constant = re.match(r"std::integral_constant<(.*), ([^,]*)>\Z", owner.text)
        if constant and member == "value":
            return _as(evaluate(constant.group(2).rstrip("ul"), self), constant.group(1))
        text = owner.text
        at = text.find("<")
        name, inner = (text[:at], text[at + 1 : -1]) if at >= 0 else (text, None)
        simple = name.rsplit("::", 1)[-1]
        scope = tuple(p for p in name.split("::")[:-1] if p)
        found = [
            (path, made)
            for path, made in self._seen(self.tools.index.entries(simple, ("class",), lambda facts: facts.classes))
            if not scope or visible(made.scope)[-len(scope) :] == scope
        ]
        parts = [inner[a:b].strip() for a, b in split_commas(inner)] if inner else []
        chosen = self.chosen_class(found, parts)
        if chosen is None:
            raise Unknown(f"`{owner.text[:80]}` is not defined in the source")
        path, made, bound = chosen
        return self._inside(path, made, bound, member, owner)

    def chosen_class(self, found, parts: list[str]) -> tuple[str, ClassDef, dict[str, Term | None]] | None:
        """The primary template or the specialisation whose pattern fits; the most special one first."""
        fitting: list[tuple[int, str, ClassDef, dict]] = []
        for path, made in found:
            parameters = template_parameters(made.template)
            if made.specialisation is None:
                if parts and not parameters:
                    continue
                given = [literal_term(p) for p in parts]
                try:
                    bound = self.bind(parameters, given, Context(path, self.context.root, made.scope))
                except Unknown:
                    bound = {p.name: t for p, t in zip(parameters, given, strict=False)}
                fitting.append((0, path, made, bound))
                continue
            patterns = [made.specialisation[a:b].strip() for a, b in split_commas(made.specialisation)]
            names = {p.name for p in parameters}
            bound = {}
            fits = len(patterns) == len(parts)
            inside = Environment(self.tools, Context(path, self.context.root, made.scope), depth=self.depth + 1)
            for pattern, part in zip(patterns, parts, strict=False):
                if pattern in names:
                    term = literal_term(part)
                    fits = fits and bound.get(pattern, term) == term
                    bound[pattern] = term
                    continue
                matched = deduce(pattern, part, names)
                if matched:
                    bound.update(matched)
                    continue
                try:
                    fits = fits and print_term(inside.term(pattern), None) == part.strip()
                except Unknown:
                    fits = False
            if fits:
                fitting.append((1 + sum(1 for p in patterns if p not in names), path, made, bound))
        if not fitting:
            return None
        best = max(fitting, key=lambda item: item[0])
        return best[1], best[2], best[3]

    def _inside(self, path: str, made: ClassDef, bound, member: str, owner: TypeTerm) -> Term:
        facts = self.tools.index.facts(path)
        inside = Environment(
            self.tools,
            Context(path, self.context.root, (*made.scope, made.name)),
            bound=_InClass(bound),
            depth=self.depth + 1,
        )
        inside.bound.owner = (inside, path, made)
        within = lambda entry: made.body_start < entry.offset < made.body_end  # noqa: E731
        for variable in facts.variables:
            if variable.name == member and within(variable) and variable.value is not None:
                value = self.tools.expand(path, variable.value, variable.offset).strip()
                if value[:1] == "{" and value[-1:] == "}":
                    value = value[1:-1]
                return evaluate(value, inside)
        for alias in facts.aliases:
            if alias.name == member and within(alias):
                return inside.type(alias.target)
        for enum in facts.enums:
            for name, _ in enum.members:
                if name == member and within(enum):
                    return ConstTerm(inside._enum_value(path, enum, member), "int")
        for base in made.bases:
            try:
                return inside.member(inside.type(base), member)
            except Unknown:
                continue
        raise Unknown(f"`{owner.text[:60]}::{member}` is not defined in the source")

    # -- calls and types of expressions -----------------------------------------------------------------------------

    def call(self, text: str, template: str | None, arguments: list[str]) -> Term:
        """A constexpr function of the source whose body is one return statement."""
        self._deeper()
        found = self.tools.resolver.function(text, self.context, len(arguments), kernel=False).candidates
        if len(found) != 1:
            raise Unknown(f"`{text}(…)` is not a constant function of the source")
        candidate: Candidate = found[0]
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
        inside = Environment(
            self.tools, Context(candidate.path, self.context.root, function.scope), bound=bound, depth=self.depth + 1
        )
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
            r"(?:\.|->)\s*(?:template\s+)?(const_|mutable_)?data_ptr\s*<(.*)>\s*\(\s*\)\Z", text, re.DOTALL
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


class _InClass(dict):
    """Bindings inside a class: its template parameters, and its own members as they are asked for."""

    owner: tuple | None = None

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or self._has(str(name))

    def __getitem__(self, name: str):
        if dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        inside, path, made = self.owner
        return inside._inside(path, made, self, name, TypeTerm(made.name))

    def _has(self, name: str) -> bool:
        if self.owner is None:
            return False
        inside, path, made = self.owner
        facts = inside.tools.index.facts(path)
        return any(
            e.name == name and made.body_start < e.offset < made.body_end
            for entries in (facts.variables, facts.aliases)
            for e in entries
        ) or any(m == name and made.body_start < e.offset < made.body_end for e in facts.enums for m, _ in e.members)


def literal_term(text: str) -> Term:
    """A printed template argument as the term that it was."""
    text = text.strip()
    if text in ("true", "false"):
        return ConstTerm(int(text == "true"), "bool")
    enum = re.fullmatch(r"\(([\w:]+)\)(-?\d+)", text)
    if enum:
        return ConstTerm(int(enum.group(2)), enum.group(1))
    number = re.fullmatch(r"(-?\d+)(u|l|ul|ll|ull)?", text)
    if number:
        kind = {"u": "unsigned int", "l": "long", "ul": "unsigned long"}.get(number.group(2) or "", "int")
        return ConstTerm(int(number.group(1)), kind)
    return FunctionTerm(text) if text.startswith("&") else TypeTerm(text)


def deduce(pattern: str, actual: str, names: set[str]) -> dict[str, Term]:
    """Template parameters that a parameter's type pattern fixes, given an argument's canonical type."""
    shape = " ".join(_QUALIFIER.sub(" ", pattern).split()).replace(" ", "")
    given = actual.replace(" const", "").replace(" ", " ").strip()
    while shape.endswith("&"):
        shape = shape[:-1]
    while given.endswith("&"):
        given = given[:-1]
    while shape.endswith("*") and given.endswith("*"):
        shape, given = shape[:-1], given[:-1].strip()
    if shape in names:
        return {shape: literal_term(given)}
    if shape.endswith(">") and given.endswith((">", "> ")):
        at, bt = shape.find("<"), given.find("<")
        if shape[:at].rsplit("::", 1)[-1] != given[:bt].rsplit("::", 1)[-1]:
            return {}
        left = [shape[at + 1 : -1][a:b] for a, b in split_commas(shape[at + 1 : -1])]
        inside = given[bt + 1 : given.rindex(">")]
        right = [inside[a:b].strip() for a, b in split_commas(inside)]
        out: dict[str, Term] = {}
        for one, other in zip(left, right, strict=False):
            out.update(deduce(one, other, names))
        return out
    return {}


def _as(term: Term, kind: str) -> Term:
    if not isinstance(term, ConstTerm):
        raise Unknown("a number was expected")
    if kind == "bool":
        return ConstTerm(int(bool(term.value)), "bool")
    if kind in INTEGERS and not isinstance(term.value, float):
        return ConstTerm(int(term.value), kind)
    return ConstTerm(term.value, kind)


def _spaced(text: str) -> str:
    return text


def _strip_outer(text: str) -> str:
    """A template type without the qualifiers outside of its arguments."""
    at = text.find("<")
    close = match_angle(text, at)
    head = " ".join(_QUALIFIER.sub(" ", text[:at]).split())
    tail = " ".join(re.sub(r"\b(?:const|volatile)\b", " ", text[close:]).split()) if close > 0 else ""
    return f"{head}{text[at:close]}{tail}" if close > 0 else text


__all__ = ["Environment", "Tools", "deduce", "literal_term", "tokenize"]
