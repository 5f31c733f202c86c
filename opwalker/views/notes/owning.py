"""Ownership and lifetimes in a note: what is acquired and where it is released, on each way out of its function.

In: what a walk says of ownership. Out: a section, None where nothing is owned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from opwalker.model.notes import Block, NoteSection, Run, Statement, Statements, Text
from opwalker.model.owning import Holding
from opwalker.model.walk import BoundaryFact, GlobalFact, Lifetime, Ownership, PlaceFact, Resource, Span, UseFact
from opwalker.views.notes.words import (
    both,
    code,
    condition,
    count,
    held_statements,
    line,
    listed,
    marked,
    of_kind,
    sentence,
    statement,
)

_WHERE = "in this file or class"
#: More uses than this are named by their function alone, once each.
_USES = 4


def ownership_section(own: Ownership, beside: bool = True) -> NoteSection | None:
    """Resources first, then objects that release by their scope, globals, and what may cross a C boundary;
    ``beside`` whether to say what its neighbours hold."""
    told = {(one.file, one.line) for one in own.resources}
    told |= {(use.file, use.line) for one in own.resources for use in one.releases}
    said = [_resource(one) for one in own.resources]
    said += _places("Allocates ", own.allocations, told)
    said += _places("Frees ", own.frees, told)
    said += [_lifetime(one) for one in own.lifetimes]
    said += _places("Calls back by ", own.callbacks, set())
    said += [_global(one) for one in own.globals]
    said += [_boundary(one) for one in own.boundaries]
    blocks: list[Block] = [Statements(tuple(said))] if said else []
    blocks += _for_later(own) if beside and (own.beside or own.holdings) else ()
    if own.words:
        said = tuple(statement((Run(f"“{one.text}”"),), at=[line(one.file, one.line)]) for one in own.words)
        blocks.append(Statements((statement("In the source's own words:", below=said),)))
    return NoteSection("ownership", "Ownership and lifetimes", tuple(blocks)) if blocks else None


def _for_later(own: Ownership) -> Iterator[Block]:
    """Who has what other calls acquire for this one; then what is left of those calls."""
    if own.holdings:
        itself = not own.resources and not own.allocations and not own.frees
        lead = "This call acquires and releases nothing itself. " if itself else ""
        below = [_holding(one) for one in own.holdings]
        yield Statements((statement(f"{lead}What other calls of the file or class hold for it:", below=below),))
    told = {(one.file, one.line) for one in own.holdings}
    told |= {(use.file, use.line) for one in own.holdings for use in one.released}
    left = [use for use in own.beside if (use.file, use.line) not in told]
    if left:
        lead = "What other calls acquire and release, in the same file or class:"
        yield Statements((statement(lead, below=[_beside(use) for use in left]),))


def _holding(one: Holding) -> Statement:
    """Who owns one thing between two calls, and who releases it."""
    took = (code(one.function), f" acquires {of_kind(one.kind)} (", code(one.text), ")")
    at = [line(one.file, one.line)]
    if one.kept_in:
        kept = (*took, " and keeps it in ", code(one.kept_in))
        if one.released:
            by = _by_function(one.released)
            return statement(*kept, ", the owner; ", *by, " releases what is there.", at=[*at, *_at(one.released)])
        return statement(*kept, f", the owner. **No release** of it was found {_WHERE}.", at=at)
    if one.released:
        by = _by_function(one.released)
        return statement(
            *took, " and returns it: the caller owns it, and gives it back through ", *by, ".",
            at=[*at, *_at(one.released)],
        )  # fmt: skip
    below = [
        statement(
            code(use.function), " releases only what it finds through ", code(name), ".",
            at=[line(use.file, use.line)],
        )
        for name, use in one.others
    ]  # fmt: skip
    return statement(
        *took, f" and returns it: the caller owns it. **No release** of it was found {_WHERE}.", at=at, below=below
    )


def _places(word: str, facts: Iterable[PlaceFact], told: set[tuple[str, int]]) -> list[Statement]:
    left = [fact for fact in facts if (fact.file, fact.line) not in told]
    return [
        statement(
            word, code(fact.text), _goes_to(fact),
            *((", where ", condition(both(fact.under))) if fact.under else ()), ".",
            at=[line(fact.file, fact.line)], below=held_statements(fact.held, fact.file),
        )
        for fact in left
    ]  # fmt: skip


def _goes_to(fact: PlaceFact) -> Text:
    """Which local holds what is allocated, and who returns that."""
    held = statement(", as ", code(fact.holder)).text if fact.holder else ()
    return (*held, *statement(", which ", code(fact.returned), " returns").text) if fact.returned else held


def _resource(one: Resource) -> Statement:
    held = (", held in ", code(one.holder)) if one.holder else ()
    below: list[Statement] = []
    for use in one.releases:
        where = (", where ", condition(both(use.under), [one.holder])) if use.under else ()
        below.append(statement("Released by ", code(use.text), *where, ".", at=[line(use.file, use.line)]))
    below += _ways_out(one)
    below += [_goes(text, one) for text in one.goes_to]
    if one.elsewhere:
        word = "Released in " if one.named else "What is of its kind is released in "
        below.append(statement(word, *_by_function(one.elsewhere), ".", at=_at(one.elsewhere)))
    return statement(
        f"Acquires {of_kind(one.kind)}: ", code(one.text), *held, ", in ", code(one.function), ".",
        at=[line(one.file, one.line)], below=below,
    )  # fmt: skip


def _goes(text: str, one: Resource) -> Statement:
    """``passed to f (:12)`` as a sentence of its own, with the line as its place."""
    said, *numbers = re.split(r" ?\(:(\d+)\)", text)
    lead = "it ends up " if said.startswith("in ") else "it is "
    at = [line(one.file, int(number)) for number in numbers if number.isdigit()]
    return statement(sentence(lead, marked(said, [one.holder, *said.replace(",", "").split()[2:3]])), at=at)


def _ways_out(one: Resource) -> Iterator[Statement]:
    """Whether each way out of the function behind an acquisition passes a release."""
    missing = [path for path in one.paths if path.released_at is None and not path.handed]
    if missing:
        at = [line(one.file, path.line) for path in missing]
        ways = "way" if len(missing) == 1 else "ways"
        yield statement(f"**Not released** on {len(missing)} {ways} out behind it.", at=at)
    elif one.paths:
        passed = [path for path in one.paths if path.released_at is not None]
        below = [
            statement(
                f"Line {path.line} (", code(path.text), f") comes behind the release at line {path.released_at}.",
                at=[line(one.file, path.line)],
            )
            for path in passed
        ]  # fmt: skip
        yield statement("Every way out behind it passes a release or hands it on.", below=below)


def _lifetime(one: Lifetime) -> Statement:
    """An object that releases something where its scope ends; what a guard is made of is told with the device."""
    of = (" of ", code(one.of)) if one.of else ()
    named = (" ", code(one.name)) if one.name else ()
    what = () if one.kind == "guard" else (" (", code(one.type), *of, ")")
    at = [Span(one.file, one.line, one.end_line)]
    under = (", under ", code(f"#if {one.compiled}")) if one.compiled else ()
    ends = (" lives to the end of its scope in ", code(one.function), *under, ".")
    return statement(f"The {one.kind}", *named, *what, *ends, at=at)


def _global(one: GlobalFact) -> Statement:
    """A variable that outlives the call: who writes it, who asks it."""
    below = []
    by_text: dict[str, list[UseFact]] = {}
    for use in one.written:
        by_text.setdefault(use.text, []).append(use)
    for text, uses in by_text.items():
        done, _, macro = text.partition(" in ")
        by = (" (the macro ", code(macro), ")") if macro else ()
        below.append(statement("Written by ", code(done), *by, " in ", *_by_function(uses), ".", at=_at(uses)))
    if one.tested:
        below.append(statement("Tested in ", *_by_function(one.tested), ".", at=_at(one.tested)))
    static = "static" in one.kind
    kind = "keeps its value from call to call" if static else "is a global"
    of = (" of ", code(one.of)) if one.of else ()
    at = [line(one.file, one.line)]
    return statement(code(one.name), " (", code(one.type), ")", *of, f" {kind}.", at=at, below=below)


def _boundary(one: BoundaryFact) -> Statement:
    callees = " or in the one function of this source that it calls" if one.followed == 2 else ""
    if one.followed > 2:
        callees = f" or in the {one.followed - 1} functions of this source that it calls"
    at = [line(one.file, one.line)]
    if not one.raises:
        return statement(
            "Nothing is thrown across C: ", code(one.function), " has C linkage, and no throw and no raising check",
            f" stands in it{callees}.", at=at,
        )  # fmt: skip
    below = [
        statement(code(use.text), " in ", code(use.function), ".", at=[line(use.file, use.line)]) for use in one.raises
    ]
    if one.caught:
        below.append(statement("It catches.", at=[line(one.file, number) for number in one.caught]))
    places = count(len(one.raises), "place")
    return statement(code(one.function), f" has C linkage, and {places} can raise in it{callees}.", at=at, below=below)


def _beside(use: UseFact) -> Statement:
    verb, _, rest = use.text.partition(" ")
    kind, colon, text = rest.partition(": ")
    said = (f"{verb} {of_kind(kind)}: ", code(text)) if colon else (code(use.text),)
    return statement(code(use.function), " ", *said, ".", at=[line(use.file, use.line)])


def _by_function(uses: Sequence[UseFact]) -> tuple:
    names = list(dict.fromkeys(use.function for use in uses))
    return (listed([code(name) for name in names]),)


def _at(uses: Sequence[UseFact]) -> list[Span]:
    """The places of the uses; of many the first in each function."""
    if len(uses) <= _USES:
        return [line(use.file, use.line) for use in uses]
    first: dict[tuple[str, str], UseFact] = {}
    for use in uses:
        first.setdefault((use.file, use.function), use)
    return [line(use.file, use.line) for use in first.values()]
