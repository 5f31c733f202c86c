"""Comes in: axes of instances. Goes out: rows that say of each template parameter which values it has, and why.

One row an axis, short: the first places of its values. ``full`` lists every place with its cases.
"""

from __future__ import annotations

import re

from opwalker.model.axis import Axis, AxisOrigin
from opwalker.serve.render.page import Row, Spans
from opwalker.serve.render.page import Span as Piece
from opwalker.serve.render.words import listed

#: More values, places or groups than this are counted, not listed, in the short form.
_VALUES, _PLACES, _GROUPS = 8, 3, 4
#: A value that is longer than this (a function, say) is cut in the short form.
_WIDE = 40
#: Values that are longer than this together are counted from there on.
_ROW = 100
#: The name in a function's printed form: ``&(float ns::f<float>(float const&))``.
_FUNCTION = re.compile(r"([\w:~]+(?:<[^()]*>)?)\([^()]*\)\)?\Z")


def axis_rows(axes: tuple[Axis, ...], file: str, full: bool) -> list[Row]:
    """The rows of a launch or kernel in ``file``, whose name is left out of its own places."""
    rows: list[Row] = []
    for axis in axes:
        rows.append(Row((((axis.parameter or "(unnamed)", "name"),), _values(axis, full), _why(axis, file, full))))
        if full:
            rows += [Row((_place_of(origin, file), _cases(origin)), indent=2) for origin in axis.origins]
        known = {other.parameter: other.values for other in axes}
        for part in _parts(axis, known):
            rows.append(Row((((part.parameter, "name"),), _values(part, full), _why(part, file, False)), indent=2))
        rows += _dependence(axis, full)
    return rows


def _parts(axis: Axis, known: dict[str, tuple[str, ...]]) -> list[Axis]:
    """The names that an axis is computed from and that no other axis shows; those with one value say little."""
    parts = {part.parameter: part for origin in axis.origins for part in origin.parts}
    return [p for p in parts.values() if len(p.values) > 1 and known.get(p.parameter) != p.values]


def _values(axis: Axis, full: bool) -> Spans:
    shown = axis.values if full else tuple(_short(value) for value in axis.values[:_VALUES])
    while not full and len(shown) > 1 and len(", ".join(shown)) > _ROW:
        shown = shown[:-1]
    values: Spans = ((", ".join(shown), "type"),)
    more = len(axis.values) - len(shown)
    return (*values, (f", … {len(axis.values)} in all", "quiet")) if more else values


def axis_counts(axes: tuple[Axis, ...]) -> Spans:
    """``scalar_t 3 · VEC 5``: how many values each axis has; nothing where there is only one axis."""
    if len(axes) < 2:
        return ()
    return listed((f"{axis.parameter or '_'} {len(axis.values)}", "quiet") for axis in axes)


def _why(axis: Axis, file: str, full: bool) -> Spans:
    """The places of an axis in a few words."""
    if not axis.origins:
        return (("origin not followed", "quiet"),)
    if full:
        return ()
    groups: dict[tuple[str, str], list[AxisOrigin]] = {}
    for origin in axis.origins:
        groups.setdefault((origin.kind, origin.text if origin.kind in _NAMED else ""), []).append(origin)
    pieces: list[Piece] = []
    for (kind, _), origins in list(groups.items())[:_PLACES]:
        pieces.append((_phrase(kind, origins, file), "quiet"))
    if len(groups) > _PLACES:
        pieces.append((f"{len(groups) - _PLACES} more", "quiet"))
    known = {value for origin in axis.origins for value in origin.values}
    lacking = sum(1 for value in axis.values if value not in known)
    if lacking:
        pieces.append((f"{lacking} not followed", "warn"))
    return listed(pieces)


#: Kinds whose text is worth a group of its own: which macro, which tested value, which expression.
_NAMED = ("macro", "switch", "computed", "default", "deduced")
_WORDS = {
    "macro": "{text}",
    "switch": "switch ({text})",
    "branch": "branches",
    "argument": "written",
    "local": "constant",
    "deduced": "from the type of {text}",
    "default": "default",
    "computed": "from {text}",
    "instantiation": "explicit instantiation",
}


def _phrase(kind: str, origins: list[AxisOrigin], file: str) -> str:
    word = _WORDS.get(kind, kind)
    if kind == "branch" and len(origins) == 1 and len(origins[0].cases) == 1:
        word = f"under {_short(origins[0].cases[0], 60)}"
    places: list[str] = []
    for number, origin in enumerate(origins[:_PLACES]):
        here = f":{origin.line}"
        told = origins[number - 1].file == origin.file if number else origin.file == file
        places.append(here if told else origin.file + here)
    if len(origins) > _PLACES:
        places.append(f"{len(origins) - _PLACES} more")
    return f"{word.format(text=_short(origins[0].text, 60))}  {', '.join(dict.fromkeys(places))}"


def _place_of(origin: AxisOrigin, file: str) -> Spans:
    word = _WORDS.get(origin.kind, origin.kind).format(text=origin.text)
    if origin.kind in ("branch", "argument", "local", "default"):
        word = f"{origin.kind} {origin.text}"
    where = f":{origin.line}" if origin.file == file else f"{origin.file}:{origin.line}"
    return ((f"{word}  ", ""), (where, "place"))


def _cases(origin: AxisOrigin) -> Spans:
    """Each value with the label or condition that it stands under."""
    if not origin.cases:
        return ((", ".join(origin.values), "type"),)
    by_value: dict[str, list[str]] = {}
    for value, case in zip(origin.values, origin.cases, strict=True):
        by_value.setdefault(value, []).append(case)
    pieces: list[Piece] = []
    for value, cases in by_value.items():
        pieces.append((f"{value} if " + " or ".join(cases) if cases != [value] else f"{value}", "type"))
    return listed(pieces)


def _dependence(axis: Axis, full: bool) -> list[Row]:
    """Which values occur with which of the parameter that this one depends on."""
    if axis.depends_on is None:
        return []
    if axis.depends_on == "*":
        return [Row(((("not every combination with the parameters before it occurs", "quiet"),),), indent=2)]
    if not full and (len(axis.given) > _GROUPS or any(len(g.values) > _VALUES for g in axis.given)):
        words = f"not every value occurs with every {axis.depends_on}: {len(axis.given)} groups"
        return [Row((((words, "quiet"),),), indent=2)]
    if not full and all(origin.kind == "computed" for origin in axis.origins):
        return []  # the expression says it
    pieces: list[Piece] = []
    for group in axis.given:
        when, values = group.when, group.values
        if not full:
            when, values = tuple(_short(w) for w in when[:_VALUES]), tuple(_short(v) for v in values)
        pieces.append((f"{', '.join(when)}: {', '.join(values)}", "quiet"))
    return [Row(((((f"by {axis.depends_on}  ", "quiet")), *listed(pieces)),), indent=2)]


def _short(text: str, width: int = _WIDE) -> str:
    function = _FUNCTION.search(text) if text.startswith("&") else None
    text = function.group(1) if function else text
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"
