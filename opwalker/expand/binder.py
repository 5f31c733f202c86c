"""Template parameters of a function bound: from explicit arguments, from the types of what is passed, from defaults.

In: a definition, and the place that names it. Out: terms by parameter name, None where one is not worked out, and why.
Which of several definitions is meant is decided by ``expand/fitting.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from opwalker.expand.arity import is_pack
from opwalker.expand.deduction import Mismatch, unify
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.frames import Named
from opwalker.expand.homes import Home
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.shapes import shape
from opwalker.expand.specialised import head_of
from opwalker.expand.template_heads import TemplateParameter
from opwalker.expand.terms import ConstTerm, NoType, PackTerm, Term, TypeTerm, Unknown, flattened
from opwalker.expand.tokens import names_any
from opwalker.model.body import Span2
from opwalker.model.cpp import Function
from opwalker.notation.regex import Regex

#: A parameter that takes what it is given as it is: a variable by reference, any other value by its type.
_FORWARDED = Regex(r"\s*([A-Za-z_]\w*)\s*&&\s*\Z")
_VARIABLE = Regex(r"\(*\s*([A-Za-z_]\w*)(?:\s*(?:\.|->)\s*[A-Za-z_]\w*|\s*\[[^\[\]]*\])*\s*\)*\Z")
_PASSED_ON = Regex(r"(?:std::)?forward\s*<\s*([A-Za-z_]\w*)\s*>\s*\([^()]*\)\Z")


class Binder:
    """Binds template parameters, in one tree."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def inside(self, candidate: Candidate, bound: dict[str, Term | None], owner: str | None = None) -> Environment:
        """The environment of a function's own head."""
        return head_of(self._tools, candidate, bound, owner)

    def bind(
        self,
        candidate: Candidate,
        parameters: tuple[TemplateParameter, ...],
        environment: Environment,
        given: tuple[Span2, ...],
        passed: tuple[Span2, ...] | None,
        home: Home | None = None,
        named: tuple[Environment, Named] | None = None,
        target: str | None = None,
    ) -> tuple[dict[str, Term | None], str | None]:
        """Template parameters from explicit arguments, then deduced, then defaults: ``(bound, why not all)``. The
        explicit ones stand where the function is ``named``, if that is another place; ``target`` is the type of pointer
        that it is turned into. Raises Mismatch, NoType."""
        held = dict(home.bound) if home is not None else {}
        owner = home.type if home is not None else None
        context = self.inside(candidate, {}).context
        try:
            there, texts = environment, tuple(environment.body.text(span) for span in given)
            if named is not None:
                there, one = named
                texts = one.written or tuple(there.body.text(span) for span in given)
            pieces = [piece for text in texts for piece in there.parts(text)]
        except Unknown as unknown:
            return {p.name or f"#{n}": None for n, p in enumerate(parameters)}, str(unknown)
        own = home is None or home.type is None
        if own and len(pieces) > len(parameters) and not any(p.pack for p in parameters):
            raise Mismatch
        bound, why = self.explicit(parameters, pieces, held, context)
        if target is not None:
            self._from_target(candidate, parameters, there, target, bound, held, owner)
        if parameters and passed is not None:
            self._deduce(candidate, parameters, environment, passed, bound, held, owner)
        for number, parameter in enumerate(parameters):
            key = parameter.name or f"#{number}"
            if key in bound:
                continue
            if parameter.pack:
                if why is None and not self._mentioned(candidate.function, parameter.name):
                    bound[key] = PackTerm(())
                    continue
                bound[key] = None
                why = why or f"the pack `{parameter.name}` of {candidate.function.name} is not deduced"
            elif parameter.default is None:
                bound[key] = None
                name = f"`{parameter.name or '?'}` of {candidate.function.name}"
                why = why or f"the template parameter {name} is neither given nor deduced"
            else:
                inside = self.inside(candidate, {**held, **bound}, owner)
                try:
                    bound[key] = inside._typed(
                        inside.term(parameter.default, parameter), parameter, inside.bound, inside.context
                    )
                except NoType:
                    raise
                except Unknown as unknown:
                    bound[key] = None
                    why = why or str(unknown)
        return bound, why

    @staticmethod
    def _mentioned(function: Function, name: str) -> bool:
        return any(names_any(p.type, (name,)) for p in function.parameters)

    @staticmethod
    def explicit(
        parameters: tuple[TemplateParameter, ...],
        pieces: Sequence[tuple[str, Environment]],
        held: dict[str, Term | None],
        context: Context,
    ) -> tuple[dict[str, Term | None], str | None]:
        """What explicit template arguments bind, each a text with the environment that it is read in. Raises NoType."""
        bound: dict[str, Term | None] = {}
        why: str | None = None
        for number, parameter in enumerate(parameters):
            key = parameter.name or f"#{number}"
            rest = pieces[number:] if parameter.pack else pieces[number : number + 1]
            if not rest:
                break
            terms: list[Term] = []
            for text, scope in rest:
                try:
                    term = scope.term(text, parameter)
                    terms.append(scope._typed(term, parameter, {**held, **bound}, context))
                except NoType:
                    raise
                except Unknown as unknown:
                    why = why or str(unknown)
                    terms = []
                    break
            if parameter.pack:
                bound[key] = PackTerm(tuple(flattened(terms))) if len(terms) >= len(rest) else None
                break
            bound[key] = terms[0] if terms else None
        return bound, why

    def _deduce(
        self, candidate: Candidate, parameters, environment: Environment, passed, bound: dict, held: dict, owner
    ) -> None:
        """Adds to ``bound`` what the types of the arguments fix. Raises Mismatch."""
        function = candidate.function
        packs = {p.name for p in parameters if p.pack}
        missing = {p.name for p in parameters if p.name and (p.name not in bound or p.name in packs)}
        explicit = {n for n in bound if n not in missing}
        inside = self.inside(candidate, {**held, **{n: bound[n] for n in explicit}}, owner)
        found: dict[str, Term] = {}
        actuals, whole = self.actuals(environment, passed)
        for number, parameter in enumerate(function.parameters):
            text = parameter.type
            if not names_any(text, missing):
                continue
            if is_pack(parameter):
                pattern = text.replace("...", "").strip()
                if whole:
                    self._deduce_pack(pattern, actuals[number:], missing, found)
                break
            if number >= len(actuals):
                break
            try:
                piece, scope = actuals[number]
                actual = scope.type_of(piece).text
            except Unknown:
                continue
            self._one(text, actual, missing, found, inside)
            if (forwarded := _FORWARDED.match(text)) and isinstance(term := found.get(forwarded[1]), TypeTerm):
                found[forwarded[1]] = _by_name(term, piece, scope)
        for name, term in found.items():
            bound.setdefault(name, term)

    def _from_target(
        self, candidate: Candidate, parameters, environment: Environment, target: str, bound: dict, held: dict, owner
    ) -> None:
        """Adds to ``bound`` what the type of a pointer to the function fixes. Raises Mismatch."""
        function = candidate.function
        missing = {p.name for p in parameters if p.name and p.name not in bound}
        if not missing or any(is_pack(parameter) for parameter in function.parameters):
            return
        try:
            wanted = shape(environment.type(target).text).parameters
        except Unknown:
            return
        if wanted is None:
            return
        if len(wanted) != len(function.parameters):
            raise Mismatch
        inside = self.inside(candidate, {**held, **bound}, owner)
        found: dict[str, Term] = {}
        for parameter, actual in zip(function.parameters, wanted, strict=True):
            if names_any(parameter.type, missing):
                self._one(parameter.type, actual, missing, found, inside)
        for name, term in found.items():
            bound.setdefault(name, term)

    @staticmethod
    def _one(pattern: str, actual: str, missing: set[str], found: dict[str, Term], inside: Environment) -> None:
        for name, term in unify(pattern, actual, missing, lambda t: inside.type(t).text).items():
            held = found.setdefault(name, term)
            if held != term and type(held) is type(term) and isinstance(term, TypeTerm):
                raise Mismatch

    @staticmethod
    def actuals(environment: Environment, passed) -> tuple[list[tuple[str, Environment]], bool]:
        """What is passed, each with the environment it is read in, packs spread; and whether that is all of it: what
        stands behind a pack that is not known has no place."""
        out: list[tuple[str, Environment]] = []
        for span in passed:
            text = environment.body.text(span)
            if not text.endswith("..."):
                out.append((text, environment))
                continue
            pattern = text[:-3].strip()
            try:
                out += [(pattern, scope) for scope in environment.spread(pattern)]
            except Unknown:
                return out, False
        return out, True

    @staticmethod
    def _deduce_pack(pattern: str, actuals, missing, found: dict) -> None:
        each: dict[str, list[Term]] = {n: [] for n in missing if names_any(pattern, (n,))}
        try:
            for piece, scope in actuals:
                one = unify(pattern, scope.type_of(piece).text, set(each))
                for name, listed in each.items():
                    listed.append(one[name])
        except (Unknown, KeyError):
            return
        for name, listed in each.items():
            found.setdefault(name, PackTerm(tuple(listed)))


def _by_name(term: TypeTerm, text: str, scope: Environment) -> TypeTerm:
    """What is deduced for a ``T&&`` from what is passed: a reference, where that is a variable, a part of one, or one
    that is passed on."""
    if passed_on := _PASSED_ON.match(text):
        held = scope.frame.bound.get(passed_on[1]) if scope.frame is not None else None
        return replace(term, by_name=isinstance(held, TypeTerm) and held.by_name)
    found = _VARIABLE.match(text)
    if found is None or found[1] in ("true", "false", "nullptr", "this"):
        return term
    if text != found[1]:
        return replace(term, by_name=True)
    local = next(iter(scope.body.locals_at(text, scope.offset)), None)
    constant = local is not None and "*" not in local.type and "const" in local.type.split()
    if constant and not term.text.endswith(" const"):
        return TypeTerm(f"{term.text} const", by_name=True)
    try:
        return replace(term, by_name=not isinstance(scope.term(text), ConstTerm) or local is not None)
    except Unknown:
        return replace(term, by_name=True)
