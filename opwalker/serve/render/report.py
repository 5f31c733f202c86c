"""Comes in: an ``IndexReport``. Goes out: its page."""

from __future__ import annotations

from opwalker.indexing import IndexReport
from opwalker.serve.render.page import Group, Page, Row, Section, Spans
from opwalker.serve.render.words import Reading, listed, place


def report_page(report: IndexReport, reading: Reading) -> Page:
    """What was read, what was reused, how long each stage took, and what is wrong with which file."""
    total = sum(number for _, number in report.files)
    languages = [(f"{language} {number:,}", "") for language, number in report.files if number]
    work = f"{report.read:,} ({report.changed:,} new or changed), {report.reused:,} reused, {report.removed:,} removed"
    if not report.scanned:
        work = "none: this source cannot change, and all of it is in the cache"
    spent = [(f"{stage} {seconds:.2f}", "") for stage, seconds in report.seconds]
    all_stages = sum(seconds for _, seconds in report.seconds)
    groups = (
        _group("files", ((f"{total:,}", "name"), ("  ", ""), *listed(languages))),
        _group("read", ((work, ""),)),
        _group("seconds", ((f"{all_stages:.2f}", "name"), ("  ", ""), *listed(spent))),
    )
    return Page((Section((("Index", "heading"),), groups=groups), *_problems(report)))


def _group(label: str, value: Spans) -> Group:
    return Group(label, (Row((value,)),))


def _problems(report: IndexReport) -> tuple[Section, ...]:
    if not report.problems:
        return ()
    rows = tuple(
        Row(((place(file, one.line),), ((one.kind, "gap"),), ((one.message, ""),))) for file, one in report.problems
    )
    return (Section(((f"Problems ({len(report.problems)})", "heading"),), rows=rows),)
