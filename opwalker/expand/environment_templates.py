"""Templates at a place: the part of ``Environment`` that binds parameters and reads specialisations and members."""

from __future__ import annotations

import re

from opwalker.expand.deduction import as_type, deduce, literal_term
from opwalker.expand.expressions import evaluate
from opwalker.expand.resolve import Context, visible
from opwalker.expand.scalar_types import cpp_type
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import ConstTerm, Term, TypeTerm, Unknown, join_arguments, print_term
from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.cpp import ClassDef

_STD_SAME = frozenset(("is_same_v", "is_same"))
_IDENTITY = {
    "decay_t": "", "remove_cv_t": "", "remove_cvref_t": "&", "remove_reference_t": "&", "remove_const_t": "",
    "remove_pointer_t": "*", "decay": "", "remove_pointer": "*", "remove_cv": "", "remove_reference": "&",
    "remove_cvref": "&", "type_identity_t": "",
}  # fmt: skip


class TemplateReading:
    """Class and alias templates with their arguments, and what stands inside them."""

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
            return as_type(value, kind)
        return TypeTerm(f"std::integral_constant<{kind}, {print_term(as_type(value, kind), kind)}>")

    def _class_template(self, text: str, parts: list[str], member: str | None) -> Term:
        simple = text.rsplit("::", 1)[-1]
        wanted = tuple(p for p in text.split("::") if p)[:-1]
        index = self.tools.index
        for path, alias in self._seen(index.entries(simple, ("alias",), lambda facts: facts.aliases)):
            if alias.template is not None and alias.kind == "type":
                parameters = template_parameters(alias.template)
                bound = self.bind(parameters, self._arguments_of(parts, parameters))
                inside = self.elsewhere(path, alias.scope, bound)
                found = inside.type(alias.target)
                return self.member(found, member) if member else found
        for path, variable in self._seen(index.entries(simple, ("variable",), lambda facts: facts.variables)):
            if variable.template is not None and variable.value is not None and member is None:
                parameters = template_parameters(variable.template)
                bound = self.bind(parameters, self._arguments_of(parts, parameters))
                return evaluate(
                    self.tools.expand(path, variable.value, variable.offset),
                    self.elsewhere(path, variable.scope, bound),
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
                inside = self.under(context or self.context, dict(bound))
                term = inside.term(parameter.default, parameter)
                bound[key] = self._typed(term, parameter, bound, context) if isinstance(term, ConstTerm) else term
            else:
                raise Unknown(f"the template parameter `{parameter.name}` is not given")
        return bound

    def _typed(self, term: ConstTerm, parameter: TemplateParameter, bound, context) -> ConstTerm:
        if parameter.type in (None, "auto"):
            return term
        inside = self.under(context or self.context, dict(bound))
        return as_type(term, inside.type(parameter.type).text)

    def printed(self, parameters, bound: dict[str, Term | None]) -> list[str]:
        """The arguments in the order of the parameters, as a demangler prints them."""
        out = []
        for number, parameter in enumerate(parameters):
            term = self._known(bound.get(parameter.name or f"#{number}"), parameter.name)
            out.append(print_term(term, None))
        return out

    def member(self, owner: TypeTerm, member: str) -> Term:
        """A constant or type inside a class, or of a class template with its arguments."""
        constant = re.match(r"std::integral_constant<(.*), ([^,]*)>\Z", owner.text)
        if constant and member == "value":
            return as_type(evaluate(constant.group(2).rstrip("ul"), self), constant.group(1))
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
            inside = self.elsewhere(path, made.scope)
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
        inside = self.elsewhere(path, (*made.scope, made.name), _InClass(bound))
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
