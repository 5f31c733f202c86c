"""Names at a place: the part of ``Environment`` that looks them up, from the innermost branch outwards."""

from __future__ import annotations

import re

from opwalker.expand.deduction import as_type, deduce, deduced_pack
from opwalker.expand.environment_sight import Sight
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.qualified import same_text
from opwalker.expand.resolve import strip_arguments, visible
from opwalker.expand.scalar_types import cub_enumerator, enumerator_value, toolkit_type
from opwalker.expand.shapes import outer_of, shape
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import (
    ConstTerm,
    ListTerm,
    PackTerm,
    PassedCall,
    TemplateTerm,
    Term,
    TypeTerm,
    Unknown,
    builtin,
)
from opwalker.expand.value_words import initialiser_value
from opwalker.model.body import LambdaFact, LocalFact
from opwalker.notation.regex import Regex

_DECORATION = Regex(r"\b(?:constexpr|const|static|inline|consteval|constinit)\b")
_CONSTANT = Regex(r"\bconst(?:expr|eval|init)?\b")


class NameLookup(Sight):
    """Names looked up: locals, parameters of lambdas and templates, then the class and namespaces around."""

    def name(self, text: str) -> Term:
        """A name without template arguments."""
        if text in self.bound:
            self._deeper()
            return self._known(self.bound[text], text)
        return self.kept("name", text, self._name)

    def _name(self, text: str) -> Term:
        self._deeper()
        if "::" in text:
            return self._qualified(text)
        found = self._local(text)
        if found is not None:
            return found
        if self.frame is not None and text in self.frame.bound:
            if self.frame.bound[text] is None and self.frame.unbound:
                raise Unknown(self.frame.unbound)
            return self._known(self.frame.bound[text], text)
        if self.around:
            member = self._of_class(text)
            if member is not None:
                return member
        return self._global(text)

    def _of_class(self, text: str) -> Term | None:
        """A member of the class around, or of one around that."""
        owner = self.around
        while owner:
            try:
                found = self.try_member(TypeTerm(owner), text)
            except Unknown:
                if text in self.tools.index.names_of_kind("class") or text in self.tools.index.names_of_kind("alias"):
                    return None
                raise
            if found is not None:
                return found
            owner = outer_of(owner)
            if not owner or self.located(owner) is None:
                return None
        return None

    @staticmethod
    def _known(term: Term | None, name: str) -> Term:
        if term is None:
            raise Unknown(f"the template parameter `{name}` has no value that could be worked out")
        return term

    def holder(self, name: str) -> LocalFact | LambdaFact | None:
        """The local that a name means here, or the lambda that has it as a parameter; None for a name from outside."""
        if self.body is None:
            return None
        key = (name, self.offset)
        held = self.body.holders
        if key not in held:
            held[key] = self._holder(name)
        return held[key]

    def _holder(self, name: str) -> LocalFact | LambdaFact | None:
        best = self.body.last_around(name, self.offset)
        held = self.body.enclosing_lambdas(self.offset)
        inner = next((f for f in held if self._binds(f, name)), None)
        return inner if inner is not None and (best is None or best.start < inner.start) else best

    def _local(self, name: str) -> Term | None:
        """A local of an enclosing block, or a parameter of an enclosing lambda."""
        best = self.holder(name)
        if isinstance(best, LambdaFact):
            return self._lambda_term(best, name)
        if best is None:
            return None
        alias = best.type in ("using", "namespace")
        if not alias and (best.value is None or not _CONSTANT.search(best.type)):
            return self._object(name)
        if self.frame is None or self.choices or self.bound:
            return self._made(best, alias)
        # What a constant of a function is, is asked for by each of the others that are made from it.
        key = "local", self.body, best.start, name, self.tools.index.changes
        return self.once(self.frame.memo, key, lambda: self._made(best, alias))

    def _made(self, local: LocalFact, alias: bool) -> Term:
        text, there = self.body.text(local.value), self.at(local.start)
        return there.type(text) if alias else there.initialiser(text.strip(), local.type)

    def initialiser(self, text: str, kind: str) -> Term:
        """The value of a constant of a declared type, from its initialiser."""
        extent = re.search(r"\[[^\]]*\]\s*\Z", kind)
        kind = " ".join(_DECORATION.sub(" ", kind).split())
        text = text.strip()
        listed = text[:1] == "{" and text[-1:] == "}"
        if listed and (extent or kind.startswith(("std::array", "cuda::std::array"))):
            return self._elements_of(self._array(evaluate(text, self)), kind)
        if kind in ("auto", ""):
            return evaluate(initialiser_value(text), self)
        try:
            declared = self.type(kind).text
        except Unknown:
            declared = None
        if listed and declared is not None and self._is_aggregate(declared):
            made = evaluate(text, self)
            return ListTerm(made.items, declared) if isinstance(made, ListTerm) else made
        made = self.constructed(text, declared) if declared is not None else None
        if made is not None:
            return made
        term = evaluate(initialiser_value(text), self)
        number = value_of(term)
        if number is None:
            return term
        return as_type(number, declared if declared is not None else self.type(kind).text)

    @staticmethod
    def _array(made: Term) -> Term:
        """``{{1, 2}}`` initialises a std::array of two."""
        if isinstance(made, ListTerm) and len(made.items) == 1 and isinstance(made.items[0], ListTerm):
            inner = made.items[0]
            return inner if not inner.type else made
        return made

    def _elements_of(self, made: Term, kind: str) -> Term:
        """An array whose elements are objects of a class, each with its type."""
        if not isinstance(made, ListTerm) or not all(isinstance(i, ListTerm) and not i.type for i in made.items):
            return made
        try:
            held = shape(self.type(kind).text)
        except Unknown:
            return made
        element = held.arguments[0] if held.name == "std::array" and held.arguments else held.base
        if not made.items or not self._is_aggregate(element):
            return made
        return ListTerm(tuple(ListTerm(item.items, element) for item in made.items), made.type)

    def _is_aggregate(self, declared: str) -> bool:
        try:
            return declared.startswith("std::integral_constant<") or self.located(declared) is not None
        except Unknown:
            return False

    @staticmethod
    def _binds(held: LambdaFact, name: str) -> bool:
        if any(p == name for _, p in held.parameters):
            return True
        return any(p.name == name for p in template_parameters(held.template))

    def _lambda_term(self, held: LambdaFact, name: str) -> Term:
        call = self.choices.get(held.start)
        if call is None:
            raise Unknown(f"`{name}` is a parameter of a lambda whose call could not be followed")
        parameters = template_parameters(held.template)
        for number, parameter in enumerate(parameters):
            if parameter.name == name:
                return self._lambda_parameter(held, call, number, parameter)
        return self._object(name)

    def _lambda_parameter(self, held: LambdaFact, call, number: int, parameter: TemplateParameter) -> Term:
        """A template parameter of a lambda, as a call binds it."""
        remote = isinstance(call, PassedCall)
        outside = self.at(call.start)
        given = call.terms if remote else call.template_arguments or ()
        if parameter.pack:
            rest = given[number:]
            if not rest:
                types = [self._passed_type(call, n) for n in range(len(call.types if remote else call.arguments))]
                return deduced_pack([kind for kind, _ in held.parameters], types, parameter.name)
            return PackTerm(tuple(t if remote else outside.term(self.body.text(t), parameter) for t in rest))
        if number < len(given):
            return given[number] if remote else outside.term(self.body.text(given[number]), parameter)
        for position, (kind, _) in enumerate(held.parameters):
            actual = self._passed_type(call, position)
            found = deduce(kind, actual, {parameter.name}) if actual is not None else {}
            if parameter.name in found:
                return found[parameter.name]
        if parameter.default is not None:
            return self.term(parameter.default, parameter)
        raise Unknown(f"the lambda's template parameter `{parameter.name}` is not given at its call")

    def _passed_type(self, call, position: int) -> str | None:
        """The type of what a call of a lambda passes at a position; None where it is not known."""
        if isinstance(call, PassedCall):
            return call.types[position] if position < len(call.types) else None
        if position >= len(call.arguments):
            return None
        try:
            return self.at(call.start).type_of(self.body.text(call.arguments[position])).text
        except Unknown:
            return None

    def _object(self, name: str) -> Term:
        """A variable of the run whose type alone gives it a value: ``std::integral_constant<int, 4>``."""
        try:
            kind = self.type_of(name).text
        except Unknown:
            kind = ""
        if kind.startswith("std::integral_constant<") or self._is_empty(kind):
            return ListTerm((), kind)
        raise Unknown(f"`{name}` is a variable of the run")

    def _is_empty(self, kind: str) -> bool:
        """Whether the objects of a class of the source, and of its bases, hold nothing: all of them are alike."""
        try:
            place = self.located(kind) if kind else None
            if place is None or not place.made.body_end or self.fields(place):
                return False
            before = self.standing_before(place)
            bases = [before.type(base).text for base in place.made.bases]
        except Unknown:
            return False
        return all(base.startswith("std::integral_constant<") or self._is_empty(base) for base in bases)

    def _global(self, name: str) -> Term:
        """A name of the class or namespace around, or of any that is visible."""
        index = self.tools.index
        scopes = visible(self.context.scope)
        bound = self.frame.bound | self.bound if self.frame is not None else self.bound
        variables = self._seen(index.entries(name, ("variable",), lambda facts: facts.variables))
        for path, variable in variables:
            if variable.constant and variable.value is not None and self._in_reach(variable.scope, scopes):
                if variable.template is not None:
                    continue
                self._decided(path, variable, variable.value, [(p, v, v.value) for p, v in variables if v.constant])
                inside = self.elsewhere(path, variable.scope, bound)
                value = self.tools.expand(path, variable.value, variable.offset).strip()
                return inside.initialiser(value, variable.type)
        aliases = self._seen(index.entries(name, ("alias",), lambda facts: facts.aliases))
        for path, alias in aliases:
            if alias.kind in ("type", "using") and alias.template is None and self._in_reach(alias.scope, scopes):
                self._decided(path, alias, alias.target, [(p, a, a.target) for p, a in aliases if a.kind == alias.kind])
                if alias.target == name:
                    # `typedef struct {…} name;` is a class of its own.
                    return TypeTerm("::".join((*visible(alias.scope), name)))
                if strip_arguments(alias.target).split("::")[-1] == name and alias.kind == "using":
                    return self.elsewhere(path, ()).type(alias.target)
                return self.elsewhere(path, alias.scope, bound).type(
                    self.tools.expand(path, alias.target, alias.offset)
                )
        enumerator = self._enumerator(name, ())
        if enumerator is not None:
            return enumerator
        classes = index.entries(name, ("class",), lambda facts: facts.classes)
        for _, made in (*self._seen(classes), *self._seen(self._declared(name))):
            if made.specialisation is None and self._in_reach(made.scope, scopes):
                qualified = "::".join((*made.scope, made.name))
                return TypeTerm(qualified) if made.template is None else TemplateTerm(qualified)
        for _, enum in self._seen(index.entries(name, ("enum",), lambda facts: facts.enums)):
            if self._in_reach(enum.scope, scopes):
                return TypeTerm("::".join((*enum.scope, enum.name)))
        for _, alias in self._seen(index.entries(name, ("alias",), lambda facts: facts.aliases)):
            if alias.kind == "type" and alias.template is not None and self._in_reach(alias.scope, scopes):
                return TemplateTerm("::".join((*alias.scope, name)))
        return self._of_toolkit(name)

    @staticmethod
    def _of_toolkit(name: str) -> Term:
        """A name of CUDA's own headers, which no source holds."""
        made, counted = toolkit_type(name), cub_enumerator(name)
        if made is not None:
            return TypeTerm(made)
        if counted is not None:
            return ConstTerm(counted[1], counted[0])
        raise Unknown(f"`{name}` is not known in the source")

    def _decided(self, path: str, entry, text: str, others) -> None:
        """Raises Unknown where the source declares a name in two ways and it is not known which the build reads."""
        for other_path, other, other_text in others:
            if other is entry or other.scope != entry.scope or not other_text or same_text(text, other_text):
                continue
            facts = self.tools.index.declared(path)
            terms = facts.conditions[entry.condition]
            if not terms or self.tools.resolver.holds(path, terms, entry.offset) is not True:
                places = f"{path}:{entry.line} and {other_path}:{other.line}"
                raise Unknown(f"`{entry.name}` is declared in two ways ({places})")

    def _scope_of(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Qualifiers with a namespace alias in front resolved."""
        if not parts:
            return parts
        return self.tools.resolver.qualifiers(parts, self.context)

    def _enumerator(self, name: str, qualifiers: tuple[str, ...]) -> ConstTerm | None:
        if name not in self.tools.index.names_of_kind("enumerator"):
            return None
        outer = self._outer(qualifiers)
        found: dict[str, ConstTerm] = {}
        for path in self.tools.index.paths_of(name, ("enumerator",)):
            facts = self.tools.index.declared(path)
            for _, enum in self._read_here((path, e) for e in facts.enums if any(m == name for m, _ in e.members)):
                full = "::".join((*enum.scope, enum.name))
                if (
                    qualifiers
                    and not self._ends_with((*enum.scope, enum.name), qualifiers, outer)
                    and not self._ends_with(enum.scope, qualifiers, outer)
                ):
                    continue
                if not qualifiers and enum.scoped:
                    continue
                found[full] = ConstTerm(self.enum_value(path, enum, name), full)
        return next(iter(found.values())) if len(found) == 1 else None

    def enum_value(self, path: str, enum, name: str) -> int:
        """The value of one enumerator. Raises Unknown."""
        value = -1
        inside = self.elsewhere(path, enum.scope, dict(self.bound), self.around)
        for member, text in enum.members:
            if text is None:
                value += 1
            else:
                term = value_of(evaluate(self.tools.expand(path, text, enum.offset), inside))
                if term is None:
                    raise Unknown(f"the value of `{member}` is not a number")
                value = int(term.value)
            inside.bound[member] = ConstTerm(value)
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
        if len(parts) == 1:
            return self._global(simple)
        found = self._enumerator(simple, parts[:-1])
        if found is not None:
            return found
        owner: Term | None = None
        why = ""
        try:
            owner = self.name("::".join(parts[:-1]))
        except Unknown as unknown:
            why = str(unknown)
        if isinstance(owner, TypeTerm):
            return self.member(owner, simple)
        if isinstance(owner, TemplateTerm):
            raise Unknown(f"the arguments of `{owner.text}` in `{text}` are not known")
        parts = (*self._scope_of(parts[:-1]), simple)
        found = self._enumerator(simple, parts[:-1])
        if found is not None:
            return found
        index = self.tools.index
        wanted = parts[:-1]
        classes = index.entries(simple, ("class",), lambda facts: facts.classes)
        for _, made in (*self._meant(classes, wanted), *self._meant(self._declared(simple), wanted)):
            if made.specialisation is None:
                qualified = "::".join((*made.scope, made.name))
                return TypeTerm(qualified) if made.template is None else TemplateTerm(qualified)
        for _, enum in self._meant(index.entries(simple, ("enum",), lambda facts: facts.enums), wanted):
            return TypeTerm("::".join((*enum.scope, enum.name)))
        for path, alias in self._meant(index.entries(simple, ("alias",), lambda facts: facts.aliases), wanted):
            if alias.kind == "type":
                if alias.template is not None:
                    return TemplateTerm("::".join((*alias.scope, simple)))
                return self.elsewhere(path, alias.scope).type(self.tools.expand(path, alias.target, alias.offset))
        for path, variable in self._meant(index.entries(simple, ("variable",), lambda facts: facts.variables), wanted):
            if variable.constant and variable.value and variable.template is None:
                value = self.tools.expand(path, variable.value, variable.offset)
                return self.elsewhere(path, variable.scope).initialiser(value, variable.type)
        if wanted == ("cub",):
            return self._of_toolkit(simple)
        raise Unknown(why or f"`{text}` is not known in the source")
