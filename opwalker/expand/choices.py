"""Ways of reading a place: one for each way in which the generic lambdas around it are called.

In: an offset of a body, in a frame. Out: environments. A lambda is called in its own body's function, or by a function
that it is passed to: then what that function passes on is worked out there. A place in the branch that an ``if
constexpr`` does not take is not read; where the condition cannot be worked out, the environment says so as its doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.fitting import Fitter, callable_parameters
from opwalker.expand.frames import Frame
from opwalker.expand.lambdas import calls_it, is_generic, lambda_calls, lambda_uses, named_by
from opwalker.expand.terms import PackTerm, PassedCall, Term, Unknown, flattened
from opwalker.expand.visits import is_visit, visited
from opwalker.model.body import CallFact, LambdaFact, Span2
from opwalker.notation.regex import Regex

#: Calls of lambdas that are combined at one place, and functions that a lambda is passed through.
MAX_CHOICES = 2000
MAX_PASSED = 8
_WORD = Regex(r"(?<![\w.])(?<!::)[A-Za-z_]\w*(?!\s*\.\.\.)")
_COUNTED = Regex(r"sizeof\s*\.\.\.\s*\(\s*\w+\s*\)")
_INVOKERS = frozenset(("std::invoke", "invoke", "std::apply"))


#: An argument of a call, in the body and the frame that the call stands in.
Handed: TypeAlias = tuple[Body, Frame, Span2]


class Choices:
    """Reads places in the bodies of one tree."""

    def __init__(self, tools: Tools, bodies: Bodies, fitter: Fitter) -> None:
        self._tools = tools
        self._bodies = bodies
        self._fitter = fitter
        self._passed: dict[tuple, list[PassedCall | None]] = {}

    def environments(self, body: Body, frame: Frame, offset: int) -> Iterator[Environment]:
        """The environments of a place: one for each way in which the generic lambdas around it are called."""
        lambdas = tuple(held.start for held in body.enclosing_lambdas(offset) if is_generic(held))
        # Whether a place is compiled, and in which ways, is the same wherever it stands between two branches.
        key = ("ways", body.key, lambdas, body.constexpr_at(offset))
        ways = frame.memo.get(key)
        if ways is None or ways.broken:
            ways = frame.memo[key] = _Ways(self._read(body, frame, offset))
        elif ways.busy:
            return self._read(body, frame, offset)  # to know them, they are asked for
        if not lambdas:
            return (replace(held, offset=offset, choices={}) for held in ways)
        return (replace(held, offset=offset) for held in ways)

    def _read(self, body: Body, frame: Frame, offset: int) -> Iterator[Environment]:
        context = frame.context(body)
        for choices in self._choices(body, frame, offset, {}):
            environment = Environment(self._tools, context, body, frame, offset, choices)
            taken = self._taken(environment)
            for call in choices.values() if body.constexpr_blocks else ():
                # A lambda that is called in a branch which is not taken is not compiled for that call.
                if isinstance(call, CallFact) and taken is not None:
                    within = self._taken(environment.at(call.start))
                    taken = None if within is None else taken or within
            if taken is None:
                continue
            if not taken:
                taken = next((c.reason for c in choices.values() if isinstance(c, PassedCall) and c.reason), "")
            yield replace(environment, doubt=taken) if taken else environment

    @staticmethod
    def _taken(environment: Environment) -> str | None:
        """Why the place may not be compiled (``""``: it is); None where an ``if constexpr`` takes the other branch."""
        body, offset = environment.body, environment.offset
        doubt = ""
        for block in body.constexpr_blocks:
            if not block.start <= offset < block.end:
                continue
            text = body.text(block.condition)
            try:
                value = value_of(evaluate(_condition(text), environment.at(block.condition[0])))
            except Unknown as unknown:
                doubt = doubt or f"whether `if constexpr ({text[:60]})` holds could not be worked out: {unknown}"
                continue
            if value is None:
                doubt = doubt or f"whether `if constexpr ({text[:60]})` holds could not be worked out"
            elif bool(value.value) == block.kind.startswith("else"):
                return None
        return doubt

    def _choices(
        self, body: Body, frame: Frame, offset: int, chosen: dict[int, CallFact | PassedCall | None]
    ) -> Iterator[dict[int, CallFact | PassedCall | None]]:
        open_ = [f for f in body.enclosing_lambdas(offset) if f.start not in chosen and is_generic(f)]
        if not open_:
            yield chosen
            return
        held = open_[0]
        calls = lambda_calls(body, held)
        found = False
        for call in calls:
            found = True
            for more in self._choices(body, frame, call.start, {**chosen, held.start: call}):
                for one in self._folded(body, frame, call, more):
                    yield from self._choices(body, frame, offset, {**more, held.start: one})
        for call, position in lambda_uses(body, held):
            for outer in self._choices(body, frame, call.start, {**chosen, held.start: None}):
                for passed in self._calls_behind(body, frame, call, position, outer):
                    found = True
                    yield from self._choices(body, frame, offset, {**outer, held.start: passed})
        if not found:
            yield from self._choices(body, frame, offset, {**chosen, held.start: None})

    def _folded(self, body: Body, frame: Frame, call: CallFact, chosen: dict) -> Sequence[CallFact | PassedCall]:
        """A call of a lambda, as one for each element where it stands in a fold over a pack."""
        pieces = (*call.arguments, *(call.template_arguments or ()))
        around = Environment(self._tools, frame.context(body), body, frame, call.start, chosen)
        elements = elements_of(around, pieces)
        if len(elements) == 1 and elements[0] is around:
            return (call,)
        taken = self._taken(around)
        found: dict[PassedCall | None, None] = {}
        for one in elements if taken is not None else ():
            self._enter(replace(one, doubt=taken) if taken else one, call, call.arguments, found, call.start)
        return [passed for passed in found if passed is not None]

    # -- lambdas that are passed on ---------------------------------------------------------------------------------

    def _calls_behind(
        self, body: Body, frame: Frame, call: CallFact, position: int, choices: dict
    ) -> list[PassedCall | None]:
        """The calls of a lambda that is passed for a parameter; None among them for what could not be followed."""
        key = (body.key, frame.key if frame.candidate else frame.name, call.start, position, _choice_key(choices))
        held = self._passed.get(key)
        if held is None:
            self._passed[key] = [None]  # a lambda that gets itself passed
            environment = Environment(self._tools, frame.context(body), body, frame, call.start, choices)
            found: dict[PassedCall | None, None] = {}
            if self._taken(environment) is not None:
                self._behind(environment, call, position, found, call.start, set(), 0)
            else:
                self._passed[key] = []
                return []
            held = self._passed[key] = list(found)
        return held

    def arguments_behind(self, body: Body, frame: Frame, held: LambdaFact, parameter: int) -> Iterator[Handed | None]:
        """What is passed for one parameter of a lambda where functions call it that it is passed to; None for what
        could not be followed."""
        for call, position in lambda_uses(body, held):
            for choices in self._choices(body, frame, call.start, {held.start: None}):
                environment = Environment(self._tools, frame.context(body), body, frame, call.start, choices)
                if self._taken(environment) is not None:
                    found = _Handed(parameter)
                    self._behind(environment, call, position, found, call.start, set(), 0)
                    yield from found.values()

    def _behind(self, environment, call: CallFact, position: int, found: dict, start: int, seen: set, depth: int):
        """Adds the calls that the functions meant by ``call`` make of their parameter ``position``."""
        if depth > MAX_PASSED:
            found[None] = None
            return
        held = next((f for f in environment.body.facts.lambdas if call in lambda_calls(environment.body, f)), None)
        if held is not None:
            self._in_lambda(environment, call, held, position, found, start, seen, depth)
            return
        if is_visit(call, position):
            for types in visited(environment, call) or [None]:
                found[PassedCall(start, len(found), (), types, environment.doubt) if types else None] = None
            return
        fits = self._fitter.targets(environment, call)
        if not fits:
            found[None] = None
            return
        for fit in fits:
            names = callable_parameters(fit.candidate.function, position)
            if not names or not fit.candidate.function.body_end:
                found[None] = None
                continue
            frame = self._fitter.frame_of(fit, environment)
            if (frame.key, names) in seen:
                continue
            seen.add((frame.key, names))
            inner = self._bodies.of(fit.candidate, frame.root)
            self._in_callee(inner, frame, names, found, start, seen, depth)

    def _in_callee(self, inner: Body, frame: Frame, name: str, found: dict, start: int, seen: set, depth: int) -> None:
        for call in inner.facts.calls:
            arguments: tuple[Span2, ...] | None = None
            if calls_it(inner, call, name):
                arguments = call.arguments
            elif call.name in _INVOKERS and call.arguments and named_by(inner.text(call.arguments[0])) == name:
                arguments = call.arguments[1:] if call.name != "std::apply" else None
                if arguments is None:
                    found[None] = None
                    continue
            if arguments is not None:
                pieces = (*arguments, *(call.template_arguments or ()))
                for around in self.environments(inner, frame, call.start):
                    for environment in elements_of(around, pieces):
                        self._enter(environment, call, arguments, found, start)
                continue
            for position, span in enumerate(call.arguments):
                if named_by(inner.text(span)) == name and call.simple not in ("forward", "move"):
                    for around in self.environments(inner, frame, call.start):
                        for environment in elements_of(around, (call.callee, *call.arguments)):
                            self._behind(environment, call, position, found, start, seen, depth + 1)

    def _in_lambda(
        self, around, call: CallFact, held: LambdaFact, position: int, found: dict, start: int, seen: set, depth: int
    ) -> None:
        """As ``_in_callee``, for a lambda of the same body that another one is passed to."""
        body = around.body
        name = held.parameters[position][1] if position < len(held.parameters) else ""
        if not name:
            found[None] = None
            return
        if (call.start, held.start, name) in seen:
            return
        seen.add((call.start, held.start, name))
        for one in body.facts.calls:
            if not held.body[0] <= one.start < held.body[1]:
                continue
            handed = [number for number, span in enumerate(one.arguments) if named_by(body.text(span)) == name]
            called = calls_it(body, one, name)
            if not called and (not handed or one.simple in ("forward", "move")):
                continue
            if any(f.start > held.start and is_generic(f) for f in body.enclosing_lambdas(one.start)):
                found[None] = None  # it is called in a lambda of its own
                continue
            environment = replace(around, offset=one.start, choices={**around.choices, held.start: call})
            if self._taken(environment) is None:
                continue
            if called:
                self._enter(environment, one, one.arguments, found, start)
                continue
            for number in handed:
                self._behind(environment, one, number, found, start, seen, depth + 1)

    def _enter(self, environment: Environment, call: CallFact, arguments, found: dict, start: int) -> None:
        """Enters one call of the lambda with what it is given there."""
        body = environment.body
        if isinstance(found, _Handed):
            found.enter(environment, arguments)
            return
        reason = environment.doubt or environment.frame.doubt
        if any("..." in body.text(span) for span in (call.template_arguments or ())):
            reason = reason or "a pack is passed on to a lambda"
        terms: list[Term] = []
        try:
            for span in call.template_arguments or ():
                terms += flattened([environment.term(body.text(span))])
        except Unknown as unknown:
            reason = reason or str(unknown)
        types: list[str | None] = []
        for span in arguments:
            try:
                types.append(environment.type_of(body.text(span)).text)
            except Unknown:
                types.append(None)
        passed = PassedCall(start, len(found), tuple(terms), tuple(types), reason)
        same = [p for p in found if p is not None and replace(p, number=passed.number) == passed]
        if not same:
            found[passed] = None


class _Handed(dict):
    """What calls of a lambda pass for one of its parameters: each once, and None where a call is not known."""

    def __init__(self, parameter: int) -> None:
        super().__init__()
        self._parameter = parameter

    def enter(self, environment: Environment, arguments: Sequence[Span2]) -> None:
        if self._parameter < len(arguments):
            span = arguments[self._parameter]
            self[environment.body.key, environment.frame.key, span] = (environment.body, environment.frame, span)
        else:
            self[None] = None


class _Ways:
    """Environments that are made when they are first asked for, and kept."""

    def __init__(self, made: Iterator[Environment]) -> None:
        self._made = made
        self._kept: list[Environment] = []
        self._all = False
        self.busy = self.broken = False

    def __iter__(self) -> Iterator[Environment]:
        number = 0
        while True:
            if number == len(self._kept):
                if self._all or not self._more():
                    return
            yield self._kept[number]
            number += 1

    def _more(self) -> bool:
        self.busy = True
        try:
            self._kept.append(next(self._made))
        except StopIteration:
            self._all = True
        except BaseException:
            self.broken = True
            raise
        finally:
            self.busy = False
        return not self._all


def _condition(text: str) -> str:
    """The condition of an ``if`` without an initialiser before it."""
    return text.rsplit(";", 1)[-1]


def elements_of(environment: Environment, spans: Sequence[Span2]) -> list[Environment]:
    """A place in a fold is read for every element of the packs that what stands there (``spans``) names."""
    body = environment.body
    if not spans or (environment.frame and not _has_pack(environment)):
        return [environment]
    for span in spans:
        text = _COUNTED.sub("", body.text(span))
        for word in _WORD.findall(text):
            if environment.pack(word) is not None and not text.endswith("..."):
                try:
                    return environment.spread(" ".join(body.text(s) for s in spans))
                except Unknown:
                    return [environment]
    return [environment]


def _has_pack(environment: Environment) -> bool:
    frame = environment.frame
    if any(isinstance(term, PackTerm) for term in frame.bound.values()):
        return True
    return any("..." in (held.template or "") for held in environment.body.facts.lambdas)


def _choice_key(choices: dict) -> tuple:
    return tuple(sorted((k, (v.start, getattr(v, "number", -1)) if v else None) for k, v in choices.items()))
