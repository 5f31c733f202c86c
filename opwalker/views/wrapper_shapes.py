"""Shapes that an op's Python wrapper gives its arguments: in its docstring and in comments beside its parameters.

In: the Python file and the function that calls the op. Out: ``{argument: ShapeSource}`` by the schema's argument names,
joined by the places in the call ``torch.ops.ns.op(a, b)``. The file is parsed, never run.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

from opwalker.model.walk import Op, PythonRef, ShapeSource, Span
from opwalker.notation.regex import Regex
from opwalker.views.shape_sources import named_sources

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
#: A function without any of these says nothing of shapes.
_SAYING = ("#", '"""', "'''")
_DEF = Regex(r"([ \t]*)(?:async[ \t]+)?def[ \t]")


def wrappers_say(op: Op, callers: Iterable[PythonRef], text: Callable[[str], str]) -> dict[str, ShapeSource]:
    """What the functions that call an op say of its arguments' shapes, the first one that does. ``text`` reads a
    file."""
    arguments = [argument.name for argument in op.arguments]
    out: dict[str, ShapeSource] = {}
    read = functools.cache(text)
    for ref in callers:
        if ref.depth == 0 and ref.function and arguments:
            for name, found in wrapper_shapes(read(ref.file), ref, op.name, arguments).items():
                out.setdefault(name, found)
    return out


def wrapper_shapes(text: str, ref: PythonRef, op: str, arguments: Sequence[str]) -> dict[str, ShapeSource]:
    """What the function that ``ref`` names says of an op's arguments; nothing where the file cannot be read."""
    line = ref.call_line or ref.line
    function = None
    for part in _around(text.split("\n"), line):
        if not any(mark in part for mark in _SAYING):
            return {}
        function = _function(_parsed(part), line)
        if function is not None:
            break
    function = function or _function(_parsed(text), line)
    if function is None:
        return {}
    said = _said(text, function, ref.file)
    if not said:
        return {}
    passed = _passed(function, op.split("::")[-1].split(".")[0], arguments)
    return {argument: said[name] for argument, name in passed.items() if name in said}


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _around(lines: Sequence[str], line: int) -> Iterator[str]:
    """The functions around a line as their indentation shows them, the innermost one first, each with its lines at
    their numbers: parsing one of them is much less work than parsing a long file."""
    for start in range(min(line, len(lines)) - 1, -1, -1):
        head = _DEF.match(lines[start])
        if head is None:
            continue
        indent = len(head[1])
        end = start + 1
        while end < len(lines) and not _ends(lines[end], indent):
            end += 1
        if end < line:
            continue
        yield "\n" * start + "\n".join(one[indent:] if one[:indent].isspace() else one for one in lines[start:end])


def _ends(line: str, indent: int) -> bool:
    """Whether a line is the first one after a body: text that stands no further in than the function itself, and no
    bracket that closes its head."""
    text = line.lstrip()
    return bool(text) and len(line) - len(text) <= indent and text[0] not in ")]}#"


def _function(tree: ast.Module, line: int) -> FunctionNode | None:
    """The innermost function around a line."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(found, key=lambda node: node.lineno, default=None)


def _said(text: str, function: FunctionNode, path: str) -> dict[str, ShapeSource]:
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
