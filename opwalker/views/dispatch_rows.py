"""The branches of a dispatch macro, one by one: which tests lead to each, what it binds, and which one raises.

In: a body, a macro use in it, and what its branches bind. Out: axes, rows and failures of ``Dispatch``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.expanded import Expansion
from opwalker.expand.owners import lineage
from opwalker.model.walk import DispatchAxis, DispatchFailure, DispatchRow
from opwalker.notation.check_words import enumerators, said
from opwalker.notation.cpp_expression import Expr, negated, parse_expression, print_expression, terms
from opwalker.notation.regex import Regex
from opwalker.notation.tensor_expression import scalar_type
from opwalker.views.branches import Branches, Guard, needed
from opwalker.views.checks import failures_of

_OTHERWISE = "otherwise"
#: Functions that hand on what they are given: casts, and the scalar type of a scalar type.
_SAME = Regex(r"\w*_cast\b|(?:u?int(?:\d+_t)?|size_t|bool|long)\Z|(?:to)?_?[sS]calar_?[tT]ype\Z")


class Leaf(Struct, frozen=True):
    """A branch that binds something: its block, and the values of the names, in the order of the names."""

    block: int
    values: tuple[str, ...]
    offset: int


def rows_of(body: Body, entry: Expansion, leaves: Sequence[Leaf]) -> tuple[DispatchRow, ...]:
    """Each branch with the conditions that the macro itself tests before it."""
    branches = Branches(body)
    out: dict[tuple, DispatchRow] = {}
    for leaf in leaves:
        guards = _own_guards(body, branches, entry, leaf)
        under = tuple(_words(body, entry, guard) for guard in guards)
        out.setdefault((under, leaf.values), DispatchRow(under, leaf.values, body.use_line(leaf.offset)))
    return tuple(out.values())


def axes_of(body: Body, entry: Expansion, names: Sequence[str], leaves: Sequence[Leaf]) -> tuple[DispatchAxis, ...]:
    """What is tested, in order; each name belongs to the first axis that decides its value alone."""
    branches = Branches(body)
    tests: dict[str, dict[str, None]] = {}
    led: list[tuple[dict[str, str], tuple[str, ...]]] = []
    for leaf in leaves:
        on: dict[str, str] = {}
        for guard in _own_guards(body, branches, entry, leaf):
            subject, value = _tested(body, entry, guard)
            tests.setdefault(subject, {})[value] = None
            on[subject] = value
        led.append((on, leaf.values))
    binds: dict[str, list[str]] = {subject: [] for subject in tests}
    for number, name in enumerate(names):
        for subject in tests:
            if _decides(led, subject, number):
                binds[subject].append(name)
                break
    return tuple(DispatchAxis(subject, tuple(found), tuple(binds[subject])) for subject, found in tests.items())


def failures(body: Body, entry: Expansion, others: Sequence[int]) -> tuple[DispatchFailure, ...]:
    """The branches of a use that raise; those of another dispatch inside it are not its own."""
    out: dict[DispatchFailure, None] = {}
    for offset, fact in failures_of(body):
        here = [number for number in lineage(body, offset) if number in others]
        if not here or here[-1] != entry.id:
            continue
        words = fact.words
        subject = words.split(" ", 1)[0] if words else ""
        if words and subject.isidentifier():
            words = words.replace(subject, _meant(body, entry, subject), 1)
        out[DispatchFailure(words, fact.message, fact.kind, body.path, fact.line)] = None
    return tuple(out)


def _own_guards(body: Body, branches: Branches, entry: Expansion, leaf: Leaf) -> list[Guard]:
    """The conditions before a leaf that stand in the macro."""
    guards = [
        guard
        for guard in branches.around(leaf.block)
        if entry.id in lineage(body, body.facts.blocks[guard.block].start) or entry.id in lineage(body, guard.offset)
    ]
    kept = needed(guards)
    tested = [_tested(body, entry, guard) for guard in kept]
    exact = {subject for subject, value in tested if value != _OTHERWISE}
    # Where one branch of a test is entered, that the others are not is no news.
    pairs = zip(kept, tested, strict=True)
    return [one for one, (subject, value) in pairs if value != _OTHERWISE or subject not in exact]


def _decides(led: Sequence[tuple[dict[str, str], tuple[str, ...]]], subject: str, number: int) -> bool:
    """Whether a name's value follows from one axis."""
    found: dict[str, set[str]] = {}
    for on, values in led:
        if subject not in on or number >= len(values):
            return False
        found.setdefault(on[subject], set()).add(values[number])
    return all(len(values) == 1 for values in found.values())


def _tested(body: Body, entry: Expansion, guard: Guard) -> tuple[str, str]:
    """``(what is tested, for which value)``."""
    condition = guard.condition
    parts = terms(condition, "||")
    if all(_is_equality(part) for part in parts):
        subjects = {print_expression(part.parts[0]) for part in parts}
        if len(subjects) == 1:
            return _meant(body, entry, subjects.pop()), ", ".join(_values([part.parts[1] for part in parts]))
    opposite = negated(condition)
    parts = terms(opposite, "||")
    if all(_is_equality(part) for part in parts):
        subjects = {print_expression(part.parts[0]) for part in parts}
        if len(subjects) == 1:
            return _meant(body, entry, subjects.pop()), _OTHERWISE
    if condition.kind == "unary" and condition.text == "!":
        return print_expression(condition.parts[0]), "false"
    return print_expression(condition), "true"


def _is_equality(expr: Expr) -> bool:
    return expr.kind == "binary" and expr.text == "=="


def _values(tested: list[Expr]) -> list[str]:
    types = [scalar_type(one) for one in tested]
    if all(types):
        return [one for one in types if one]
    return enumerators(tested) or [print_expression(one) for one in tested]


def _meant(body: Body, entry: Expansion, subject: str) -> str:
    """A variable that the macro makes of one of its arguments stands for the argument, or for what a function makes of
    that."""
    for local in body.locals.get(subject, ()):
        if local.value is not None and entry.id in lineage(body, local.start):
            text = body.text(local.value)
            for argument in entry.arguments or ():
                plain = " ".join(argument.split())
                if plain and len(plain) > 1 and plain in text:
                    return _mapped(text) or plain
    return subject


def _mapped(text: str) -> str | None:
    """The call of a function that maps its argument to something else; None for what hands on the same."""
    expr = parse_expression(text[1:-1] if text[:1] in "({" and text[-1:] in ")}" else text)
    while expr.kind == "call" and expr.parts[0].kind == "name" and len(expr.parts) == 2:
        name = expr.parts[0].simple
        if not _SAME.match(name):
            return print_expression(replace(expr, parts=(Expr("name", name), *expr.parts[1:])))
        expr = expr.parts[1]
    return None


def _words(body: Body, entry: Expansion, guard: Guard) -> str:
    subject, value = _tested(body, entry, guard)
    if value == _OTHERWISE:
        return f"{subject} is anything else"
    return said(guard.condition).replace(print_expression(_left(guard.condition)), subject)


def _left(condition: Expr) -> Expr:
    part = terms(condition, "||")[0]
    return part.parts[0] if _is_equality(part) else condition
