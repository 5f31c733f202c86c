"""Where the value of a template argument comes from: the branch of a macro, the case of a switch, a line.

In: the environment of a mention, and what it bound. Out: ``Origin`` values, one for each way in which a value gets
there. A name is followed as ``environment_names`` looks it up: through locals, lambdas and the callers' arguments, to
the place where the value itself is written. What cannot be followed has no origin; nothing is inferred from a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.deduction import deduce
from opwalker.expand.environment import Environment
from opwalker.expand.owners import lineage, owner, switch_of, use_place
from opwalker.expand.resolve import Candidate
from opwalker.expand.template_heads import TemplateParameter, template_parameters
from opwalker.expand.terms import Term, Unknown, print_term
from opwalker.expand.tokens import names_any
from opwalker.expand.value_words import initialiser_value
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.model.body import Block, CallFact, LambdaFact, Span2
from opwalker.model.cpp import ClassDef
from opwalker.model.reach import Origin
from opwalker.notation.regex import Regex, compiled
from opwalker.notation.short_texts import kept_if_short

T = TypeVar("T")

_MAX_DEPTH = 12
#: A name that is not a member of something and not the scope of something known by another name.
_WORD = Regex(r"(?<![\w.])(?<!::)(?<!->)[A-Za-z_]\w*")
#: A name with what makes no other value of it: its type, its value, a call of the constant.
_PLAIN = r"(?:typename\s+)?(?:decltype\s*\(\s*)?{0}(?:\s*\))?(?:(?:::|\.)(?:value|type|kValue))?(?:\(\)|\{{\}})?"
_DATA = Regex(r"\bdata(?:_ptr)?\s*<|_data_ptr\s*<")
_CAST = Regex(r"(?:reinterpret|static|const)_cast\s*<")
_BRANCHES = ("case", "if", "else")
_NO_TEST = ("true", "false", "1", "0", "!(true)", "!(false)", "!(0)", "!(1)")


class Origins:
    """The origins of one mention's arguments. Made anew for each mention; ``keep`` makes equal ones one object."""

    def __init__(self, keep: Callable[[Origin], Origin]) -> None:
        self._keep = keep
        self._seen: set[tuple] = set()
        self._consulted: dict[int, set[int]] = {}
        self._found: dict[tuple[int, str, Origin], None] = {}
        self._calls: set[int] = set()

    @property
    def found(self) -> tuple[tuple[int, str, Origin], ...]:
        """``(number of the parameter, printed value, origin)``, in the order found."""
        return tuple(self._found)

    def note(
        self, environment: Environment, number: int, value: str, trace: Callable[[Origins], Origin | None]
    ) -> None:
        """Enters the origin of a value, unless the same calls of lambdas have given it before."""
        key = self._key(environment, number, value)
        if key in self._seen:
            return
        self._calls = self._consulted.setdefault(number, set())
        found = trace(self)
        self._seen.add(self._key(environment, number, value))
        if found is not None:
            self._found[(number, value, self._keep(found))] = None

    def _key(self, environment: Environment, number: int, value: str) -> tuple:
        calls = environment.choices
        consulted = self._consulted.get(number, ())
        used = [(s, calls[s].start, getattr(calls[s], "number", 0)) for s in consulted if calls.get(s)]
        return (number, value, *sorted(used))

    def of_mention(
        self,
        environment: Environment,
        candidate: Candidate,
        parameters: tuple[TemplateParameter, ...],
        printed: list[str],
        given: tuple[Span2, ...],
        passed: tuple[Span2, ...] | None,
    ) -> None:
        """Enters the origins of all arguments that a mention of a template binds its parameters to. ``printed`` are
        their values, by parameter."""
        block = environment.body.block_at(environment.offset)
        for number, (parameter, value) in enumerate(zip(parameters, printed, strict=False)):
            if number < len(given):
                span = given[number]
                self.note(environment, number, value, lambda o, s=span: o.trace(environment, s, block))
            else:
                self.note(
                    environment,
                    number,
                    value,
                    lambda o, p=parameter: o.not_given(environment, candidate, p, passed, block),
                )

    def of_call(
        self,
        environment: Environment,
        candidate: Candidate,
        parameters: tuple[TemplateParameter, ...],
        bound: dict[str, Term | None],
        call: CallFact,
        owner_of: ClassDef | None = None,
    ) -> dict[str, Origin]:
        """The origins of what a call of a function template binds, and of the parameters of the class template
        ``owner_of`` that it is a member of."""
        if not bound:
            return {}
        given = call.template_arguments or ()
        out: dict[str, Origin] = {}
        for number, parameter in enumerate(parameters):
            if bound.get(parameter.name) is None:
                continue
            if number < len(given):
                found = self.trace(environment, given[number], call.block)
            else:
                found = self.not_given(environment, candidate, parameter, call.arguments, call.block)
            if found is not None:
                out[parameter.name] = self._keep(found)
        if owner_of is not None:
            for name, span in _class_arguments(environment.body, call, owner_of):
                found = self.trace(environment, span, call.block)
                if found is not None and bound.get(name) is not None:
                    out.setdefault(name, self._keep(found))
        if environment.frame is not None:
            for name, origin in environment.frame.origins.items():
                if name in bound and name not in out and environment.frame.bound.get(name) == bound[name]:
                    out[name] = origin
        return out

    def not_given(
        self,
        environment: Environment,
        candidate: Candidate,
        parameter: TemplateParameter,
        passed: tuple[Span2, ...] | None,
        block: int,
    ) -> Origin | None:
        """The origin of an argument that no mention gives: deduced from what is passed, or the default."""
        function = candidate.function
        for declared, span in zip(function.parameters, passed or (), strict=False):
            if not parameter.name or not names_any(declared.type, (parameter.name,)):
                continue
            try:
                actual = environment.type_of(environment.body.text(span)).text
            except Unknown:
                continue
            if parameter.name in deduce(declared.type, actual, {parameter.name}):
                return self._deduced(environment, span, block)
        if parameter.default is None:
            return None
        line = _default_line(environment.body, candidate, parameter)
        return Origin("default", parameter.default, candidate.path, line)

    def _deduced(self, environment: Environment, span: Span2, block: int) -> Origin | None:
        """What is passed, or where the name comes from that its type is spelt with."""
        body = environment.body
        written = _of_type(environment, span)
        if written is not None:
            text, offset, around = written
            inside = environment.at(offset)
            if re.fullmatch(r"\w+", text) and _is_bound(inside, text):
                return self._trace(inside, text, offset, around, 1)
        return self._at(body, span[0], block, "deduced", body.written(span))

    # -- following --------------------------------------------------------------------------------------------------

    def trace(self, environment: Environment, span: Span2, block: int) -> Origin | None:
        """The origin of what stands in a span of the environment's body."""
        full = environment.body.expanded.full
        blanks = len(full[slice(*span)]) - len(full[slice(*span)].lstrip())
        span = (span[0] + blanks, span[1])
        return self._trace(environment, environment.body.text(span), span[0], block, 0, span)

    def _trace(
        self, environment: Environment, text: str, offset: int, block: int, depth: int, span: Span2 | None = None
    ) -> Origin | None:
        body = environment.body
        if body is None or depth > _MAX_DEPTH:
            return None
        names = [n for n in _words(text) if _is_bound(environment, n)]
        written = body.written(span) if span is not None else text
        if not names:
            return self._at(body, offset, block, "argument" if depth == 0 else "local", written)
        if len(names) > 1 or not _is_plain(text, names[0]):
            path, line = _place(body, offset, written)
            return Origin("computed", written, path, line, None, self._parts(environment, names, depth))
        return self._name(environment, names[0], depth)

    def _parts(self, environment: Environment, names: list[str], depth: int) -> tuple[tuple[str, str, Origin], ...]:
        """The names in an expression that have a value and an origin; what those are computed from is not followed."""
        found: list[tuple[str, str, Origin]] = []
        for name in names:
            try:
                value = print_term(environment.name(name), None)
            except Unknown:
                continue
            origin = self._name(environment, name, depth + 1)
            if origin is not None:
                found.append((name, value, self._keep(replace(origin, parts=()) if origin.parts else origin)))
        return tuple(found)

    def _name(self, environment: Environment, name: str, depth: int) -> Origin | None:
        body, held = environment.body, environment.holder(name)
        if isinstance(held, LambdaFact):
            return self._passed(environment, held, name, depth)
        if held is not None:
            if held.value is None:
                return None
            text = initialiser_value(body.text(held.value))
            at = held.value[0]
            return self._trace(environment.at(held.start), text, at, held.block, depth + 1, held.value)
        frame = environment.frame
        return frame.origins.get(name) if frame is not None else None

    def _passed(self, environment: Environment, held: LambdaFact, name: str, depth: int) -> Origin | None:
        """What a call of a generic lambda passes for one of its parameters."""
        call = environment.choices.get(held.start)
        if not isinstance(call, CallFact):
            return None
        self._calls.add(held.start)
        outside = environment.at(call.start)
        for number, (_, parameter) in enumerate(held.parameters):
            if parameter == name and number < len(call.arguments):
                span = call.arguments[number]
                text = environment.body.text(span)
                return self._trace(outside, text, span[0], call.block, depth + 1, span)
        # A template parameter of the lambda: given at the call, or the type of what is passed.
        for number, parameter in enumerate(p.strip() for p in (held.template or "").split(",")):
            if parameter.split()[-1:] == [name] and number < len(call.template_arguments or ()):
                span = call.template_arguments[number]
                return self._trace(outside, environment.body.text(span), span[0], call.block, depth + 1, span)
        for (kind, _), span in zip(held.parameters, call.arguments, strict=False):
            if names_any(kind, (name,)):
                return self._trace(outside, environment.body.text(span), span[0], call.block, depth + 1, span)
        return None

    # -- places -----------------------------------------------------------------------------------------------------

    def _at(self, body: Body, offset: int, block: int, kind: str, text: str) -> Origin:
        """A value that is written at an offset: by a macro's branch, in a case of the function, or as it stands."""
        key = (offset, block, kind, text)
        found = body.origins.get(key)
        if found is None:
            found = body.origins[key] = self._written_at(body, offset, block, kind, text)
        return found

    @staticmethod
    def _written_at(body: Body, offset: int, block: int, kind: str, text: str) -> Origin:
        here = lineage(body, offset)
        ours: list[Block] = []
        made: list[tuple[int, Block]] = []
        while block >= 0:
            around = body.facts.blocks[block]
            block = around.parent
            if around.kind not in _BRANCHES or (around.condition is None and around.kind != "case"):
                continue
            made_by = owner(body, switch_of(body, around) if around.kind == "case" else around)
            if _tests(body, around, offset):
                # The branch tests the very value that is passed on: `LAUNCH(4)` makes `if (n == 4) k<4>`.
                made, ours = ([(made_by, around)], []) if made_by is not None else ([], [around])
                break
            if made_by is None:
                ours.append(around)
            elif made_by in here:
                made.append((made_by, around))
        ours = [one for one in ours if one.kind == "case" or _case(body, one) not in _NO_TEST]
        if made:
            number, around = _telling(made, lambda pair: _case(body, pair[1]), text)
            entry = body.expanded.expansions[number - 1]
            return Origin("macro", entry.name, *use_place(body, entry), _case(body, around))
        for condition, taken, other in body.facts.ternaries:
            if taken[0] <= offset < taken[1] or other[0] <= offset < other[1]:
                told = body.written(condition)
                case = told if taken[0] <= offset < taken[1] else f"!({told})"
                return Origin("branch", text, *body.origin(offset), case)
        if not ours:
            return Origin(kind, text, *body.origin(offset))
        inner = _telling(ours, lambda one: _case(body, one), text)
        switch = switch_of(body, inner)
        if inner.kind == "case" and switch is not inner:
            tested = body.written(switch.condition)
            return Origin("switch", tested, *body.origin(switch.start), _case(body, inner))
        return Origin("branch", text, *body.origin(offset), _case(body, inner))


