"""Comes in: an answer of ``patterns``. Goes out: its page: the catalogue, a page of it, or hits by pattern and file."""

from __future__ import annotations

from opwalker.model.patterns import PatternHit, PatternList, PatternPage, PatternSearch
from opwalker.notation.pattern_query import print_query
from opwalker.serve.render.page import Page, Row, Section, Spans
from opwalker.serve.render.words import Reading, count, named, place, titled

#: How many ops a hit names before the rest are counted.
OPS_SHOWN = 4


def list_page(result: PatternList, reading: Reading) -> Page:
    """The catalogue: id, title and tags of each pattern."""
    rows = tuple(
        Row((((one.id, "name"),), ((one.title, ""),), ((", ".join(one.tags), "quiet"),))) for one in result.patterns
    )
    heading = titled((("Patterns", "title"),), ((count(len(rows), "page"), "quiet"),))
    return Page((Section(heading, rows=rows),))


def pattern_page(result: PatternPage, reading: Reading) -> Page:
    """One page of the catalogue: what the pattern is, its query, and its examples."""
    one = result.pattern
    told = [
        Section(((title, "heading"),), paragraphs=tuple(((" ".join(part.split()), ""),) for part in text.split("\n\n")))
        for title, text in (
            ("What it is", one.what), ("What problem it solves", one.problem), ("What to look at next", one.look),
        )
    ]  # fmt: skip
    if one.next:
        told.append(Section((("See also", "heading"),), rows=(Row((((", ".join(one.next), "name"),),)),)))
    told.append(Section((("Query", "heading"),), rows=_lines(print_query(one.query))))
    for title, examples in (("Matches", one.matches), ("Does not match", one.misses)):
        rows = tuple(row for example in examples for row in _lines(example.text))
        told.append(Section(((title, "heading"),), rows=rows))
    title = Section(titled(((one.id, "title"), (f"  {one.title}", "")), ((", ".join(one.tags), "quiet"),)))
    return Page((title, *told))


def _lines(text: str) -> tuple[Row, ...]:
    return tuple(Row((((line, ""),),)) for line in text.splitlines())


def search_page(result: PatternSearch, reading: Reading) -> Page:
    """The hits by pattern and file: line, captures, text, and the ops whose path enters the place."""
    found: dict[str, list[PatternHit]] = {}
    for hit in result.hits:
        found.setdefault(hit.id, []).append(hit)
    summary = f"{count(len(result.hits), 'hit')} of {count(len(found), 'pattern')}"
    title = Section(titled(((named(result.source), "title"),), ((summary, "quiet"),)))
    if not found:
        said = f"nothing found; looked for {', '.join(result.searched)}" if result.searched else "no pattern fits"
        return Page((Section(((named(result.source), "title"),), paragraphs=(((said, ""),),)),))
    return Page((title, *(_pattern(name, hits) for name, hits in found.items())))


def _pattern(name: str, hits: list[PatternHit]) -> Section:
    rows: list[Row] = []
    for hit in hits:
        ops: Spans = ((_ops(hit.ops), "key"),) if hit.ops else ()
        captures = "  ".join(f"{name}={text}" for name, text in hit.captures.items())
        rows.append(Row(((place(hit.file, hit.line, hit.end_line),), ((captures, "type"),), ops)))
        rows.append(Row((((hit.text, "quiet"),),), indent=2))
    heading = titled(((name, "heading"), (f"  {hits[0].title}", "")), ((count(len(hits), "hit"), "quiet"),))
    return Section(heading, rows=tuple(rows))


def _ops(names: tuple[str, ...]) -> str:
    more = len(names) - OPS_SHOWN
    return ", ".join(names[:OPS_SHOWN]) + (f" and {more} more" if more > 0 else "")
