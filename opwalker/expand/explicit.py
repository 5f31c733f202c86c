"""Explicit instantiations: ``template void f<float>(…);`` compiles what no call may show.

In: the declarations of a tree. Out: what each one adds: instances of kernels named directly, and host functions to
follow with their template parameters bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.deduction import deduce
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.homes import Home, Homes
from opwalker.expand.resolve import Candidate, Context, Resolver
from opwalker.expand.specialised import Specialisations, is_full
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import Term, Unknown, join_arguments
from opwalker.facts.cpp_brackets import split_commas
from opwalker.link.index import Index
from opwalker.model.cpp import Function
from opwalker.model.reach import Origin


class Explicit(Struct, frozen=True):
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
            if "explicit_instantiation" in function.flags:
                yield from _functions(path, function, resolver, tools)
        yield from _classes(path, index, resolver, tools)


def written_out(candidate: Candidate, index: Index, resolver: Resolver, tools: Tools) -> list[Explicit]:
    """The explicit instantiations of one function template."""
    name = candidate.function.name
    found = [(p, f) for p, f in index.functions(name) if "explicit_instantiation" in f.flags]
    return [e for p, f in found for e in _functions(p, f, resolver, tools) if e.candidate.key == candidate.key]


def written_members(index: Index, resolver: Resolver, tools: Tools) -> dict[tuple[str, int], list[Explicit]]:
    """What explicit instantiations of class templates, or of single members, compile, by the member's definition; of a
    member for which one is not worked out, nothing."""
    out: dict[tuple[str, int], list[Explicit]] = {}
    for path in sorted(index.paths):
        facts = index.facts(path)
        for function in facts.functions if facts else ():
            if "explicit_instantiation" in function.flags and function.owner is not None:
                for one in _functions(path, function, resolver, tools):
                    out.setdefault(one.candidate.key, []).append(one)
        for one in _classes(path, index, resolver, tools):
            out.setdefault(one.candidate.key, []).append(one)
    return {key: made for key, made in out.items() if all(one.reason is None for one in made)}


def _functions(path: str, function: Function, resolver: Resolver, tools: Tools) -> Iterator[Explicit]:
    """What one explicit instantiation of a function means."""
    if not resolver.is_read(path, function):
        return
    kernel = "global" in function.flags
    context = Context(path, path, function.scope)
    qualified = "::".join((*(s for s in function.scope if not s.startswith("(")), function.name))
    origin = Origin("instantiation", function.qualified_name, path, function.line)
    if function.owner is not None:
        yield from _members(path, function, tools, origin)
        return
    found = resolver.function(qualified, context, None, kernel=kernel).candidates
    for candidate in found:
        if candidate.function.template and len(candidate.function.parameters) == len(function.parameters):
            made = _specialised(replace(_read(tools, context, candidate, function), origin=origin), found, tools)
            if made is not None:
                yield made


def _specialised(made: Explicit, rivals: Sequence[Candidate], tools: Tools) -> Explicit | None:
    """An instantiation of a kernel as that of the full specialisation which it means; None for one of a host function:
    a full specialisation is compiled where it is defined."""
    if made.reason is not None or not any(is_full(rival.function) for rival in rivals):
        return made
    try:
        printed = [made.text[a:b].strip() for a, b in split_commas(made.text)]
        meant = Specialisations(tools).meant(made.candidate, rivals, printed)
    except Unknown as unknown:
        return replace(made, reason=str(unknown))
    if meant is None:
        return made
    return replace(made, candidate=meant) if "global" in meant.function.flags else None


def _members(path: str, function: Function, tools: Tools, origin: Origin) -> Iterator[Explicit]:
    """``template void A<float>::f(…);``: one member of a class template, itself a template or not."""
    homes = Homes(tools)
    scope = tuple(s for s in function.scope if not s.startswith("("))
    environment = Environment(tools, Context(path, path, function.scope[:-1]))
    try:
        owner = environment.type(f"{'::'.join(scope)}<{function.owner}>").text
        for candidate, home in homes.members(environment, owner):
            same = len(candidate.function.parameters) == len(function.parameters)
            if candidate.function.name != function.name or not same:
                continue
            if not home.parameters(candidate.function):
                yield Explicit(candidate, home.bound, "", None, origin, home.type)
            else:
                made = _read(tools, environment.context, candidate, function, home)
                yield replace(made, origin=origin, owner=home.type)
    except Unknown:
        return  # the call of the member says itself what is not known


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


def _read(
    tools: Tools, context: Context, candidate: Candidate, function: Function, home: Home | None = None
) -> Explicit:
    """What an instantiation binds: what it writes, then what its parameter types tell. ``home`` is the class of a
    member."""
    home = home or Home()
    parameters = home.parameters(candidate.function)
    environment = Environment(tools, context)
    inside = Environment(
        tools, Context(candidate.path, context.root, candidate.function.scope), bound=dict(home.bound), owner=home.type
    )
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
        bound = inside.bind(parameters, terms, inside.context)
        return Explicit(candidate, {**home.bound, **bound}, join_arguments(inside.printed(parameters, bound)))
    except Unknown as unknown:
        lost = {p.name: None for p in parameters if p.name}
        return Explicit(candidate, {**home.bound, **lost}, "", str(unknown))
