"""Every kernel of a tree, with the ops that reach it.

In: walks of all ops. Out: ``KernelEntry`` values by name and place; one that no op reaches has a gap that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import Function
from opwalker.model.walk import Gap, KernelEntry, KernelsResult, Op, SourceInfo, Span
from opwalker.views.ops import shown_condition
from opwalker.views.walk import WalkView


def list_kernels(
    workbench: Workbench,
    source: SourceInfo,
    ops: Sequence[Op],
    only: Op | None,
    progress: Callable[[int, int, str], None] | None = None,
) -> KernelsResult:
    """All kernels (or those of one op), in path and line order."""
    view = WalkView(workbench, source)
    reached: dict[tuple[str, int], dict[str, None]] = {}
    gaps: dict[Gap, None] = {}
    chosen = [only] if only is not None else list(ops)
    for number, op in enumerate(chosen):
        if progress:
            progress(number, len(chosen), op.name)
        walk = view.walk(op)
        for implementation in walk.implementations:
            for kernel in implementation.kernels:
                reached.setdefault((kernel.file, kernel.line), {})[op.name] = None
        if only is not None:
            gaps.update(dict.fromkeys(walk.gaps))
    entries = []
    for path, function in _definitions(workbench):
        found = tuple(reached.get((path, function.line), ()))
        if only is not None and not found:
            continue
        plain = function.template is None
        condition = shown_condition(workbench.index.facts(path).conditions[function.condition])
        entries.append(
            KernelEntry(
                function.qualified_name,
                path,
                function.line,
                found,
                ("",) if plain and found else (),
                plain and bool(found),
                None if plain and found else _why(workbench, path, function, bool(found)),
                condition,
            )
        )
        if not found:
            gaps[
                Gap(
                    "unreached",
                    Span(path, function.line, function.line),
                    f"{function.qualified_name}: {_unreached(workbench, path, function)}",
                )
            ] = None
    return KernelsResult(source, tuple(entries), tuple(gaps))


def _definitions(workbench: Workbench) -> list[tuple[str, Function]]:
    out = []
    for path in workbench.index.paths_with("kernel"):
        facts = workbench.index.facts(path)
        out += [
            (path, f)
            for f in facts.functions
            if "global" in f.flags and f.body_end and "explicit_instantiation" not in f.flags
        ]
    return out


def _why(workbench: Workbench, path: str, function: Function, reached: bool) -> str:
    if not reached:
        return _unreached(workbench, path, function)
    return f"the values of template <{function.template}> were not enumerated"


def _unreached(workbench: Workbench, path: str, function: Function) -> str:
    """Why no op reaches a kernel, as far as the source shows."""
    if not workbench.unit().resolver.is_read(path, function):
        builds = workbench.builds.builds_of(path)
        if builds and workbench.build not in builds:
            return f"its file is compiled for {', '.join(builds)} only"
        condition = shown_condition(workbench.index.facts(path).conditions[function.condition])
        return f"it stands under `{condition}`, which the {workbench.build} build does not set"
    return "no op of the source launches it by a path that could be followed"
