"""How an implementation chooses: dispatch macros by axis, and the choices that functions write themselves."""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.model.walk import Branching, Dispatch, DispatchFailure
from opwalker.notation.outermost import bare_names
from opwalker.serve.render.page import Group, Row, Spans, Step
from opwalker.serve.render.words import at, both, listed, place, titled

#: Values in one line; more of them, or values of several names, stand one a row.
_IN_LINE = 8


def dispatch_step(use: Dispatch, told: bool = False) -> Step:
    """A dispatch macro in use: on which value, what each branch binds, to which values, and what raises; ``told`` says
    that the page has told the same of an earlier use."""
    title = titled((("Dispatch ", "step"), (use.macro, "name")), (place(use.file, use.line),))
    groups = []
    if told:
        return Step(title, (Group("on", (Row((((use.on or "", ""),), (("as above", "quiet"),))),)), *_used(use.under)))
    if len(use.axes) > 1:
        groups.append(Group("on", tuple(_axis(one.on, one.tests, one.binds) for one in use.axes)))
    elif use.on:
        held: Spans = (("= ", "quiet"), (use.on_value, "")) if use.on_value else ()
        groups.append(Group("on", (Row((((use.on, ""),), held) if held else (((use.on, ""),),)),)))
    groups += _used(use.under)
    if use.binds:
        groups.append(Group("binds", (Row((((use.binds, "name"),),)),)))
    if (len(use.axes) > 1 or "," in (use.binds or "")) and use.rows:
        rows = tuple(Row((((both(row.under), ""),), ((", ".join(row.values), "type"),))) for row in use.rows)
        groups.append(Group("to", rows))
    elif use.values:
        groups.append(Group("to", (Row((listed(((value, "type") for value in use.values), " |"),)),)))
    groups += _failures(use.fails)
    if use.defined_at:
        groups.append(Group("defined at", (Row(((at(use.defined_at),),)),)))
    return Step(title, tuple(groups))


def branching_step(choice: Branching) -> Step:
    """A choice that a function writes itself: each branch with what it calls."""
    on: Spans = ((f"{choice.kind} on ", "quiet"), (choice.on, "name")) if choice.on else ((choice.kind, "quiet"),)
    title = titled(
        (("Choice ", "step"), *on), (place(choice.file, choice.line),), (("in ", "quiet"), (choice.function, "name"))
    )
    rows = tuple(
        Row((((both(row.under) or "otherwise", ""),), ((", ".join(bare_names(row.values)), "name"),)))
        for row in choice.rows
    )
    return Step(title, (*_used(choice.under), Group("calls", rows), *_failures(choice.fails)))


def _used(under: Sequence[str]) -> list[Group]:
    """Under which conditions a choice is made at all."""
    return [Group("used where", (Row((((both(under), ""),),)),))] if under else []


def _axis(on: str, tests: Sequence[str], binds: Sequence[str]) -> Row:
    bound: Spans = (("binds ", "quiet"), (", ".join(binds), "name")) if binds else ()
    return Row((((on, ""),), ((", ".join(tests), "type"),), bound))


def _failures(fails: Sequence[DispatchFailure]) -> list[Group]:
    """What is demanded, and what is said where it does not hold."""
    rows = []
    for one in fails:
        said: Spans = ((one.message, "quiet"),) if one.message else ()
        demanded: Spans = ((f"unless {one.words}", ""),) if one.words else (("always", ""),)
        rows.append(Row((demanded, ((one.kind, "step"),), said)))
    return [Group("raises", tuple(rows))] if rows else []
