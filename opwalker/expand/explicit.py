"""Explicit instantiations: ``template void f<float>(…);`` compiles what no call may show.

In: the declarations of a tree. Out: what each one adds: instances of kernels named directly, and host functions to
follow with their template parameters bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from opwalker.expand.deduction import deduce
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.homes import Homes
from opwalker.expand.resolve import Candidate, Context, Resolver
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import Term, Unknown, join_arguments
from opwalker.facts.cpp_brackets import split_commas
from opwalker.link.index import Index
from opwalker.model.cpp import Function
from opwalker.model.reach import Origin


@dataclass(frozen=True, slots=True)
class Explicit:
    """One explicit instantiation of a definition: its bindings and their printed form, or why they are not known.
    ``origin`` is where it stands, ``owner`` the class that a member is instantiated for."""

    candidate: Candidate
    bound: dict[str, Term | None]
    text: str
    reason: str | None = None
    origin: Origin | None = None
    owner: str | None = None

    @property
    def origins(self) -> dict[str, Origin]:
        """Where each bound parameter comes from."""
        return {name: self.origin for name, term in self.bound.items() if term is not None and self.origin}


def explicit_instantiations(index: Index, resolver: Resolver, tools: Tools) -> Iterator[Explicit]:
    """Every explicit instantiation of a function template that the build reads."""
    for path in sorted(index.paths):
        facts = index.facts(path)
        for function in facts.functions if facts else ():
            if "explicit_instantiation" not in function.flags or not resolver.is_read(path, function):
                continue
            kernel = "global" in function.flags
            context = Context(path, path, function.scope)
            qualified = "::".join((*(s for s in function.scope if not s.startswith("(")), function.name))
            found = resolver.function(qualified, context, None, kernel=kernel).candidates
            for candidate in found:
                if candidate.function.template and len(candidate.function.parameters) == len(function.parameters):
                    origin = Origin("instantiation", function.qualified_name, path, function.line)
                    yield replace(_read(tools, context, candidate, function), origin=origin)
        yield from _classes(path, index, resolver, tools)


def _classes(path: str, index: Index, resolver: Resolver, tools: Tools) -> Iterator[Explicit]:
    """The members that ``template class A<int>;`` compiles: all that are no templates themselves."""
    facts = index.facts(path)
    homes = Homes(tools)
    for made in facts.instantiations if facts else ():
        terms = facts.conditions[made.condition]
        if made.external or (terms and resolver.holds(path, terms, made.offset) is False):
            continue
        environment = Environment(tools, Context(path, path, made.scope))
        origin = Origin("instantiation", "::".join((*made.scope, made.name)), path, made.line)
        qualified = "::".join((*(s for s in made.scope if not s.startswith("(")), made.name))
        try:
            owner = environment.type(f"{qualified}<{made.arguments}>").text
            for candidate, home in homes.members(environment, owner):
                if not home.parameters(candidate.function):
                    yield Explicit(candidate, home.bound, "", None, origin, home.type)
        except Unknown as unknown:
            for candidate in homes.named(made.name):
                bound = {p.name: None for p in template_parameters(candidate.function.template) if p.name}
                yield Explicit(candidate, bound, "", str(unknown), origin)


def _read(tools: Tools, context: Context, candidate: Candidate, function: Function) -> Explicit:
    parameters = template_parameters(candidate.function.template)
    environment = Environment(tools, context)
    try:
        pieces = []
        if function.specialisation is not None:
            pieces = [function.specialisation[a:b].strip() for a, b in split_commas(function.specialisation)]
        terms = [environment.term(p, parameters[i] if i < len(parameters) else None) for i, p in enumerate(pieces)]
        # What is not written is deduced from the parameter types.
        names = {p.name for p in parameters[len(terms) :]}
        found: dict[str, Term] = {}
        for pattern, actual in zip(candidate.function.parameters, function.parameters, strict=True):
            if any(re.search(rf"\b{name}\b", pattern.type) for name in names if name):
                found.update(deduce(pattern.type, environment.type(actual.type).text, names))
        for parameter in parameters[len(terms) :]:
            if parameter.name not in found:
                break
            terms.append(found[parameter.name])
        inside = Environment(tools, Context(candidate.path, context.root, candidate.function.scope))
        bound = inside.bind(parameters, terms, inside.context)
        return Explicit(candidate, bound, join_arguments(inside.printed(parameters, bound)))
    except Unknown as unknown:
        return Explicit(candidate, {p.name: None for p in parameters if p.name}, "", str(unknown))
