"""Comes in: a ``DiffResult``. Goes out: its page, or the same as Markdown; what breaks callers stands first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from opwalker.model.diff import DiffResult, InstancesChanged, LaunchChanged, OpChanged
from opwalker.model.places import Gap
from opwalker.serve.render.page import Page, Row, Section, Spans
from opwalker.serve.render.words import Reading, count, gaps_section, named, titled

_NO_CHANGE = "nothing that is compared has changed"
#: Gaps of one version shown; the rest is counted.
GAPS = 20
#: Template instances shown of each kernel; the rest is counted.
SHOWN = 6


class _Line(Struct, frozen=True):
    """One change: a sign (``+``, ``-``, ``~``, ``!``), what it is about, and what is said of it, line by line."""

    sign: str
    name: str
    said: str = ""
    more: tuple[str, ...] = ()


_STYLES = {"+": "key", "-": "warn", "~": "", "!": "warn"}


def diff_page(result: DiffResult, reading: Reading) -> Page:
    """What changed, one section a kind of change; a comparison without one says so."""
    old, new = _sides(result)
    summary = f"build {result.build} · {count(len(result.breaking), 'breaking change')}"
    title = Section(titled(((f"{old} → {new}", "title"),), ((summary, "warn" if result.breaking else "quiet"),)))
    sections = [
        Section(((heading, "heading"),), rows=tuple(_rows(lines))) for heading, lines in _parts(result) if lines
    ]
    if not sections:
        sections = [Section((), paragraphs=(((_NO_CHANGE, ""),),))]
    return Page((title, *sections, *_gap_sections(result)))


def _gap_sections(result: DiffResult) -> Iterator[Section]:
    """What could not be followed in one version alone, the first of each; what both lack is counted."""
    for heading, gaps in _one_sided(result):
        (section,) = gaps_section(gaps[:GAPS])
        rows = section.rows + ((Row((((f"{len(gaps) - GAPS} more", "quiet"),),)),) if len(gaps) > GAPS else ())
        yield Section(((heading, "heading"),), rows=rows)
    if result.gaps_in_both:
        yield Section((), paragraphs=(((_in_both(result), "quiet"),),))


def _one_sided(result: DiffResult) -> Iterator[tuple[str, tuple[Gap, ...]]]:
    for side, gaps in (("new", result.gaps), ("old", result.old_gaps)):
        if gaps:
            yield f"Gaps of the {side} version alone ({len(gaps)})", gaps


def _in_both(result: DiffResult) -> str:
    return f"not listed: {count(result.gaps_in_both, 'gap')} that both versions have"


def _rows(lines: Sequence[_Line]) -> Iterator[Row]:
    for line in lines:
        name: Spans = ((f"{line.sign} {line.name}", _STYLES[line.sign] or "name"),)
        yield Row((name, ((line.said, ""),)) if line.said else (name,))
        yield from (Row((((text, "quiet"),),), indent=4) for text in line.more)


def markdown(result: DiffResult) -> str:
    """The comparison as GitHub-flavoured Markdown, for a release note or a comment on a change."""
    out = ["# {} → {}".format(*_sides(result)), ""]
    out += [f"Build {result.build}. {count(len(result.breaking), 'breaking change')}.", ""]
    if not any(lines for _, lines in _parts(result)):
        out += [f"{_NO_CHANGE.capitalize()}.", ""]
    for heading, lines in _parts(result):
        if not lines:
            continue
        out += [f"## {heading}", ""]
        for line in lines:
            out.append(f"- {_mark(line.sign)}`{line.name}`" + (f": {_escaped(line.said)}" if line.said else ""))
            out += [f"  - `{text}`" for text in line.more]
        out.append("")
    for heading, gaps in _one_sided(result):
        out += [f"## {heading}", ""]
        out += [f"- {gap.kind}: {_escaped(gap.reason)}" for gap in gaps[:GAPS]]
        out += [*([f"- {len(gaps) - GAPS} more"] if len(gaps) > GAPS else []), ""]
    if result.gaps_in_both:
        out += [f"{_in_both(result).capitalize()}.", ""]
    return "\n".join(out)


def _sides(result: DiffResult) -> tuple[str, str]:
    """What the two versions are called; with their revisions where a name and a version are the same for both."""
    old, new = named(result.old), named(result.new)
    if old != new:
        return old, new
    revisions = [(source.revision or "")[:12] for source in (result.old, result.new)]
    return f"{old} {revisions[0]}".strip(), f"{new} {revisions[1]}".strip()


def _mark(sign: str) -> str:
    return "**breaking** " if sign == "!" else ""


def _escaped(text: str) -> str:
    for char in "\\`*_<>[]|":
        text = text.replace(char, "\\" + char)
    return text


def _parts(result: DiffResult) -> Iterator[tuple[str, list[_Line]]]:
    ops, kernels = result.ops, result.kernels
    yield f"Ops removed ({len(ops.removed)})", [_Line("!", op.name, op.schema or "") for op in ops.removed]
    yield f"Ops added ({len(ops.added)})", [_Line("+", op.name, op.schema or "") for op in ops.added]
    yield (
        f"Ops moved ({len(ops.moved)})",
        [_Line("!" if m.breaking else "~", m.name, _moved(m.name, m.to, m.old_file, m.new_file)) for m in ops.moved],
    )
    yield f"Schemas changed ({len(ops.changed)})", [_schema(changed) for changed in ops.changed]
    yield (
        f"Dispatch keys changed ({len(ops.keys)})",
        [_Line("!" if k.removed else "+", k.name, _signed(k.added, k.removed)) for k in ops.keys],
    )
    yield f"Kernels removed ({len(kernels.removed)})", [_Line("-", k.name, ", ".join(k.files)) for k in kernels.removed]
    yield f"Kernels added ({len(kernels.added)})", [_Line("+", k.name, ", ".join(k.files)) for k in kernels.added]
    yield (
        f"Kernels moved ({len(kernels.moved)})",
        [_Line("~", k.name, f"{', '.join(k.old_files)} → {', '.join(k.new_files)}") for k in kernels.moved],
    )
    yield f"Instances changed ({len(kernels.instances)})", [_instances(one) for one in kernels.instances]
    yield f"Launches changed ({len(result.launches)})", [_launch(one) for one in result.launches]
    yield (
        f"Documented shapes changed ({len(result.shapes)})",
        [_Line("~", f"{s.op} {s.argument}", f"{s.old or 'none'} → {s.new or 'none'}") for s in result.shapes],
    )


def _moved(name: str, to: str, old_file: str | None, new_file: str | None) -> str:
    if name != to:
        return f"is {to} now" + (f"  {new_file}" if new_file else "")
    return f"{old_file or '?'} → {new_file or '?'}"


def _schema(changed: OpChanged) -> _Line:
    sides = (f"- {changed.old}", f"+ {changed.new}")
    return _Line("!" if changed.breaking else "~", changed.name, "; ".join(changed.changes), sides)


def _signed(added: Iterable[str], removed: Iterable[str]) -> str:
    return " ".join([*(f"+{key}" for key in added), *(f"-{key}" for key in removed)])


def _instances(one: InstancesChanged) -> _Line:
    said = [f"{sign}{len(found)}" for sign, found in (("+", one.added), ("-", one.removed)) if found]
    more = [*_some("+", one.added), *_some("-", one.removed), *([one.note] if one.note else [])]
    return _Line("~", one.name, " ".join(said), tuple(more))


def _some(sign: str, instances: Sequence[str]) -> list[str]:
    shown = [f"{sign} <{instance}>" if instance else f"{sign} (no template)" for instance in instances[:SHOWN]]
    left = len(instances) - SHOWN
    return [*shown, f"{sign} and {left:,} more"] if left > 0 else shown


def _launch(one: LaunchChanged) -> _Line:
    sides = (*(f"- {text}" for text in one.old), *(f"+ {text}" for text in one.new))
    return _Line("~", f"{one.op} → {one.kernel}", one.field, sides)
