"""What code says of a host function's parameters beside their comments: shapes, contradictions, layout."""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.model.walk import ParameterFact
from opwalker.serve.render.page import Group, Row, Spans
from opwalker.serve.render.words import line_mark

#: What each kind of source is called in front of a shape that differs from the first one.
_SOURCES = {
    "comment": "beside it",
    "above": "above the function",
    "declaration": "declaration",
    "python": "Python wrapper",
    "way": "on the way",
    "kernel": "kernel",
}


def shape_groups(parameters: Sequence[ParameterFact], file: str) -> list[Group]:
    """The groups behind the parameters of a function in ``file``; none where code says nothing of a shape or a
    stride."""
    groups = (
        ("in code", [_derived(one, file) for one in parameters if one.derived_shape or one.ranks]),
        ("also said", [row for one in parameters for row in _others(one)]),
        ("contradicted", [row for one in parameters for row in _contradictions(one)]),
        ("layout", _layouts(parameters)),
    )
    return [Group(label, tuple(rows)) for label, rows in groups if rows]


def _derived(one: ParameterFact, file: str) -> Row:
    """The shape that names and checks in the code give, and whether it is the documented one."""
    if one.derived_shape:
        text = f"[{', '.join(one.derived_shape)}]"
    else:
        text = f"{' or '.join(str(number) for number in one.ranks)} dimensions"
    facts = [fact for fact in one.derived_from if not fact.under]
    at = min(facts, key=lambda fact: (fact.file != file, fact.file, fact.line), default=None)
    place = line_mark(at.line if at else 0) if at is None or at.file == file else ((f"{at.file}:{at.line}", "place"),)
    said: Spans = ()
    if one.agrees is not None:
        said = (("as documented", "quiet"),) if one.agrees else (("not as documented", "warn"),)
    return Row((((one.name, "name"),), ((text, "shape"),), place, said))


def _others(one: ParameterFact) -> list[Row]:
    """Further documented shapes that differ from the first one."""
    seen = {one.sources[0].alternatives} if one.sources and one.shape else set()
    rows = []
    for source in one.sources:
        if source.alternatives not in seen:
            seen.add(source.alternatives)
            where = f"{_SOURCES.get(source.kind, source.kind)}  {source.span.file}:{source.span.line}"
            rows.append(Row((((one.name, "name"),), ((source.text, "shape"),), ((where, "quiet"),))))
    return rows


def _contradictions(one: ParameterFact) -> list[Row]:
    return [
        Row(
            (
                ((one.name, "name"),),
                ((wrong.documented, "shape"),),
                ((wrong.reason, "warn"), (f"  {wrong.file}:{wrong.line}", "place")),
            )
        )
        for wrong in one.contradictions
    ]


def _layouts(parameters: Sequence[ParameterFact]) -> list[Row]:
    """What is asked of the strides; parameters of which the same is said stand together."""
    said: dict[str, list[ParameterFact]] = {}
    for one in parameters:
        if one.layout:
            said.setdefault(one.layout, []).append(one)
    rows = []
    for text, held in said.items():
        here = [f":{one.layout_line}" for one in held if one.layout_line]
        elsewhere: dict[str, list[str]] = {}
        for one in held:
            if one.layout_at:
                elsewhere.setdefault(one.layout_at.file, []).append(f":{one.layout_at.line}")
        others = [file + ", ".join(dict.fromkeys(lines)) for file, lines in elsewhere.items()]
        marks = ", ".join(dict.fromkeys((*here, *others)))
        rows.append(Row((((", ".join(one.name for one in held), "name"),), ((text, ""), (f"  {marks}", "place")))))
    return rows
