"""Which instances of a kernel a mention of it compiles, and what the calls on the way bind.

In: a kernel or a call in a body, in a frame. Out: printed argument lists, or the reason why they cannot be enumerated.
A mention inside a generic lambda counts once for every call of the lambda, one inside a fold once for every element.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.choices import MAX_CHOICES, Choices, Handed, elements_of
from opwalker.expand.constraints import is_excluded
from opwalker.expand.deduction import Mismatch
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.fits import Fit
from opwalker.expand.fitting import Fitter
from opwalker.expand.frames import Frame, Named
from opwalker.expand.origins import Origins
from opwalker.expand.resolve import Candidate
from opwalker.expand.specialised import is_full
from opwalker.expand.spelling import own_spelling
from opwalker.expand.target_types import target_type
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import NoType, Unknown, join_arguments
from opwalker.expand.tokens import names_any
from opwalker.model.body import CallFact, LambdaFact, Span2
from opwalker.model.cpp import Function
from opwalker.model.reach import Never, Origin

#: Instances of one kernel before the set counts as unknown.
MAX_INSTANCES = 20000
_UNSEEN = object()


class Instances(Struct, frozen=True):
    """``texts`` in the order found; ``reason`` says why there may be more, None when these are all; ``origins`` say
    where values come from, as in ``KernelRef``."""

    texts: tuple[str, ...]
    reason: str | None = None
    origins: tuple[tuple[int, str, Origin], ...] = ()
    never: tuple[tuple[str, Never], ...] = ()


#: Why a place is never reached in an environment; None where it may be, or nobody knows.
Judge = Callable[[Environment, "InstanceReader"], Never | None]


class InstanceReader:
    """Works out template arguments in the bodies of one tree."""

    def __init__(self, tools: Tools, bodies: Bodies, judge: Judge | None = None) -> None:
        self._tools = tools
        self._fitter = Fitter(tools)
        self._choices = Choices(tools, bodies, self._fitter)
        self._kept: dict[Origin, Origin] = {}
        self._judge = judge

    @property
    def judges(self) -> bool:
        """Whether it is said which instances are never launched: that depends on the way to a place."""
        return self._judge is not None

    def _keep(self, origin: Origin) -> Origin:
        return self._kept.setdefault(origin, origin)

    def environments(self, body: Body, frame: Frame, offset: int) -> Iterator[Environment]:
        """The environments of a place: one for each way in which the generic lambdas around it are called."""
        return self._choices.environments(body, frame, offset)

    def arguments_behind(self, body: Body, frame: Frame, held: LambdaFact, parameter: int) -> Iterator[Handed | None]:
        """As ``Choices.arguments_behind``."""
        return self._choices.arguments_behind(body, frame, held, parameter)

    def is_compiled(self, body: Body, frame: Frame, offset: int) -> bool:
        """Whether any way of reading a place keeps it."""
        return any(True for _ in self.environments(body, frame, offset))

    def of(
        self,
        candidate: Candidate,
        body: Body,
        frame: Frame,
        offset: int,
        given: tuple[Span2, ...],
        passed: tuple[Span2, ...] | None,
        rivals: Sequence[Candidate] = (),
    ) -> Instances:
        """The instances that one mention of a kernel compiles. ``given`` spans its explicit template arguments,
        ``passed`` the arguments of a launch that stands right behind the name; ``rivals`` are all kernels of the
        name."""
        function = candidate.function
        if function.template is None:
            return self._plain(body, frame, offset)
        if is_full(function):
            return Instances(())  # it is met through its template
        parameters = template_parameters(function.template)
        found: dict[str, None] = {}
        origins = Origins(self._keep)
        never: dict[str, Never | None] = {}
        reason: str | None = None
        target = target_type(body, offset) if passed is None else None
        for number, around in enumerate(self.environments(body, frame, offset)):
            if number > MAX_CHOICES or len(found) > MAX_INSTANCES:
                return Instances(tuple(found), "more combinations than are enumerated", origins.found)
            reason = reason or around.doubt or frame.doubt
            for environment in elements_of(around, given):
                try:
                    bound, why = self._fitter.binder.bind(
                        candidate, parameters, environment, given, passed, target=target
                    )
                    if why is not None and len(rivals) > 1 and _cannot_fit(function, parameters[len(given) :], bound):
                        continue  # another kernel of the name is meant
                    if why is not None:
                        raise Unknown(why)
                    inside = self._fitter.binder.inside(candidate, bound)
                    if is_excluded(candidate, inside):
                        continue
                    printed = inside.printed(parameters, bound)
                    if self._fitter.specialisations.meant(candidate, rivals, printed) is not None:
                        continue
                    text = join_arguments(printed)
                    found[text] = None
                    if self._judge is not None and never.get(text, _UNSEEN) is not None:
                        never[text] = self._judge(environment, self)
                    reason = reason or own_spelling(bound.values(), self._tools.index)
                    origins.of_mention(environment, candidate, parameters, printed, given, passed)
                except NoType as unknown:
                    if len(rivals) < 2:
                        reason = reason or str(unknown)
                except Mismatch:
                    if len(rivals) < 2:
                        reason = reason or f"the arguments of {function.name} do not fit its parameters"
                except Unknown as unknown:
                    reason = reason or str(unknown)
        judged = tuple((text, why) for text, why in never.items() if why is not None)
        return Instances(tuple(found), reason, origins.found, judged)

    def written(
        self, candidate: Candidate, scope: Environment, arguments: Sequence[str], rivals: Sequence[Candidate] = ()
    ) -> tuple[Candidate, Instances]:
        """The instance that a mention outside of functions compiles, such as an entry of a table; of the full
        specialisation among all kernels of the name, ``rivals``, where one is meant."""
        function = candidate.function
        if function.template is None:
            return candidate, Instances(("",))
        if is_full(function) and any(rival.function.template for rival in rivals):
            return candidate, Instances(())  # it is met through its template
        parameters = template_parameters(function.template)
        inside = self._fitter.binder.inside(candidate, {})
        try:
            pieces = [piece for text in arguments for piece in scope.parts(text)]
            given, why = self._fitter.binder.explicit(parameters, pieces, {}, inside.context)
            if why is not None:
                raise Unknown(why)
            terms = [given[p.name or f"#{n}"] for n, p in enumerate(parameters) if (p.name or f"#{n}") in given]
            bound = inside.bind(parameters, terms, inside.context)
            printed = inside.printed(parameters, bound)
            meant = self._fitter.specialisations.meant(candidate, rivals, printed) if len(rivals) > 1 else None
            why = own_spelling(bound.values(), self._tools.index)
            return meant or candidate, Instances((join_arguments(printed),), why)
        except Unknown as unknown:
            return candidate, Instances((), str(unknown))

    def linked(self, candidate: Candidate, named: Instances) -> Instances:
        """Of the instances that a place names where only a declaration is seen, those that are compiled: the ones that
        explicit instantiations make in other units."""
        if candidate.function.template is None:
            return named
        parameters = template_parameters(candidate.function.template)
        made: set[str] = set()
        for bound in self._tools.written_out(candidate):
            with contextlib.suppress(Unknown):
                inside = self._fitter.binder.inside(candidate, bound)
                made.add(join_arguments(inside.printed(parameters, bound)))
        reason = named.reason
        if not made.issuperset(named.texts):
            name = candidate.function.name
            reason = (
                reason or f"`{name}` is only declared where it is launched: what is instantiated is not in the source"
            )
        return replace(named, texts=tuple(text for text in named.texts if text in made), reason=reason)

    def _plain(self, body: Body, frame: Frame, offset: int) -> Instances:
        """A kernel that is no template, where the place that names it is compiled."""
        doubt: str | None = None
        for environment in self.environments(body, frame, offset):
            if not (environment.doubt or frame.doubt):
                return Instances(("",))
            doubt = environment.doubt or frame.doubt
        return Instances(("",), doubt) if doubt else Instances(())

    def special(
        self, candidate: Candidate, body: Body, frame: Frame, offset: int, given, passed, rivals: Sequence[Candidate]
    ) -> list[tuple[Candidate, Instances]]:
        """The full specialisations of a kernel template that a mention compiles instead of the template."""
        full = [r for r in rivals if is_full(r.function)]
        if not full:
            return []
        if not candidate.function.template:
            if candidate != full[0] or any(rival.function.template for rival in rivals):
                return []
            declared = self._declared(candidate)
            if declared is None:
                return []
            candidate = declared  # a template that is only declared, all its instances are specialisations
        parameters = template_parameters(candidate.function.template)
        out: dict[tuple, tuple[Candidate, Instances]] = {}
        target = target_type(body, offset) if passed is None else None
        for around in self.environments(body, frame, offset):
            for environment in elements_of(around, given):
                try:
                    bound, why = self._fitter.binder.bind(
                        candidate, parameters, environment, given, passed, target=target
                    )
                    if why is not None:
                        continue
                    printed = self._fitter.binder.inside(candidate, bound).printed(parameters, bound)
                    meant = self._fitter.specialisations.meant(candidate, full, printed)
                except (Unknown, Mismatch):
                    continue
                if meant is not None:
                    made = Instances((join_arguments(printed),), around.doubt or frame.doubt)
                    out.setdefault((*meant.key, made.texts), (meant, made))
        return list(out.values())

    def _declared(self, special: Candidate) -> Candidate | None:
        """The template that a full specialisation is one of."""
        try:
            found = self._fitter.specialisations.own(special)
        except Unknown:
            return None
        return found[0] if found else None

    def entries(
        self, candidates: Sequence[Candidate], body: Body, frame: Frame, call: CallFact
    ) -> list[tuple[Fit, dict[str, Origin], str | None]]:
        """The ways in which a call enters the functions that its name can mean: what each binds, where the values
        come from, and why it may not be compiled at all."""
        out: dict[tuple, tuple[Fit, dict[str, Origin], str | None]] = {}
        if len(candidates) == 1 and self._fitter.is_plain(candidates[0]):
            for environment in self.environments(body, frame, call.start):
                doubt = environment.doubt or frame.doubt
                if doubt is None or not out:
                    out[()] = (self._fitter.fits(candidates, environment, call)[0], {}, doubt)
                if doubt is None:
                    break
            return list(out.values())
        settled: dict[int, list[Fit]] = {}
        for number, around in enumerate(self.environments(body, frame, call.start)):
            if number > MAX_CHOICES:
                why = "more combinations than are enumerated"
                return [(replace(f, why=f.why or why), o, d or why) for f, o, d in out.values()]
            doubt = around.doubt or frame.doubt
            for environment in elements_of(around, self._pattern(body, call)):
                fits = self._fitter.fits(candidates, environment, call)
                if doubt is None:
                    if id(fits) in settled:
                        continue  # the same for the same types, which another environment has given
                    settled[id(fits)] = fits
                for fit in fits:
                    key = fit.key
                    if key in out and (out[key][2] is None or doubt is not None):
                        continue
                    parameters = template_parameters(fit.candidate.function.template)
                    made = self._fitter.class_of(fit.candidate)
                    origins = Origins(self._keep).of_call(environment, fit.candidate, parameters, fit.bound, call, made)
                    out[key] = (fit, origins, doubt)
        return list(out.values())

    def mentioned(self, body: Body, frame: Frame) -> Iterator[tuple[Fit, str | None, int]]:
        """The function templates that a body names with all their arguments and does not call there, or turns into a
        pointer, why that may not be compiled, and where: whoever names a function instantiates it."""
        names = self._tools.index.names_of_kind("function")
        for name, offset, given in (*body.mentions, *body.bare_mentions):
            if name.rsplit("::", 1)[-1] not in names:
                continue
            found = self._tools.resolver.function(name, frame.context(body), None, kernel=False).candidates
            templates = [c for c in found if c.function.template]
            text = ", ".join(body.text(span) for span in given)
            target = target_type(body, offset) if templates else None
            if target is None and not given:
                continue
            for around in self.environments(body, frame, offset) if templates else ():
                for environment in elements_of(around, given):
                    for candidate in templates:
                        if target is None:
                            scope = name.rpartition("::")[0] or None
                            fit = self._fitter.registered(candidate, environment, scope, text)
                        else:
                            fit = self._fitter.aimed(candidate, environment, given, target)
                        if fit is not None and fit.why is None:
                            yield fit, environment.doubt or frame.doubt, offset

    def through(
        self, named: Sequence[Named], body: Body, frame: Frame, call: CallFact
    ) -> list[tuple[Fit, dict[str, Origin], str | None]]:
        """As ``entries``, for a call of functions that are named elsewhere."""
        out: dict[tuple, tuple[Fit, dict[str, Origin], str | None]] = {}
        for number, environment in enumerate(self.environments(body, frame, call.start)):
            if number > MAX_CHOICES:
                break
            for one in named:
                for there in self._naming(one):
                    fit = self._fitter.fit_named(one, there, environment, call)
                    if fit is not None:
                        fit = replace(fit, sure=fit.sure and len(named) == 1)
                        doubt = environment.doubt or there.doubt or frame.doubt
                        doubt = doubt or (one.frame.doubt if one.frame is not None else None)
                        out.setdefault(fit.key, (fit, {}, doubt))
        return list(out.values())

    def linked_members(
        self, candidates: Sequence[Candidate], body: Body, frame: Frame, call: CallFact
    ) -> list[tuple[Fit, dict[str, Origin], str | None]]:
        """As ``entries``, for a call of a member of a class template that other units define: the explicit
        instantiations there of the class that it is called for. Nothing where that class is instantiated by none."""
        out: dict[tuple, tuple[Fit, dict[str, Origin], str | None]] = {}
        for environment in self.environments(body, frame, call.start):
            owner = self._fitter.owner_of(environment, call)
            made = [
                Fit(candidate, bound, of)
                for candidate in candidates
                for bound, of in (self._tools.written_members(candidate) if owner is not None else ())
                if of == owner
            ]
            if not made:
                return []
            for fit in made:
                out.setdefault(fit.key, (fit, {}, environment.doubt or frame.doubt))
        return list(out.values())

    def _naming(self, named: Named) -> Iterator[Environment]:
        """The environments of the place that names a function."""
        if named.body is None or named.frame is None:
            yield Environment(self._tools, named.context)
            return
        for environment in self.environments(named.body, named.frame, named.offset):
            yield from elements_of(environment, named.given)

    @staticmethod
    def _pattern(body: Body, call: CallFact) -> tuple[Span2, ...]:
        """The pieces of a call in which packs may stand that are not spread there."""
        return (call.callee, *call.arguments, *(call.template_arguments or ()))

    def members(self, body: Body, frame: Frame, call: CallFact) -> list[Candidate]:
        """The member functions that a call means by the type of its object or the class that it names."""
        out: dict[tuple, Candidate] = {}
        if not self._fitter.may_be_member(call):
            return []
        for environment in self.environments(body, frame, call.start):
            for candidate in self._fitter.members(environment, call):
                out.setdefault(candidate.key, candidate)
            if out and not environment.choices:
                break
        return list(out.values())

    def constructors(self, body: Body, frame: Frame, call: CallFact) -> list[Candidate]:
        """The constructors of the class that an alias means."""
        for environment in self.environments(body, frame, call.start):
            return self._fitter.constructors(environment, call)
        return []


def _cannot_fit(function: Function, parameters: Sequence[TemplateParameter], bound: dict) -> bool:
    """Whether a template parameter has no value and no parameter of the function could tell it."""
    return any(
        bound.get(p.name, _UNSEEN) is None
        and not (p.pack or p.default)
        and not any(names_any(one.type, (p.name,)) for one in function.parameters)
        for p in parameters
    )
