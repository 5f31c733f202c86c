"""A second opinion as a section of a walk: what was read, what is proved, and what is not, edge by edge."""

from __future__ import annotations

from opwalker.model.clang import CONTRADICTED, NOT_CONFIRMED, PROVED, RULED_OUT, ClangEdge, ClangReport, UnitReport
from opwalker.serve.render.page import Group, Row, Section, Spans
from opwalker.serve.render.words import at, count, listed, place

#: How each verdict is painted.
_STYLES = {PROVED: "proved", CONTRADICTED: "warn", RULED_OUT: "possible", NOT_CONFIRMED: "possible"}


def clang_section(report: ClangReport | None) -> tuple[Section, ...]:
    """The section; nothing where no second opinion was asked for."""
    if report is None:
        return ()
    versions = [report.clang or "clang"]
    versions += [f"torch {report.torch}"] if report.torch else []
    versions += [f"CUDA {report.cuda}"] if report.cuda else []
    heading: Spans = (("Second opinion", "heading"), (f"  {', '.join(versions)}", "quiet"))
    summary = listed(
        [
            (f"{number:,} {status}", _STYLES[status])
            for status, number in (
                (PROVED, report.proved),
                (CONTRADICTED, report.contradicted),
                (RULED_OUT, report.ruled_out),
                (NOT_CONFIRMED, report.not_confirmed),
            )
            if number or status == PROVED
        ]
    )
    groups = [Group("units", tuple(row for unit in report.units for row in _unit(unit)))] if report.units else []
    groups += [
        Group(status, tuple(_edge(edge) for edge in report.edges if edge.status == status))
        for status in (CONTRADICTED, RULED_OUT, NOT_CONFIRMED, PROVED)
        if any(edge.status == status for edge in report.edges)
    ]
    if report.missing:
        groups.append(Group("missing", tuple(Row((((text, "warn"),),)) for text in report.missing)))
    return (Section(heading, paragraphs=(summary,), groups=tuple(groups)),)


def _unit(unit: UnitReport) -> list[Row]:
    words = [(f"{unit.seconds:.1f} s", "quiet")]
    words += [(count(unit.errors, "error"), "quiet")] if unit.errors else []
    words += [(f"flags from {unit.flags_from}", "quiet")] if unit.flags_from else []
    words += [(f"without {', '.join(unit.missing)}", "warn")] if unit.missing else []
    rows = [Row(((place(unit.file, 0),), listed(words)))]
    if unit.unread:
        rows = [Row(((place(unit.file, 0),), ((unit.unread, "warn"),)))]
    return rows


def _edge(edge: ClangEdge) -> Row:
    cells: list[Spans] = [((edge.kind, "quiet"),), ((edge.what, "name"),), (at(edge.at),)]
    if edge.says:
        cells.append(((edge.says, "" if edge.status == PROVED else "warn"),))
    return Row(tuple(cells))
