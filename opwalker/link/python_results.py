"""Names that stand for an op because a registration, or a helper that hands out ops, returned it.

In: a ``Flow`` whose files have been followed. Out: aliases as the facts have them for names that are bound to
``torch.ops`` itself, so that calls through either kind of name are the same to the linker.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.link.python_flow import Context, Flow
from opwalker.link.python_torch import spelled_op
from opwalker.link.python_values import Choice, Frame, Unknown
from opwalker.model.python import PyAlias, PyStep


def op_names(flow: Flow) -> Iterator[tuple[str, PyAlias]]:
    """``(file, alias)`` for the names that stand for an op by way of a helper or of ``custom_op``."""
    for path in sorted(flow.graph.full):
        functions = flow.graph.functions(path)
        for scope, steps in flow.steps(path).items():
            for step in steps:
                target = step.target or ""
                owner = scope
                if step.kind == "assign" and target.startswith("self."):
                    owner = (scope or "").rpartition(".")[0]
                elif step.kind not in ("assign", "decorate") or scope in functions:
                    continue
                op = _op_of(flow, path, scope, step)
                if op is not None:
                    yield path, PyAlias(target.rpartition(".")[2], op, owner, step.line)


def _op_of(flow: Flow, path: str, scope: str | None, step: PyStep) -> str | None:
    """The one op, spelt from the root, that a step binds to its target; None where it is none or several."""
    if step.kind == "decorate":
        value = flow.results.get((path, step.target or "", step.line), Unknown("open"))
    elif scope is not None and scope in flow.graph.functions(path):
        value = flow.evaluate(flow.alone(path, scope)[1], step.value, Context(path, None))
    else:
        context = Context(path, None, inner=(path, step.line))
        value = flow.evaluate(Frame(path, scope or "", {}), step.value, context)
    found = {op for op in map(spelled_op, value.values if isinstance(value, Choice) else (value,)) if op}
    return found.pop() if len(found) == 1 else None
