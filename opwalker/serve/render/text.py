"""Comes in: any result, and what the reader asked for. Goes out: text, for a terminal of some width or for a pipe.

A result class that has no page of its own gets one derived from its fields.
"""

from __future__ import annotations

from importlib import import_module
from typing import TextIO

from msgspec import Struct

from opwalker.model.places import SourceInfo
from opwalker.serve.render import paint
from opwalker.serve.render.page import ASCII_GUIDES, Group, Guides, Page, Row, Section, lay_out
from opwalker.serve.render.words import Reading, named

#: The function that makes a result's page, by the name of the result's class; only that one's module is loaded.
PAGES = {
    "opwalker.indexing.IndexReport": "report:report_page",
    "opwalker.model.audit.AuditResult": "audit:audit_page",
    "opwalker.model.diff.DiffResult": "diff:diff_page",
    "opwalker.model.patterns.PatternList": "patterns:list_page",
    "opwalker.model.patterns.PatternPage": "patterns:pattern_page",
    "opwalker.model.patterns.PatternSearch": "patterns:search_page",
    "opwalker.model.verify.VerifyReport": "verify:verify_page",
    "opwalker.model.walk.KernelsResult": "lists:kernels_page",
    "opwalker.model.ops.OpsResult": "lists:ops_page",
    "opwalker.model.walk.Walk": "walk:walk_page",
}


def page_of(result: object, reading: Reading) -> Page:
    """The page of a result, by its class; every field under its name where the class has no page of its own."""
    kind = type(result)
    module, _, name = PAGES.get(f"{kind.__module__}.{kind.__qualname__}", "").partition(":")
    if not module:
        return Page((Section((), groups=tuple(_fields(result))),))
    return getattr(import_module(f"opwalker.serve.render.{module}"), name)(result, reading)


def _fields(result: object) -> list[Group]:
    if not isinstance(result, Struct):
        return [Group("", (Row((((str(result), ""),),)),))]
    groups = []
    for name in result.__struct_fields__:
        value = getattr(result, name)
        if name == "format" or value == ():
            continue
        if isinstance(value, SourceInfo):
            value = named(value)
        values = value if isinstance(value, (tuple, list)) else (value,)
        rows = tuple(Row((((str(one), ""),),)) for one in values)
        groups.append(Group(name.replace("_", " "), rows))
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
