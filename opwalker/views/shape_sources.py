"""Shapes that a comment or a docstring gives to names.

In: the text and where it stands. Out: ``{name: ShapeSource}``. Which text belongs to what is not decided here.
"""

from __future__ import annotations

from opwalker.model.walk import ShapeSource, Span


def named_sources(text: str, path: str, line: int, kind: str) -> dict[str, ShapeSource]:
    """The shapes that a comment or docstring gives to names; ``line`` is that of its first line."""
    from opwalker.notation.shape_comment import named_shapes

    out: dict[str, ShapeSource] = {}
    for number, one in enumerate(text.split("\n"), start=line):
        for name, shape in named_shapes(one):
            if shape.alternatives:
                found = ShapeSource(kind, shape.alternatives, shape.text, Span(path, number, number))
                out.setdefault(name, found)
    return out
