"""Comes in: a ``Walk``. Goes out: its page, in reading order: entry point, definition, implementations, gaps."""

from __future__ import annotations

from opwalker.model.walk import Entry, Implementation, Op, OpImpl, PythonRef, Walk
from opwalker.serve.render import device, host
from opwalker.serve.render.clang import clang_section
from opwalker.serve.render.dispatch import branching_step, dispatch_step
from opwalker.serve.render.kernel import kernel_step
from opwalker.serve.render.launch import alike
from opwalker.serve.render.outline import outline_sections, told_in_full
from opwalker.serve.render.owning import ownership_section
from opwalker.serve.render.page import Page, Row, Section, Spans, Step
from opwalker.serve.render.page import Span as Piece
from opwalker.serve.render.schema import schema_spans, written
from opwalker.serve.render.sync import sync_sections
from opwalker.serve.render.words import Reading, at, certainty, gaps_section, listed, named, place, standing, titled

#: Places of a pattern in a file that are shown: the others are counted.
_PLACES = 4


def walk_page(walk: Walk, reading: Reading) -> Page:
    """The page of one walk. Implementations of the chosen build come first, otherwise the order stays."""
    ordered = sorted(told_in_full(walk), key=lambda one: _elsewhere(one, reading))
    return Page(
        (
            _title(walk),
            *_entry_point(walk),
            *(_definition(walk.op, reading) if walk.op else ()),
            *outline_sections(walk),
            *_implementations(walk, ordered, reading),
            *ownership_section(walk.ownership, walk.entry is not None and walk.entry.kind == "file"),
            *sync_sections(walk.synchronisation, walk.flags),
            *_patterns(walk),
            *_reference(walk),
            *(_fakes(walk.op) if walk.op else ()),
            *clang_section(walk.clang),
            *gaps_section(walk.gaps),
        )
    )


def _elsewhere(implementation: Implementation, reading: Reading) -> bool:
    return implementation.builds is not None and reading.build not in implementation.builds


def _title(walk: Walk) -> Section:
    notes: tuple[Spans, ...] = tuple((("note: ", "label"), (note, "")) for note in walk.notes)
    subject: Op | Entry | None = walk.op or walk.entry
    if subject is None:
        return Section(((named(walk.source), "title"),), paragraphs=notes)
    words: list[Piece] = [(subject.kind, "quiet")]
    if isinstance(subject, Entry):
        words.append(place(subject.file, subject.line, subject.end_line))
    words.append((named(walk.source), "quiet"))
    return Section(titled(((subject.name, "title"),), listed(words)), paragraphs=notes)


def _entry_point(walk: Walk) -> tuple[Section, ...]:
    """The callers, outermost first: what a user's program calls stands at the top, the op's own call last."""
    callers = sorted(walk.python, key=lambda ref: -ref.depth)
    heading: Spans = (("Entry point", "heading"),)
    if not callers:
        return (
            (Section(heading, paragraphs=((("no call from Python found in this source", "quiet"),),)),)
            if walk.op
            else ()
        )
    return (Section(heading, rows=tuple(_caller(ref) for ref in callers)),)


def _caller(ref: PythonRef) -> Row:
    function = (ref.function, "name") if ref.function else ("at module level", "quiet")
    callee: Spans = (("calls ", "quiet"), (ref.callee, "name" if ref.depth == 0 else "")) if ref.callee else ()
    if callee and ref.call_line not in (None, ref.line):
        callee = (*callee, (f"  :{ref.call_line}", "place"))
    return Row(((place(ref.file, ref.line),), (function,), callee))


def _definition(op: Op, reading: Reading) -> tuple[Section, ...]:
    rows = []
    for one in op.defs:
        words = standing(one.builds, one.condition, reading)
        if one.target:
            words.insert(0, (f"target {one.target}", "quiet"))
        rows.append(Row(((place(one.file, one.line),), listed(words))))
    if op.schema is not None:
        text = schema_spans(op.schema, op.arguments)
    elif op.signature is not None:
        text = (("C++ signature  ", "label"), (op.signature, ""))
    else:
        text = (("no schema", "quiet"),)
    paragraphs: list[Spans] = [text]
    mutated = written(op.arguments)
    if mutated:
        paragraphs.append(mutated)
    if op.tags:
        paragraphs.append((("tags  ", "label"), (", ".join(op.tags), "")))
    return (Section((("Definition", "heading"),), rows=tuple(rows), paragraphs=tuple(paragraphs)),)


