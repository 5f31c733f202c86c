"""Names in Python build scripts: what a call binds, where an import leads, which names a function shares.

In: syntax trees. Out: answers about them, and the parsed files themselves.
"""

from __future__ import annotations

import ast
import posixpath
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from opwalker.link.build_extensions import FACTORIES
from opwalker.link.build_py_values import Element, Frame, Function, Map, Seq, Unknown
from opwalker.model.build import BuildFile

#: Folders that a package may lie in, apart from the root.
_PACKAGE_FOLDERS = ("", "src", "python")


class ParsedFiles:
    """Syntax trees of Python files, parsed once for all kinds of build; faulty files are problems."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, int, str, str]] = []
        #: The source of expressions, by the id of their node; the trees stay alive as long as this does.
        self.texts: dict[int, str] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._about: dict[ast.AST, tuple[bool, frozenset[str]]] = {}
        self._compiles: dict[ast.AST, bool] = {}

    def tree(self, file: BuildFile) -> ast.Module | None:
        if file.path not in self._trees:
            try:
                with warnings.catch_warnings():
                    # What Python has to say about the style of somebody's script is not for the user of this program.
                    warnings.simplefilter("ignore")
                    self._trees[file.path] = ast.parse(file.text)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                line = getattr(error, "lineno", None) or 0
                message = f"not Python that can be read: {getattr(error, 'msg', error)}"
                self.problems.append((file.path, line, "bad-build-file", message))
                self._trees[file.path] = None
        return self._trees[file.path]

    def about(self, function: ast.AST) -> tuple[bool, frozenset[str]]:
        """Whether a function is a generator, and the names that it shares with its module."""
        found = self._about.get(function)
        if found is None:
            nodes = list(ast.walk(function))
            yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
            shared = (node.names for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)))
            found = self._about[function] = (yields, frozenset(name for names in shared for name in names))
        return found

    def compiles(self, node: ast.AST) -> bool:
        """Whether a call in this code makes an extension, or hands a name and sources on."""
        found = self._compiles.get(node)
        if found is None:
            calls = (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
            found = self._compiles[node] = any(_makes_extension(call) for call in calls)
        return found

    @staticmethod
    def handed_to(tree: ast.AST) -> set[str]:
        """The names of functions and classes that are given a name and sources."""
        found: set[str] = set()
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and {"name", "sources"} <= {keyword.arg for keyword in call.keywords}:
                function = call.func
                while isinstance(function, ast.Attribute):
                    function = function.value
                found.add(getattr(function, "id", ""))
        return found


def _makes_extension(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
    if name in FACTORIES or (name == "load" and len(call.args) > 1):
        return True
    return {"name", "sources"} <= {keyword.arg for keyword in call.keywords}


class _Evaluates(Protocol):
    frame: Frame

    def eval(self, node: ast.expr) -> Any: ...


def bound_names(
    run: _Evaluates, frame: Frame, function: Function, arguments: list[Any], keywords: dict[str, Any]
) -> None:
    """Bind the parameters of a call in ``frame``; one that gets nothing and has no default is unknown."""
    signature = function.node.args
    names = [parameter.arg for parameter in (*signature.posonlyargs, *signature.args)]
    given = list(arguments)
    if function.receiver is not None:
        given.insert(0, function.receiver)
    for name, value in zip(names, given, strict=False):
        frame.vars[name] = value
    rest = dict(keywords)
    defaults = dict(zip(names[len(names) - len(signature.defaults) :], signature.defaults, strict=True))
    for parameter, default in zip(signature.kwonlyargs, signature.kw_defaults, strict=True):
        names.append(parameter.arg)
        if default is not None:
            defaults[parameter.arg] = default
    for name in names:
        if name in rest:
            frame.vars[name] = rest.pop(name)
        elif name not in frame.vars:
            frame.vars[name] = _default(run, function, defaults[name]) if name in defaults else Unknown(name)
    if signature.vararg:
        extra = given[len(signature.posonlyargs) + len(signature.args) :]
        frame.vars[signature.vararg.arg] = Seq(tuple(Element(value) for value in extra), "tuple")
    if signature.kwarg:
        frame.vars[signature.kwarg.arg] = Map(rest)


def _default(run: _Evaluates, function: Function, node: ast.expr) -> Any:
    outer, run.frame = run.frame, function.frame
    try:
        return run.eval(node)
    finally:
        run.frame = outer


def import_places(importer: str, dotted: str, level: int) -> Iterator[str]:
    """The paths of the tree that an import may mean, in the order in which they are tried."""
    parts = dotted.replace(".", "/")
    folders: list[str]
    if level:
        folder = posixpath.dirname(importer)
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        folders = [folder]
    else:
        folders = [posixpath.dirname(importer), *_PACKAGE_FOLDERS]
    for folder in dict.fromkeys(folders):
        base = posixpath.join(folder, parts) if parts else folder
        if base:
            yield f"{base}.py"
            yield f"{base}/__init__.py"


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """True if a ``return``, ``break`` or ``continue`` of the enclosing body stands in these statements."""
    for node in statements:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return True
        inner: list[Sequence[ast.stmt]] = []
        if isinstance(node, ast.If):
            inner = [node.body, node.orelse]
        elif isinstance(node, ast.With):
            inner = [node.body]
        elif isinstance(node, ast.Try):
            inner = [node.body, node.orelse, node.finalbody, *(handler.body for handler in node.handlers)]
        elif isinstance(node, (ast.For, ast.While)) and any(isinstance(n, ast.Return) for n in ast.walk(node)):
            return True
        if any(leaves(body) for body in inner):
            return True
    return False
