"""Launches that a walk passes by, since they stand in branches of the preprocessor that the build does not read.

In: what was reached where it is no device work. Out: the reach, with a gap for each such branch.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from opwalker.expand.frames import unit_of
from opwalker.expand.resolve import Candidate
from opwalker.expand.terminals import LAUNCH_CALLS
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.cpp import Function
from opwalker.model.reach import Reach
from opwalker.model.walk import Gap, Span
from opwalker.notation.regex import Regex
from opwalker.views.ops import shown_condition
from opwalker.views.ownership import is_allocation

_LAUNCHES = Regex(r"<<<|\b(?:" + "|".join(sorted(LAUNCH_CALLS)) + r")\b")


def with_left_out(workbench: Workbench, unit: Unit, reach: Reach, root: str) -> Reach:
    """A reach with the launches named that stand in what the build leaves out, if it found no device work."""
    if reach.launches or any(not is_allocation(terminal) for terminal in reach.terminals):
        return reach
    gaps = dict.fromkeys(
        gap for path, function, _ in reach.functions for gap in _left_out(workbench, unit, path, function, root)
    )
    return replace(reach, gaps=(*reach.gaps, *gaps)) if gaps else reach


def _left_out(workbench: Workbench, unit: Unit, path: str, function: Function, root: str) -> Iterator[Gap]:
    view = workbench.files.part(path, function.body_start, function.body_end)
    conditions, plain = view.conditionals.conditions, view.blanked.plain
    outer = conditions[view.conditionals.at(function.body_start)]
    read_in = unit_of(workbench.index, Candidate(path, function), root)
    groups = [g for g in view.conditionals.groups if function.body_start <= g.start < function.body_end]
    for branch in (branch for group in groups for branch in group.branches):
        launch = _LAUNCHES.search(plain, branch.start, branch.end)
        terms = conditions[branch.condition]
        if launch is None or "0" in terms or conditions[view.conditionals.at(launch.start())] != terms:
            continue  # it launches nothing, or a branch within it does, or no build reads it
        if unit.macros.truth(path, terms, branch.start, read_in) is False:
            line = view.blanked.line(launch.start())
            under = shown_condition(terms[len(outer) :])
            reason = f"{function.qualified_name} launches under `{under}`, which the {unit.build} build does not set"
            yield Gap("unread", Span(path, line, line), reason)
