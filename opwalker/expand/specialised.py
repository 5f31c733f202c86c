"""Full specialisations of function templates, and the arguments that each is for.

In: a template's definition and other definitions of its name. Out: printed argument lists. ``template <> void f(…)``
gives its arguments by its parameters, as a call would.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.expand.deduction import Mismatch, unify
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.qualified import visible
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import Term
from opwalker.expand.tokens import names_any
from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.cpp import Function


def is_full(function: Function) -> bool:
    """Whether a definition is a full specialisation of a function template."""
    return function.template == "" and function.owner is None


def head_of(tools: Tools, candidate: Candidate, bound: dict[str, Term | None], owner: str | None = None) -> Environment:
    """The environment of a function's own head."""
    context = Context(candidate.path, candidate.path, candidate.function.scope)
    return Environment(tools, context, bound=bound, owner=owner)


class Specialisations:
    """Reads the full specialisations of one tree."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def of(self, candidate: Candidate, rivals: Sequence[Candidate]) -> list[tuple[Candidate, list[str]]]:
        """The full specialisations of a function template among its rivals, with their printed arguments. Raises
        Unknown for one whose arguments are not known."""
        out = []
        for rival in rivals:
            if is_full(rival.function) and rival.function.name == candidate.function.name:
                printed = self._arguments(candidate, rival)
                if printed is not None:
                    out.append((rival, printed))
        return out

    def meant(self, candidate: Candidate, rivals: Sequence[Candidate], printed: Sequence[str]) -> Candidate | None:
        """The specialisation for printed arguments; None where the template itself is meant. Raises Unknown."""
        wanted = ["".join(text.split()) for text in printed]
        for rival, arguments in self.of(candidate, rivals):
            if ["".join(text.split()) for text in arguments] == wanted:
                return rival
        return None

    def own(self, special: Candidate) -> tuple[Candidate, list[str]] | None:
        """The template that a full specialisation is one of, if only declared, with the printed arguments; None where
        it is not in the source. Raises Unknown where the arguments are not known."""
        function = special.function
        around = visible(function.scope)
        for path, other in self._tools.index.functions(function.name):
            if not other.template or other.owner is not None or "explicit_instantiation" in other.flags:
                continue
            if visible(other.scope) == around and ("global" in other.flags) == ("global" in function.flags):
                candidate = Candidate(path, other)
                printed = self._arguments(candidate, special)
                if printed is not None:
                    return candidate, printed
        return None

    def _arguments(self, candidate: Candidate, special: Candidate) -> list[str] | None:
        """The arguments of a full specialisation, as those of its template; None where it is none of it."""
        key = ("special", candidate.key, special.key)
        memo = self._tools.memo
        if key not in memo:
            memo[key] = self._read(candidate, special)
        return memo[key]

    def _read(self, candidate: Candidate, special: Candidate) -> list[str] | None:
        function, made = candidate.function, special.function
        parameters = template_parameters(function.template)
        if len(function.parameters) != len(made.parameters):
            return None
        at = head_of(self._tools, special, {})
        text = made.specialisation or ""
        pieces = [text[a:b].strip() for a, b in split_commas(text)]
        terms: dict[str, Term | None] = {}
        for parameter, piece in zip(parameters, pieces, strict=False):
            terms[parameter.name] = at.term(piece, parameter)
        missing = {p.name for p in parameters if p.name not in terms}
        for pattern, actual in zip(function.parameters, made.parameters, strict=True):
            if names_any(pattern.type, filter(None, missing)):
                try:
                    terms.update(unify(pattern.type, at.type(actual.type).text, missing))
                except Mismatch:
                    return None
        for parameter in parameters:
            if parameter.name not in terms:
                if parameter.default is None:
                    return None
                held = head_of(self._tools, candidate, dict(terms))
                terms[parameter.name] = held.term(parameter.default, parameter)
        inside = head_of(self._tools, candidate, {})
        bound = inside.bind(parameters, [terms[p.name] for p in parameters], inside.context)
        return inside.printed(parameters, bound)
