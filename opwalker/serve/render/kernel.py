"""A kernel as a step: what its blocks and threads handle, what they share, how they address memory, whom they call."""

from __future__ import annotations

from opwalker.model.kernel import Kernel, ReductionFact
from opwalker.model.layout import LayoutFact, UntoldFact
from opwalker.serve.render.host import held_rows, none_found, parameter_row
from opwalker.serve.render.page import Group, Row, Spans, Step
from opwalker.serve.render.sync import detail
from opwalker.serve.render.words import at, count, line_mark, place, titled, under


def kernel_step(kernel: Kernel) -> Step:
    """A kernel: template parameters, parameters with shapes, launch bounds, and what its threads share."""
    title = titled(
        (("Kernel " if kernel.kind == "kernel" else "Device function ", "step"), (kernel.name, "name")),
        (place(kernel.file, kernel.line, kernel.end_line),),
        under(kernel.condition),
    )
    kinds = (
        ("template", [Row((((text, "type"),),)) for text in kernel.template_parameters]),
        ("parameters", [parameter_row(fact) for fact in kernel.parameters]),
        ("work", [_line(fact.line, fact.says) for fact in kernel.work]),
        ("launch bounds", [Row((((kernel.launch_bounds, ""),),))] if kernel.launch_bounds else []),
        ("shared memory", _shared(kernel)),
        ("if constexpr", [_line(fact.line, fact.condition) for fact in kernel.if_constexpr]),
        ("barriers", [_line(fact.line, fact.call) for fact in kernel.barriers]),
        ("atomics", [_line(fact.line, fact.text) for fact in kernel.atomics]),
        ("reductions", [_reduction(fact) for fact in kernel.reductions]),
        ("inline asm", _assembly(kernel)),
        ("vectors", _vectors(kernel)),
        ("layout", [row for fact in kernel.layouts for row in _layout(fact)] + [_untold(one) for one in kernel.untold]),
        ("with", [*held_rows(kernel.held), *_with(kernel)]),
        ("device calls", _calls(kernel)),
    )
    groups = [Group(label, tuple(rows)) for label, rows in kinds if rows]
    worth_knowing = ("launch bounds", "shared memory", "barriers", "atomics")
    missing = [label for label, rows in kinds if not rows and label in worth_knowing]
    own = [label for label in missing if label != "launch bounds"]
    if own and kernel.device_functions:
        # What the device functions do that it calls stands with them, and in the synchronisation of the walk.
        missing = [*missing[: len(missing) - len(own)], f"in its own body: {', '.join(own)}"]
    groups += none_found(missing)
    return Step(title, tuple(groups))


def _shared(kernel: Kernel) -> list[Row]:
    """Shared variables with their sizes; those of a walk that lacks sizes as written."""
    if not kernel.shared:
        return [Row((((text, ""),),)) for text in kernel.shared_memory]
    rows = []
    for fact in kernel.shared:
        size = "given by the launch" if fact.dynamic else f"{fact.size} bytes" if fact.size else ""
        rows.append(Row((line_mark(fact.line), ((fact.name, "name"),), ((fact.type, "type"),), ((size, ""),))))
    return rows


def _reduction(fact: ReductionFact) -> Row:
    over: Spans = ((f"over a {fact.over}" if fact.over else "no reduction", "step"),)
    how: Spans = ((fact.how, "name"), *(((f"  {fact.at.file}:{fact.at.line}", "place"),) if fact.at else ()))
    return Row((line_mark(fact.line), over, how, ((fact.text, "quiet"),)))


def _assembly(kernel: Kernel) -> list[Row]:
    """Each instruction in words, once a place; that of device functions with its file."""
    if not kernel.assembly:
        return [_line(fact.line, fact.text) for fact in kernel.inline_asm]
    rows: dict[Row, None] = {}
    for fact in kernel.assembly:
        where = line_mark(fact.line) if fact.file == kernel.file else (place(fact.file, fact.line),)
        for one in fact.instructions:
            means: Spans = ((one.means or "not known", "quiet"),)
            under_it = ((" ", ""), *under(fact.condition)) if fact.condition else ()
            rows[Row((where, ((one.text, ""),), (*means, *under_it)))] = None
    return list(rows)


