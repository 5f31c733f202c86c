"""Classes with their arguments: the part of ``Environment`` that finds the definition that is meant and reads members.

In: canonical types (``ns::A<int>::B``). Out: the class definition or specialisation that they mean, with its parameters
bound, and what its members are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from opwalker.expand.deduction import literal_term
from opwalker.expand.expressions import evaluate
from opwalker.expand.resolve import Context, strip_arguments, visible
from opwalker.expand.shapes import components, outer_of, shape
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import ConstTerm, ListTerm, NoMember, Term, TypeTerm, Unknown
from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.cpp import ClassDef, Variable

#: Up to this depth what cannot be worked out is not tried again.
_SHALLOW = 12
_CONSTANT = "std::integral_constant<"


class Place(Struct, frozen=True):
    """A class definition that a canonical type means: ``bound`` are its parameters, and those of classes around."""

    path: str
    made: ClassDef
    bound: dict[str, Term | None]
    type: str


class ClassReading:
    """Members of classes and class templates."""

    def member(self, owner: TypeTerm, member: str) -> Term:
        """A constant or type inside a class, or of a class template with its arguments; ``name<…>`` for a template."""
        found = self.try_member(owner, member)
        if found is None:
            name, simple = f"{owner.text[:80]}::{member}", strip_arguments(owner.text).rpartition("::")[2]
            if any(function.scope[-1:] == (simple,) for _, function in self.tools.index.functions(member)):
                raise Unknown(f"what `{name}` returns is not worked out")
            raise NoMember(f"`{name}` is not defined in the source")
        return found

    def try_member(self, owner: TypeTerm, member: str) -> Term | None:
        """As ``member``; None where the class has none of that name."""
        self._deeper()
        key = ("member", self.context.root, owner.text, member)
        memo = self.tools.memo
        readings = self.tools.readings
        if key not in memo:
            memo[key] = Unknown(f"`{owner.text[:60]}::{member[:40]}` is defined by itself")
            with readings.working_out(key):
                try:
                    memo[key] = self._try_member(owner, member)
                except Unknown as unknown:
                    if self.depth > _SHALLOW:
                        del memo[key]  # it may be known where less lies behind
                        raise
                    memo[key] = unknown
        else:
            readings.met(key)
        held = memo[key]
        if isinstance(held, Unknown):
            raise held.with_traceback(None)  # or each time adds where it went, and keeps that alive
        return held

    def _try_member(self, owner: TypeTerm, member: str) -> Term | None:
        if owner.text.startswith(_CONSTANT):
            kind, value = (owner.text[len(_CONSTANT) :].rstrip(" >").rsplit(", ", 1) + [""])[:2]
            if member in ("value", "kValue"):
                term = literal_term(value)
                return ConstTerm(term.value, kind) if isinstance(term, ConstTerm) else None
            return TypeTerm(kind) if member == "value_type" else owner if member == "type" else None
        place = self.located(owner.text)
        if place is None:
            names = tuple(name for name, _ in components(owner.text) if name != "(anonymous namespace)")
            found = self._enumerator(member, names) if names else None
            if found is None:
                raise Unknown(f"`{owner.text[:80]}` is not defined in the source")
            return ConstTerm(found.value, owner.text)
        return self._inside(place, member)

    def located(self, text: str) -> Place | None:
        """The definition that a canonical class type means; None where the source has none. Raises Unknown."""
        key = ("class", self.context.root, text)
        memo = self.tools.memo
        readings = self.tools.readings
        if key not in memo:
            self._deeper()
            memo[key] = None
            with readings.working_out(key):
                try:
                    memo[key] = self._located(text)
                except Unknown:
                    del memo[key]
                    raise
        else:
            readings.met(key)
        return memo[key]

    def _located(self, text: str) -> Place | None:
        held = shape(text)
        parts = components(held.base) if not held.marks else ()
        if not parts:
            return None
        simple, arguments = parts[-1]
        scope = tuple(name for name, _ in parts[:-1] if name != "(anonymous namespace)")
        found = [
            (path, made)
            for path, made in self._seen(self.tools.index.entries(simple, ("class",), lambda facts: facts.classes))
            if not scope or visible(made.scope)[-len(scope) :] == scope
        ]
        outer: dict[str, Term | None] = {}
        around = None
        if any(given is not None for _, given in parts[:-1]):
            around = self.located(outer_of(held.base))
            if around is None:
                return None
            outer = around.bound
            inside = around.made
            found = [
                (p, m) for p, m in found
                if p == around.path and inside.body_start < m.offset < inside.body_end
            ]  # fmt: skip
        if not found:
            return None
        chosen = self.chosen_class(found, list(arguments or ()), outer)
        if chosen is None:
            return None
        path, made, bound = chosen
        return Place(path, made, {**outer, **bound}, text)

    def chosen_class(
        self, found, parts: list[str], outer: dict[str, Term | None] | None = None
    ) -> tuple[str, ClassDef, dict[str, Term | None]] | None:
        """The primary template or the specialisation whose pattern fits; the most special one first. Raises Unknown
        where it cannot be told."""
        primary: tuple[str, ClassDef, dict] | None = None
        fitting: list[tuple[int, str, ClassDef, dict]] = []
        for path, made in found:
            if made.specialisation is not None:
                bound = self.pattern_bound(path, made, parts)
                if bound is not None:
                    names = {p.name for p in template_parameters(made.template)}
                    patterns = [made.specialisation[a:b].strip() for a, b in split_commas(made.specialisation)]
                    fixed = sum(1 for p in patterns if p.removesuffix("...").strip() not in names)
                    twice = len(patterns) - len(set(patterns))
                    fitting.append((1 + 2 * fixed + twice, path, made, bound))
                continue
            parameters = template_parameters(made.template)
            if bool(parts) != bool(parameters) and not any(p.pack for p in parameters):
                continue
            given = [literal_term(p) for p in parts]
            try:
                bound = self.bind(parameters, given, Context(path, self.context.root, made.scope))
            except Unknown:
                bound = {p.name: t for p, t in zip(parameters, given, strict=False)}
            if primary is None or (not primary[1].body_end and made.body_end):
                primary = path, made, bound
            elif made.body_end and made.scope == primary[1].scope:
                self._told_apart(primary[0], primary[1], path, made)
        if fitting:
            best = max(fitting, key=lambda item: item[0])
            if primary is not None and primary[1].body_end:
                self._told_apart(best[1], best[2], primary[0], primary[1])
            return best[1], best[2], best[3]
        return primary

    def _told_apart(self, path: str, made: ClassDef, other_path: str, other: ClassDef) -> None:
        """Raises Unknown where it is not known whether the build reads one definition of a class, or another."""
        terms = self.tools.index.declared(path).conditions[made.condition]
        # Of what differs between passes over one unit, one pass reads the one, and another the other.
        within_one_pass = terms and not any("__CUDA_ARCH" in term for term in terms)
        if within_one_pass and self.tools.resolver.holds(path, terms, made.offset) is None:
            places = f"{path}:{made.line} and {other_path}:{other.line}"
            raise Unknown(f"`{made.name}` is declared in two ways ({places})")

    def standing_in(self, place: Place):
        """The environment inside a class."""
        return self.elsewhere(place.path, (*place.made.scope, place.made.name), dict(place.bound), place.type)

    def standing_before(self, place: Place):
        """The environment in which the bases of a class are named: its template's parameters, and what is around it.

        The class is not complete there: no name is looked for in the very bases that it helps to name.
        """
        return self.elsewhere(place.path, place.made.scope, dict(place.bound), outer_of(place.type) or None)

    def _inside(self, place: Place, member: str) -> Term | None:
        path, made = place.path, place.made
        facts = self.tools.index.declared(path)
        name, _, arguments = member.partition("<")
        name = name.strip()
        depth = len(made.scope) + 1

        def own(entry) -> bool:
            return entry.name == name and made.body_start < entry.offset < made.body_end and len(entry.scope) == depth

        inside = self.standing_in(place)
        if arguments:
            parts = inside.parts(arguments[: arguments.rindex(">")])
            return inside._inner_template((), name, parts, None)
        for variable in facts.variables:
            if own(variable) and variable.value is not None and variable.constant and self._may_hold(path, variable):
                value = self.tools.expand(path, variable.value, variable.offset).strip()
                return inside.initialiser(value, variable.type)
        for alias in facts.aliases:
            if own(alias) and self._may_hold(path, alias):
                if alias.kind == "using":
                    return inside.type(alias.target)
                return inside.type(self.tools.expand(path, alias.target, alias.offset))
        for enum in facts.enums:
            if not (made.body_start < enum.offset < made.body_end and len(enum.scope) == depth):
                continue
            if enum.name == name:
                return TypeTerm(f"{place.type}::{name}")
            if not enum.scoped and any(m == name for m, _ in enum.members):
                kind = f"{place.type}::{enum.name}" if enum.name else "int"
                return ConstTerm(inside.enum_value(path, enum, name), kind)
        if name == made.name:
            return TypeTerm(place.type)
        for inner in facts.classes:
            if own(inner) and inner.template is None and inner.specialisation is None:
                return TypeTerm(f"{place.type}::{name}")
        return self._inherited(place, member)

    def _inherited(self, place: Place, member: str) -> Term | None:
        """A member of a base class. Raises Unknown where a base that may have it is not known."""
        reason: Unknown | None = None
        before = self.standing_before(place)
        for base in place.made.bases:
            try:
                for text, scope in before.parts(base):
                    found = before.try_member(scope.type(text), member)
                    if found is not None:
                        return found
            except Unknown as unknown:
                reason = reason or unknown
        if reason is not None:
            raise reason
        return None

    def _may_hold(self, path: str, entry) -> bool:
        facts = self.tools.index.declared(path)
        terms = facts.conditions[entry.condition]
        return not terms or self.tools.resolver.holds(path, terms, entry.offset) is not False

    def _inner_template(self, wanted: tuple[str, ...], simple: str, parts, member: str | None) -> Term | None:
        """A template that is a member of the class around, or of the class that the qualifiers mean; None for none."""
        owner = self._owner_of(wanted)
        while owner:
            place = self._told(owner)
            if place is None:
                return None
            found = self._member_template(place, simple, parts, member)
            if found is not None:
                return found
            before = self.standing_before(place)
            for base in place.made.bases:
                try:
                    found = before._inner_of(before.type(base).text, simple, parts, member)
                except Unknown:
                    continue
                if found is not None:
                    return found
            owner = outer_of(owner) if not wanted else ""
        return None

    def _inner_of(self, owner: str, simple: str, parts, member: str | None) -> Term | None:
        place = self.located(owner)
        return self._member_template(place, simple, parts, member) if place is not None else None

    def _member_template(self, place: Place, simple: str, parts, member: str | None) -> Term | None:
        path, made = place.path, place.made
        facts = self.tools.index.declared(path)
        if simple == made.name and made.template is not None:
            primary = (path, made) if made.specialisation is None else None
            outer = outer_of(place.type)
            named = f"{outer}::{simple}" if outer else "::".join((*made.scope, simple))
            found = self.class_type(named, primary, parts)
            return self.member(found, member) if member else found
        depth = len(made.scope) + 1
        for alias in facts.aliases:
            if alias.name == simple and made.body_start < alias.offset < made.body_end and alias.template is not None:
                return self._alias(path, alias, parts, member, place.bound, place.type)
        inner = [
            (path, c) for c in facts.classes
            if c.name == simple and made.body_start < c.offset < made.body_end and len(c.scope) == depth
            and (c.template is not None or c.specialisation is not None)
        ]  # fmt: skip
        if inner:
            primary = next(((p, c) for p, c in inner if c.specialisation is None), None)
            found = self.class_type(f"{place.type}::{simple}", primary, parts)
            return self.member(found, member) if member else found
        held = [
            (path, v) for v in facts.variables
            if v.name == simple and made.body_start < v.offset < made.body_end and v.template is not None and v.value
        ]  # fmt: skip
        if held and member is None:
            variable = held[0][1]
            parameters = template_parameters(variable.template)
            bound = self.bind(parameters, self._arguments_of(parts, parameters))
            inside = self.elsewhere(path, variable.scope, {**place.bound, **bound}, place.type)
            return inside.initialiser(self.tools.expand(path, variable.value, variable.offset), variable.type)
        return None

    def _owner_of(self, wanted: tuple[str, ...]) -> str:
        """The class that qualifiers mean; without any, the class around."""
        if not wanted:
            return self.around or ""
        try:
            found = self.name("::".join(wanted))
        except Unknown:
            return ""
        return found.text if isinstance(found, TypeTerm) else ""

    def _told(self, text: str) -> Place | None:
        """As ``located``; None as well where it cannot be told which definition a class type means."""
        with contextlib.suppress(Unknown):
            return self.located(text)
        return None

    def tables(self, name: str) -> list[tuple[str, Any]]:
        """The initialisers of variables outside functions that a name can mean, each with its environment."""
        qualifier, _, simple = name.rpartition("::")
        owner = self.around
        with contextlib.suppress(Unknown):
            owner = self.type(qualifier).text if qualifier else owner
        out: list[tuple[str, Any]] = []
        place = self._told(owner or "")
        while place is not None:
            inside = self.standing_in(place)
            out += [
                (self.tools.expand(place.path, v.value, v.offset), inside)
                for v in self.tools.index.declared(place.path).variables
                if v.name == simple and place.made.body_start < v.offset < place.made.body_end and v.value
            ]  # fmt: skip
            place = self._told(outer_of(place.type)) if not out else None
        if out:
            return out
        wanted = self._scope_of(tuple(p for p in strip_arguments(qualifier).split("::") if p))
        entries = self.tools.index.entries(simple, ("variable",), lambda facts: facts.variables)
        seen = self._meant(entries, wanted)
        here = [
            (self.tools.expand(path, v.value, v.offset), self.elsewhere(path, v.scope)) for path, v in seen if v.value
        ]
        return here or [
            (self.tools.expand(path, v.value, v.offset), self.under(Context(path, path, v.scope)))
            for path, v in self._linked(entries, [v for _, v in seen])
        ]

    def _linked(self, entries, declared: Sequence[Variable]) -> list[tuple[str, Variable]]:
        """The definitions in other units of variables that are only declared here (``extern F rows[];``)."""
        scopes = {v.scope for v in declared if v.type.endswith("]") and "(anonymous namespace)" not in v.scope}
        index = self.tools.index
        out = []
        for path, v in entries:
            if not v.value or v.scope not in scopes or "static" in v.type:
                continue
            # A constant has internal linkage unless its unit declares it as well.
            bare = [p for p, other in entries if other.scope == v.scope and not other.value]
            declares = any(p in index.closure(path) for p in bare)
            terms = index.declared(path).conditions[v.condition]
            if (declares or not v.constant) and self.tools.resolver.holds(path, terms, v.offset) is not False:
                out.append((path, v))
        return out

    def field(self, value: ListTerm, name: str) -> Term:
        """A field of a constant aggregate."""
        place = self.located(value.type) if value.type else None
        if place is None:
            raise Unknown(f"`{name}` of `{value.text[:60]}` is not known")
        fields = self.fields(place)
        for number, variable in enumerate(fields):
            if variable.name == name:
                if number < len(value.items):
                    return value.items[number]
                if variable.value is not None:
                    return self.standing_in(place).initialiser(variable.value, variable.type)
        return self.member(TypeTerm(value.type), name)

    def fields(self, place: Place) -> list:
        """The data members of a class, in order, without static ones."""
        made = place.made
        return [
            v for v in self.tools.index.declared(place.path).variables
            if made.body_start < v.offset < made.body_end and len(v.scope) == len(made.scope) + 1
            and not (v.constant and v.value is not None)
        ]  # fmt: skip


__all__ = ["ClassReading", "Place", "evaluate"]
