"""Which functions a call can mean, and what it binds their template parameters to.

In: a call at a place, and the definitions that its name can mean. Out: ``Fit`` values. Class templates give their
parameters by the object or the class that the call is made on; ``enable_if``, ``requires``, specialisations and the
types of the arguments rule candidates out. What cannot be told keeps a candidate and says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from opwalker.expand.arity import Arity, is_pack
from opwalker.expand.binder import Binder
from opwalker.expand.constraints import is_excluded
from opwalker.expand.deduction import Mismatch
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.fits import Fit
from opwalker.expand.frames import Frame, Named, unit_of
from opwalker.expand.homes import Home, Homes
from opwalker.expand.overloads import best
from opwalker.expand.resolve import Candidate
from opwalker.expand.specialised import Specialisations, is_full
from opwalker.expand.target_types import target_type
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import NoType, Unknown
from opwalker.model.body import CallFact, Span2
from opwalker.model.cpp import ClassDef, Function
from opwalker.notation.regex import Regex

_AUTO = Regex(r"\bauto\b")


class Fitter:
    """Fits calls and mentions to definitions."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._homes = Homes(tools)
        self.specialisations = Specialisations(tools)
        self.binder = Binder(tools)
        self._arity = Arity(tools.index)

    def is_plain(self, candidate: Candidate) -> bool:
        """Whether a call of a function binds nothing."""
        key = ("plain", *candidate.key)
        found = self._tools.memo.get(key)
        if found is None:
            found = self._tools.memo[key] = self._binds_nothing(candidate)
        return found

    def _binds_nothing(self, candidate: Candidate) -> bool:
        function = candidate.function
        auto = any("auto" in p.type and _AUTO.search(p.type) for p in function.parameters)
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
        count = environment.body.passed(call)
        found = self._tools.resolver.function(call.name, context, count, kernel=False).candidates
        return self.fits(found, environment, call)

    def members(self, environment: Environment, call: CallFact) -> list[Candidate]:
        """The member functions that the type of the object, or the class that is named, has for a call."""
        simple = member_name(call)
        if not self.may_be_member(call):
            return []
        owner = self._homes.owner(environment, call)
        if owner is None:
            return []
        return self._homes.functions(environment, owner, simple, environment.body.passed(call))

    def owner_of(self, environment: Environment, call: CallFact) -> str | None:
        """The class that a call is made on, in canonical spelling; None where it is none or not known."""
        return self._homes.owner(environment, call)

    def constructors(self, environment: Environment, call: CallFact) -> list[Candidate]:
        """The constructors of the class that a call makes an object of."""
        owner = self._homes.made_by(environment, call)
        place = environment.located(owner) if isinstance(owner, str) else None
        if place is None:
            return []
        return self._homes.functions(environment, owner, place.made.name, environment.body.passed(call))

    def may_be_member(self, call: CallFact) -> bool:
        """Whether any class of the tree may have the member that a call names: a cheap no for most calls."""
        return member_name(call) in self._tools.index.names_of_kind("function")

    def fits(self, candidates: Sequence[Candidate], environment: Environment, call: CallFact) -> list[Fit]:
        """The candidates that a call means at a place, with what they are bound to."""
        if len(candidates) == 1 and self.is_plain(candidates[0]):
            made = self._homes.classes(candidates[0])
            return [Fit(candidates[0], owner="::".join((*made[-1][1].scope, made[-1][1].name)) if made else None)]
        types = self._types(environment, call.arguments) if len(candidates) > 1 else None
        if call.template_arguments or any(environment.body.text(span).endswith("...") for span in call.arguments):
            return self._told_apart(candidates, environment, call, types)
        # Which overload is meant, of those that bind nothing, follows from the types alone: many calls have the same.
        key = "fits", tuple(candidate.key for candidate in candidates), types, self._tools.index.changes
        held = self._tools.memo.get(key)
        if held is None:
            circles = self._tools.readings.circles
            held = self._told_apart(candidates, environment, call, types)
            if circles == self._tools.readings.circles and candidates and all(map(self.is_plain, candidates)):
                self._tools.memo[key] = held
        return held

    def _told_apart(
        self,
        candidates: Sequence[Candidate],
        environment: Environment,
        call: CallFact,
        types: tuple[str | None, ...] | None,
    ) -> list[Fit]:
        """``fits`` of candidates that are more than one, or bind anything."""
        out: list[Fit] = []
        refused: list[Fit] = []
        owner: str | Unknown | None = None
        if any(self._homes.in_template(c) for c in candidates):
            builds = all(c.function.name.lstrip("~") == c.function.scope[-1] for c in candidates if c.function.scope)
            owner = self._homes.made_by(environment, call) if builds else self._homes.of_call(environment, call)
        for candidate in self._narrowed(candidates):
            home = self._homes.home(environment, candidate, owner)
            if home is None:
                continue
            fit = self._fit(candidate, environment, home, call.template_arguments or (), call.arguments)
            if isinstance(fit, Fit):
                out.append(fit if types is None else replace(fit, types=types))
            elif fit is not None:
                refused.append(Fit(candidate, dict.fromkeys(self._names(candidate, home)), home.type, fit, False))
        doubt = next((fit.why for fit in out if not fit.sure), None)
        if doubt is not None and len(out) > 1:  # which of them is compiled for these arguments is not known
            return [replace(fit, bound=dict.fromkeys(fit.bound), why=doubt, sure=False) for fit in out]
        out = self._specialised(out, candidates)
        if not out:
            return refused
        out = best(out, self._tools) if len(out) > 1 else out
        return [one for fit in out for one in self._instantiated(fit, environment)] or out

    def _instantiated(self, fit: Fit, environment: Environment) -> list[Fit]:
        """A fit of a template that other units define, as the explicit instantiations that it may mean: a unit that
        sees no more than the declaration compiles nothing of it. Nothing where that definition makes others alone."""
        candidate, frame = fit.candidate, environment.frame
        if not candidate.function.template or frame is None or is_full(candidate.function):
            return [fit]
        if candidate.path == frame.root or candidate.path in self._tools.index.closure(frame.root):
            return [fit]
        known = {name: term for name, term in fit.bound.items() if term is not None}
        made = self._tools.written_out(candidate)
        found = [b for b in made if all(b.get(n) == t for n, t in known.items())]
        if fit.why is None:
            return [fit] if found or not made else []
        return [replace(fit, bound=dict(bound), why=None) for bound in found] or [fit]

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
                inside = self.binder.inside(fit.candidate, fit.bound)
                printed = inside.printed(template_parameters(function.template), fit.bound)
                meant = self.specialisations.meant(fit.candidate, special, printed)
            except Unknown as unknown:
                out.append(replace(fit, sure=False, why=fit.why or str(unknown)))
                out += [Fit(c, {}, None, str(unknown), False) for c in special]
                continue
            out.append(fit if meant is None else Fit(meant, types=fit.types))
        return out

    def registered(self, candidate: Candidate, scope: Environment, written: str | None, template: str | None) -> Fit:
        """What a registration binds that names a function: ``&f<float>``, ``&Class<float>::f`` (``written`` is the
        class)."""
        owner: str | Unknown | None = None
        if written is not None and self._homes.in_template(candidate):
            try:
                owner = scope.type(written).text
            except Unknown as unknown:
                owner = unknown
        home = self._homes.home(scope, candidate, owner) or Home()
        parameters = home.parameters(candidate.function)
        if template is None:
            names = dict.fromkeys(p.name for p in parameters if p.name)
            return Fit(candidate, {**names, **home.bound}, home.type, home.why)
        try:
            context = self.binder.inside(candidate, {}).context
            pieces = scope.parts(template)
            bound, why = self.binder.explicit(parameters, pieces, dict(home.bound), context)
            held = self.binder.inside(candidate, {**home.bound, **bound}, home.type)
            if why is None:
                given = [bound[p.name] for p in parameters if p.name in bound]
                bound = held.bind(parameters, given, context)
        except Unknown as unknown:
            bound, why = dict.fromkeys(p.name for p in parameters if p.name), str(unknown)
        return Fit(candidate, {**home.bound, **bound}, home.type, why or home.why)

    def aimed(
        self, candidate: Candidate, environment: Environment, given: tuple[Span2, ...], target: str
    ) -> Fit | None:
        """What a place binds that turns a function template into a pointer of the type ``target``; None where it means
        another function of the name."""
        parameters = template_parameters(candidate.function.template)
        try:
            bound, why = self.binder.bind(candidate, parameters, environment, given, None, target=target)
            if is_excluded(candidate, self.binder.inside(candidate, bound)):
                return None
            return Fit(candidate, bound, why=why)
        except (Mismatch, NoType):
            return None
        except Unknown as unknown:
            return Fit(candidate, dict.fromkeys(p.name for p in parameters if p.name), why=str(unknown))

    def fit_named(self, named: Named, there: Environment, environment: Environment, call: CallFact) -> Fit | None:
        """What a call binds that is made through a variable: the function is named elsewhere, with its explicit
        template arguments; the others follow from what is passed."""
        home = self._homes.home(there, named.candidate, there.around)
        found = self._fit(named.candidate, environment, home or Home(), named.given, call.arguments, (there, named))
        if isinstance(found, str):
            names = self._names(named.candidate, home or Home())
            return Fit(named.candidate, dict.fromkeys(names), None, found, False)
        return found

    @staticmethod
    def _narrowed(candidates: Sequence[Candidate]) -> list[Candidate]:
        """Without full specialisations where their template is there: they are met through it."""
        special = [c for c in candidates if is_full(c.function)]
        return [c for c in candidates if c not in special] if len(special) < len(candidates) else list(candidates)

    def _names(self, candidate: Candidate, home: Home) -> list[str]:
        return [p.name for p in (*home.parameters(candidate.function),) if p.name] + list(home.bound)

    def _takes_more(self, candidate: Candidate, count: int) -> bool:
        """Whether a function takes a number of arguments, and any further ones."""
        parameters = candidate.function.parameters
        return self._arity.takes(candidate.function, count) and any(is_pack(parameter) for parameter in parameters)

    def _fit(
        self,
        candidate: Candidate,
        environment: Environment,
        home: Home,
        given: tuple[Span2, ...],
        passed: tuple[Span2, ...] | None,
        named: tuple[Environment, Named] | None = None,
    ) -> Fit | str | None:
        """A fit; None where the candidate is ruled out for good, a text where only its types speak against it."""
        parameters = home.parameters(candidate.function)
        sure, unknown = True, None
        if passed and any(environment.body.text(span).endswith("...") for span in passed):
            actuals, whole = self.binder.actuals(environment, passed)
            if whole and not self._arity.takes(candidate.function, len(actuals)):
                return None
            given_alone = sum(not environment.body.text(span).endswith("...") for span in passed)
            if not whole and not self._takes_more(candidate, given_alone):
                unknown = f"how many arguments {candidate.function.name} is called with is not known"
        try:
            target = target_type(named[1].body, named[1].offset) if named is not None and named[1].body else None
            bound, why = self.binder.bind(candidate, parameters, environment, given, passed, home, named, target)
            sure, why = sure and unknown is None, why or unknown
            inside = self.binder.inside(candidate, {**home.bound, **bound}, home.type)
            try:
                if is_excluded(candidate, inside):
                    return None
            except NoType:
                return None
            except Unknown as unknown:
                sure, why = False, why or str(unknown)
        except NoType:
            return None
        except Mismatch:
            return f"the arguments of {candidate.function.name} do not fit its parameters as far as they are known"
        except Unknown as unknown:
            why = str(unknown)
        given_types = self._auto_types(candidate.function, environment, passed)
        return Fit(candidate, {**home.bound, **bound}, home.type, why or home.why, sure, given_types)

    def _auto_types(self, function: Function, environment: Environment, passed) -> dict[str, str]:
        out: dict[str, str] = {}
        for parameter, span in zip(function.parameters, passed or (), strict=False):
            if "auto" in parameter.type and _AUTO.search(parameter.type) and parameter.name:
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
        root = unit_of(self._tools.index, fit.candidate, frame.root)
        doubt = environment.doubt or frame.doubt
        return Frame(
            fit.candidate, root, frame.steps, {}, {}, fit.bound, fit.why, frame.certain,
            owner=fit.owner, given=fit.given, doubt=doubt,
        )  # fmt: skip


def member_name(call: CallFact) -> str:
    """The simple name of the member function that a call means, where it means one."""
    return call.simple if call.receiver is not None or "::" in call.name else "operator()"


def callable_parameters(function: Function, position: int) -> str | None:
    """The name of the parameter that takes an argument at a position; None for none."""
    parameters = function.parameters
    return (parameters[position].name or None) if position < len(parameters) else None
