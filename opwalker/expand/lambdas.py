"""Where lambdas are called, and what they are passed to.

In: a body and a lambda in it. Out: calls of that body.
"""

from __future__ import annotations

import re

from opwalker.expand.bodies import Body
from opwalker.facts.cpp_brackets import match_bracket
from opwalker.model.body import CallFact, LambdaFact, LocalFact
from opwalker.notation.regex import Regex

_FORWARDED = Regex(
    r"(?:(?:std::)?(?:forward\s*<[^()]*>|move|ref|cref)|static_cast\s*<[^()]*>)\s*\(\s*(\w+)\s*\)\Z"
    r"|(?:\*?\s*&?|\(\s*[\w:]+\s*&{0,2}\s*\))\s*(\w+)\Z"
)


def named_by(text: str) -> str | None:
    """The variable that an argument passes on as it is."""
    text = text.strip()
    while text.startswith("(") and match_bracket(text, 0) == len(text):
        text = text[1:-1].strip()
    found = _FORWARDED.match(text)
    return (found.group(1) or found.group(2)) if found else None


def calls_it(body: Body, call: CallFact, name: str) -> bool:
    """Whether a call calls the object that a parameter holds."""
    if call.receiver is not None:
        return "operator" in call.name and named_by(body.text(call.receiver)) == name
    if call.name == name:
        return True
    callee = body.text(call.callee)
    return callee.endswith(")") and named_by(callee.strip()) == name


def is_generic(held: LambdaFact) -> bool:
    """Whether a lambda is a template: by a template head or an ``auto`` parameter."""
    return bool(held.template) or any(re.search(r"\bauto\b", kind) for kind, _ in held.parameters)


def lambda_calls(body: Body, held: LambdaFact) -> list[CallFact]:
    """The calls of a lambda in its body: through its variable, its call operator, or in place."""
    found = body.lambda_calls.get(held.start)
    if found is None:
        found = body.lambda_calls[held.start] = _lambda_calls(body, held)
    return found


def _lambda_variables(body: Body, held: LambdaFact) -> set[LocalFact]:
    return {
        f for f in body.facts.locals if f.value and f.value[0] <= held.start and held.end <= f.value[1]
        and not any(o.start < held.start and held.end < o.end and f.value[0] <= o.start for o in body.facts.lambdas)
        and not any(
            c.start <= held.start and held.end <= c.end and f.value[0] <= c.start and c.callee[1] <= held.start
            for c in body.facts.calls
        )
    }  # fmt: skip


def _means(body: Body, name: str, offset: int, variables: set[LocalFact]) -> bool:
    """Whether a name is, at an offset, that of one of the variables: other blocks may have variables of the name."""
    return any(f.name == name for f in variables) and not variables.isdisjoint(body.locals_at(name, offset))


def _lambda_calls(body: Body, held: LambdaFact) -> list[CallFact]:
    variables = _lambda_variables(body, held)
    out = []
    for call in body.facts.calls:
        named = call.receiver is None and _means(body, call.simple, call.start, variables)
        owner = body.text(call.receiver) if call.receiver is not None and "operator" in call.name else None
        through = owner is not None and _means(body, owner, call.start, variables)
        # A lambda inside the one that is called in place is not called there.
        before = body.expanded.full[call.callee[0] : held.start]
        direct = call.callee[0] <= held.start < call.callee[1] and not before.strip("( \n")
        if named or through or direct:
            out.append(call)
    return out


def lambda_uses(body: Body, held: LambdaFact) -> list[tuple[CallFact, int]]:
    """The calls that a lambda is an argument of, itself or through its variable, with its position."""
    key = -1 - held.start
    found = body.lambda_calls.get(key)
    if found is None:
        variables = _lambda_variables(body, held)
        found = []
        for call in body.facts.calls:
            for position, span in enumerate(call.arguments):
                whole = span[0] == held.start and held.end >= span[1] - 1
                if whole or _means(body, named_by(body.text(span)) or "", call.start, variables):
                    found.append((call, position))
        body.lambda_calls[key] = found
    return found
