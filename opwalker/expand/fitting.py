"""Which functions a call can mean, and what it binds their template parameters to.

In: a call at a place, and the definitions that its name can mean. Out: ``Fit`` values. Class templates give their
parameters by the object or the class that the call is made on; ``enable_if``, ``requires``, specialisations and the
types of the arguments rule candidates out. What cannot be told keeps a candidate and says why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from opwalker.expand.arity import is_pack
from opwalker.expand.deduction import Mismatch, unify
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.environment_templates import NoType
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.frames import Frame
from opwalker.expand.homes import Home, Homes
from opwalker.expand.overloads import best
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.specialised import Specialisations, head_of, is_full
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import PackTerm, Term, TypeTerm, Unknown, flattened
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.model.body import CallFact, Span2
from opwalker.model.cpp import ClassDef, Function

_ENABLE = re.compile(r"\benable_if(?:_t)?\s*<")


@dataclass(frozen=True, slots=True)
class Fit:
    """A definition that a call means: what its template parameters and those of its class are bound to (None: not
    worked out, for the reason ``why``), its class, and the types of what is passed for ``auto``. ``sure`` is false
    where another definition may be meant instead."""

    candidate: Candidate
    bound: dict[str, Term | None] = field(default_factory=dict)
    owner: str | None = None
    why: str | None = None
    sure: bool = True
    given: dict[str, str] = field(default_factory=dict)
    types: tuple[str | None, ...] = ()

    @property
    def key(self) -> tuple:
        """What makes two fits the same."""
        bound = tuple(sorted((k, repr(v)) for k, v in self.bound.items()))
        return (*self.candidate.key, bound, self.owner, tuple(sorted(self.given.items())))


class Fitter:
    """Fits calls and mentions to definitions."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._homes = Homes(tools)
        self.specialisations = Specialisations(tools)

    def is_plain(self, candidate: Candidate) -> bool:
        """Whether a call of a function binds nothing."""
        function = candidate.function
        auto = any(re.search(r"\bauto\b", p.type) for p in function.parameters)
        return not function.template and not auto and not function.requires and not self._homes.in_template(candidate)

    def class_of(self, candidate: Candidate) -> ClassDef | None:
        """The innermost class that a function is a member of."""
        found = self._homes.classes(candidate)
        return found[-1][1] if found else None

    # -- calls ------------------------------------------------------------------------------------------------------

    def targets(self, environment: Environment, call: CallFact) -> list[Fit]:
        """The fits of a call whose candidates are not known yet."""
        members = self.members(environment, call)
        if members:
            return self.fits(members, environment, call)
        if call.receiver is not None:
            return []
        context = environment.context
        found = self._tools.resolver.function(call.name, context, len(call.arguments), kernel=False).candidates
        return self.fits(found, environment, call)

    def members(self, environment: Environment, call: CallFact) -> list[Candidate]:
        """The member functions that the type of the object, or the class that is named, has for a call."""
        simple = _member_name(call)
        if not self.may_be_member(call):
            return []
        owner = self._homes.owner(environment, call)
        if owner is None:
            return []
        return self._homes.functions(environment, owner, simple, len(call.arguments))

    def constructors(self, environment: Environment, call: CallFact) -> list[Candidate]:
        """The constructors of the class that a call makes an object of."""
        owner = self._homes.made_by(environment, call)
        place = environment.located(owner) if isinstance(owner, str) else None
        if place is None:
            return []
        return self._homes.functions(environment, owner, place.made.name, len(call.arguments))

    def may_be_member(self, call: CallFact) -> bool:
        """Whether any class of the tree may have the member that a call names: a cheap no for most calls."""
        return _member_name(call) in self._tools.index.names_of_kind("function")

    def fits(self, candidates: Sequence[Candidate], environment: Environment, call: CallFact) -> list[Fit]:
        """The candidates that a call means at a place, with what they are bound to."""
        if len(candidates) == 1 and self.is_plain(candidates[0]):
            made = self._homes.classes(candidates[0])
            return [Fit(candidates[0], owner="::".join((*made[-1][1].scope, made[-1][1].name)) if made else None)]
        out: list[Fit] = []
        refused: list[Fit] = []
        owner: str | Unknown | None = None
        if any(self._homes.in_template(c) for c in candidates):
            builds = all(c.function.name == c.function.scope[-1] for c in candidates if c.function.scope)
            owner = self._homes.made_by(environment, call) if builds else self._homes.of_call(environment, call)
        types: tuple[str | None, ...] | None = None
        if len(candidates) > 1:
            types = self._types(environment, call.arguments)
        for candidate in self._narrowed(candidates):
            home = self._homes.home(environment, candidate, owner)
            if home is None:
                continue
            fit = self._fit(candidate, environment, home, call.template_arguments or (), call.arguments)
            if isinstance(fit, Fit):
                out.append(fit if types is None else replace(fit, types=types))
            elif fit is not None:
                refused.append(Fit(candidate, dict.fromkeys(self._names(candidate, home)), home.type, fit, False))
        out = self._specialised(out, candidates)
        if not out:
            return refused
        return best(out, self._tools) if len(out) > 1 else out

    def _specialised(self, fits: list[Fit], candidates: Sequence[Candidate]) -> list[Fit]:
        """Each fit of a template replaced by the full specialisation for its arguments, where there is one."""
        special = [c for c in candidates if is_full(c.function)]
        out: list[Fit] = [] if special else fits
        for fit in fits if special else ():
            function = fit.candidate.function
            if not function.template:
                out.append(fit)
                continue
            try:
                inside = self.inside(fit.candidate, fit.bound)
                printed = inside.printed(template_parameters(function.template), fit.bound)
                meant = self.specialisations.meant(fit.candidate, special, printed)
            except Unknown as unknown:
                out.append(replace(fit, sure=False, why=fit.why or str(unknown)))
                out += [Fit(c, {}, None, str(unknown), False) for c in special]
                continue
            out.append(fit if meant is None else Fit(meant, types=fit.types))
        return out

    @staticmethod
    def _narrowed(candidates: Sequence[Candidate]) -> list[Candidate]:
        """Without full specialisations where their template is there: they are met through it."""
        special = [c for c in candidates if is_full(c.function)]
        return [c for c in candidates if c not in special] if len(special) < len(candidates) else list(candidates)

    def _names(self, candidate: Candidate, home: Home) -> list[str]:
        return [p.name for p in (*home.parameters(candidate.function),) if p.name] + list(home.bound)

    def _fit(
        self,
        candidate: Candidate,
        environment: Environment,
        home: Home,
        given: tuple[Span2, ...],
        passed: tuple[Span2, ...] | None,
    ) -> Fit | str | None:
        """A fit; None where the candidate is ruled out for good, a text where only its types speak against it."""
        parameters = home.parameters(candidate.function)
        try:
            bound, why = self.bind(candidate, parameters, environment, given, passed, home)
            inside = self.inside(candidate, {**home.bound, **bound}, home.type)
            if why is None and self.is_excluded(candidate, inside):
                return None
        except NoType:
            return None
        except Mismatch:
            return f"the arguments of {candidate.function.name} do not fit its parameters as far as they are known"
        except Unknown as unknown:
            why = str(unknown)
        given_types = self._auto_types(candidate.function, environment, passed)
        return Fit(candidate, {**home.bound, **bound}, home.type, why or home.why, True, given_types)

    def _auto_types(self, function: Function, environment: Environment, passed) -> dict[str, str]:
        out: dict[str, str] = {}
        for parameter, span in zip(function.parameters, passed or (), strict=False):
            if re.search(r"\bauto\b", parameter.type) and parameter.name:
                try:
                    out[parameter.name] = environment.type_of(environment.body.text(span)).text
                except Unknown:
                    continue
        return out

    def _types(self, environment: Environment, spans: tuple[Span2, ...]) -> tuple[str | None, ...]:
        out: list[str | None] = []
        for span in spans:
            try:
                out.append(environment.type_of(environment.body.text(span)).text)
            except Unknown:
                out.append(None)
        return tuple(out)

    def frame_of(self, fit: Fit, environment: Environment) -> Frame:
        """The frame in which a function is read that only passes something on."""
        frame = environment.frame
        closure = self._tools.index.closure(frame.root)
        root = frame.root if fit.candidate.path in closure else fit.candidate.path
        doubt = environment.doubt or frame.doubt
        return Frame(
            fit.candidate, root, frame.steps, {}, {}, fit.bound, fit.why, frame.certain,
            owner=fit.owner, given=fit.given, doubt=doubt,
        )  # fmt: skip

    # -- binding ----------------------------------------------------------------------------------------------------

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
    ) -> tuple[dict[str, Term | None], str | None]:
        """Template parameters from explicit arguments, then deduced, then defaults: ``(bound, why not all)``. Raises
        Mismatch, NoType."""
        held = dict(home.bound) if home is not None else {}
        owner = home.type if home is not None else None
        context = self.inside(candidate, {}).context
        try:
            pieces = [p for span in given for p in environment.parts(environment.body.text(span))]
        except Unknown as unknown:
            return {p.name or f"#{n}": None for n, p in enumerate(parameters)}, str(unknown)
        bound, why = self.explicit(parameters, pieces, held, context)
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
        return any(re.search(rf"\b{re.escape(name)}\b", p.type) for p in function.parameters)

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
        for number, parameter in enumerate(function.parameters):
            text = parameter.type
            if not any(re.search(rf"\b{re.escape(name)}\b", text) for name in missing):
                continue
            if is_pack(parameter):
                self._deduce_pack(text.replace("...", "").strip(), environment, passed[number:], missing, found)
                break
            if number >= len(passed):
                break
            try:
                actual = environment.type_of(environment.body.text(passed[number])).text
            except Unknown:
                continue
            self._one(text, actual, missing, found, inside)
        for name, term in found.items():
            bound.setdefault(name, term)

    @staticmethod
    def _one(pattern: str, actual: str, missing: set[str], found: dict[str, Term], inside: Environment) -> None:
        for name, term in unify(pattern, actual, missing, lambda t: inside.type(t).text).items():
            held = found.setdefault(name, term)
            if held != term and type(held) is type(term) and isinstance(term, TypeTerm):
                raise Mismatch

    def _deduce_pack(self, pattern: str, environment: Environment, spans, missing, found: dict) -> None:
        each: dict[str, list[Term]] = {n: [] for n in missing if re.search(rf"\b{re.escape(n)}\b", pattern)}
        for span in spans:
            text = environment.body.text(span)
            scopes = [(text, environment)]
            try:
                if text.endswith("..."):
                    scopes = [(text[:-3].strip(), scope) for scope in environment.spread(text[:-3])]
                for piece, scope in scopes:
                    one = unify(pattern, scope.type_of(piece).text, set(each))
                    for name, listed in each.items():
                        listed.append(one[name])
            except (Unknown, KeyError):
                return
        for name, listed in each.items():
            found.setdefault(name, PackTerm(tuple(listed)))

    # -- conditions -------------------------------------------------------------------------------------------------

    def is_excluded(self, candidate: Candidate, inside: Environment) -> bool:
        """Whether ``enable_if`` or ``requires`` in the head rules these arguments out. Raises Unknown when it cannot
        be told."""
        function = candidate.function
        if function.requires:
            held = value_of(evaluate(function.requires, inside))
            if held is None:
                raise Unknown(f"whether `requires {function.requires[:60]}` holds is not known")
            if not held.value:
                return True
        for text in (function.return_type, *(p.type for p in function.parameters)):
            match = _ENABLE.search(text)
            if match is None:
                continue
            inner = text[match.end() : match_angle(text, match.end() - 1) - 1]
            first = split_commas(inner)[0]
            value = value_of(evaluate(inner[first[0] : first[1]], inside))
            if value is None:
                raise Unknown(f"whether `{inner[first[0] : first[1]][:60]}` holds is not known")
            if not value.value:
                return True
        return False


def _member_name(call: CallFact) -> str:
    return call.simple if call.receiver is not None or "::" in call.name else "operator()"


def callable_parameters(function: Function, position: int) -> str | None:
    """The name of the parameter that takes an argument at a position; None for none."""
    parameters = function.parameters
    return (parameters[position].name or None) if position < len(parameters) else None