@kept_if_short
def _words(text: str) -> tuple[str, ...]:
    """The names in a text that may have a value, each once."""
    return tuple(dict.fromkeys(_WORD.findall(text)))


@kept_if_short
def _is_plain(text: str, name: str) -> bool:
    """Whether a text is no more than a name's value."""
    return compiled(_PLAIN.format(re.escape(name))).fullmatch(text) is not None


def _place(body: Body, offset: int, written: str) -> tuple[str, int]:
    """``(path, line)`` of what is written at an offset: of the use of a macro that it begins with, not of its text."""
    entries = [body.expanded.expansions[number - 1] for number in lineage(body, offset)]
    used = next((one for one in entries if re.match(rf"{re.escape(one.name)}\b", written)), None)
    return use_place(body, used) if used is not None else body.origin(offset)


def _tests(body: Body, block: Block, offset: int) -> bool:
    """Whether a branch tests the token that stands at an offset: a macro's argument that it uses twice."""
    if block.condition is None or block.kind == "else":
        return False
    expanded = body.expanded
    token = expanded.tokens[expanded.token_at(offset)]
    first, last = expanded.token_at(block.condition[0]), expanded.token_at(block.condition[1] - 1)
    tested = (expanded.tokens[number] for number in range(first, last + 1))
    return any(t.pos == token.pos and t.text == token.text and t.expansion == token.expansion for t in tested)


