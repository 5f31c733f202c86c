"""The device side of an implementation as steps: launches, the kernels they start, and ends that are no kernel."""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.model.walk import Launch, PathStep, Terminal
from opwalker.serve.render.axes import axis_rows
from opwalker.serve.render.host import held_rows
from opwalker.serve.render.launch import also_group, configuration_groups, under_group
from opwalker.serve.render.page import Group, Row, Spans, Step
from opwalker.serve.render.words import Reading, at, both, certainty, listed, place, titled, under


def launch_step(launch: Launch, reading: Reading, others: Sequence[Launch] = ()) -> Step:
    """A launch: kernel, template arguments, configuration, the way there, and the macros that its text stands in;
    ``others`` are launches of the same kernel that read alike."""
    kernel: Spans = ((launch.kernel, "name"),)
    if launch.template_arguments:
        kernel += (("<", "quiet"), (", ".join(launch.template_arguments), "type"), (">", "quiet"))
    title = titled(
        (("Launch ", "step"), *kernel),
        (place(launch.file, launch.line),),
        listed([(launch.style, "quiet"), certainty(launch.certainty), *under(launch.condition), *_compiled(launch)]),
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
        if launch.unreachable:
            groups.append(Group("never run", _never(launch, reading)))
        rows = axis_rows(launch.axes, launch.file, reading.instances)
        if rows:
            groups.append(Group("why", tuple(rows)))
    groups += also_group(others)
    return Step(title, tuple(groups))


def _compiled(launch: Launch) -> Spans:
    """The preprocessor condition of a launch and of the calls that lead to it."""
    return under(launch.compiled) if launch.compiled != launch.condition else ()


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


def _never(launch: Launch, reading: Reading) -> tuple[Row, ...]:
    """The instances that can never run, by the reason: the first of each, all where they are asked for."""
    total, number = len(launch.instances), len(launch.unreachable)
    alone = launch.instances == ("",)
    many = f"{number:,} of {total:,} are compiled and can never run"
    head = "it is compiled, and never started here" if alone else many
    rows = [Row((((head, "warn"),),))]
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in launch.unreachable:
        reasons.setdefault((one.reason, one.file), []).append(one.instance)
    for (reason, file), instances in reasons.items():
        shown = instances if reading.instances else instances[:1]
        more = f" and {len(instances) - len(shown)} more" if len(shown) < len(instances) else ""
        where = "" if file == launch.file else f"  in {file}"
        names = ", ".join(f"<{instance}>" if instance else launch.kernel for instance in shown)
        rows.append(Row((((names + more, "type"),), ((reason + where, ""),))))
    return tuple(rows)


def _path(path: tuple[PathStep, ...]) -> list[Group]:
    rows = tuple(Row((((step.function, "name"),), (place(step.file, step.line),))) for step in path)
    return [Group("path", rows)] if rows else []


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
    title = titled(((word + " ", "step"), (end.name, "name")), (place(end.file, end.line),), under(end.compiled))
    groups = [Group(label, (Row((((text, ""),),)),)) for label, text in (("where", both(end.under)),) if text]
    groups += [Group("in the loop", tuple(Row((((head, ""),),)) for head in end.loops))] if end.loops else []
    groups += [Group("call", (Row((((end.text, ""),),)),))] if end.text else []
    groups += [Group("with", tuple(held_rows(end.held)))] if end.held else []
    return Step(title, (*groups, *_path(end.path)))
