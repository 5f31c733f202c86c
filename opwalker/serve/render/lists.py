"""Comes in: an ``OpsResult`` or a ``KernelsResult``. Goes out: its page, ops by namespace, kernels by file."""

from __future__ import annotations

from opwalker.model.walk import KernelEntry, KernelsResult, Op, OpsResult
from opwalker.serve.render.axes import axis_counts, axis_rows
from opwalker.serve.render.page import Page, Row, Section, Spans
from opwalker.serve.render.page import Span as Piece
from opwalker.serve.render.schema import schema_spans
from opwalker.serve.render.words import Reading, count, gaps_section, listed, named, place, standing, titled


def ops_page(result: OpsResult, reading: Reading) -> Page:
    """Ops by namespace, each with its kind, dispatch keys, place and schema; an empty list says what was looked for."""
    spaces: dict[str, list[Op]] = {}
    for op in result.ops:
        spaces.setdefault(namespace(op.name), []).append(op)
    summary = f"{count(len(result.ops), 'op')} in {count(len(spaces), 'namespace')}"
    if not result.ops:
        return Page((_no_ops(result, reading), *gaps_section(result.gaps)))
    title = Section(titled(((named(result.source), "title"),), ((summary, "quiet"),)))
    sections = [_namespace(name, ops) for name, ops in spaces.items()]
    return Page((title, *sections, *gaps_section(result.gaps)))


def namespace(name: str) -> str:
    """What an op's name is grouped by: the part before ``::``, or the module of ``module.function``."""
    head, colons, _ = name.partition("::")
    if colons:
        return head
    return name.rpartition(".")[0]


def _no_ops(result: OpsResult, reading: Reading) -> Section:
    looked = ", ".join(result.looked_for)
    words = [f"no op {reading.asked}".rstrip() + " is registered in this source"]
    if looked:
        words.append(f"looked for {looked}")
    if result.files_read is not None:
        words.append(f"{count(result.files_read, 'file')} read")
    return Section(((named(result.source), "title"),), paragraphs=((("; ".join(words), ""),),))


def _namespace(name: str, ops: list[Op]) -> Section:
    rows: list[Row] = []
    for op in ops:
        rows.append(Row((((_short(op.name, name), "name"),), _keys(op), _places(op))))
        rows.append(Row((_described(op),), indent=2))
    heading = titled(((name or "no namespace", "heading"),), ((count(len(ops), "op"), "quiet"),))
    return Section(heading, rows=tuple(rows))


def _short(name: str, space: str) -> str:
    return name[len(space) :].lstrip(":.") if space else name


def _keys(op: Op) -> Spans:
    keys = list(dict.fromkeys(impl.key for impl in op.impls if impl.key))
    if not keys:
        return ((op.kind, "quiet"),)
    return ((", ".join(keys), "key"),)


def _places(op: Op) -> Spans:
    places: list[Piece] = []
    for one in op.defs:
        place_of, condition = place(one.file, one.line), f" #if {one.condition}" if one.condition else ""
        places.append((place_of[0] + condition, "place"))
    return listed(places)


def _described(op: Op) -> Spans:
    if op.schema is not None:
        return schema_spans(op.schema, op.arguments)
    return ((op.signature or f"{op.kind}, no schema", "quiet"),)


def kernels_page(result: KernelsResult, reading: Reading) -> Page:
    """Kernels by file, each with the ops that reach it and how many instances the source can produce."""
    if not result.kernels:
        said = f"no __global__ function {reading.asked}".rstrip() + " was found in this source"
        nothing = Section(((named(result.source), "title"),), paragraphs=(((said, ""),),))
        return Page((nothing, *gaps_section(result.gaps)))
    files: dict[str, list[KernelEntry]] = {}
    for kernel in result.kernels:
        files.setdefault(kernel.file, []).append(kernel)
    reached = sum(1 for kernel in result.kernels if kernel.ops)
    summary = f"{count(len(result.kernels), 'kernel')} in {count(len(files), 'file')}, {reached} reached from an op"
    title = Section(titled(((named(result.source), "title"),), ((summary, "quiet"),)))
    widest = max((kernel.archs for kernel in result.kernels), key=len, default=())
    sections = [_file(file, kernels, reading, widest) for file, kernels in files.items()]
    return Page((title, *sections, *gaps_section(result.gaps)))


def _file(file: str, kernels: list[KernelEntry], reading: Reading, widest: tuple[str, ...]) -> Section:
    """The kernels of a file. Architectures are told where they are fewer than ``widest``."""
    rows: list[Row] = []
    for kernel in kernels:
        ops: Spans = ((", ".join(kernel.ops), "key"),) if kernel.ops else (("reached from no op", "warn"),)
        where = listed([place(file, kernel.line), *standing(None, kernel.condition, reading)])
        if kernel.archs and kernel.archs != widest:
            where = (*where, (f"  for {', '.join(kernel.archs)}", "build"))
        rows.append(Row((((kernel.name, "name"),), where, _how_many(kernel), ops)))
        if reading.asked or reading.instances:
            for row in axis_rows(kernel.axes, file, reading.instances):
                rows.append(Row((titled(*row.cells),), indent=row.indent + 2))
        if reading.instances:
            rows += [Row((((f"<{instance}>", "type"),),), indent=2) for instance in kernel.instances if instance]
    return Section(((file, "heading"),), rows=tuple(rows))


def _how_many(kernel: KernelEntry) -> Spans:
    if kernel.why_incomplete:
        known: Spans = ((f"{len(kernel.instances)}+ ", "warn"),) if kernel.instances else ()
        return (*known, (f"instances not complete: {kernel.why_incomplete}", "warn"))
    if not kernel.instances:
        return (("instances not counted", "quiet"),)
    if kernel.instances == ("",):
        return (("no template", "quiet"),)
    counts = axis_counts(kernel.axes)
    return ((count(len(kernel.instances), "instance"), ""), *((("  ", ""), *counts) if counts else ()))