def _implementations(walk: Walk, ordered: list[Implementation], reading: Reading) -> tuple[Section, ...]:
    if not ordered and walk.op:
        nothing: Spans = (("none found in this source", "warn"),)
        return (Section((("Implementation", "heading"),), paragraphs=(nothing,)),)
    return tuple(
        _implementation(one, number, len(ordered), walk.op, reading) for number, one in enumerate(ordered, start=1)
    )


def _implementation(one: Implementation, number: int, total: int, op: Op | None, reading: Reading) -> Section:
    which = "Implementation" if op else "Path"
    if total > 1:
        which += f" {number} of {total}"
    facts = standing(one.builds, one.condition, reading)
    if one.python:
        facts.append(("in Python", "quiet"))
    heading = titled(
        ((which, "heading"), (f" {one.key}" if one.key else "", "key")),
        (at(one.registered_at),) if one.registered_at else (),
        listed([*facts, certainty(one.certainty)]),
    )
    told = frozenset(
        (fail.file, fail.line, fail.message) for choice in (*one.dispatch, *one.branches) for fail in choice.fails
    )
    steps = [host.host_step(one.host, op, told)] if one.host else _no_host(one, op)
    seen: set[tuple] = set()
    for use in one.dispatch:
        key = (use.macro, use.on, use.axes, use.rows and tuple(row.values for row in use.rows), use.values)
        steps.append(dispatch_step(use, key in seen))
        seen.add(key)
    steps += [branching_step(choice) for choice in one.branches]
    steps += [host.helper_step(helper, told) for helper in one.helpers]
    steps += [device.launch_step(group[0], reading, group[1:]) for group in alike(one.launches)]
    steps += [kernel_step(one_kernel) for one_kernel in one.kernels]
    steps += [device.terminal_step(end) for end in one.terminals]
    if not one.launches and not one.terminals and (one.host is not None or not one.kernels):
        steps.append(Step((("No launch and no other end was found", "warn"), ("; the gaps say why", "quiet"))))
    return Section(heading, steps=tuple(steps))


def _no_host(one: Implementation, op: Op | None) -> list[Step]:
    """The missing host function of an op's implementation; what is no op (a kernel) need not have one."""
    if op is None:
        return []
    entry = _registered(one, op)
    name = entry.function if entry and entry.function else "without a name"
    said = "not compiled in this build" if one.builds == () else "its body was not found in this source"
    missing: Spans = ((said, "warn"),)
    return [Step(titled((("Host function ", "step"), (name, "name")), missing))]


def _registered(one: Implementation, op: Op) -> OpImpl | None:
    """The op's entry that an implementation stands for."""
    for entry in op.impls:
        span = one.registered_at
        if entry.key == one.key and (span is None or (entry.file, entry.line) == (span.file, span.line)):
            return entry
    return None


def _patterns(walk: Walk) -> tuple[Section, ...]:
    """One line a pattern and file: its first places, and how many more there are."""
    lines: dict[tuple[str, str], list[int]] = {}
    for ref in walk.patterns:
        lines.setdefault((ref.id, ref.file), []).append(ref.line)
    rows = []
    for (name, file), found in lines.items():
        first, *others = found[:_PLACES]
        more = f" and {len(found) - _PLACES:,} more" if len(found) > _PLACES else ""
        places: Spans = (place(file, first), *((f", :{line}", "place") for line in others), (more, "quiet"))
        rows.append(Row((((name, "name"),), places)))
    return (Section((("Patterns", "heading"),), rows=tuple(rows)),) if rows else ()


def _reference(walk: Walk) -> tuple[Section, ...]:
    if not walk.reference_kernel:
        return ()
    run = f"opwalker verify {walk.reference_kernel}"
    row = Row((((walk.reference_kernel, "name"),), ((run, ""),), (("builds and runs it", "quiet"),)))
    return (Section((("Reference kernel", "heading"),), rows=(row,)),)


def _fakes(op: Op) -> tuple[Section, ...]:
    rows = tuple(
        Row(((place(ref.file, ref.line),), ((ref.function, "name"),) if ref.function else ())) for ref in op.fake
    )
    return (Section((("Fake implementation", "heading"),), rows=rows),) if rows else ()
