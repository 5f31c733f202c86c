"""Python import statements on one line, text to value.

In: ``from a.b import c as d, e`` or ``import a.b as c, d`` with single spaces and without brackets or comments. Out:
the names that it binds. What a module name leads to is not decided here.
"""

from __future__ import annotations

from typing import NamedTuple

from opwalker.model.python import PyImport


class ImportedName(NamedTuple):
    """One bound name, as in ``PyImport`` and without its place: quick to make, as a tree has a hundred thousand."""

    module: str
    name: str | None
    alias: str
    level: int = 0


def parse_import(statement: str, line: int = 0, scope: str | None = None) -> tuple[PyImport, ...]:
    """The names bound by an import statement; empty where it is none."""
    return tuple(PyImport(*one, line, scope) for one in imported_names(statement))


def imported_names(statement: str) -> list[ImportedName]:
    """The names bound by an import statement, without their place; empty where it is none."""
    keyword, _, rest = statement.partition(" ")
    found: list[ImportedName] = []
    if keyword == "import":
        for part in rest.split(","):
            # ``a.b as c`` binds ``c`` to ``a.b``; ``a.b`` binds ``a``, and the alias keeps the whole spelling.
            name, _, alias = part.partition(" as ")
            name = name.strip()
            if name:
                found.append(ImportedName(name, None, alias.strip() or name))
    elif keyword == "from":
        source, middle, names = rest.partition(" import ")
        if middle:
            source = source.replace(" ", "")
            module = source.lstrip(".")
            level = len(source) - len(module)
            for part in names.split(","):
                name, _, alias = part.partition(" as ")
                name = name.strip()
                if name:
                    found.append(ImportedName(module, name, alias.strip() or name, level))
    return found