def _vectors(kernel: Kernel) -> list[Row]:
    if not kernel.vectors:
        return [_line(fact.line, fact.text) for fact in kernel.vector_accesses]
    rows = []
    for fact in kernel.vectors:
        size = f"{fact.size} byte{'' if fact.size == '1' else 's'} an element" if fact.size else ""
        rows.append(Row((line_mark(fact.line), ((fact.type, "type"),), ((size, ""),))))
    return rows


def _calls(kernel: Kernel) -> list[Row]:
    open_ = [
        Row((line_mark(one.line), ((one.name, "name"),), ((f"not followed: {one.on} decides what it is", "quiet"),)))
        for one in kernel.open_calls
    ]
    if not kernel.calls:
        return [Row((((text, "name"),),)) for text in kernel.device_functions] + open_
    return open_ + [
        Row(
            (
                line_mark(fact.line),
                ((fact.name, "name"),),
                ((f"{fact.of} definitions", "quiet"),) if fact.of else (at(fact.at),),
            )
        )
        for fact in kernel.calls
    ]


#: How a layout's verdict reads beside the documented shape.
_VERDICTS = {
    "equal": ("is what it computes", "proved"),
    "equal_with_strides": ("is what it computes with the strides passed", "proved"),
    "differs": ("is not what it computes", "warn"),
    "not_decided": ("not decided", "quiet"),
    "undocumented": ("no documented shape", "quiet"),
}


def _under(fact: LayoutFact) -> str | None:
    """What has to hold for an access, and whether the functions it stands in test more."""
    own = f"tests of {fact.through}" if fact.tests_more else ""
    return ", ".join(filter(None, (fact.under, own))) or None


def _layout(fact: LayoutFact) -> list[Row]:
    """A tensor's documented shape, whether the kernel's index is that shape's, and the index by dimensions."""
    verdict, style = _VERDICTS[fact.verdict]
    where: Spans = ((fact.parameter, "name"), (f"  {fact.access}", "quiet"))
    if fact.through:
        where += ((f" in {fact.through}", "quiet"),)
    said: Spans = (*(((f"{fact.documented} ", "shape"),) if fact.documented else ()), (verdict, style))
    if fact.reason:
        what = ", and an index that is not worked out" if fact.verdict == "undocumented" else ""
        said += ((f"{what}: {fact.reason}", style),)
    rows = [Row((line_mark(fact.line), where, said))]
    index = ", ".join(f"{part.dim}: {part.value}" for part in fact.coordinates if part.value != "0")
    details = [("index", index or fact.computed), ("under", _under(fact)), ("width", fact.width)]
    details += [("given", "; ".join(dict.fromkeys(fact.given))), ("requires", "; ".join(fact.requires))]
    rows += [detail(label, ((text, ""),)) for label, text in details if text]
    return rows


def _untold(fact: UntoldFact) -> Row:
    """A pointer of which not every access is described."""
    said = f"{count(fact.ways, 'more way')} of access" if fact.ways else "how it is accessed is not described"
    if not fact.parameter:
        return Row(((), (("further accesses were not looked at", "quiet"),)))
    return Row((line_mark(fact.line), ((fact.parameter, "name"),), ((said, "quiet"),)))


def _with(kernel: Kernel) -> list[Row]:
    """What names of indexes hold that are not told with the kernel's own locals."""
    told = {one.name for one in kernel.held}
    names = dict.fromkeys(one for fact in kernel.layouts for one in fact.names if one.name not in told)
    rows = []
    for one in names:
        cases = ", ".join(f"{value} where {under}" for under, value in one.cases)
        rows.append(Row(((), ((one.name, "name"), (" = ", "quiet"), (one.value or cases, "")))))
    return rows


def _line(line: int, text: str) -> Row:
    return Row((line_mark(line), ((text, ""),)))
