"""What a call must hold to, in a note: checks in words, the device it runs on, the stream that the work is put on.

In: an implementation. Out: a section. Checks that a dispatch or a choice makes are told there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from opwalker.model.notes import Block, Cell, NoteSection, Statement, Statements, Table, Text
from opwalker.model.walk import CheckFact, GuardFact, Host, Implementation, ReturnFact, StreamFact
from opwalker.notation.outermost import outermost
from opwalker.views.held import named_in
from opwalker.views.notes.words import (
    both,
    code,
    condition,
    held_statements,
    held_value,
    line,
    marked,
    message,
    sentence,
    statement,
)

#: More names than these are folded.
_FEW = 12
_NAMES = "Names that conditions, sizes and strides are told with"
#: Where a check is told with a dispatch or a choice: ``(file, line, message)``.
_Told = frozenset[tuple[str, int, str | None]]


def checks_section(chosen: Implementation) -> NoteSection | None:
    """Checks, device guard and stream of the host function and of the functions on the way."""
    host = chosen.host
    if host is None:
        return None
    choices = (*chosen.dispatch, *chosen.branches)
    told: _Told = frozenset((use.file, use.line, one.message) for use in choices for one in use.fails)
    told |= frozenset((one.file, one.line, one.message) for use in choices for one in use.fails)
    said = _function(host, told, host.returns)
    if not host.guards and chosen.launches and not any(one.guards for one in chosen.helpers):
        said.append(statement("No device guard was found: it runs on the device that is current."))
    blocks: list[Block] = [Statements(tuple(said))] if said else []
    for helper in chosen.helpers:
        # Where a function on the way only works out a value, its returns are no news.
        inner = _function(helper, told, [one for one in helper.returns if one.value is None])
        if any(f"{helper.name.rsplit('::', 1)[-1]}(" in axis.on for use in chosen.dispatch for axis in use.axes):
            inner = [*(_gives(helper, one) for one in helper.returns if one.value), *inner]
        if inner:
            at = [line(helper.file, helper.line)]
            where = (", entered where ", condition(both(helper.under), _names(host))) if helper.under else ()
            way = statement("On the way, ", code(helper.name), *where, ":", at=at, below=inner)
            blocks.append(Statements((way,)))
    if host.named:
        rows = [(Cell(code(one.name), line(host.file, one.line)), Cell(held_value(one))) for one in host.named]
        blocks.append(Table(("Name", "is"), tuple(rows), _NAMES if len(rows) > _FEW else ""))
    return NoteSection("checks", "Checks, device and stream", tuple(blocks)) if blocks else None


def _function(host: Host, told: _Told, returns: Sequence[ReturnFact]) -> list[Statement]:
    """What one function says; what holds only as no early return was taken stands below that."""
    checks = [fact for fact in host.checks if (host.file, fact.line, fact.message) not in told]
    facts: list[tuple[CheckFact | GuardFact | StreamFact, Statement]] = []
    held = list(host.held)
    for fact in checks:
        # What a local holds is told with the first check that names it.
        named = named_in(held, [fact.condition])
        held = [one for one in held if one not in named]
        facts.append((fact, _check(host, fact, held_statements(named, host.file, _names(host)))))
    facts += [(fact, _guard(host, fact)) for fact in host.guards]
    facts += [(fact, _stream(host, fact)) for fact in host.streams]
    behind: dict[tuple[str, ...], list[Statement]] = {}
    for fact, one in facts:
        behind.setdefault(fact.past, []).append(one)
    said = behind.pop((), [])
    said += [_returns(host, one) for one in returns]
    for past, found in behind.items():
        names = [*_names(host), *(name for fact, _ in facts if isinstance(fact, CheckFact) for name in _read(fact))]
        said.append(
            statement("Only where ", condition(both(past), names), " (it has returned otherwise):", below=found)
        )
    return said


def _names(host: Host) -> list[str]:
    return [one.name for one in host.parameters]


def _read(check: CheckFact) -> list[str]:
    """The names that a check reads."""
    return re.findall(r"[A-Za-z_]\w*(?![\w(])", check.condition)


def _returns(host: Host, fact: ReturnFact) -> Statement:
    value = (code(fact.value), " ") if fact.value else ()
    where = (condition(both(fact.words), _names(host)), *_compiled(fact))
    at = [line(host.file, fact.line)]
    return statement("Returns ", *value, "early where ", *where, ": nothing that stands behind it is done then.", at=at)


def _gives(host: Host, fact: ReturnFact) -> Statement:
    """What a function that a dispatch tests makes of its argument."""
    where = (condition(both(fact.words), _names(host)), *_compiled(fact))
    return statement("Gives ", code(fact.value or ""), " where ", *where, ".", at=[line(host.file, fact.line)])


def _check(host: Host, check: CheckFact, below: Sequence[Statement] = ()) -> Statement:
    """What is demanded, where that counts, and what is said where it does not hold."""
    at = [line(host.file, check.line)]
    names = [*_names(host), *_read(check)]
    where = (", where ", condition(both(check.under), names)) if check.under else ()
    where = (*where, *_compiled(check))
    said = (", else ", message(check.message)) if check.message else ()
    if check.words:
        return statement("Requires that ", condition(check.words, names), *where, *said, ".", at=at, below=below)
    if check.condition == "false":
        said = (": ", message(check.message)) if check.message else ()
        return statement("Fails wherever control comes to it", *where, *said, ".", at=at)
    if check.message is None and len(list(outermost(check.condition, ","))) > 1:
        # A function of the project's own that checks: what it demands of them, its name alone says.
        return statement("Checks by ", code(f"{check.kind}({check.condition})"), *where, ".", at=at)
    return statement("Requires ", code(check.condition), *where, *said, ".", at=at, below=below)


def _guard(host: Host, guard: GuardFact) -> Statement:
    """Whose device is made the current one, and by what."""
    at = [line(host.file, guard.line)]
    of = (" of ", code(guard.of)) if guard.of else ()
    where = _where(host, guard)
    if guard.device:
        whose = (marked(guard.device, _names(host)), ", by ")
        return statement("Runs on ", *whose, code(guard.type), *of, *where, ".", at=at)
    return statement("Switches the device by ", code(guard.type), *of, *where, ".", at=at)


def _stream(host: Host, fact: StreamFact) -> Statement:
    words = (marked(fact.words, _names(host)), ": ") if fact.words else ()
    if fact.unused:
        asked = (*(words or ("the stream ",)), code(fact.value), *_where(host, fact))
        text = sentence("asks for ", *asked)
        return statement(text, " No launch runs on it.", at=[line(host.file, fact.line)])
    text = sentence(
        "work goes to ", *words, *(() if words else ("the stream ",)), code(fact.value), *_where(host, fact)
    )
    return statement(text, at=[line(host.file, fact.line)])


def _where(host: Host, fact: GuardFact | StreamFact) -> tuple[str | Text, ...]:
    where = (", where ", condition(both(fact.under), _names(host))) if fact.under else ()
    return (*where, *_compiled(fact))


def _compiled(fact: CheckFact | GuardFact | StreamFact | ReturnFact) -> tuple[str | Text, ...]:
    return (", under ", code(f"#if {fact.compiled}")) if fact.compiled else ()
