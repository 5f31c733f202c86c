"""Who imports what: the import statements of a whole tree turned around.

In: ``Modules`` and the light facts of all files. Out: ``Imports``: for a file, all files that import it or names of it.
The table can be kept and brought up to date for the files that have changed since. What an import leads to,
``python_modules`` says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from opwalker.link.python_compiled import compiled_imports, last_words
from opwalker.link.python_modules import Modules
from opwalker.link.stamped import Stamped
from opwalker.model.python import PyLight
from opwalker.notation.python_imports import ImportedName

#: ``(alias, name in the imported file, None for the module itself and "*" for all names, files that import so)``; the
#: files by their numbers.
Row = tuple[str, str | None, list[int]]


class Imports(Struct):
    """``rows`` are the imports of each file, ``mentions`` the files that mention ops. ``stamps`` say for which facts of
    each file they hold, ``paths`` for which files the tree had; ``files`` are these, in order: a file's number is its
    place there. ``exports`` are the names that packages bind by importing them. ``extensions`` are the modules that
    files may compile, and ``compiled`` what importing such a module asks of a file."""

    paths: str
    files: list[str] = field(default_factory=list)
    stamps: list[str] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    mentions: list[str] = field(default_factory=list)
    exports: dict[str, list[str]] = field(default_factory=dict)
    extensions: dict[str, list[str]] = field(default_factory=dict)
    compiled: dict[str, list[str]] = field(default_factory=dict)

    def _lead_elsewhere(self, paths: Iterable[str], modules: Modules) -> bool:
        """Whether a package's own file now hides a module of the package behind a name that it imports, or no longer
        does: then other files' imports lead elsewhere too."""
        for path in paths:
            if path.endswith("__init__.py"):
                names = set(self.exports.get(path, ())).symmetric_difference(modules.exports(path))
                if any(modules.below(path, name) is not None for name in names):
                    return True
        return False

    def of(self, path: str) -> Iterator[tuple[str, str | None, list[str]]]:
        """``(alias, name, files)`` for all imports, in any file, of the module ``path`` or of names in it."""
        for alias, name, numbers in self.rows.get(path, ()):
            yield alias, name, [self.files[number] for number in numbers]

    def renew(self, light: Stamped[PyLight], modules: Modules) -> None:
        """Bring the table up to date; the tree must have the same files as when it was made."""
        if not self.files:
            self.files = sorted(light.stamps)
            self.stamps = [""] * len(self.files)
        stamps = [light.stamps[path] for path in self.files]
        changed = {number for number, stamp in enumerate(stamps) if self.stamps[number] != stamp}
        if not changed:
            return
        paths = [self.files[number] for number in sorted(changed)]
        if not self.rows or self._lead_elsewhere(paths, modules):
            light.load()
            self.rows = _all_rows(self.files, light, modules)
        else:
            self.rows = _renewed(self.rows, self.files, changed, modules)
        for path in paths:
            self.exports.pop(path, None)
            if names := modules.exports(path):
                self.exports[path] = names
        others = set(self.mentions).difference(paths)
        self.mentions = sorted(others.union(path for path in paths if light[path].mentions_ops))
        self._renew_compiled(paths, light, modules)
        self.stamps = stamps

    def _renew_compiled(self, paths: Sequence[str], light: Mapping[str, PyLight], modules: Modules) -> None:
        """Bring up to date what imports of compiled modules ask, for the changed ``paths``."""
        before = last_words(name for names in self.extensions.values() for name in names)
        for path in paths:
            self.extensions.pop(path, None)
            if light[path].extensions:
                self.extensions[path] = list(light[path].extensions)
            self.compiled.pop(path, None)
        now = last_words(name for names in self.extensions.values() for name in names)
        if now == before:
            self.compiled |= compiled_imports(paths, light, modules, now)
        else:
            self.compiled = compiled_imports(self.files, light, modules, now)


def _all_rows(files: Sequence[str], light: Mapping[str, PyLight], modules: Modules) -> dict[str, list[Row]]:
    """The rows of a whole tree. A statement is resolved once for all files for which it means the same."""
    tops = modules.top_names()
    written: dict[tuple[str | None, str], list[int]] = {}
    for number, path in enumerate(files):
        folder = path.rpartition("/")[0]
        packaged = modules.is_packaged(folder)
        for statement in light[path].imports:
            source = statement.split(" ", 2)[1]
            if source[0] == ".":
                key = (folder, statement)
            elif source.partition(".")[0] not in tops and statement.startswith("from "):
                continue
            else:
                key = (None if packaged else folder, statement)
            numbers = written.setdefault(key, [])
            if not numbers or numbers[-1] != number:
                numbers.append(number)
    found: dict[str, list[Row]] = {}
    for (_, statement), numbers in written.items():
        _enter(found, modules.parsed(statement), files[numbers[0]], numbers, modules, tops)
    return found


def _renewed(
    rows: Mapping[str, list[Row]], files: Sequence[str], changed: Collection[int], modules: Modules
) -> dict[str, list[Row]]:
    """Rows with what the import statements of changed files say now."""
    tops = modules.top_names()
    found: dict[str, list[Row]] = {}
    for target, imports in rows.items():
        left = [(alias, name, [one for one in numbers if one not in changed]) for alias, name, numbers in imports]
        found[target] = [row for row in left if row[2]]
    for number in sorted(changed):
        _enter(found, modules.imported(files[number]), files[number], [number], modules, tops)
    return found


def _enter(
    found: dict[str, list[Row]],
    imported: Iterable[ImportedName],
    path: str,
    numbers: list[int],
    modules: Modules,
    tops: set[str],
) -> None:
    """Enter what import statements of a file bind, as the imports of all files that they mean the same in."""
    for one in imported:
        if one.level or one.module.partition(".")[0] in tops:
            for bound in modules.bound(path, one):
                found.setdefault(bound.target, []).append((bound.alias, bound.name, numbers))
