"""Synchronisation points as a section, by the function that holds them; structures of flags with their members."""

from __future__ import annotations

from opwalker.model.walk import FlagStruct, SyncPoint
from opwalker.serve.render.page import Group, Row, Section, Spans, Step
from opwalker.serve.render.words import at, line_mark, listed, place, titled, under


def sync_sections(points: tuple[SyncPoint, ...], flags: tuple[FlagStruct, ...]) -> tuple[Section, ...]:
    """One step a function, its points in order; then the structures that flags are in. Nothing where there is none."""
    if not points and not flags:
        return ()
    by_function: dict[tuple[str, str | None], list[SyncPoint]] = {}
    for point in points:
        by_function.setdefault((point.file, point.function), []).append(point)
    steps = [_function(file, name, found) for (file, name), found in by_function.items()]
    steps += [_struct(one) for one in flags]
    return (Section((("Synchronisation", "heading"),), steps=tuple(steps)),)


def _function(file: str, name: str | None, points: list[SyncPoint]) -> Step:
    lines = [point.line for point in points]
    where = (place(file, min(lines), max(lines)),)
    title = titled(((name, "name"),) if name else (("Points", "step"),), where)
    reached = dict.fromkeys(kernel for point in points for kernel in point.kernels if kernel != name)
    if reached:
        title = titled(title, (("in ", "quiet"), *listed([(kernel, "quiet") for kernel in reached], ",")))
    rows: list[Row] = []
    for point in sorted(points, key=lambda one: one.line):
        rows += _point(point)
    return Step(title, (Group("points", tuple(rows)),))


def _point(point: SyncPoint) -> list[Row]:
    what: Spans = ((point.kind.replace("_", " "), "step"),)
    text: Spans = ((point.text, ""),)
    if point.means:
        text += ((f"  {point.means}", "quiet"),)
    rows = [Row((line_mark(point.line), what, text))]
    branch = [(f"if constexpr ({condition})", "condition") for condition in point.under]
    details: list[tuple[str, Spans]] = []
    if branch or point.condition:
        details.append(("under", listed([*branch, *under(point.condition)])))
    if point.threads:
        details.append(("where", ((" and ".join(point.threads), ""),)))
    if point.through and point.at:
        details.append(("through", ((point.through, "name"), ("  ", ""), at(point.at))))
    if point.flag:
        held: Spans = ((point.flag, ""),)
        details.append(("flag", (*held, (f"  {point.member}", "name")) if point.member else held))
    if point.value:
        details.append(("stores", ((point.value, ""),)))
    if point.spins:
        details.append(("waits", (("a loop waits here", ""),)))
    if point.protects:
        details.append(("protects", ((point.protects, "name"),)))
    rows += [detail(label, spans) for label, spans in details]
    return rows


def detail(label: str, spans: Spans) -> Row:
    """A line about the row above, under its third cell: a label and what it says."""
    return Row(((), (), ((f"{label}  ", "label"), *spans)))


def _struct(one: FlagStruct) -> Step:
    title = titled((("Flags ", "step"), (one.name, "name")), (place(one.file, one.line, one.end_line),))
    rows = []
    for member in one.members:
        aligned: Spans = ((f"aligned to {member.alignment} bytes", ""),) if member.alignment else ()
        rows.append(Row((line_mark(member.line), ((member.name, "name"),), ((member.type, "type"),), aligned)))
        for label, texts in (("stored", member.stored_in), ("loaded", member.loaded_in)):
            if texts:
                rows.append(detail(label, ((", ".join(texts), ""),)))
        if member.comment:
            rows.append(detail("comment", ((member.comment, "quiet"),)))
    groups = [Group("members", tuple(rows))]
    if one.comment:
        groups.append(Group("comment", (Row((((one.comment, "quiet"),),)),)))
    return Step(title, tuple(groups))
