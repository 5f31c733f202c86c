"""What a call must hold to, in a note: checks in words, the device it runs on, the stream that the work is put on.

In: an implementation. Out: a section. Checks that a dispatch or a choice makes are told there.
"""

from __future__ import annotations

import re

from opwalker.model.notes import Block, NoteSection, Statement, Statements
from opwalker.model.walk import CheckFact, GuardFact, Host, Implementation
from opwalker.notation.outermost import outermost
from opwalker.views.notes.words import both, code, condition, line, marked, message, sentence, statement

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
    said = [_check(host, fact) for fact in host.checks if (host.file, fact.line, fact.message) not in told]
    said += [_guard(host, fact) for fact in host.guards]
    if not host.guards and chosen.launches and not any(one.guards for one in chosen.helpers):
        said.append(statement("No device guard was found: it runs on the device that is current."))
    said += _streams(host)
    blocks: list[Block] = [Statements(tuple(said))] if said else []
    for helper in chosen.helpers:
        inner = [_check(helper, fact) for fact in helper.checks if (helper.file, fact.line, fact.message) not in told]
        inner += [_guard(helper, fact) for fact in helper.guards]
        inner += _streams(helper)
        if inner:
            at = [line(helper.file, helper.line)]
            blocks.append(Statements((statement("On the way, ", code(helper.name), ":", at=at, below=inner),)))
    return NoteSection("checks", "Checks, device and stream", tuple(blocks)) if blocks else None


def _check(host: Host, check: CheckFact) -> Statement:
    """What is demanded, where that counts, and what is said where it does not hold."""
    at = [line(host.file, check.line)]
    names = [one.name for one in host.parameters] + re.findall(r"[A-Za-z_]\w*(?![\w(])", check.condition)
    where = (", where ", condition(both(check.under), names)) if check.under else ()
    said = (", else ", message(check.message)) if check.message else ()
    if check.words:
        return statement("Requires that ", condition(check.words, names), *where, *said, ".", at=at)
    if check.condition == "false":
        said = (": ", message(check.message)) if check.message else ()
        return statement("Fails wherever control comes to it", *where, *said, ".", at=at)
    if check.message is None and len(list(outermost(check.condition, ","))) > 1:
        # A function of the project's own that checks: what it demands of them, its name alone says.
        return statement("Checks by ", code(f"{check.kind}({check.condition})"), *where, ".", at=at)
    return statement("Requires ", code(check.condition), *where, *said, ".", at=at)


def _guard(host: Host, guard: GuardFact) -> Statement:
    """Whose device is made the current one, and by what."""
    at = [line(host.file, guard.line)]
    if guard.device:
        whose = (marked(guard.device, [one.name for one in host.parameters]), ", by ")
        of = (" of ", code(guard.of)) if guard.of else ()
        return statement("Runs on ", *whose, code(guard.type), *of, ".", at=at)
    of = (" of ", code(guard.of)) if guard.of else ()
    return statement("Switches the device by ", code(guard.type), *of, ".", at=at)


def _streams(host: Host) -> list[Statement]:
    out = []
    for fact in host.streams:
        names = [one.name for one in host.parameters]
        words = (marked(fact.words, names), ": ") if fact.words else ()
        text = sentence("work goes to ", *words, *(() if words else ("the stream ",)), code(fact.value))
        out.append(statement(text, at=[line(host.file, fact.line)]))
    return out
