"""Who owns what on a walk, as the page's section: what is acquired and released, lifetimes, globals, C boundaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opwalker.model.owning import Holding
from opwalker.model.walk import BoundaryFact, GlobalFact, Lifetime, Ownership, PlaceFact, Resource, UseFact
from opwalker.serve.render.page import Group, Row, Section, Spans
from opwalker.serve.render.words import both, count, place


def ownership_section(owned: Ownership, whole_file: bool = False) -> tuple[Section, ...]:
    """The section; nothing where a walk owns nothing. What stands under a resource or lifetime is not told twice; of a
    whole file what ends with its function is left to the walk of that function."""
    told = {(one.file, one.line) for one in owned.resources}
    told |= {(use.file, use.line) for one in owned.resources for use in one.releases}
    held = {(one.file, one.line) for one in owned.holdings}
    held |= {(use.file, use.line) for one in owned.holdings for use in one.released}
    lived = {(one.file, one.line) for one in owned.lifetimes}
    groups = (
        ("guards", _places(owned.guards, lived)),
        ("acquired", [row for one in owned.resources for row in _resource(one)]),
        ("allocations", _places(owned.allocations, told)),
        ("frees", _places(owned.frees, told)),
        ("lifetimes", [_lifetime(one) for one in owned.lifetimes]),
        ("callbacks", _places(owned.callbacks, set())),
        ("globals", [row for one in owned.globals for row in _global(one)]),
        ("C boundary", [row for one in owned.boundaries for row in _boundary(one)]),
        ("held", [_holding(one) for one in owned.holdings]),
        ("other calls", [_use(use) for use in owned.beside if (use.file, use.line) not in held]),
        ("in words", _places(owned.words, set())),
    )
    passing = ("guards", "lifetimes", "allocations") if whole_file else ()
    shown = tuple(Group(label, tuple(rows)) for label, rows in groups if rows and label not in passing)
    return (Section((("Ownership and lifetimes", "heading"),), groups=shown),) if shown else ()


def _places(facts: Iterable[PlaceFact], told: set[tuple[str, int]]) -> list[Row]:
    left = [fact for fact in facts if (fact.file, fact.line) not in told]
    where = [((f"  where {both(fact.under)}", "quiet"),) if fact.under else () for fact in left]
    return [
        Row(((place(fact.file, fact.line),), ((fact.text, ""), *held))) for fact, held in zip(left, where, strict=True)
    ]


def _resource(one: Resource) -> list[Row]:
    held: Spans = ((f" in {one.holder}", "name"),) if one.holder else ()
    rows = [Row(((place(one.file, one.line),), ((one.kind, "step"), *held), ((one.text, "quiet"),)))]
    lines: list[Spans] = []
    if one.releases:
        lines.append((("released  ", "label"), (_uses(one.releases, one.file), "")))
    missing = [path for path in one.paths if path.released_at is None and not path.handed]
    if missing:
        marks = ", ".join(f":{path.line}" for path in missing)
        lines.append((("not released  ", "label"), (f"on the way out at {marks}", "warn")))
    elif one.paths:
        lines.append((("released  ", "label"), ("on every way out behind it", "quiet")))
    if one.goes_to:
        lines.append((("goes to  ", "label"), ("; ".join(one.goes_to), "")))
    if one.elsewhere:
        lines.append(
            (("released in  " if one.named else "its kind is released in  ", "label"), (_named_uses(one.elsewhere), ""))
        )
    return [*rows, *(Row((line,), 2) for line in lines)]


def _uses(uses: Sequence[UseFact], file: str) -> str:
    texts = []
    for use in uses:
        where = f":{use.line}" if use.file == file else f"{use.file}:{use.line}"
        texts.append(f"{where} where {both(use.under)}" if use.under else where)
    return ", ".join(texts)


def _named_uses(uses: Sequence[UseFact]) -> str:
    """Uses by function: ``released by my_free (:583)``."""
    by_function: dict[tuple[str, str], list[int]] = {}
    for use in uses:
        by_function.setdefault((use.function, use.file), []).append(use.line)
    return ", ".join(
        f"{function} ({', '.join(f':{line}' for line in dict.fromkeys(lines))})"
        for (function, _), lines in by_function.items()
    )


def _lifetime(one: Lifetime) -> Row:
    of: Spans = (("of ", "quiet"), (one.of, "")) if one.of else ()
    return Row(
        (
            (place(one.file, one.line, one.end_line),),
            ((one.name, "name"), ("  ", ""), (one.type, "type")),
            (*of, *(((f"  #if {one.compiled}", "quiet"),) if one.compiled else ())),
        )
    )


def _global(one: GlobalFact) -> list[Row]:
    head: Spans = ((one.name, "name"), ("  ", ""), (one.type, "type"))
    rows = [Row(((place(one.file, one.line),), head, ((one.kind, "quiet"),)))]
    by_text: dict[str, list[UseFact]] = {}
    for use in one.written:
        by_text.setdefault(use.text, []).append(use)
    for text, uses in by_text.items():
        rows.append(Row(((("written  ", "label"), (f"{text}  ", ""), (_named_uses(uses), "quiet")),), 2))
    if one.tested:
        rows.append(Row(((("tested  ", "label"), (_named_uses(one.tested), "quiet")),), 2))
    return rows


def _boundary(one: BoundaryFact) -> list[Row]:
    callees = f" or in the {count(one.followed - 1, 'function')} of this source that it calls"
    callees = callees if one.followed > 1 else ""
    if not one.raises:
        text: Spans = ((f"no throw and no raising check stands in it{callees}", ""),)
    else:
        text = ((f"{count(len(one.raises), 'place')} can raise in it{callees}", "warn"),)
        if one.caught:
            text += ((f"; it catches at {', '.join(f':{line}' for line in one.caught)}", ""),)
    rows = [Row(((place(one.file, one.line),), ((f"{one.function} has C linkage: ", "quiet"), *text)))]
    rows += [Row(((place(use.file, use.line),), ((f"{use.text} in {use.function}", ""),)), 2) for use in one.raises]
    return rows


def _holding(one: Holding) -> Row:
    """Who has what another call acquires, and who releases it."""
    who = f"kept in {one.kept_in}" if one.kept_in else "returned: its caller owns it"
    by = _named_uses(one.released)
    end: Spans = ((f"; released by {by}", ""),) if by else (("; no release of it in this file or class", "warn"),)
    return Row(((place(one.file, one.line),), ((one.function, "name"), (f"  {one.kind} ", "step"), (who, ""), *end)))


def _use(use: UseFact) -> Row:
    return Row(((place(use.file, use.line),), ((use.function, "name"),), ((use.text, ""),)))
