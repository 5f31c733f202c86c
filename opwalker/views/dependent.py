"""Calls of a kernel that its template arguments decide: ``Kernel::run(p)`` where ``Kernel`` is a type parameter.

In: a kernel's body. Out: ``OpenCall`` facts, one a name. They are followed nowhere: each instance calls what its own
argument has.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.expand.bodies import Body
from opwalker.expand.template_heads import template_parameters
from opwalker.model.body import CallFact
from opwalker.model.kernel import OpenCall
from opwalker.notation.regex import Regex
from opwalker.views.sync_events import type_text

_HEAD = Regex(r"(?:\s|\b(?:const|typename|volatile|static|constexpr|__shared__)\b)*([A-Za-z_]\w*)")


def open_calls(body: Body) -> tuple[OpenCall, ...]:
    """The calls of functions that type parameters of a kernel's template have, in source order, each name once."""
    function = body.function
    heads = template_parameters(function.template) if function is not None else ()
    given = {one.name: one.name for one in heads if one.type is None and one.name}
    if not given:
        return ()
    for local in body.facts.locals:
        if local.type == "using" and local.value is not None and (on := _named(body.text(local.value), given)):
            given[local.name] = on
    out: dict[str, OpenCall] = {}
    for call in body.facts.calls:
        for name, on in _opened(body, call, given):
            out.setdefault(name, OpenCall(name, on, body.use_line(call.start)))
    return tuple(out.values())


def _opened(body: Body, call: CallFact, given: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The call's name and the parameter that it hangs on, where it does."""
    if call.receiver is not None:
        receiver = body.text(call.receiver)
        if on := _named(type_text(body, receiver, call.start), given):
            yield f"{receiver}.{call.simple}", on
    elif "::" in call.name:
        if on := _named(call.name, given):
            yield call.name, on
    elif held := body.locals_at(call.name, call.start):
        # An object that is called: `Kernel run; run(params)`. That is no declaration `T x(0)`.
        declared = any(one.start <= call.start < one.end for one in held)
        if not declared and (on := _named(held[-1].type, given)):
            yield call.name, on


def _named(text: str, given: dict[str, str]) -> str | None:
    """The type parameter that a type or qualified name begins with."""
    head = _HEAD.match(text)
    return given.get(head[1]) if head else None
