"""Calls of constexpr functions at a place: the part of ``Environment`` that runs them."""

from __future__ import annotations

from opwalker.expand.arithmetic import cast, limit
from opwalker.expand.arity import is_pack
from opwalker.expand.constexpr_run import run
from opwalker.expand.deduction import Mismatch, as_type, unify
from opwalker.expand.environment_objects import converted
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import ClosureTerm, ConstTerm, ListTerm, PackTerm, Term, TypeTerm, Unknown
from opwalker.expand.tokens import names_any
from opwalker.model.cpp import Function
from opwalker.notation.regex import Regex

#: What the object of a method is bound to.
_THIS = "*this"
_LIMITS = Regex(r"std::numeric_limits<(.*?)\s*>")
_CONVERSION = Regex(r"operator\s+[A-Za-z_]")


class ConstantCalls:
    """Constant functions of the source."""

    def call(self, text: str, template: str | None, arguments: list[str]) -> Term:
        """A constexpr function of the source, or an object that is called. Raises Unknown."""
        self._deeper()
        arguments = self.spread_out(arguments)
        if isinstance(self.bound.get(text), ClosureTerm):
            return self.call_closure(self.bound[text], arguments)
        if template is None and self.holder(text) is not None:
            held = self.name(text)
            number = value_of(held)
            if number is not None and not arguments:
                return number  # `std::integral_constant` gives its value
            if isinstance(held, ListTerm) and held.type:
                return self.call_member(TypeTerm(held.type), "operator()", None, arguments)
        owner, _, simple = text.rpartition("::")
        if owner:
            try:
                held = self.type(owner)
            except Unknown:
                held = None
            if held is not None and self.located(held.text) is not None:
                return self.call_member(held, simple, template, arguments)
        elif self.around and any(True for _ in self.methods(self.around, text, len(arguments))):
            return self.call_member(TypeTerm(self.around), text, template, arguments)
        if text.removeprefix("::") == "std::size" and len(arguments) == 1:
            listed = evaluate(arguments[0], self)
            if isinstance(listed, ListTerm):
                return ConstTerm(len(listed.items), "unsigned long")
        found = self.tools.resolver.function(text, self.context, len(arguments), kernel=False).candidates
        usable = [c for c in found if "constexpr" in c.function.flags]
        if len(usable) != 1:
            raise Unknown(f"`{text}(…)` is not a constant function of the source")
        inside = self.elsewhere(usable[0].path, usable[0].function.scope, {})
        return self._run(usable[0].path, usable[0].function, inside, template, arguments, text)

    def call_member(
        self, owner: TypeTerm, name: str, template: str | None, arguments: list[str], on: ListTerm | None = None
    ) -> Term:
        """A constexpr member function: a static one, or one that is called ``on`` an object; inside a method of that
        class, on the object of the method."""
        self._deeper()
        bounded = _LIMITS.fullmatch(owner.text)
        if bounded is not None and (found := limit(bounded.group(1), name)) is not None:
            return found
        arguments = self.spread_out(arguments)
        place = self.located(owner.text)
        found = [(f, i) for f, i in self.methods(owner.text, name, len(arguments)) if "constexpr" in f.flags]
        if len(found) != 1 or place is None:
            raise Unknown(f"`{owner.text[:60]}::{name}(…)` is not a constant function of the source")
        function, inside = found[0]
        held = self.elsewhere(inside.context.path, inside.context.scope, dict(inside.bound), inside.owner)
        this = on if on is not None else self.bound.get(_THIS)
        if isinstance(this, ListTerm) and this.type == owner.text and "static" not in function.flags:
            held.bound.update((v.name, item) for v, item in zip(self.fields(place), this.items, strict=False))
            held.bound[_THIS] = this
        return self._run(inside.context.path, function, held, template, arguments, name)

    def converted(self, held: Term, kind: str | None = None) -> ConstTerm | None:
        """The number that an object is or that its class converts it to, for a parameter of a canonical type; None for
        none, and for several of which no one is of that type. Raises Unknown."""
        found = value_of(held)
        if found is not None or not isinstance(held, ListTerm) or not held.type:
            return found
        self._deeper()
        place = self.located(held.type)
        if place is None:
            return None
        found = self._by_function(place, held, kind)
        before = self.standing_before(place)
        for base in place.made.bases if found is None else ():
            found = self.converted(ListTerm((), before.type(base).text), kind)
            if found is not None:
                break
        return found

    def aggregate(self, held: ListTerm, kind: str) -> ListTerm:
        """An object of a class with each of its fields, in the type that the class gives it. Raises Unknown."""
        place = self.located(kind)
        if place is None or place.made.bases:
            raise Unknown(f"which fields an object of `{kind[:60]}` has is not known")
        items: list[Term] = []
        for number, variable in enumerate(self.fields(place)):
            inside = self.standing_in(place)
            declared = inside.type(variable.type).text
            if number < len(held.items):
                item = held.items[number]
            elif variable.value is not None:
                item = inside.initialiser(variable.value, variable.type)
            else:
                item = ConstTerm(0)
            if isinstance(item, ListTerm):
                items.append(inside.aggregate(item, declared))
            else:
                items.append(as_type(item, declared))
        if len(held.items) > len(items):
            raise Unknown(f"`{held.text[:60]}` has more elements than `{kind[:60]}` has fields")
        return ListTerm(tuple(items), kind)

    def _by_function(self, place, held: ListTerm, kind: str | None) -> ConstTerm | None:
        """What the conversion functions of a class itself give."""
        made: dict[str, Function] = {}
        for function in self.tools.index.facts(place.path).functions:
            within = place.made.body_start < function.offset < place.made.body_end
            if within and _CONVERSION.match(function.name) and "constexpr" in function.flags:
                made[self.standing_in(place).type(function.name.removeprefix("operator ")).text] = function
        implicit = {text: f for text, f in made.items() if "explicit" not in f.flags}
        chosen = kind if kind in made else next(iter(implicit)) if len(implicit) == 1 else None
        if chosen is None:
            return None
        inside = self.standing_in(place)
        inside.bound.update((v.name, item) for v, item in zip(self.fields(place), held.items, strict=False))
        found = value_of(self._run(place.path, made[chosen], inside, None, [], made[chosen].name))
        return found and cast(found, chosen)

    def _run(
        self, path: str, function: Function, inside, template: str | None, arguments: list[str], name: str
    ) -> Term:
        if not function.body_end:
            raise Unknown(f"`{name}(…)` has no body in the source")
        parameters = template_parameters(function.template)
        given = self._arguments(template, parameters) if template is not None else []
        values = [evaluate(argument, self) for argument in arguments]
        bound = inside.bound
        missing = {p.name for p in parameters[len(given) :] if p.name}
        found: dict[str, Term] = {}
        for parameter, value in zip(function.parameters, values, strict=False):
            kind = value.type if isinstance(value, ConstTerm | ListTerm | ClosureTerm) else ""
            mentioned = names_any(parameter.type, missing)
            if mentioned and kind:
                try:
                    found.update(unify(parameter.type.replace("...", ""), kind, missing))
                except Mismatch as mismatch:
                    raise Unknown(f"the arguments of `{name}(…)` do not fit") from mismatch
        terms = list(given)
        for parameter in parameters[len(given) :]:
            if parameter.name not in found:
                break
            terms.append(found[parameter.name])
        bound.update(inside.bind(parameters, terms, inside.context) if parameters else {})
        for number, parameter in enumerate(function.parameters):
            if is_pack(parameter):
                bound[parameter.name] = PackTerm(tuple(values[number:]))
                break
            if number < len(values):
                bound[parameter.name] = converted(values[number], parameter.type, inside)
            elif parameter.default is not None:
                bound[parameter.name] = evaluate(parameter.default, inside)
        return inside.returned(run(self._source(path, function), inside), function.return_type)

    def _source(self, path: str, function: Function) -> str:
        key = ("source", path, function.body_start)
        memo = self.tools.memo
        if key not in memo:
            memo[key] = self.tools.resolver.source(path, function.body_start, function.body_end)
        return memo[key]
