"""The axes of a set of instances: which values each template parameter has, from where, and what depends on what.

In: printed instances and the origins of their arguments. Out: ``Axis`` values in the order of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from opwalker.expand.template_heads import template_parameters
from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.axis import Axis, AxisGiven, AxisOrigin
from opwalker.model.reach import KernelRef, Origin


def axes_of(template: str | None, references: Iterable[KernelRef]) -> tuple[Axis, ...]:
    """The axes of all mentions of one kernel together."""
    instances: dict[str, None] = {}
    found: dict[tuple[int, str, Origin], None] = {}
    for reference in references:
        instances.update(dict.fromkeys(reference.instances))
        found.update(dict.fromkeys(reference.origins))
    names = tuple(p.name for p in template_parameters(template))
    by_axis: dict[int, list[tuple[str, Origin]]] = {}
    for number, value, origin in found:
        by_axis.setdefault(number, []).append((value, origin))
    origins = [_grouped(by_axis.get(number, ())) for number in range(len(names))]
    return _axes(names, instances, origins)


class JoinedAxes:
    """The axes of several launches of one kernel, joined when all of them have been seen."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._origins: list[dict[tuple, AxisOrigin]] = []
        self._values: list[dict[str, None]] = []

    def add(self, axes: tuple[Axis, ...]) -> None:
        """Takes in the origins of one launch."""
        if not axes:
            return
        if not self._names:
            self._names = tuple(axis.parameter for axis in axes)
            self._origins = [{} for _ in axes]
            self._values = [{} for _ in axes]
        for held, values, axis in zip(self._origins, self._values, axes, strict=True):
            values.update(dict.fromkeys(axis.values))
            for origin in axis.origins:
                key = (origin.kind, origin.text, origin.file, origin.line)
                held[key] = origin if key not in held else _both(held[key], origin)

    def of(self, instances: Iterable[str]) -> tuple[Axis, ...]:
        """The axes of all instances together."""
        return _axes(self._names, instances, [tuple(held.values()) for held in self._origins], self._values)


def _axes(
    names: tuple[str, ...],
    instances: Iterable[str],
    origins: Sequence[tuple[AxisOrigin, ...]],
    seen: Sequence[dict[str, None]] = (),
) -> tuple[Axis, ...]:
    rows = [row for row in map(split_arguments, instances) if len(row) == len(names)]
    if not names or not rows:
        return ()
    columns = []
    for number in range(len(names)):
        values = dict.fromkeys(row[number] for row in rows)
        before = [value for value in seen[number] if value in values] if seen else []
        columns.append(_ordered(dict.fromkeys((*before, *values))))
    axes = []
    for number, name in enumerate(names):
        other, given = _dependence(rows, columns, number)
        depends = None if other is None else "*" if other < 0 else names[other]
        axes.append(Axis(name, columns[number], _in_order(origins[number], columns[number]), depends, given))
    return tuple(axes)


def _in_order(origins: tuple[AxisOrigin, ...], values: tuple[str, ...]) -> tuple[AxisOrigin, ...]:
    """Origins with their values in the order of the axis, the one with the first value first."""
    rank = {value: number for number, value in enumerate(values)}
    out = []
    for origin in origins:
        pairs = sorted(_pairs(origin), key=lambda pair: rank.get(pair[0], len(rank)))
        out.append(_with(origin, pairs))
    return tuple(sorted(out, key=lambda o: (rank.get(o.values[0], len(rank)), o.file, o.line)))


def _both(one: AxisOrigin, two: AxisOrigin) -> AxisOrigin:
    joined = _with(one, list(dict.fromkeys((*_pairs(one), *_pairs(two)))))
    return replace(joined, parts=_parts((*one.parts, *two.parts))) if one.parts or two.parts else joined


def _parts(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """The names of computed texts, each once with all its values and places."""
    values: dict[str, dict[str, None]] = {}
    origins: dict[str, dict[tuple, AxisOrigin]] = {}
    for axis in axes:
        values.setdefault(axis.parameter, {}).update(dict.fromkeys(axis.values))
        held = origins.setdefault(axis.parameter, {})
        for origin in axis.origins:
            key = (origin.kind, origin.text, origin.file, origin.line)
            held[key] = _both(held[key], origin) if key in held else origin
    out = []
    for name, found in values.items():
        ordered = _ordered(found)
        out.append(Axis(name, ordered, _in_order(tuple(origins[name].values()), ordered)))
    return tuple(out)


def _with(origin: AxisOrigin, pairs: list[tuple[str, str]]) -> AxisOrigin:
    cases = tuple(case for _, case in pairs) if any(case for _, case in pairs) else ()
    return replace(origin, values=tuple(value for value, _ in pairs), cases=cases)


def _pairs(origin: AxisOrigin) -> list[tuple[str, str]]:
    return list(zip(origin.values, origin.cases or ("",) * len(origin.values), strict=True))


def split_arguments(text: str) -> tuple[str, ...]:
    """The arguments of a printed instance."""
    return tuple(text[a:b].strip() for a, b in split_commas(text)) if text else ()


def _ordered(values: Iterable[str]) -> tuple[str, ...]:
    """Numbers by size, anything else in the order found."""
    listed = list(values)
    try:
        return tuple(sorted(listed, key=lambda value: int(value.rstrip("ul"))))
    except ValueError:
        return tuple(listed)


def _grouped(found: Iterable[tuple[str, Origin]]) -> tuple[AxisOrigin, ...]:
    """Origins at one place as one, each value with its case."""
    groups: dict[tuple, AxisOrigin] = {}
    for value, origin in found:
        key = (origin.kind, origin.text, origin.path, origin.line)
        parts = tuple(Axis(name, (text,), _grouped(((text, of),))) for name, text, of in origin.parts)
        one = AxisOrigin(*key, (value,), (origin.case,) if origin.case else (), parts)
        groups[key] = one if key not in groups else _both(groups[key], one)
    return tuple(groups.values())


def _dependence(
    rows: list[tuple[str, ...]], columns: list[tuple[str, ...]], number: int
) -> tuple[int | None, tuple[AxisGiven, ...]]:
    """The earlier parameter that decides which values of this one occur, and which occur with which.

    None where every value occurs with all that the earlier ones come to; -1 where no single parameter tells.
    """
    if len(columns[number]) < 2:
        return None, ()
    before = {row[:number] for row in rows}
    together = {row[: number + 1] for row in rows}
    if len(together) == len(before) * len(columns[number]):
        return None, ()
    best: tuple[int, int, tuple[AxisGiven, ...]] | None = None
    for other in range(number):
        seen: dict[str, set[str]] = {}
        for row in rows:
            seen.setdefault(row[other], set()).add(row[number])
        if all(len(values) == len(columns[number]) for values in seen.values()):
            continue
        groups: dict[frozenset[str], list[str]] = {}
        for value in columns[other]:
            groups.setdefault(frozenset(seen[value]), []).append(value)
        pairs = sum(len(values) for values in seen.values())
        given = tuple(
            AxisGiven(tuple(when), tuple(v for v in columns[number] if v in values)) for values, when in groups.items()
        )
        if best is None or pairs < best[0]:
            best = (pairs, other, given)
    return (best[1], best[2]) if best is not None else (-1, ())
