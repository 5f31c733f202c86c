"""Which instances of a kernel a mention of it compiles: its template arguments worked out at that place.

In: a kernel named in a body, in a frame. Out: printed argument lists, or the reason why they cannot be enumerated. A
mention inside a generic lambda counts once for every call of the lambda.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opwalker.expand.bodies import Body
from opwalker.expand.deduction import deduce
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.expressions import evaluate
from opwalker.expand.frames import Frame
from opwalker.expand.origins import Origins
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import ConstTerm, Term, Unknown, join_arguments, print_term
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.model.body import CallFact, LambdaFact, Span2
from opwalker.model.cpp import ClassDef
from opwalker.model.reach import Origin

#: Calls of lambdas that are combined at one place, and instances of one kernel, before the set counts as unknown.
MAX_CHOICES = 2000
MAX_INSTANCES = 20000


@dataclass(frozen=True, slots=True)
class Instances:
    """``texts`` in the order found; ``reason`` says why there may be more, None when these are all; ``origins`` say
    where values come from, as in ``KernelRef``."""

    texts: tuple[str, ...]
    reason: str | None = None
    origins: tuple[tuple[int, str, Origin], ...] = ()


class InstanceReader:
    """Works out template arguments in the bodies of one tree."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._kept: dict[Origin, Origin] = {}

    def _keep(self, origin: Origin) -> Origin:
        return self._kept.setdefault(origin, origin)

    def environments(self, body: Body, frame: Frame, offset: int) -> Iterator[Environment]:
        """The environments of a place: one for each way in which the generic lambdas around it are called."""
        context = frame.context(body)
        for choices in self._choices(body, offset, {}):
            environment = Environment(self._tools, context, body, frame, offset, choices)
            if not self._is_discarded(environment):
                yield environment

    def _is_discarded(self, environment: Environment) -> bool:
        """Whether an ``if constexpr`` around the place takes the other branch here. What is unknown is kept."""
        body, offset = environment.body, environment.offset
        for block in body.facts.blocks:
            if block.condition is None or not block.kind.endswith("constexpr") or not block.start <= offset < block.end:
                continue
            try:
                value = evaluate(body.text(block.condition), environment.at(block.condition[0]))
            except Unknown:
                continue
            if isinstance(value, ConstTerm) and bool(value.value) == block.kind.startswith("else"):
                return True
        return False

    def is_compiled(self, body: Body, frame: Frame, offset: int) -> bool:
        """Whether any way of reading a place keeps it."""
        return any(True for _ in self.environments(body, frame, offset))

    def _choices(self, body: Body, offset: int, chosen: dict[int, CallFact]) -> Iterator[dict[int, CallFact]]:
        open_ = [f for f in body.enclosing_lambdas(offset) if f.start not in chosen and is_generic(f)]
        if not open_:
            yield chosen
            return
        held = open_[0]
        calls = lambda_calls(body, held)
        if not calls:
            yield from self._choices(body, offset, {**chosen, held.start: None})
            return
        for call in calls:
            for more in self._choices(body, call.start, {**chosen, held.start: call}):
                yield from self._choices(body, offset, more)

    def of(
        self,
        candidate: Candidate,
        body: Body,
        frame: Frame,
        offset: int,
        given: tuple[Span2, ...],
        passed: tuple[Span2, ...] | None,
    ) -> Instances:
        """The instances that one mention of a kernel compiles. ``given`` spans its explicit template arguments,
        ``passed`` the arguments of a launch that stands right behind the name."""
        function = candidate.function
        if function.template is None:
            return Instances(("",))
        if function.specialisation is not None:
            return Instances((), "a full specialisation is not told apart from its template")
        parameters = template_parameters(function.template)
        found: dict[str, None] = {}
        origins = Origins(self._keep)
        reason: str | None = None
        for number, environment in enumerate(self.environments(body, frame, offset)):
            if number > MAX_CHOICES or len(found) > MAX_INSTANCES:
                return Instances(tuple(found), "more combinations than are enumerated", origins.found)
            try:
                bound = self.bind(candidate, parameters, environment, given, passed)
                inside = self.inside(candidate, bound)
                if self.is_excluded(candidate, inside):
                    continue
                printed = inside.printed(parameters, bound)
                found[join_arguments(printed)] = None
                origins.of_mention(environment, candidate, parameters, printed, given, passed)
            except Unknown as unknown:
                reason = reason or str(unknown)
        return Instances(tuple(found), reason, origins.found)

    def inside(self, candidate: Candidate, bound: dict[str, Term | None]) -> Environment:
        """The environment of a function's own head."""
        context = Context(candidate.path, candidate.path, candidate.function.scope)
        return Environment(self._tools, context, bound=bound)

    def is_excluded(self, candidate: Candidate, inside: Environment) -> bool:
        """Whether ``enable_if`` in the head rules these arguments out. Raises Unknown when it cannot be told."""
        text = candidate.function.return_type
        match = re.search(r"\benable_if(?:_t)?\s*<", text)
        if match is None:
            return False
        close = match_angle(text, match.end() - 1)
        inner = text[match.end() : close - 1]
        first = split_commas(inner)[0]
        value = evaluate(inner[first[0] : first[1]], inside)
        return isinstance(value, ConstTerm) and not value.value

    def bind(
        self,
        candidate: Candidate,
        parameters: tuple[TemplateParameter, ...],
        environment: Environment,
        given: tuple[Span2, ...],
        passed: tuple[Span2, ...] | None,
    ) -> dict[str, Term | None]:
        """All template parameters: from explicit arguments, then deduced, then defaults. Raises Unknown."""
        body = environment.body
        explicit: list[Term] = []
        for number, span in enumerate(given):
            parameter = parameters[number] if number < len(parameters) else None
            if parameter is not None and parameter.pack:
                raise Unknown(f"the pack `{parameter.name}` is not followed")
            explicit.append(environment.term(body.text(span), parameter))
        inside = self.inside(candidate, {})
        missing = {p.name for p in parameters[len(explicit) :] if p.name}
        deduced: dict[str, Term] = {}
        if missing and passed is not None:
            for parameter, span in zip(candidate.function.parameters, passed, strict=False):
                if not any(re.search(rf"\b{re.escape(name)}\b", parameter.type) for name in missing):
                    continue
                try:
                    actual = environment.type_of(body.text(span)).text
                except Unknown:
                    continue
                for name, term in deduce(parameter.type, actual, missing).items():
                    deduced.setdefault(name, term)
        listed: list[Term] = list(explicit)
        for parameter in parameters[len(explicit) :]:
            if parameter.name in deduced:
                listed.append(deduced[parameter.name])
            else:
                break
        rest = parameters[len(listed) :]
        bound = inside.bind(parameters[: len(listed)], listed, inside.context) if listed else {}
        for parameter in rest:
            if parameter.name in deduced:
                bound[parameter.name] = deduced[parameter.name]
                continue
            if parameter.pack:
                raise Unknown(f"the pack `{parameter.name}` is not followed")
            if parameter.default is None:
                name = f"`{parameter.name or '?'}` of {candidate.function.name}"
                raise Unknown(f"the template parameter {name} is neither given nor deduced")
            held = self.inside(candidate, dict(bound))
            term = held.term(parameter.default, parameter)
            if isinstance(term, ConstTerm) and parameter.type not in (None, "auto"):
                term = ConstTerm(term.value, held.type(parameter.type).text)
            bound[parameter.name or f"#{parameters.index(parameter)}"] = term
        return bound

    def frames(
        self, candidate: Candidate, body: Body, frame: Frame, call: CallFact
    ) -> list[tuple[dict[str, Term | None], str | None, dict[str, Origin]]]:
        """The ways in which a call binds a function template's parameters, why not all of them, and where the values
        come from; one empty way for a plain function."""
        function = candidate.function
        parameters = template_parameters(function.template)
        owner = self._owner(candidate)
        if not parameters and owner is None:
            return [({}, None, {})] if self.is_compiled(body, frame, call.start) else []
        out: dict[tuple, tuple[dict[str, Term | None], str | None, dict[str, Origin]]] = {}
        for number, environment in enumerate(self.environments(body, frame, call.start)):
            if number > MAX_CHOICES:
                break
            held: dict[str, Term | None] | None = {}
            why = None
            if owner is not None:
                held, why = self._class_terms(owner, environment, call)
                if held is None:
                    continue  # another specialisation of the class is meant
            try:
                bound = self.bind(candidate, parameters, environment, call.template_arguments or (), call.arguments)
            except Unknown as unknown:
                bound, why = self._partial(parameters, environment, call), why or str(unknown)
            bound = {**held, **bound}
            key = tuple(sorted((k, repr(v)) for k, v in bound.items()))
            if key not in out:
                made = owner[1] if owner is not None else None
                origins = Origins(self._keep).of_call(environment, candidate, parameters, bound, call, made)
                out[key] = bound, why, origins
        return list(out.values())

    def _owner(self, candidate: Candidate) -> tuple[str, ClassDef] | None:
        """The class template, or specialisation of one, that a member function stands in."""
        facts = self._tools.index.facts(candidate.path)
        if not candidate.function.scope or facts is None:
            return None
        around = [
            c for c in facts.classes
            if c.body_start < candidate.function.offset < c.body_end and (c.template is not None or c.specialisation)
        ]  # fmt: skip
        return (candidate.path, max(around, key=lambda c: c.body_start)) if around else None

    def _class_terms(
        self, owner: tuple[str, ClassDef], environment: Environment, call: CallFact
    ) -> tuple[dict[str, Term | None] | None, str | None]:
        """What a call such as ``Class<A, B>::f(…)`` binds a class's parameters to; None where the arguments choose
        another specialisation; within the class itself, what the frame knows."""
        path, made = owner
        text = environment.body.text(call.callee)
        names = [p.name for p in template_parameters(made.template)]
        match = re.search(rf"\b{re.escape(made.name)}\s*<", text)
        if match is None:
            frame = environment.frame
            known = frame.bound if frame is not None else {}
            return {name: known.get(name) for name in names}, None if all(n in known for n in names) else (
                f"the arguments of the class template {made.name} are not known at this call"
            )
        close = match_angle(text, match.end() - 1)
        inner = text[match.end() : close - 1]
        try:
            parts = [print_term(environment.term(inner[a:b].strip(), None), None) for a, b in split_commas(inner)]
            classes = [(p, c) for p, c in self._tools.index.entries(made.name, ("class",), lambda facts: facts.classes)]
            chosen = environment.chosen_class(classes, parts)
        except Unknown as unknown:
            return dict.fromkeys(names), str(unknown)
        if chosen is None or chosen[1].offset != made.offset or chosen[0] != path:
            return None, None
        return dict(chosen[2]), None

    @staticmethod
    def _partial(parameters, environment: Environment, call: CallFact) -> dict[str, Term | None]:
        """What can be bound where not everything can: the rest is None."""
        bound: dict[str, Term | None] = {p.name: None for p in parameters if p.name}
        for parameter, span in zip(parameters, call.template_arguments or (), strict=False):
            if parameter.name and not parameter.pack:
                try:
                    bound[parameter.name] = environment.term(environment.body.text(span), parameter)
                except Unknown:
                    continue
        return bound


def is_generic(held: LambdaFact) -> bool:
    """Whether a lambda is a template: by a template head or an ``auto`` parameter."""
    return bool(held.template) or any(re.search(r"\bauto\b", kind) for kind, _ in held.parameters)


def lambda_calls(body: Body, held: LambdaFact) -> list[CallFact]:
    """The calls of a lambda in its body: through its variable, its call operator, or in place."""
    found = body.lambda_calls.get(held.start)
    if found is None:
        found = body.lambda_calls[held.start] = _lambda_calls(body, held)
    return found


def _lambda_calls(body: Body, held: LambdaFact) -> list[CallFact]:
    variables = {
        f.name for f in body.facts.locals if f.value and f.value[0] <= held.start and held.end <= f.value[1]
        and not any(o.start < held.start and held.end < o.end and f.value[0] <= o.start for o in body.facts.lambdas)
    }  # fmt: skip
    out = []
    for call in body.facts.calls:
        named = call.receiver is None and call.simple in variables
        through = call.receiver is not None and "operator" in call.name and body.text(call.receiver) in variables
        direct = call.callee[0] <= held.start < call.callee[1] and held.end <= call.callee[1] + 1
        if named or through or direct:
            out.append(call)
    return out
