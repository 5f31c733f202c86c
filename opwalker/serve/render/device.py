"""The device side of an implementation as steps: launches, the kernels they start, and ends that are no kernel."""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.model.layout import LayoutFact
from opwalker.model.walk import Kernel, Launch, PathStep, Terminal
from opwalker.serve.render.axes import axis_rows
from opwalker.serve.render.host import none_found, parameter_row
from opwalker.serve.render.launch import also_group, configuration_groups, under_group
from opwalker.serve.render.page import Group, Row, Spans, Step
from opwalker.serve.render.sync import detail
from opwalker.serve.render.words import Reading, at, certainty, line_mark, listed, place, titled, under


def launch_step(launch: Launch, reading: Reading, others: Sequence[Launch] = ()) -> Step:
    """A launch: kernel, template arguments, configuration, the way there, and the macros that its text stands in;
    ``others`` are launches of the same kernel that read alike."""
    kernel: Spans = ((launch.kernel, "name"),)
    if launch.template_arguments:
        kernel += (("<", "quiet"), (", ".join(launch.template_arguments), "type"), (">", "quiet"))
    title = titled(
        (("Launch ", "step"), *kernel),
        (place(launch.file, launch.line),),
        listed([(launch.style, "quiet"), certainty(launch.certainty), *under(launch.condition)]),
    )
    groups = configuration_groups(launch)
    if launch.macros:
        groups.append(Group("in macro", (Row((listed(((macro, "name") for macro in launch.macros), " →"),)),)))
    if launch.used_at:
        groups.append(Group("used at", (Row(((at(launch.used_at),),)),)))
    groups += under_group(launch)
    groups += _path(launch.path)
    if launch.instances or launch.why_incomplete:
        groups.append(Group("instances", _instances(launch, reading)))
        rows = axis_rows(launch.axes, launch.file, reading.instances)
        if rows:
            groups.append(Group("why", tuple(rows)))
    groups += also_group(others)
    return Step(title, tuple(groups))


def _instances(launch: Launch, reading: Reading) -> tuple[Row, ...]:
    number = len(launch.instances)
    if launch.instances == ("",):
        head: Spans = (("no template", "quiet"),)
    elif launch.complete:
        head = ((f"{number:,}", ""), (", complete", "quiet"))
    else:
        why = launch.why_incomplete or "an argument could not be enumerated"
        head = ((f"{number:,} known, ", ""), (f"not complete: {why}", "warn"))
    listed_ones = [Row((((f"<{one}>", "type"),),)) for one in launch.instances if one and reading.instances]
    return (Row((head,)), *listed_ones)


def _path(path: tuple[PathStep, ...]) -> list[Group]:
    rows = tuple(Row((((step.function, "name"),), (place(step.file, step.line),))) for step in path)
    return [Group("path", rows)] if rows else []


def kernel_step(kernel: Kernel) -> Step:
    """A kernel: template parameters, parameters with shapes, launch bounds, and what its threads share."""
    title = titled(
        (("Kernel ", "step"), (kernel.name, "name")),
        (place(kernel.file, kernel.line, kernel.end_line),),
        under(kernel.condition),
    )
    kinds = (
        ("template", [Row((((text, "type"),),)) for text in kernel.template_parameters]),
        ("parameters", [parameter_row(fact) for fact in kernel.parameters]),
        ("launch bounds", [Row((((kernel.launch_bounds, ""),),))] if kernel.launch_bounds else []),
        ("shared memory", [Row((((text, ""),),)) for text in kernel.shared_memory]),
        ("if constexpr", [_line(fact.line, fact.condition) for fact in kernel.if_constexpr]),
        ("barriers", [_line(fact.line, fact.call) for fact in kernel.barriers]),
        ("atomics", [_line(fact.line, fact.text) for fact in kernel.atomics]),
        ("inline asm", [_line(fact.line, fact.text) for fact in kernel.inline_asm]),
        ("vectors", [_line(fact.line, fact.text) for fact in kernel.vector_accesses]),
        ("layout", [row for fact in kernel.layouts for row in _layout(fact)]),
        ("device calls", [Row((((text, "name"),),)) for text in kernel.device_functions]),
    )
    groups = [Group(label, tuple(rows)) for label, rows in kinds if rows]
    worth_knowing = ("launch bounds", "shared memory", "barriers", "atomics")
    groups += none_found(label for label, rows in kinds if not rows and label in worth_knowing)
    return Step(title, tuple(groups))


#: How a layout's verdict reads beside the documented shape.
_VERDICTS = {
    "equal": ("is what it computes", "proved"),
    "equal_with_strides": ("is what it computes with the strides passed", "proved"),
    "differs": ("is not what it computes", "warn"),
    "not_decided": ("not decided", "quiet"),
}


def _layout(fact: LayoutFact) -> list[Row]:
    """A tensor's documented shape, whether the kernel's index is that shape's, and the index by dimensions."""
    verdict, style = _VERDICTS[fact.verdict]
    where: Spans = ((fact.parameter, "name"), (f"  {fact.access}", "quiet"))
    if fact.through:
        where += ((f" in {fact.through}", "quiet"),)
    said: Spans = ((fact.documented, "shape"), (f" {verdict}", style))
    if fact.reason:
        said += ((f": {fact.reason}", style),)
    rows = [Row((line_mark(fact.line), where, said))]
    index = ", ".join(f"{part.dim}: {part.value}" for part in fact.coordinates if part.value != "0")
    details = [("index", index or fact.computed), ("under", fact.under), ("width", fact.width)]
    details += [("given", "; ".join(fact.given)), ("requires", "; ".join(fact.requires))]
    rows += [detail(label, ((text, ""),)) for label, text in details if text]
    return rows


def _line(line: int, text: str) -> Row:
    return Row((line_mark(line), ((text, ""),)))


#: What each kind of terminal means, in the reader's words.
_ENDS = {
    "library": "Library call",
    "memory": "Memory operation",
    "host": "No device work found in",
    "torch": "Calls back into torch",
}


def terminal_step(end: Terminal) -> Step:
    """An end that is no kernel of this source, and the way to it."""
    word = _ENDS.get(end.kind, end.kind)
    title = titled(((word + " ", "step"), (end.name, "name")), (place(end.file, end.line),))
    return Step(title, tuple(_path(end.path)))
