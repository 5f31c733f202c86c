"""Python import statements on one line, text to value.

In: ``from a.b import c as d, e`` or ``import a.b as c, d`` with single spaces and without brackets or comments. Out:
the names that it binds. What a module name leads to is not decided here.
"""

from __future__ import annotations

from opwalker.model.python import PyImport


def parse_import(statement: str, line: int = 0, scope: str | None = None) -> tuple[PyImport, ...]:
    """The names bound by an import statement; empty where it is none."""
    words = statement.split(None, 1)
    if len(words) != 2:
        return ()
    if words[0] == "import":
        return tuple(_module(part, line, scope) for part in words[1].split(",") if part.strip())
    if words[0] != "from":
        return ()
    source, keyword, names = words[1].partition(" import ")
    if not keyword:
        return ()
    source = source.replace(" ", "")
    module = source.lstrip(".")
    level = len(source) - len(module)
    found = []
    for part in names.split(","):
        name, _, alias = (piece.strip() for piece in part.partition(" as "))
        if name:
            found.append(PyImport(module, name, alias or name, level, line, scope))
    return tuple(found)


def _module(part: str, line: int, scope: str | None) -> PyImport:
    """``a.b as c`` binds ``c`` to ``a.b``; ``a.b`` binds ``a``, and the alias keeps the whole spelling."""
    name, _, alias = (piece.strip() for piece in part.partition(" as "))
    return PyImport(name, None, alias or name, 0, line, scope)
