"""Preprocessor conditions as values: what they are made of, how they join, and how they print.

In and out: ``Cond``. ``print_condition`` gives the short form of the JSON, in which ``defined(X)`` reads ``X``. What is
not done here: reading text (``condition_parse``) and deciding what holds in a build (``conditions``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct


class Defined(Struct, frozen=True):
    """``defined(name)``."""

    name: str


class Name(Struct, frozen=True):
    """A macro's value: ``#if name``. Not defined, it counts as 0."""

    name: str


class Number(Struct, frozen=True):
    """An integer literal; ``text`` as written, with base and suffix."""

    value: int
    text: str


class Opaque(Struct, frozen=True):
    """What cannot be decided from names alone: a function-like macro in use, or text that is no expression."""

    text: str


class Unary(Struct, frozen=True):
    """``!``, ``-``, ``+`` or ``~`` before an operand."""

    operator: str
    operand: Cond


class Binary(Struct, frozen=True):
    """A comparison or a sum: every operator of two operands but ``&&`` and ``||``."""

    operator: str
    left: Cond
    right: Cond


class Junction(Struct, frozen=True):
    """``&&`` (or ``||``) of two terms or more, none of which is a junction of the same operator."""

    operator: str
    terms: tuple[Cond, ...]


class Choice(Struct, frozen=True):
    """``test ? then : otherwise``."""

    test: Cond
    then: Cond
    otherwise: Cond


Cond: TypeAlias = Defined | Name | Number | Opaque | Unary | Binary | Junction | Choice

TRUE = Number(1, "1")
FALSE = Number(0, "0")

#: How tightly each operator binds; a choice binds least, a sign before an operand most.
BINDING = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
CHOICE, UNARY = 0, 11


def branch_condition(before: Sequence[Cond], this: Cond | None) -> Cond:
    """The condition of one branch of an ``#if``/``#elif``/``#else`` chain: none of the branches ``before`` it was
    taken, and ``this`` holds (None for ``#else``)."""
    own = () if this is None else (this,)
    return conjoin((*(negate(cond) for cond in before), *own))


def conjoin(conds: Iterable[Cond]) -> Cond:
    """All of them: flat, every term once, in order of first appearance. ``TRUE`` for none of them."""
    return _join("&&", conds, neutral=True)


def disjoin(conds: Iterable[Cond]) -> Cond:
    """One of them at least, in the same form. ``FALSE`` for none of them."""
    return _join("||", conds, neutral=False)


def negate(cond: Cond) -> Cond:
    """The opposite; what was negated already loses its ``!``."""
    if isinstance(cond, Number):
        return FALSE if cond.value else TRUE
    if isinstance(cond, Unary) and cond.operator == "!":
        return cond.operand
    return Unary("!", cond)


def _join(operator: str, conds: Iterable[Cond], neutral: bool) -> Cond:
    terms: dict[Cond, None] = {}
    for cond in conds:
        for term in cond.terms if isinstance(cond, Junction) and cond.operator == operator else (cond,):
            if isinstance(term, Number):
                if bool(term.value) != neutral:
                    return FALSE if neutral else TRUE
            else:
                terms[term] = None
    if len(terms) > 1:
        return Junction(operator, tuple(terms))
    return next(iter(terms), TRUE if neutral else FALSE)


def names_of(cond: Cond) -> frozenset[str]:
    """Every macro name that decides the condition; those inside opaque text are not told."""
    return frozenset(part.name for part in _walk(cond) if isinstance(part, (Defined, Name)))


def _walk(cond: Cond) -> Iterator[Cond]:
    pending = [cond]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, Unary):
            pending.append(part.operand)
        elif isinstance(part, Binary):
            pending += (part.left, part.right)
        elif isinstance(part, Junction):
            pending += part.terms
        elif isinstance(part, Choice):
            pending += (part.test, part.then, part.otherwise)


def print_condition(cond: Cond) -> str:
    """The short text: ``defined(X)`` reads ``X``, single blanks, no bracket that is not needed, no term twice."""
    return _print(cond, CHOICE, True)


def condition_text(conds: Iterable[Cond]) -> str | None:
    """What the JSON says of a place that stands under all of these: None when it always stands."""
    cond = conjoin(conds)
    return None if cond == TRUE else print_condition(cond)


def _print(cond: Cond, around: int, truth: bool = False) -> str:
    """The text of a part in a place that binds as tightly as ``around``; ``truth``: only whether it holds counts."""
    if isinstance(cond, (Defined, Name)):
        return cond.name
    if isinstance(cond, (Number, Opaque)):
        return cond.text
    if isinstance(cond, Unary):
        inner = _print(cond.operand, UNARY, cond.operator == "!")
        return cond.operator + (f" {inner}" if inner.startswith(("+", "-")) and cond.operator != "!" else inner)
    if isinstance(cond, Choice):
        then, otherwise = _print(cond.then, 0, truth), _print(cond.otherwise, 0, truth)
        text = f"{_print(cond.test, 1, True)} ? {then} : {otherwise}"
        return f"({text})" if around > CHOICE else text
    own = BINDING[cond.operator]
    if isinstance(cond, Junction):
        texts = list(dict.fromkeys(_print(term, own + 1, True) for term in cond.terms))
        if len(texts) == 1:
            # `defined X && X` says X twice in this short form. As a number it is 0 or 1, which X need not be.
            if truth:
                return _print(cond.terms[0], around, True)
            texts *= 2
        text = f" {cond.operator} ".join(texts)
    else:
        text = f"{_print(cond.left, own)} {cond.operator} {_print(cond.right, own + 1)}"
    return f"({text})" if own < around else text
