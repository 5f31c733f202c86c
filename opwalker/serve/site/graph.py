"""A diagram drawn in layers, top to bottom, as an SVG that stands inside a page.

Comes in: a ``Diagram`` and what a place links to. Goes out: one ``<svg>``; a step is a link to its source. Layers
follow the longest way from a start; within a layer a step stands below those that lead to it.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from msgspec import Struct

from opwalker.model.notes import Diagram, Edge, Node
from opwalker.model.walk import Span

_CHARACTER = 7.3
_LINE = 17
_WRAP = 36
_PAD = 12
_GAP_X = 28
_GAP_Y = 46
_ARROW = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"'


class _Box(Struct):
    node: Node
    lines: list[str]
    layer: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(len(line) for line in self.lines) * _CHARACTER + 2 * _PAD

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + _PAD

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def graph_svg(diagram: Diagram, link: Callable[[Span], str | None]) -> str:
    """The drawing; empty where there is nothing to draw."""
    if not diagram.nodes:
        return ""
    boxes = {node.id: _Box(node, _wrapped(node.label)) for node in diagram.nodes}
    edges = _without_cycles(diagram)
    _set_layers(boxes, edges)
    width, height = _place(boxes, edges)
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
    parts = [
        f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(diagram.alt)}">',
        f'<defs><marker id="arrow" {_ARROW}><path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    parts += [_edge(boxes[edge.start], boxes[edge.end], edge.label) for edge in edges]
    parts += [_box(box, link) for box in boxes.values()]
    return "".join([*parts, "</svg>"])


def _wrapped(label: str) -> list[str]:
    """A label on lines of a bearable length, broken behind ``::``, ``_``, a blank or a bracket."""
    lines: list[str] = []
    rest = label
    while len(rest) > _WRAP:
        cut = max(rest.rfind(mark, 8, _WRAP) + len(mark) for mark in ("::", "_", " ", "<", ",", "("))
        cut = cut if cut >= 8 else _WRAP
        lines.append(rest[:cut])
        rest = rest[cut:]
    return [*lines, rest]


def _without_cycles(diagram: Diagram) -> list[Edge]:
    """The edges without those that lead back to where a way came from."""
    after: dict[str, list[Edge]] = {}
    for edge in diagram.edges:
        after.setdefault(edge.start, []).append(edge)
    kept: list[Edge] = []
    state: dict[str, int] = {}
    for node in diagram.nodes:
        if node.id in state:
            continue
        stack = [(node.id, iter(after.get(node.id, ())))]
        state[node.id] = 1
        while stack:
            name, left = stack[-1]
            edge = next(left, None)
            if edge is None:
                state[name] = 2
                stack.pop()
            elif state.get(edge.end) != 1:
                kept.append(edge)
                if edge.end not in state:
                    state[edge.end] = 1
                    stack.append((edge.end, iter(after.get(edge.end, ()))))
    order = {edge: number for number, edge in enumerate(diagram.edges)}
    return sorted(kept, key=order.__getitem__)


def _set_layers(boxes: dict[str, _Box], edges: list[Edge]) -> None:
    for _ in boxes:
        moved = False
        for edge in edges:
            if boxes[edge.end].layer <= boxes[edge.start].layer:
                boxes[edge.end].layer = boxes[edge.start].layer + 1
                moved = True
        if not moved:
            return


def _place(boxes: dict[str, _Box], edges: list[Edge]) -> tuple[float, float]:
    """Sets every box's corner; the drawing's width and height."""
    layers: dict[int, list[_Box]] = {}
    for box in boxes.values():
        layers.setdefault(box.layer, []).append(box)
    for row in layers.values():
        _spread(row, [0.0] * len(row))
    for _ in range(4):
        for number in sorted(layers)[1:]:
            _align(layers[number], boxes, [(edge.end, edge.start) for edge in edges])
        for number in sorted(layers, reverse=True)[1:]:
            _align(layers[number], boxes, [(edge.start, edge.end) for edge in edges])
    left = min(box.x for box in boxes.values())
    top = 4.0
    for number in sorted(layers):
        for box in layers[number]:
            box.x += 4 - left
            box.y = top
        top += max(box.height for box in layers[number]) + _GAP_Y
    return max(box.x + box.width for box in boxes.values()) + 4, top - _GAP_Y + 4


def _align(row: list[_Box], boxes: dict[str, _Box], pairs: list[tuple[str, str]]) -> None:
    """Moves the boxes of a row below (or above) those they are tied to."""
    wanted = []
    for box in row:
        tied = [boxes[other].middle for one, other in pairs if one == box.node.id]
        wanted.append(sum(tied) / len(tied) if tied else box.middle)
    order = sorted(range(len(row)), key=lambda number: wanted[number])
    row[:] = [row[number] for number in order]
    _spread(row, [wanted[number] for number in order])


def _spread(row: list[_Box], wanted: list[float]) -> None:
    """Places a row side by side, each as near to where it is wanted as the one before lets it."""
    right = float("-inf")
    for box, middle in zip(row, wanted, strict=True):
        box.x = max(middle - box.width / 2, right + _GAP_X)
        right = box.x + box.width
    shift = sum(middle - box.middle for box, middle in zip(row, wanted, strict=True)) / len(row)
    for box in row:
        box.x += shift


def _edge(start: _Box, end: _Box, label: str) -> str:
    x1, y1 = start.middle, start.y + start.height
    x2, y2 = end.middle, end.y
    bend = (y2 - y1) / 2
    path = f"M{x1:.1f} {y1:.1f} C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2 - 1:.1f}"
    drawn = f'<path class="edge" d="{path}" marker-end="url(#arrow)"/>'
    if label:
        x, y = (x1 + x2) / 2, (y1 + y2) / 2 + 4
        drawn += f'<text class="label" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(label)}</text>'
    return drawn


def _box(box: _Box, link: Callable[[Span], str | None]) -> str:
    shape = (
        f'<rect class="{box.node.kind}" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6"/>'
    )
    lines = "".join(
        f'<text x="{box.middle:.1f}" y="{box.y + _PAD / 2 + 13 + number * _LINE:.1f}" text-anchor="middle">'
        f"{escape(line)}</text>"
        for number, line in enumerate(box.lines)
    )
    target = link(box.node.at) if box.node.at else None
    if target is None:
        return f"<g>{shape}{lines}</g>"
    return f'<a href="{escape(target)}" target="code">{shape}{lines}</a>'
