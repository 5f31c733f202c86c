"""The way from Python to the kernels as a diagram.

In: a walk and one of its implementations. Out: nodes and edges; the same function or kernel is one node however often
the way passes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwalker.model.notes import Diagram, Edge, Node
from opwalker.model.walk import Dispatch, Implementation, Launch, PathStep, PythonRef, Span, Walk
from opwalker.views.notes.launches import LaunchGroup, launch_groups
from opwalker.views.notes.words import count

#: Callers shown in a diagram; a note lists them all.
CALLERS = 3


class _Drawing:
    def __init__(self) -> None:
        self.nodes: dict[tuple[str, str], Node] = {}
        self.edges: dict[Edge, None] = {}

    def node(self, kind: str, label: str, at: Span | None = None) -> str:
        key = (kind, label)
        if key not in self.nodes:
            self.nodes[key] = Node(f"n{len(self.nodes)}", kind, label, at)
        return self.nodes[key].id

    def edge(self, start: str, end: str, label: str = "") -> None:
        if start != end:
            self.edges[Edge(start, end, label)] = None


def path_diagram(walk: Walk, chosen: Implementation) -> Diagram:
    """The diagram of one implementation."""
    drawing = _Drawing()
    subject = walk.op.name if walk.op else walk.entry.name if walk.entry else ""
    own = Span(walk.entry.file, walk.entry.line, walk.entry.end_line) if walk.entry else None
    start = drawing.node("op" if walk.op else "host", subject, chosen.registered_at or own)
    callers: dict[tuple[str | None, str], PythonRef] = {}
    for ref in walk.python:
        if ref.depth == 0:
            callers.setdefault((ref.function, ref.file), ref)
    shown = list(callers.values())[:CALLERS]
    short = [(ref.function, ref.file.rsplit("/", 1)[-1]) for ref in shown]
    for ref, known in zip(shown, short, strict=True):
        # Files of one name in several folders are told apart.
        name = f"{ref.function or 'module level'} ({ref.file if short.count(known) > 1 else known[1]})"
        drawing.edge(drawing.node("python", name, Span(ref.file, ref.line, ref.line)), start, "calls")
    more = len(callers) - CALLERS
    if more > 0:
        drawing.edge(drawing.node("python", count(more, "more caller")), start, "calls" if more == 1 else "call")
    host = start
    if chosen.host:
        at = Span(chosen.host.file, chosen.host.line, chosen.host.end_line)
        if chosen.host.name != subject or walk.op is not None:
            host = drawing.node("host", chosen.host.name, at)
            drawing.edge(start, host, chosen.key or "")
    groups = launch_groups(chosen.launches)
    functions = {chosen.host.name if chosen.host else ""}
    if not groups:
        _dispatches(drawing, host, chosen.dispatch)
    ends: dict[tuple[str, str], list[Launch]] = {}
    for group, launches, on_way in _ways(groups, chosen.dispatch):
        steps = [step for step in group.first.path[1:] if step.function not in functions]
        within = [[use for use in on_way if _function_of(use, group.first.path) == step.function] for step in steps]
        held = {id(use) for uses in within for use in uses}
        last = _dispatches(drawing, host, [use for use in on_way if id(use) not in held])
        for step, uses in zip(steps, within, strict=True):
            node = drawing.node("host", step.function, Span(step.file, step.line, step.line))
            drawing.edge(last, node)
            last = _dispatches(drawing, node, uses)
        kernel = drawing.node("kernel", group.first.kernel, group.first.kernel_at)
        ends.setdefault((last, kernel), []).extend(launches)
    for (last, kernel), met in ends.items():
        drawing.edge(last, kernel, _instances(met))
    for end in chosen.terminals:
        drawing.edge(host, drawing.node("end", end.name, Span(end.file, end.line, end.line)), end.kind)
    return Diagram(tuple(drawing.nodes.values()), tuple(drawing.edges), _in_words(subject, chosen))


def _ways(
    groups: Sequence[LaunchGroup], uses: Sequence[Dispatch]
) -> Iterator[tuple[LaunchGroup, list[Launch], list[Dispatch]]]:
    """The launches of a group that the same dispatches lead to, with these in order."""
    launches = [launch for group in groups for launch in group.launches]
    # Where axes of any launch come from a dispatch, only those launches stand in it.
    named = [(use, [launch for launch in launches if _comes_from(launch, use)]) for use in uses]
    for group in groups:
        ways: dict[tuple[int, ...], list[Launch]] = {}
        for launch in group.launches:
            way = tuple(n for n, (_, own) in enumerate(named) if not own or any(launch is one for one in own))
            ways.setdefault(way, []).append(launch)
        for way, found in ways.items():
            yield group, found, [uses[number] for number in way]


def _instances(launches: Sequence[Launch]) -> str:
    """How many instances the launches of one way have, those of several launches once."""
    found = {one for launch in launches for one in launch.instances}
    if not all(launch.complete for launch in launches):
        return f"{len(found)} known instances"
    return f"{len(found)} instances" if len(found) > 1 else ""


def _dispatches(drawing: _Drawing, before: str, uses: Sequence[Dispatch]) -> str:
    """The uses one behind another; the last node."""
    for use in uses:
        label = f"{use.macro} on {use.on}" if use.on else use.macro
        node = drawing.node("dispatch", label, Span(use.file, use.line, use.line))
        drawing.edge(before, node)
        before = node
    return before


def _comes_from(launch: Launch, use: Dispatch) -> bool:
    origins = [origin for axis in launch.axes for origin in axis.origins]
    origins += [deep for origin in origins for part in origin.parts for deep in part.origins]
    return any((origin.file, origin.line) == (use.file, use.line) for origin in origins)


def _function_of(use: Dispatch, path: Sequence[PathStep]) -> str | None:
    """The function on the way that a use stands in: of those whose call of the next step follows it, the nearest."""
    behind = [step for step in path if step.file == use.file and step.line >= use.line]
    return min(behind, key=lambda step: step.line).function if behind else None


def _in_words(subject: str, chosen: Implementation) -> str:
    kernels = list(dict.fromkeys(launch.kernel for launch in chosen.launches))
    ends = list(dict.fromkeys(end.name for end in chosen.terminals))
    host = chosen.host.name if chosen.host else "a function that is not in this source"
    to = ", ".join([*kernels, *ends]) or "no launch that was found"
    return f"{subject} calls {host}, which leads to {to}"
