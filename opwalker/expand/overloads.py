"""Overloads told apart by the types of their arguments.

In: fits of one call, with the types of what is passed. Out: those that may be meant: the best one where every type is
known and one candidate fits better than each other; otherwise all of them, none of them sure.
"""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.expand.arity import is_pack
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.fits import Fit
from opwalker.expand.resolve import Context
from opwalker.expand.shapes import Shape, shape
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import INTEGERS, Unknown
from opwalker.notation.regex import Regex

_NUMBERS = INTEGERS | {"float", "double"}
_PARTS = Regex(r"[A-Za-z_]\w*|[*<]")
_CONSTANT_POINTEE = Regex(r"\bconst\b[\w\s:]*\*|\w\s+const\s*\*")
#: How far a conversion is from the exact type; None where there is none.
EXACT, QUALIFIED, PROMOTED, CONVERTED, VOID, CLASS = 0, 1, 2, 3, 4, 5


def best(fits: list[Fit], tools: Tools) -> list[Fit]:
    """The fits that a call can mean, by the types that it passes."""
    costs: list[tuple[Fit, list[int | None]]] = []
    for fit in fits:
        cost = _costs(fit, tools)
        if cost is not None:
            costs.append((fit, cost))
    if not costs:
        return [replace(fit, sure=False) for fit in fits]
    if len(costs) == 1:
        return [costs[0][0]]
    for fit, cost in costs:
        if all(other is fit or _is_better(fit, cost, other, theirs) for other, theirs in costs):
            return [fit]
    return [replace(fit, sure=False) for fit, _ in costs]


def _is_better(fit: Fit, cost: list[int | None], other: Fit, theirs: list[int | None]) -> bool:
    if None in cost or None in theirs or len(cost) != len(theirs):
        return False
    if any(a > b for a, b in zip(cost, theirs, strict=True)):
        return False
    if any(a < b for a, b in zip(cost, theirs, strict=True)):
        return True
    mine, its = bool(fit.candidate.function.template), bool(other.candidate.function.template)
    if mine != its:
        return its  # an exact function goes before a template
    return mine and _special(fit) > _special(other)


def _special(fit: Fit) -> tuple[int, int]:
    """How much of a template's parameter types is fixed, and how often what they point to is constant."""
    names = {p.name for p in template_parameters(fit.candidate.function.template)}
    text = " ".join(p.type for p in fit.candidate.function.parameters)
    words = [w for w in _PARTS.findall(text) if w not in names and w != "const"]
    return len(words), len(_CONSTANT_POINTEE.findall(text))


def _costs(fit: Fit, tools: Tools) -> list[int | None] | None:
    """What each argument's conversion costs (None: not known); None where one is not possible."""
    function = fit.candidate.function
    context = Context(fit.candidate.path, fit.candidate.path, function.scope)
    inside = Environment(tools, context, bound=fit.bound, owner=fit.owner)
    out: list[int | None] = []
    for number, given in enumerate(fit.types):
        parameter = function.parameters[number] if number < len(function.parameters) else None
        if parameter is None or is_pack(parameter):
            out.append(None)
            continue
        if given is None:
            out.append(None)
            continue
        try:
            wanted = inside.type(parameter.type).text
        except Unknown:
            out.append(None)
            continue
        cost = conversion(given, wanted)
        if cost is None:
            return None
        out.append(cost if cost < CLASS else None)
    return out


def conversion(given: str, wanted: str) -> int | None:
    """What it costs to pass one canonical type for another; None where it cannot be done; ``CLASS`` where only a class
    could tell."""
    have, want = _value(given), _value(wanted)
    if have.text == want.text:
        return EXACT
    if have.base == want.base and have.marks == want.marks and have.parameters == want.parameters:
        if have.marks and have.const and not want.const:
            return None
        return QUALIFIED if have.marks else EXACT
    if have.marks and want.marks:
        if have.marks[-1].startswith("[") and have.base == want.base and want.marks == ("*",):
            return EXACT
        if want.base == "void" and want.marks == ("*",):
            return None if have.const and not want.const else VOID
        pointers = have.marks[-1] == "*" and want.marks[-1] == "*"
        plain = have.base in _NUMBERS or want.base in _NUMBERS
        return None if pointers and (plain or len(have.marks) != len(want.marks)) else CLASS
    if have.marks:
        return CONVERTED if want.base == "bool" and not want.marks else None if want.base in _NUMBERS else CLASS
    if want.marks:
        return None if have.base in _NUMBERS and have.base != "int" else CLASS
    if have.base in _NUMBERS and want.base in _NUMBERS:
        promotes = (have.base in ("bool", "char", "short", "signed char", "unsigned char") and want.base == "int") or (
            have.base == "float" and want.base == "double"
        )
        return PROMOTED if promotes else CONVERTED
    if have.base.startswith("std::integral_constant<") and want.base.startswith("std::integral_constant<"):
        return None
    return CLASS


def _value(kind: str) -> Shape:
    held = shape(kind)
    marks = held.marks
    while marks and marks[-1] in ("&", "&&"):
        marks = marks[:-1]
    return Shape(held.base, held.const if marks else False, marks, held.parameters)
