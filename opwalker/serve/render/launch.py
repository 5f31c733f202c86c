"""A launch's configuration as groups: grid, block and shared memory followed back to sizes, and what is set besides."""

from __future__ import annotations

from opwalker.model.walk import CaseFact, Launch, LaunchAttribute, NamedValue
from opwalker.serve.render.page import Group, Row, Spans
from opwalker.serve.render.words import line_mark


def configuration_groups(launch: Launch) -> list[Group]:
    """The configuration of a launch, in the order of its arguments; the names in it below."""
    return [
        Group(label, rows)
        for label, rows in (
            ("grid", _extent(launch.grid, launch.grid_resolved, launch.grid_cases)),
            ("block", _extent(launch.block, launch.block_resolved, launch.block_cases)),
            ("shared memory", _extent(launch.shared, launch.shared_resolved, launch.shared_cases)),
            ("where", tuple(_named(fact) for fact in launch.names)),
            ("opt-in", tuple(_attribute(fact) for fact in launch.shared_opt_in)),
            ("attributes", tuple(_attribute(fact) for fact in launch.attributes)),
            ("cooperative", (Row((((_COOPERATIVE, ""),),)),) if launch.cooperative else ()),
            ("stream", (Row((((launch.stream, ""),),)),) if launch.stream else ()),
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
    when = f"  where {' and '.join(fact.under)}" if fact.under else "  otherwise"
    return Row((((fact.value, ""), (when, "quiet")),), 2)


def _named(fact: NamedValue) -> Row:
    head: Spans = ((fact.name, "name"), (" = ", "quiet"))
    if not fact.cases:
        return Row(((*head, (fact.value, "")),))
    parts = [f"{one.value} where {' and '.join(one.under)}" if one.under else one.value for one in fact.cases]
    return Row(((*head, (", else ".join(parts), "")),))


def _attribute(fact: LaunchAttribute) -> Row:
    value: Spans = ((" = ", "quiet"), (fact.value, "")) if fact.value else ()
    under: Spans = ((f"where {' and '.join(fact.under)}", "quiet"),) if fact.under else ()
    return Row((line_mark(fact.line), ((fact.id, "name"), *value), under))