def _default_line(body: Body, candidate: Candidate, parameter: TemplateParameter) -> int:
    """The line of a template's head that gives a parameter its default; that of the function's name where none does."""
    function = candidate.function
    head = body.head(candidate.path, function)
    written = list(re.finditer(rf"(?<!\w){re.escape(parameter.name)}\s*=(?!=)", head)) if parameter.name else []
    return body.line_in(candidate.path, function.offset - len(head) + written[-1].start()) if written else function.line


def _telling(branches: list[T], condition: Callable[[T], str], text: str) -> T:
    """Of the branches around a value, the innermost one that is there for it: ``case 4``, ``n == 4``; else the
    innermost."""
    named = compiled(rf"(?:(?<![!(])|.*?==\s*){re.escape(text)}\Z|[^!].*?==\s*{re.escape(text)}(?!\w)")
    return next((one for one in branches if named.match(condition(one))), branches[0])


def _case(body: Body, block: Block) -> str:
    """The condition of a branch as it is written; ``default`` for a case without a label."""
    if block.condition is None:
        return "default"
    told = body.text(block.condition)
    return f"!({told})" if block.kind.startswith("else") else told


def _class_arguments(body: Body, call: CallFact, made: ClassDef) -> list[tuple[str, Span2]]:
    """The parameters of a class template that are written whole as arguments of its name in a callee."""
    start, end = call.callee
    text = body.expanded.full[start:end]
    match = re.search(rf"\b{re.escape(made.name)}\s*<", text)
    close = match_angle(text, match.end() - 1) if match else -1
    if close < 0:
        return []
    spans = [(start + a, start + b) for a, b in split_commas(text, match.end(), close - 1)]
    names = [p.name for p in template_parameters(made.template)]
    if made.specialisation is None:
        return list(zip(names, spans, strict=False))
    patterns = [made.specialisation[a:b].strip() for a, b in split_commas(made.specialisation)]
    return [(pattern, span) for pattern, span in zip(patterns, spans, strict=False) if pattern in names]


