"""Checks of a body: what each one demands, in code and in words, and the conditions that it stands under.

In: a body. Out: ``CheckFact`` in source order: check macros, ``throw``, and branches that always raise. A branch that
raises demands the condition that leads around it: ``if (n % 4) throw …`` demands ``n % 4 == 0``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.macros import KNOWN
from opwalker.model.body import CallFact, ExitFact, Span2
from opwalker.model.walk import CheckFact
from opwalker.notation.check_words import in_words, said
from opwalker.notation.cpp_expression import Expr, negated, parse_expression, print_expression, terms
from opwalker.notation.outermost import outermost
from opwalker.notation.regex import Regex
from opwalker.views.branches import Guard, any_of, needed
from opwalker.views.ops import shown_condition
from opwalker.views.returns import Returns, past_words, words_of

_CHECK = Regex(
    r"(?:STD_)?TORCH_(?:CHECK\w*|INTERNAL_ASSERT\w*)|TVM_FFI_(?:I?CHECK\w*)|AT_ASSERT\w*|C10_CUDA_CHECK|AT_CUDA_CHECK|assert|"
    r"\w*(?:CHECK|ASSERT|ENFORCE)\w*\Z"
)
#: Checks that compare their first two arguments.
_COMPARED = Regex(r"_(EQ|NE|LT|LE|GT|GE)\Z")
_COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_NO_CHECK = Regex(
    r"(?:C10|AT|STD)_\w*(?:CUDA|HIP)\w*_CHECK\w*|\w*KERNEL_LAUNCH_CHECK|\w*ERROR_CODE_CHECK|CUDA_?CHECK\w*|HIP_?CHECK\w*|check_\w+"
)
#: Calls that raise whatever they are given.
_RAISE = Regex(r"TVM_FFI_THROW|AT_ERROR|TORCH_ERROR|(?:std::)?(?:abort|terminate)")
_STRINGS = Regex(r'"(?:[^"\\]|\\.)*"')
_NEVER = ("false", "0")
_NONE: Mapping[str, int] = {}


def checks_of(body: Body, asserting: Mapping[str, int] = _NONE) -> tuple[CheckFact, ...]:
    """Every check of a body. Several that say the same at one place (copies that a macro makes) are one. ``asserting``
    are functions that raise unless an argument holds: their names, and which argument."""
    branches = Returns(body)
    found: dict[tuple, CheckFact] = {}
    for offset, fact in sorted(_facts(body, branches, asserting), key=lambda pair: pair[0]):
        fact = replace(fact, compiled=shown_condition(body.condition_at(offset)))
        key = (fact.kind, fact.condition, fact.message, fact.words, fact.line)
        held = found.get(key)
        if held is not None:
            under, past = (
                tuple(text for text in getattr(held, kind) if text in getattr(fact, kind)) for kind in ("under", "past")
            )
            compiled = fact.compiled if fact.compiled == held.compiled else None
            fact = replace(fact, under=under, past=past, compiled=compiled)
        found[key] = fact
    return tuple(found.values())


class Demand(Struct, frozen=True):
    """A condition that holds behind a check, where it stands, and the branches that it stands under."""

    condition: Expr
    offset: int
    line: int
    guards: tuple[Guard, ...]


def demands_of(body: Body) -> Sequence[Demand]:
    """What the checks of a body demand, as expressions; each part of an ``&&`` by itself."""
    if "demands" not in body.kept:
        body.kept["demands"] = tuple(_demands(body))
    return body.kept["demands"]


def _demands(body: Body) -> Iterator[Demand]:
    branches = Returns(body)
    for call in body.facts.calls:
        if not _is_check(body, call) or call.template_arguments is not None:
            continue
        _, expr, _ = _condition(body, call)
        expr = branches.meant(expr, call.start)
        if print_expression(expr) in _NEVER:
            yield from _demanded(body, branches, call.block, call.start)
        else:
            for part in terms(expr, "&&"):
                guards = tuple(needed([*branches.past(call.block, call.start), *branches.around(call.block)]))
                yield Demand(part, call.start, body.use_line(call.start), guards)
    for exit_ in body.facts.exits:
        if exit_.kind == "throw":
            yield from _demanded(body, branches, exit_.block, exit_.start)


def _demanded(body: Body, branches: Returns, block: int, offset: int) -> Iterator[Demand]:
    leads, outer = branches.failed(block, offset)
    if leads and all(one.kind != "raw" for one in leads):
        past = branches.past(outer, offset, outer != block)
        past = _others(past, any_of(leads))
        for part in terms(any_of(leads), "&&"):
            yield Demand(part, offset, body.use_line(offset), tuple(needed([*past, *branches.around(outer)])))


def failures_of(body: Body) -> Sequence[tuple[int, CheckFact]]:
    """Every place of a body that always raises, ``(offset, check)``, those in macros of libraries included."""
    if "failures" not in body.kept:
        body.kept["failures"] = tuple(_failures(body))
    return body.kept["failures"]


def _failures(body: Body) -> Iterator[tuple[int, CheckFact]]:
    branches = Returns(body)
    for call in body.facts.calls:
        if call.receiver is not None:
            continue
        if _RAISE.fullmatch(call.name):
            message = _message_behind(body, call.end) or (", ".join(body.written(a) for a in call.arguments) or None)
            yield call.start, _raising(body, branches, call.simple, message, call.start, call.block)
        elif _CHECK.match(call.simple) and not _NO_CHECK.match(call.simple) and call.arguments:
            if body.text(call.arguments[0]) in _NEVER:
                yield call.start, _check(body, branches, call)
    for exit_ in body.facts.exits:
        if exit_.kind == "throw" and exit_.value is not None:
            yield exit_.start, _throwing(body, branches, exit_)


def raises(body: Body) -> Iterator[tuple[int, str]]:
    """Where a body can raise: ``(offset, what)`` of each throw and each check that raises."""
    for exit_ in body.facts.exits:
        if exit_.kind == "throw":
            yield exit_.start, _thrown(body, exit_)
    for call in body.facts.calls:
        if (_is_check(body, call) and call.simple != "assert") or _RAISE.fullmatch(call.name):
            yield call.start, call.simple


def _is_check(body: Body, call: CallFact) -> bool:
    # What a library's own macro checks inside is no statement of this function.
    return (
        call.receiver is None
        and bool(_CHECK.match(call.simple))
        and not _NO_CHECK.match(call.simple)
        and bool(call.arguments)
        and body.expanded.origin(call.start)[0] != KNOWN
    )


def _facts(body: Body, branches: Returns, asserting: Mapping[str, int]) -> Iterator[tuple[int, CheckFact]]:
    for call in body.facts.calls:
        place = asserting.get(call.simple)
        if place is not None and call.receiver is None and place < len(call.arguments):
            arguments = (call.arguments[place], *call.arguments[:place], *call.arguments[place + 1 :])
            yield call.start, _check(body, branches, replace(call, arguments=arguments, template_arguments=None))
        elif _is_check(body, call):
            yield call.start, _check(body, branches, call)
        elif _RAISE.fullmatch(call.name) and body.expanded.origin(call.start)[0] != KNOWN:
            message = _message_behind(body, call.end) or (", ".join(body.written(a) for a in call.arguments) or None)
            yield call.start, _raising(body, branches, call.simple, message, call.start, call.block)
    for exit_ in body.facts.exits:
        if exit_.kind == "throw" and body.expanded.origin(exit_.start)[0] != KNOWN and exit_.value is not None:
            yield exit_.start, _throwing(body, branches, exit_)


def _throwing(body: Body, branches: Returns, exit_: ExitFact) -> CheckFact:
    kind = f"throw {_thrown(body, exit_)}"
    return _raising(body, branches, kind, _thrown_message(body, exit_), exit_.start, exit_.block)


def _thrown_message(body: Body, exit_: ExitFact) -> str | None:
    """What is thrown with a text: its pieces, those that are joined to it by ``+`` one after the other."""
    text = body.written(exit_.value).strip() if exit_.value is not None else ""
    found = re.fullmatch(r"[\w:<>\s]*[({](.*)[)}]", text, re.DOTALL)
    inside = found[1] if found else text
    if not _STRINGS.search(inside):
        return None
    return ", ".join(piece.strip() for piece in outermost(inside, "+")) or None


def _thrown(body: Body, exit_: ExitFact) -> str:
    text = body.written(exit_.value) if exit_.value else ""
    return re.split(r"[({]", text, maxsplit=1)[0].strip()


def _check(body: Body, branches: Returns, call: CallFact) -> CheckFact:
    if call.template_arguments is not None:
        # `CHECK_SHAPE<3>(x, sizes)` is a function of the project's own: its arguments are no condition.
        condition = ", ".join(body.written(span) for span in call.arguments)
        line, via = body.use_line(call.start), _via(body, call.start, call.simple)
        return CheckFact(call.simple, condition, None, line, None, *_place(branches, call.block, call.start, via))
    condition, expr, rest = _condition(body, call)
    expr = branches.meant(expr, call.start)
    message = ", ".join(body.written(a) for a in rest) or _message_behind(body, call.end)
    if print_expression(expr) in _NEVER:
        return _raising(body, branches, call.simple, message, call.start, call.block, condition)
    line, via = body.use_line(call.start), _via(body, call.start, call.simple)
    place = _place(branches, call.block, call.start, via)
    return CheckFact(call.simple, condition, message, line, in_words(expr), *place)


def _condition(body: Body, call: CallFact) -> tuple[str, Expr, tuple[Span2, ...]]:
    """What a check tests, as written and as an expression, and its other arguments."""
    condition, meant = body.written(call.arguments[0]), body.text(call.arguments[0])
    rest = call.arguments[1:]
    compared = _COMPARED.search(call.simple)
    if compared and rest:
        operator = _COMPARISONS[compared[1]]
        condition, meant = f"{condition} {operator} {body.written(rest[0])}", f"{meant} {operator} {body.text(rest[0])}"
        rest = rest[1:]
    return condition, parse_expression(meant), rest


def _raising(
    body: Body,
    branches: Returns,
    kind: str,
    message: str | None,
    offset: int,
    block: int,
    condition: str | None = None,
) -> CheckFact:
    """A place that always raises: what it demands is what leads around it."""
    leads, outer = branches.failed(block, offset)
    words = None
    demanded: Expr | None = any_of(leads) if leads else None
    if demanded is not None and all(one.kind != "raw" for one in leads):
        words = said(demanded)
    code = condition if condition is not None else print_expression(demanded) if demanded is not None else "false"
    # Where returns of the same block lead around it, its words say so.
    place = _place(branches, outer, offset, _via(body, offset, kind), outer != block or not leads, demanded)
    return CheckFact(kind, code, message, body.use_line(offset), words, *place)


def _place(
    branches: Returns, block: int, offset: int, via: str | None, own: bool = True, demanded: Expr | None = None
) -> tuple[tuple[str, ...], str | None, tuple[str, ...]]:
    """What holds around a check, the macro that brings it, and what holds as nothing has returned before it; of that
    not what says that the check is not met."""
    around = branches.around(block)
    return words_of(around), via, past_words(_others(branches.past(block, offset, own), demanded), around)


def _others(past: Sequence[Guard], demanded: Expr | None) -> list[Guard]:
    """What holds behind returns but for what is the opposite of a demand: ``if (ok) { return; } else { throw … }``
    comes to the ``throw`` where ``ok`` is false, and demands ``ok`` of every call."""
    failed = {print_expression(one) for one in terms(negated(demanded), "&&")} if demanded is not None else set()
    return [one for one in past if any(print_expression(t) not in failed for t in terms(one.condition, "&&"))]


def _via(body: Body, offset: int, kind: str) -> str | None:
    """The macro whose use makes the check, where it is not the check itself."""
    chain = body.expanded.chain(body.expanded.origin(offset)[2])
    return chain[0].name if chain and chain[0].name != kind else None


def _message_behind(body: Body, end: int) -> str | None:
    """The strings that are streamed into a check: ``CHECK(x) << "wrong";``."""
    full = body.expanded.full
    if not full[end : end + 4].lstrip().startswith("<<"):
        return None
    stop = full.find(";", end)
    pieces = [" ".join(one.split()) for one in outermost(full[end : stop if stop >= 0 else end], "<<")]
    return ", ".join(one for one in pieces if one) if any(_STRINGS.search(one) for one in pieces) else None
