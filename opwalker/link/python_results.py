"""Names that stand for an op because a registration, or a helper that hands out ops, returned it.

In: a ``Flow`` that has followed a file. Out: the ops that names of the file stand for, so that calls through them are
calls of the op.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.link.python_flow import Context, Flow
from opwalker.link.python_graph import bound_name
from opwalker.link.python_torch import spelled_op
from opwalker.link.python_values import Choice, Frame, Unknown
from opwalker.model.python import PyStep


def op_names(flow: Flow, path: str) -> Iterator[tuple[str, str]]:
    """``(name, op)`` for the names of a file that stand for an op by way of a helper or of ``custom_op``: ``name`` or
    ``Class.name``, and the op as spelt from ``torch.ops`` on."""
    functions = flow.graph.functions(path)
    for scope, steps in flow.steps(path).items():
        for step in steps:
            name = bound_name(step, functions)
            op = _op_of(flow, path, scope, step) if name else None
            if name and op:
                yield name, op


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
