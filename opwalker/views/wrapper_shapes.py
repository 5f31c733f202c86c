"""Shapes that an op's Python wrapper gives its arguments: in its docstring and in comments beside its parameters.

In: the Python file and the function that calls the op. Out: ``{argument: ShapeSource}`` by the schema's argument names,
joined by the places in the call ``torch.ops.ns.op(a, b)``. The file is parsed, never run.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from opwalker.model.walk import PythonRef, ShapeSource, Span
from opwalker.views.shapes import named_sources


def wrapper_shapes(text: str, ref: PythonRef, op: str, arguments: Sequence[str]) -> dict[str, ShapeSource]:
    """What the function that ``ref`` names says of an op's arguments; nothing where the file cannot be read."""
    if not any(mark in text for mark in "[("):
        return {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    function = _function(tree, ref)
    if function is None:
        return {}
    said = _said(text, function, ref.file)
    if not said:
        return {}
    passed = _passed(function, op.split("::")[-1].split(".")[0], arguments)
    return {argument: said[name] for argument, name in passed.items() if name in said}


def _function(tree: ast.Module, ref: PythonRef) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function around the place of a reference, the innermost one."""
    line = ref.call_line or ref.line
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(found, key=lambda node: node.lineno, default=None)


def _said(text: str, function: ast.FunctionDef | ast.AsyncFunctionDef, path: str) -> dict[str, ShapeSource]:
    """The shapes by the names of the function's parameters: comments beside them first, then the docstring."""
    from opwalker.notation.shape_comment import parse_shape

    lines = text.split("\n")
    out: dict[str, ShapeSource] = {}
    first = function.body[0].lineno if function.body else function.lineno
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for parameter in every:
        line = parameter.end_lineno or parameter.lineno
        if line >= first or sum(1 for other in every if other.lineno == line) > 1:
            continue
        _, mark, comment = lines[line - 1].partition("#")
        shape = parse_shape(comment) if mark else None
        if shape is not None and shape.alternatives:
            out[parameter.arg] = ShapeSource("python", shape.alternatives, shape.text, Span(path, line, line))
    body = function.body[0] if function.body else None
    if isinstance(body, ast.Expr) and isinstance(body.value, ast.Constant) and isinstance(body.value.value, str):
        block = "\n".join(lines[body.lineno - 1 : body.end_lineno or body.lineno]).replace('"""', "   ")
        for name, source in named_sources(block, path, body.lineno, "python").items():
            out.setdefault(name, source)
    return out


def _passed(function: ast.AST, op: str, arguments: Sequence[str]) -> dict[str, str]:
    """Which parameter is passed on as which argument of the op, as it is."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if not name.endswith((f".{op}", f".{op}.default")):
            continue
        out = {
            argument: value.id
            for argument, value in zip(arguments, node.args, strict=False)
            if isinstance(value, ast.Name)
        }
        out.update((k.arg, k.value.id) for k in node.keywords if k.arg and isinstance(k.value, ast.Name))
        return out
    return {}