def _is_bound(environment: Environment, name: str) -> bool:
    """Whether a name stands for something that the place, a lambda around it or a caller binds."""
    held = environment.holder(name)
    if held is not None:
        return True
    return environment.frame is not None and name in environment.frame.bound


def _of_type(environment: Environment, span: Span2) -> tuple[str, int, int] | None:
    """The text that gives an argument's type (without pointers), where it stands, and the block around it."""
    body = environment.body
    text = body.text(span)
    made = _CAST.match(text) or _DATA.search(text)
    if made is not None:
        close = match_angle(text, made.end() - 1)
        inner = text[made.end() : close - 1] if close > 0 else ""
        return (_bare(inner), span[0], body.block_at(span[0])) if inner else None
    if not re.fullmatch(r"[A-Za-z_]\w*", text):
        return None
    held = environment.holder(text)
    if isinstance(held, LambdaFact):
        return None
    if held is not None:
        kind = _bare(re.sub(r"\b(?:constexpr|static)\b", "", held.type))
        if kind == "auto" and held.value is not None:
            return _of_type(environment.at(held.start), held.value)
        return kind, held.start, held.block
    function = environment.frame.candidate.function if environment.frame and environment.frame.candidate else None
    for parameter in function.parameters if function is not None else ():
        if parameter.name == text:
            return _bare(parameter.type), span[0], body.block_at(span[0])
    return None


def _bare(kind: str) -> str:
    return " ".join(re.sub(r"\b(?:const|volatile)\b|[*&]|\b__restrict__\b", " ", kind).split())
