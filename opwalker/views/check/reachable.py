"""Statements that can run: what stands behind a return in the same block is left out.

In: routines and the reader of their files' text. Out: the routines without such statements. A directive between the
two (``#else`` after the return of one build) keeps what follows: then the return may not be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from msgspec.structs import replace

from opwalker.model.statements import Routine, Statement

_LEAVES = ("return", "throw")
Between = Callable[[int, int], bool]


def reachable(routines: Iterable[Routine], text: Callable[[str], str]) -> tuple[Routine, ...]:
    """Routines without the statements that a return stands before."""

    @cache
    def directives(file: str) -> tuple[int, ...]:
        return tuple(at for at, line in enumerate(text(file).split("\n"), 1) if line.lstrip().startswith("#"))

    def kept(one: Routine) -> Routine:
        def apart(first: int, last: int) -> bool:
            return any(first <= at <= last for at in directives(one.file))

        statements = _kept(one.statements, apart)
        return one if statements is one.statements else replace(one, statements=statements)

    return tuple(kept(one) for one in routines)


def _kept(block: tuple[Statement, ...], apart: Between) -> tuple[Statement, ...]:
    """A block without its dead end; the same object where there is none, here and below."""
    dead = _dead(block, apart)
    held = tuple(_inside(one, apart) for one in (block[:-dead] if dead else block))
    return held if dead or any(new is not old for new, old in zip(held, block, strict=True)) else block


def _inside(one: Statement, apart: Between) -> Statement:
    body, orelse = _kept(one.body, apart), _kept(one.orelse, apart)
    return one if body is one.body and orelse is one.orelse else replace(one, body=body, orelse=orelse)


def _dead(block: Sequence[Statement], apart: Between) -> int:
    """How many statements at the end of a block cannot run."""
    for number, one in enumerate(block[:-1]):
        if one.kind not in _LEAVES or one.macro is not None:
            continue
        rest = block[number + 1 :]
        landing = any(held.kind in ("label", "case") for first in rest for held in first.walk(lambdas=False))
        if not landing and not apart(one.line, rest[-1].end_line):
            return len(rest)
    return 0
