"""What a comparison of two versions wants to know of each op's way: launch configurations and documented shapes.

In: the ops of one tree. Out: a ``Survey``; the walks themselves are let go of, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opwalker.expand.workbench import Workbench
from opwalker.model.diff import LaunchForm, OpSurvey, Survey
from opwalker.model.walk import Implementation, Op, SourceInfo
from opwalker.views.walk import WalkView


def survey(
    workbench: Workbench,
    source: SourceInfo,
    ops: Sequence[Op],
    progress: Callable[[int, int | None, str], None] | None = None,
) -> Survey:
    """The survey of ``ops``, for the build that the workbench reads."""
    view = WalkView(workbench, source, kernels=False)
    out = []
    for number, op in enumerate(ops):
        if progress:
            progress(number, len(ops), op.name)
        walk = view.walk(op, build=workbench.build)
        chosen = [i for i in walk.implementations if i.builds is None or workbench.build in i.builds]
        out.append((op.name, OpSurvey(_launches(chosen), _shapes(chosen))))
    return Survey(tuple(out))


def _launches(implementations: Sequence[Implementation]) -> tuple[LaunchForm, ...]:
    forms = {
        LaunchForm(launch.kernel, _even(launch.grid), _even(launch.block), _even(launch.shared)): None
        for one in implementations
        for launch in one.launches
    }
    return tuple(forms)


def _shapes(implementations: Sequence[Implementation]) -> tuple[tuple[str, str], ...]:
    out: dict[str, str] = {}
    for one in implementations:
        for parameter in one.host.parameters if one.host else ():
            if parameter.shape_text:
                out.setdefault(parameter.argument or parameter.name, _even(parameter.shape_text) or "")
    return tuple(sorted(out.items()))


def _even(text: str | None) -> str | None:
    return " ".join(text.split()) if text is not None else None
