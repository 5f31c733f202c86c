"""Fake implementations of ops, with their parameters.

In: an op's fakes (file and line of a Python function) and the reader of the source's text. Out: ``PythonFunction``. The
text is parsed and never run; a file that does not parse has none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from opwalker.model.check import PythonFunction
from opwalker.model.walk import Op, PythonRef


class Fakes:
    """Reads fakes of one source; a file is parsed once."""

    def __init__(self, text: Callable[[str], str]) -> None:
        self._functions = lru_cache(maxsize=64)(lambda path: _functions(text(path)))

    def of(self, op: Op) -> tuple[PythonFunction, ...]:
        """The fakes of an op that are Python functions of this source."""
        found = (self._fake(op.name, ref) for ref in op.fake)
        return tuple(one for one in found if one is not None)

    def _fake(self, name: str, ref: PythonRef) -> PythonFunction | None:
        around = [one for one in self._functions(ref.file) if _first_line(one) <= ref.line <= (one.end_lineno or 0)]
        if not around:
            return None
        # Of a decorated function and one inside it, the line is that of the decorator or of the name.
        node = max(around, key=lambda one: one.lineno)
        arguments = node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        names = [one.arg for one in plain]
        if arguments.vararg:
            names.append(f"*{arguments.vararg.arg}")
        names += [one.arg for one in arguments.kwonlyargs]
        if arguments.kwarg:
            names.append(f"**{arguments.kwarg.arg}")
        last = [one.arg for one in plain[len(plain) - len(arguments.defaults) :]]
        defaults = list(zip(last, arguments.defaults, strict=True))
        defaults += [(one.arg, v) for one, v in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if v]
        return PythonFunction(
            op=name,
            file=ref.file,
            line=node.lineno,
            name=node.name,
            parameters=tuple(names),
            defaults=tuple((key, ast.unparse(value)) for key, value in defaults),
            keyword_only=tuple(one.arg for one in arguments.kwonlyargs),
            text=ast.unparse(node),
        )


def _functions(text: str) -> tuple[ast.FunctionDef, ...]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])
