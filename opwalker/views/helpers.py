"""Functions between the host function and the launches, with what their own bodies say.

In: what was reached from a host function. Out: ``Host`` facts of each function that leads to a launch or library call,
and of those that check something for one of them, where their bodies say anything, in the order of entering.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Workbench
from opwalker.model.reach import Reach
from opwalker.model.walk import CheckFact, Host, ParameterFact, PathStep
from opwalker.notation.regex import Regex
from opwalker.views.entered import Entered
from opwalker.views.host import body_facts, read_host
from opwalker.views.way import Way

#: Functions that are told of one implementation.
MAX_HELPERS = 16
#: A function's name as an argument, with its template arguments.
_NAMED = Regex(r"&?\s*(?:::)?[\w:]+(?:<.*>)?")
_TELLING = ("sizes", "strides", "checks", "guards", "streams", "contiguous_calls")


def on_way(reach: Reach, way: Way, name: str) -> list[tuple[str, Body]]:
    """``(function, body)`` of the host function and of all on a way to a launch or library call."""
    out = [(name, way.host.body)]
    led = leading(reach, way)
    for path, function, steps in reach.functions:
        if steps and (path, function.offset) in led:
            out.append((function.qualified_name, way.body_of(path, function)))
    return out


def helpers_of(
    workbench: Workbench,
    way: Way,
    reach: Reach,
    entered: Entered,
    parameters: tuple[ParameterFact, ...],
    asserted: Mapping[str, int],
) -> tuple[Host, ...]:
    """The functions behind the host function whose ``parameters`` are given; ``asserted`` are those that only raise
    unless an argument holds."""
    led = leading(reach, way)
    arguments = {p.name: p.argument for p in parameters}
    out: list[Host] = []
    for path, function, steps in reach.functions:
        if function.name in asserted:
            continue  # what it demands is told where it is called
        if not steps or len(out) >= MAX_HELPERS:
            continue
        body = way.body_of(path, function)
        leads = (path, function.offset) in led
        if not leads and (len(steps) > 3 or not any(map(_demands, body_facts(body, asserted)["checks"]))):
            continue
        values = way.of_function(path, function, steps)
        joined = []
        for parameter in function.parameters:
            argument = None
            if values is not None and re.fullmatch(r"\w+", parameter.name or ""):
                where, text, _ = values.origin(parameter.name, 0)
                argument = arguments.get(text) if where is way.host else None
            joined.append(ParameterFact(parameter.name, parameter.type, argument))
        host = read_host(workbench, Candidate(path, function), body, tuple(joined), asserted)
        if any(getattr(host, kind) for kind in _TELLING):
            out.append(replace(host, under=entered.of(path, function)))
    return tuple(out)


def _demands(check: CheckFact) -> bool:
    """Whether a check demands something of its caller; one that a call has worked does not."""
    return not re.search(r"\b\w*[sS]uccess\b|\b\w*SUCCESS\b", check.condition)


def leading(reach: Reach, way: Way) -> set[tuple[str, int]]:
    """The functions that lead to a launch or library call, over any way: ``(path, offset)``.

    A walk keeps one way to each end; other callers of what lies on it lead there as well.
    """
    known = {step.function for steps in _ways(reach) for step in steps}
    calls: dict[tuple[str, int], set[str]] = {}
    names: dict[tuple[str, int], str] = {}
    led: set[tuple[str, int]] = set()
    for path, function, _ in reach.functions:
        key = (path, function.offset)
        names[key] = function.name
        calls[key] = set(_mentioned(way.body_of(path, function)))
        if function.qualified_name in known:
            led.add(key)
    while True:
        simple = {names[key] for key in led}
        more = {key for key, called in calls.items() if key not in led and called & simple}
        if not more:
            return led
        led |= more


def _mentioned(body: Body) -> Iterator[str]:
    """Names of what a body calls or passes on, which whoever gets it may call."""
    for call in body.facts.calls:
        yield call.simple
        for span in call.arguments:
            text = body.text(span)
            if _NAMED.fullmatch(text):
                yield text.partition("<")[0].rsplit("::", 1)[-1].lstrip("& ")


def _ways(reach: Reach) -> list[tuple[PathStep, ...]]:
    ways = [site.steps for site in reach.launches]
    return ways + [end.path for end in reach.terminals if end.kind == "library"]
