"""Comes in: any result, and what the reader asked for. Goes out: text, for a terminal of some width or for a pipe.

A result class that has no page of its own gets one derived from its fields.
"""

from __future__ import annotations

import dataclasses
from functools import singledispatch
from typing import TextIO

from opwalker.indexing import IndexReport
from opwalker.model.audit import AuditResult
from opwalker.model.diff import DiffResult
from opwalker.model.verify import VerifyReport
from opwalker.model.walk import KernelsResult, OpsResult, Walk
from opwalker.serve.render import audit, diff, lists, paint, report, verify, walk
from opwalker.serve.render.page import ASCII_GUIDES, Group, Guides, Page, Row, Section, lay_out
from opwalker.serve.render.words import Reading


@singledispatch
def page_of(result: object, reading: Reading) -> Page:
    """The page of a result, by its class; every field under its name where the class has no page of its own."""
    return Page((Section((), groups=tuple(_fields(result))),))


page_of.register(Walk, walk.walk_page)
page_of.register(OpsResult, lists.ops_page)
page_of.register(KernelsResult, lists.kernels_page)
page_of.register(DiffResult, diff.diff_page)
page_of.register(VerifyReport, verify.verify_page)
page_of.register(AuditResult, audit.audit_page)
page_of.register(IndexReport, report.report_page)


def _fields(result: object) -> list[Group]:
    if not dataclasses.is_dataclass(result):
        return [Group("", (Row((((str(result), ""),),)),))]
    groups = []
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        values = value if isinstance(value, (tuple, list)) else (value,)
        rows = tuple(Row((((str(one), ""),),)) for one in values)
        groups.append(Group(field.name.replace("_", " "), rows))
    return groups


def write_text(result: object, reading: Reading, out: TextIO, *, width: int | None, colour: bool) -> None:
    """Writes a result to ``out``. ``width`` None is a pipe: nothing is wrapped, nothing is coloured."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    guides = Guides() if _can_draw(encoding) else ASCII_GUIDES
    lines = lay_out(page_of(result, reading), width, guides)
    text = paint.in_colour(lines, out) if colour and width is not None else paint.plain(lines)
    if guides is ASCII_GUIDES:
        text = text.replace("→", "->").replace("·", "-")
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _can_draw(encoding: str) -> bool:
    """Whether an encoding has the strokes of a tree."""
    try:
        "├─└│→·".encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
