"""What a file or a class holds, as sections: the reading order of a file, the methods and lives of a class."""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.model.walk import ClassView, Implementation, MethodFact, OutlineItem, UseFact, Walk
from opwalker.serve.render.page import Group, Row, Section, Spans
from opwalker.serve.render.words import line_mark, place, under

#: The parts of a file, in reading order, and what each is called.
_PARTS = (
    ("entry point", "entry points"),
    ("host function", "host functions"),
    ("kernel", "kernels"),
    ("device function", "device code"),
    ("class", "classes"),
    ("global", "globals"),
)
#: Names of one row that are listed before they are only counted.
_NAMES = 6


def outline_sections(walk: Walk) -> tuple[Section, ...]:
    """The outline of a file or class; nothing for any other walk."""
    if walk.class_view is not None:
        return (_class_section(walk.class_view),)
    if walk.entry is None or walk.entry.kind != "file":
        return ()
    groups = []
    for kind, label in _PARTS:
        rows = tuple(_item(one) for one in walk.outline if one.kind == kind)
        if rows:
            groups.append(Group(label, rows))
    hint: Spans = ((f"walk one of them: {walk.entry.file}::NAME", "quiet"),)
    return (Section((("In reading order", "heading"),), paragraphs=(hint,), groups=tuple(groups)),)


def told_in_full(walk: Walk) -> tuple[Implementation, ...]:
    """The implementations that a page tells in full: all of an op, function or kernel, none of a file, of a class those
    that do something on a device or in a library."""
    if walk.entry is not None and walk.entry.kind == "file":
        return ()
    if walk.class_view is not None:
        return tuple(
            one for one in walk.implementations if one.launches or any(end.kind != "host" for end in one.terminals)
        )
    return walk.implementations


def _item(one: OutlineItem) -> Row:
    words: list[str] = []
    if one.ops:
        words.append(_some(one.ops))
    if one.why:
        words.append(one.why)
    words += one.notes
    if one.used_by and one.kind != "entry point":
        verb = "launched by" if one.kind == "kernel" else "used by"
        words.append(f"{verb} {_some(one.used_by)}")
    text: Spans = ((" · ".join(words), ""),) if words else ()
    lines = f":{one.line}-{one.end_line}" if one.end_line > one.line else f":{one.line}"
    name: Spans = ((one.name, "name"), *((("  ", ""), *under(one.condition)) if one.condition else ()))
    return Row((((lines, "place"),), name, text))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES])
    return f"{shown} and {len(names) - _NAMES} more" if len(names) > _NAMES else shown


def _class_section(view: ClassView) -> Section:
    groups = (
        ("template", [Row((((view.template, "type"),),))] if view.template else []),
        ("derives from", [Row((((", ".join(view.bases), "name"),),))] if view.bases else []),
        ("derived", [Row((((one.name, "name"),), (place(one.file, one.line),))) for one in view.derived]),
        (
            "data",
            [Row((line_mark(one.line), ((one.function, "name"),), ((one.text, "type"),))) for one in view.members],
        ),
        ("methods", [row for one in view.methods for row in _method(one, view)]),
        ("made", [_use(one) for one in view.constructed]),
        ("deleted", [_use(one) for one in view.deleted]),
    )
    shown = tuple(Group(label, tuple(rows)) for label, rows in groups if rows)
    return Section((("Class ", "heading"), (view.kind, "quiet")), groups=shown)


def _method(one: MethodFact, view: ClassView) -> list[Row]:
    words = "pure virtual" if one.pure else "virtual" if one.virtual else ""
    where: Spans = ()
    if one.body_at is not None and (one.body_at.file, one.body_at.line) != (one.file, one.line):
        where = (("body at ", "quiet"), place(one.body_at.file, one.body_at.line))
    mark: Spans = line_mark(one.line) if one.file == view.file else (place(one.file, one.line),)
    rows = [Row((mark, ((one.signature, ""),), ((words, "step"),) if words else (), where))]
    for other in one.overridden_by:
        text: Spans = (("overridden by ", "quiet"), (other.function, "name"), ("  ", ""), place(other.file, other.line))
        rows.append(Row((text,), 4))
    return rows


def _use(one: UseFact) -> Row:
    inside: Spans = (("in ", "quiet"), (one.function, "name")) if one.function else ()
    return Row(((place(one.file, one.line),), ((one.text, ""),), inside))
