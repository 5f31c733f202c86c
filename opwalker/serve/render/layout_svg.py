"""A picture of how a tensor lies in memory: one strip a dimension, each opened from one cell of the strip above.

Comes in: a ``Figure``. Goes out: one SVG, self-contained, readable in light and dark, with its content in words for
those who do not see it. The outermost dimension is at the top; stride is counted in elements.
"""

from __future__ import annotations

from html import escape

from opwalker.model.notes import Figure

_CELL = 74
_HEIGHT = 34
_GAP = 30
_LEFT = 12
_LABEL = 300
_TOP = 40

_STYLE = """
 text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }
 .title { font-weight: 600; font-size: 14px }
 .quiet { fill: #59636e }
 .cell { fill: #f6f8fa; stroke: #8c959f }
 .open { fill: #ddf4ff; stroke: #0969da }
 .zoom { fill: none; stroke: #0969da; stroke-dasharray: 3 3 }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet { fill: #9198a1 } .cell { fill: #151b23; stroke: #656c76 }
  .open { fill: #12304f; stroke: #4493f8 } .zoom { stroke: #4493f8 }
 }
"""


def layout_svg(figure: Figure) -> str:
    """The SVG of a figure, with a line break at its end."""
    rows = len(figure.dims)
    width = _LEFT + 5 * _CELL + 20 + _LABEL
    height = _TOP + rows * _HEIGHT + (rows - 1) * _GAP + 16
    said = f"{figure.name} [{', '.join(figure.dims)}]"
    described = "; ".join(
        f"{dim}: neighbours are {stride} element{'' if stride == '1' else 's'} apart"
        for dim, stride in zip(figure.dims, figure.strides, strict=True)
    )
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(said)}</title>',
        f'<desc id="d">{escape(described)}</desc>',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="{_LEFT}" y="22">{escape(said)}</text>',
    ]
    for number, (dim, stride) in enumerate(zip(figure.dims, figure.strides, strict=True)):
        top = _TOP + number * (_HEIGHT + _GAP)
        parts += _strip(dim, stride, top, last=number == rows - 1)
        if number < rows - 1:
            parts += _zoom(top + _HEIGHT, len(_labels(figure.dims[number + 1])))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _strip(dim: str, stride: str, top: int, *, last: bool) -> list[str]:
    """The cells of a dimension; the first is the one that the next strip opens."""
    middle = top + _HEIGHT // 2 + 5
    out = []
    for place, label in enumerate(_labels(dim)):
        opened = place == 0 and not last
        x = _LEFT + place * _CELL
        out.append(
            f'<rect class="{"open" if opened else "cell"}" x="{x}" y="{top}" width="{_CELL}" height="{_HEIGHT}"/>'
        )
        out.append(f'<text x="{x + _CELL // 2}" y="{middle}" text-anchor="middle">{escape(label)}</text>')
    x = _LEFT + 5 * _CELL + 16
    out.append(f'<text x="{x}" y="{middle - 8}">{escape(dim)}</text>')
    out.append(f'<text class="quiet" x="{x}" y="{middle + 9}">stride {escape(stride)}</text>')
    return out


def _labels(dim: str) -> tuple[str, ...]:
    """What stands in the cells: 0, 1, 2, … and the last index, but each index of a dimension of few. A short mark
    stands for the last one where its name is too long for a cell."""
    if dim.isdigit():
        size = int(dim)
        return tuple(str(place) for place in range(size)) if size < 5 else ("0", "1", "2", "…", str(size - 1))
    return ("0", "1", "2", "…", f"{dim}-1" if len(dim) <= 6 else "last")


def _zoom(bottom: int, cells: int) -> list[str]:
    """The lines from the cell that is opened to the strip below, ``cells`` wide."""
    right, below = _LEFT + cells * _CELL, bottom + _GAP
    lines = f"M{_LEFT} {bottom} L{_LEFT} {below} M{_LEFT + _CELL} {bottom} L{right} {below}"
    return [f'<path class="zoom" d="{lines}"/>']
