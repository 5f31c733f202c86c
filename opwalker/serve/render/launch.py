"""A launch's configuration as groups: grid, block and shared memory followed back to sizes, and what is set besides."""

from __future__ import annotations

from collections.abc import Sequence

from opwalker.model.walk import CaseFact, Launch, LaunchAttribute, NamedValue
from opwalker.serve.render.page import Group, Row, Spans
from opwalker.serve.render.words import both, line_mark, place


def alike(launches: Sequence[Launch]) -> list[list[Launch]]:
    """The launches in groups that read alike: one kernel with one configuration, reached through the same functions."""
    groups: dict[tuple, list[Launch]] = {}
    for launch in launches:
        extents = (
            launch.grid_resolved or launch.grid,
            launch.block_resolved or launch.block,
            launch.shared_resolved or launch.shared,
        )
        way = tuple(step.function for step in launch.path)
        key = (
            launch.kernel,
            launch.kernel_at,
            launch.style,
            extents,
            launch.names,
            launch.stream_resolved or launch.stream,
            way,
            launch.attributes,
        )
        groups.setdefault(key, []).append(launch)
    return list(groups.values())


def also_group(others: Sequence[Launch]) -> list[Group]:
    """Further launches of a group: where each stands, its template arguments, and under what."""
    rows = []
    for launch in others:
        used: Spans = (("used at ", "quiet"), (f":{launch.used_at.line}", "place")) if launch.used_at else ()
        arguments: Spans = ((f"<{', '.join(launch.template_arguments)}>", "type"),) if launch.template_arguments else ()
        tested = launch.conditions or tuple(fact.condition for fact in launch.under)
        under: Spans = ((f"where {both(tested)}", "quiet"),) if tested else ()
        if launch.never_runs:
            under = (("never run: ", "warn"), ("; ".join(dict.fromkeys(one.reason for one in launch.unreachable)), ""))
        count = f"{len(launch.instances):,} instances" if len(launch.instances) != 1 else "1 instance"
        known = count if launch.complete else f"{count} known"
        rows.append(Row(((place(launch.file, launch.line),), arguments, used, under, ((known, "quiet"),))))
    return [Group("also", tuple(rows))] if rows else []


def under_group(launch: Launch) -> list[Group]:
    """The conditions that a launch stands under: in words, or as they are written; nothing where they are never met."""
    if launch.never_runs:
        return []
    lines = sorted({fact.line for fact in launch.under})
    marks: Spans = ((f"  {', '.join(f':{line}' for line in lines)}", "place"),) if lines else ()
    if launch.conditions:
        return [Group("where", (Row((((both(launch.conditions), ""), *marks),)),))]
    rows = tuple(Row((((fact.condition, ""), (f"  :{fact.line}", "quiet")),)) for fact in launch.under)
    return [Group("under", rows)] if rows else []


def configuration_groups(launch: Launch) -> list[Group]:
    """The configuration of a launch, in the order of its arguments; the names in it below."""
    return [
        Group(label, rows)
        for label, rows in (
            ("grid", _extent(launch.grid, launch.grid_resolved, launch.grid_cases)),
            ("block", _extent(launch.block, launch.block_resolved, launch.block_cases)),
            ("shared memory", _extent(launch.shared, launch.shared_resolved, launch.shared_cases)),
            ("with", tuple(_named(fact) for fact in launch.names)),
            ("opt-in", tuple(_attribute(fact) for fact in launch.shared_opt_in)),
            ("attributes", tuple(_attribute(fact) for fact in launch.attributes)),
            ("cooperative", (Row((((_COOPERATIVE, ""),),)),) if launch.cooperative else ()),
            ("stream", _extent(launch.stream, launch.stream_resolved, ())),
        )
        if rows
    ]


#: What a cooperative launch gives.
_COOPERATIVE = "all blocks run at once, so that the whole grid can wait for itself"


def _extent(written: str | None, resolved: str | None, cases: tuple[CaseFact, ...]) -> tuple[Row, ...]:
    """An extent followed back to sizes, as it is written where that says more, and its cases."""
    if not written:
        return ()
    if resolved is None or resolved == written:
        return (Row((((written, ""),),)),)
    rows = [Row((((resolved, ""),), ((written, "quiet"),)))]
    return (*rows, *(_case(fact) for fact in cases))


def _case(fact: CaseFact) -> Row:
    when = f"  where {both(fact.under)}" if fact.under else "  otherwise"
    return Row((((fact.value, ""), (when, "quiet")),), 2)


def _named(fact: NamedValue) -> Row:
    head: Spans = ((fact.name, "name"), (" written by " if fact.filled else " = ", "quiet"))
    if not fact.cases:
        return Row(((*head, (fact.value, "")),))
    parts = [f"{one.value} where {both(one.under)}" if one.under else one.value for one in fact.cases]
    return Row(((*head, (", else ".join(parts), "")),))


def _attribute(fact: LaunchAttribute) -> Row:
    joint = "  " if fact.value and "=" in fact.value else " = "
    value: Spans = ((joint, "quiet"), (fact.value, "")) if fact.value else ()
    under: Spans = ((f"where {both(fact.under)}", "quiet"),) if fact.under else ()
    return Row((line_mark(fact.line), ((fact.id, "name"), *value), under))
