"""What the head of a function template demands of its arguments.

In: a function, and the environment of its head with what its template parameters are bound to. Out: whether
``enable_if`` (in the result, a parameter, a template parameter, or behind an alias), ``requires`` or a concept rules
the arguments out. What cannot be told is Unknown, never a no.
"""

from __future__ import annotations

from opwalker.expand.deduction import Mismatch
from opwalker.expand.environment import Environment
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.resolve import Candidate
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import INTEGERS, NoType, TypeTerm, Unknown, builtin
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.model.cpp import Function
from opwalker.notation.regex import Regex
from opwalker.notation.short_texts import kept_if_short

_ENABLE = Regex(r"\benable_if(?:_t)?\s*<")


def is_excluded(candidate: Candidate, inside: Environment) -> bool:
    """Whether the head rules these arguments out. Raises Unknown when it cannot be told, NoType where a type of the
    head does not exist, Mismatch where a type is given for a number."""
    function = candidate.function
    if function.requires and not _holds(function.requires, inside, "requires "):
        return True
    parameters = [p for p in template_parameters(function.template) if p.type and not p.is_template]
    constants = [p.type for p in parameters if p.type and not isinstance(inside.bound.get(p.name), TypeTerm)]
    for text in (function.return_type, *(p.type for p in function.parameters), *constants):
        if not all(_holds(condition, inside) for condition in _demands(text)):
            return True
    for text in (function.return_type, *constants):
        if "<" in text and not _demands(text):
            _substituted(text, inside)
    concepts = [p for p in parameters if p.type not in constants]
    if any(builtin(p.type) in INTEGERS or _is_enum(p.type, inside) for p in concepts):
        raise Mismatch  # a type where a number is asked for
    if concepts:
        raise Unknown(f"whether `{concepts[0].type} {concepts[0].name}` holds is not known")
    return False


def _is_enum(text: str, inside: Environment) -> bool:
    """Whether a text names an enumeration of the source."""
    name = text.rsplit("::", 1)[-1].strip()
    if name not in inside.tools.index.names_of_kind("enum"):
        return False
    try:
        inside.type(text)
    except Unknown:
        return False
    return True


def written_in_head(function: Function) -> tuple[str, ...]:
    """What the head of a function demands, as it is written: the conditions of ``enable_if`` and ``requires``."""
    out = [" ".join(function.requires.split())] if function.requires else []
    for text in (function.return_type, function.template or "", *(p.type for p in function.parameters)):
        out += [" ".join(condition.split()) for condition in _demands(text)]
    return tuple(dict.fromkeys(out))


@kept_if_short
def _demands(text: str) -> tuple[str, ...]:
    """The conditions of every ``enable_if`` in a text."""
    out = []
    for match in _ENABLE.finditer(text):
        inner = text[match.end() : match_angle(text, match.end() - 1) - 1]
        first = split_commas(inner)[0]
        out.append(inner[first[0] : first[1]])
    return tuple(out)


def _holds(text: str, inside: Environment, before: str = "") -> bool:
    value = value_of(evaluate(text, inside))
    if value is None:
        raise Unknown(f"whether `{before}{text[:60]}` holds is not known")
    return bool(value.value)


def _substituted(text: str, inside: Environment) -> None:
    """Raises NoType where a type of the head does not exist for these arguments, as under an alias of ``enable_if``;
    a type that is not known says nothing."""
    try:
        inside.type(text)
    except NoType:
        raise
    except Unknown:
        return
