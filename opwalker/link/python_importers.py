"""Who imports what: the import statements of a whole tree turned around.

In: ``Modules`` and the light facts of all files. Out: ``Imports``: for a file, all files that import it or names of it.
The table can be kept and brought up to date for the files that have changed since. What an import leads to,
``python_modules`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opwalker.link.python_modules import Modules
from opwalker.link.stamped import Stamped
from opwalker.model.python import PyImport, PyLight
from opwalker.notation.python_imports import parse_import

#: ``(alias, name in the imported file, None for the module itself and "*" for all names, files that import so)``.
Row = tuple[str, str | None, list[str]]


@dataclass(slots=True)
class Imports:
    """``rows`` are the imports of each file, ``mentions`` the files that mention ops. ``stamps`` say for which facts of
    each file they hold, ``paths`` for which files the tree had."""

    paths: str
    stamps: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    mentions: list[str] = field(default_factory=list)

    def of(self, path: str) -> list[Row]:
        """All imports, in any file, of the module ``path`` or of names in it."""
        return self.rows.get(path, [])

    def renew(self, light: Stamped[PyLight], modules: Modules) -> None:
        """Bring the table up to date; the tree must have the same files as when it was made."""
        changed = [path for path, stamp in light.stamps.items() if self.stamps.get(path) != stamp]
        if not changed:
            return
        # What a package's own file imports, others are led to: their imports are resolved again too.
        if not self.stamps or any(path.endswith("__init__.py") for path in changed):
            light.load()
            self.rows = _all_rows(light, modules)
        else:
            self.rows = _renewed(self.rows, changed, modules)
        others = set(self.mentions).difference(changed)
        self.mentions = sorted(others.union(path for path in changed if light[path].mentions_ops))
        self.stamps = dict(light.stamps)


def _all_rows(light: Mapping[str, PyLight], modules: Modules) -> dict[str, list[Row]]:
    """The rows of a whole tree. A statement is resolved once for all files for which it means the same."""
    tops = modules.top_names()
    written: dict[tuple[str | None, str], list[str]] = {}
    for path, facts in light.items():
        folder = path.rpartition("/")[0]
        packaged = modules.is_packaged(folder)
        for statement in facts.imports:
            source = statement.split(" ", 2)[1]
            if source[0] == ".":
                key = (folder, statement)
            elif source.partition(".")[0] not in tops and statement.startswith("from "):
                continue
            else:
                key = (None if packaged else folder, statement)
            paths = written.setdefault(key, [])
            if not paths or paths[-1] != path:
                paths.append(path)
    found: dict[str, list[Row]] = {}
    for (_, statement), paths in written.items():
        _enter(found, parse_import(statement), paths, modules, tops)
    return found


def _renewed(rows: Mapping[str, list[Row]], changed: Iterable[str], modules: Modules) -> dict[str, list[Row]]:
    """Rows with what the import statements of changed files say now."""
    tops = modules.top_names()
    old = frozenset(changed)
    found: dict[str, list[Row]] = {}
    for target, imports in rows.items():
        left = [(alias, name, [path for path in paths if path not in old]) for alias, name, paths in imports]
        found[target] = [row for row in left if row[2]]
    for path in sorted(old):
        _enter(found, modules.imported(path), [path], modules, tops)
    return found


def _enter(
    found: dict[str, list[Row]], imported: Iterable[PyImport], paths: list[str], modules: Modules, tops: set[str]
) -> None:
    for one in imported:
        if one.level or one.module.partition(".")[0] in tops:
            for bound in modules.bound(paths[0], one):
                found.setdefault(bound.target, []).append((bound.alias, bound.name, paths))
