"""Which file a Python import leads to.

In: the paths of all Python files of a tree and their import statements. Out: ``Modules``: from a module name, as a
given file spells it, to a file or package; from a name in a file to where it is defined, re-exports followed; and who
imports what. Names that several files could answer to equally well lead nowhere. Which files were looked at for an
answer is noted, so that answers can be kept for as long as these say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from opwalker.model.python import PyImport, PyLight
from opwalker.notation.python_imports import ImportedName, imported_names

#: A re-export is followed over at most this many files.
_FARTHEST = 8


class Bound(NamedTuple):
    """A name that an import binds: ``alias`` stands for the file ``target``, or for ``name`` in it.

    ``name`` is None for a module and ``"*"`` for all names of it.
    """

    alias: str
    target: str
    name: str | None


class Reads:
    """What answers lean on: ``files`` whose facts were looked at, and ``names``, as ``(file, module-level name)``, that
    were looked up there, found or not."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.names: set[tuple[str, str]] = set()

    def add(self, path: str, name: str) -> None:
        """A name was looked up in a file."""
        self.files.add(path)
        self.names.add((path, name))

    def take(self, other: Reads) -> None:
        """All that another answer leans on."""
        self.files |= other.files
        self.names |= other.names


class Modules:
    """The module names of a tree."""

    def __init__(self, light: Mapping[str, PyLight]) -> None:
        self._light = light
        self._by_name: dict[str, list[str]] = {}
        self._folders: set[str] = {""}
        self._packages = {path.rpartition("/")[0] for path in light if path.rpartition("/")[2] == "__init__.py"}
        self._known: dict[tuple[str, str], str | None] = {}
        self._exported: dict[str, list[str]] = {}
        self._parsed: dict[str, list[ImportedName]] = {}
        self._origins: dict[tuple[str, str], tuple[list[tuple[str, str | None]], Reads]] = {}
        self._bindings: dict[str, tuple[dict[str, list[Bound]], Reads]] = {}
        #: What has been looked at, whoever asked: whoever wants to know puts a new one here.
        self.reads = Reads()
        for path in light:
            self._take(path)

    def _take(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        parts = folder.split("/") if folder else []
        if name != "__init__.py":
            parts.append(name.removesuffix(".py").removesuffix(".pyi"))
        dotted = ".".join(parts)
        self._by_name.setdefault(dotted, []).append(path)
        above = ""
        for at, part in enumerate(parts[:-1] if name != "__init__.py" else parts):
            above = f"{above}/{part}" if above else part
            self._folders.add(above)
            if above not in self._packages and at + 1 < len(parts):
                self._by_name.setdefault(".".join(parts[at + 1 :]), []).append(path)

    def module(self, path: str, name: str, level: int = 0) -> str | None:
        """The file that the module ``name`` means in ``path``; a package without ``__init__.py`` as its folder and
        ``/``.

        ``level`` counts leading dots. None where it lies outside the tree or is not certain.
        """
        folder = path.rpartition("/")[0]
        if level:
            for _ in range(level - 1):
                folder = folder.rpartition("/")[0]
            inner = name.replace(".", "/")
            return self._file(f"{folder}/{inner}".strip("/") if inner else folder)
        key = (folder, name)
        if key not in self._known:
            self._known[key] = self._absolute(folder, name)
        return self._known[key]

    def _file(self, stem: str) -> str | None:
        for candidate in (f"{stem}/__init__.py" if stem else "__init__.py", f"{stem}.py"):
            if candidate in self._light:
                return candidate
        return f"{stem}/" if stem in self._folders else None

    def _absolute(self, folder: str, name: str) -> str | None:
        inner = name.replace(".", "/")
        if folder not in self._packages:
            beside = self._file(f"{folder}/{inner}" if folder else inner)
            if beside is not None and not beside.endswith("/"):
                return beside
        found = self._by_name.get(name)
        if not found:
            spelled = self._file(inner)
            return spelled if spelled is not None and spelled.endswith("/") else None
        if len(found) == 1:
            return found[0]
        nearest = sorted(set(found), key=lambda path: (-_shared(folder, path), path.count("/")))
        first, second = nearest[0], nearest[1] if len(nearest) > 1 else nearest[0]
        if first == second or _shared(folder, first) > _shared(folder, second):
            return first
        return first if first.count("/") < second.count("/") else None

    def below(self, package: str, name: str) -> str | None:
        """The submodule ``name`` of a package, by the package's file or folder."""
        if package == "__init__.py" or package.endswith(("/__init__.py", "/")):
            folder = package.removesuffix("__init__.py").rstrip("/")
            return self._file(f"{folder}/{name}".strip("/"))
        return None

    def bound(self, path: str, one: PyImport | ImportedName) -> list[Bound]:
        """What an import binds, as far as it lies in the tree."""
        target = self.module(path, one.module, one.level)
        if target is None:
            return []
        if one.name is None:
            return [Bound(one.alias, target, None)]
        inner = self.below(target, one.name) if one.name != "*" else None
        found = []
        if inner is not None and not self._exports(target, one.name):
            found.append(Bound(one.alias, inner, None))
        elif not target.endswith("/"):
            found.append(Bound(one.alias, target, one.name))
        return found

    def exports(self, package: str) -> list[str]:
        """The names that a package's own file binds by an import of something else than a submodule of that name."""
        if not package.endswith("__init__.py"):
            return []
        known = self._exported.get(package)
        if known is None:
            names = (one.alias for one in self.imported(package) if one.name is not None and _hides(one))
            known = self._exported[package] = sorted(set(names))
        return known

    def _exports(self, package: str, name: str) -> bool:
        self.reads.add(package, name)
        return name in self.exports(package)

    def bindings(self, path: str) -> dict[str, list[Bound]]:
        """What the import statements of a file bind, by alias."""
        known = self._bindings.get(path)
        if known is None:
            outer, self.reads = self.reads, Reads()
            self.reads.files.add(path)
            found: dict[str, list[Bound]] = {}
            for one in self.imported(path):
                for bound in self.bound(path, one):
                    found.setdefault(bound.alias, []).append(bound)
            known = self._bindings[path] = (found, self.reads)
            self.reads = outer
        self.reads.take(known[1])
        return known[0]

    def imported(self, path: str) -> Iterator[ImportedName]:
        """The names that the import statements of a file bind, whether they lie in the tree or not."""
        facts = self._light.get(path)
        for statement in facts.imports if facts is not None else ():
            yield from self.parsed(statement)

    def parsed(self, statement: str) -> list[ImportedName]:
        """The names that an import statement binds; most statements stand in many files."""
        known = self._parsed.get(statement)
        if known is None:
            known = self._parsed[statement] = imported_names(statement)
        return known

    def top_names(self) -> set[str]:
        """The first words of all module names of the tree."""
        return {name.partition(".")[0] for name in self._by_name}

    def is_packaged(self, folder: str) -> bool:
        """Whether a folder is a package: what an absolute import means in its files does not depend on the folder."""
        return folder in self._packages

    def origins(self, path: str, name: str) -> list[tuple[str, str | None]]:
        """Where ``name`` in ``path`` comes from: ``(file, name)``, or ``(file, None)`` for a module.

        Re-exports are followed to the file that no longer imports it; the first entry is ``(path, name)`` itself where
        it is not imported. Several entries where it is imported from several places.
        """
        known = self._origins.get((path, name))
        if known is None:
            outer, self.reads = self.reads, Reads()
            known = self._origins[path, name] = (self._followed(path, name), self.reads)
            self.reads = outer
        self.reads.take(known[1])
        return known[0]

    def _followed(self, path: str, name: str) -> list[tuple[str, str | None]]:
        found: list[tuple[str, str | None]] = []
        pending = [(path, name, 0)]
        seen: set[tuple[str, str]] = set()
        while pending:
            here, current, depth = pending.pop()
            if (here, current) in seen or depth > _FARTHEST:
                continue
            seen.add((here, current))
            self.reads.add(here, current)
            bindings = self.bindings(here)
            direct = bindings.get(current, [])
            if not direct:
                found.append((here, current))
                stars = [] if current.startswith("_") else bindings.get("*", [])
                pending.extend((star.target, current, depth + 1) for star in stars)
            for bound in direct:
                if bound.name is None:
                    found.append((bound.target, None))
                else:
                    pending.append((bound.target, bound.name, depth + 1))
        return found


def _hides(one: ImportedName) -> bool:
    """Whether an import ``from … import`` hides a submodule of the name that it binds."""
    return one.alias != one.name or bool(one.module)


def _shared(folder: str, path: str) -> int:
    """How many leading folders two paths share."""
    count = 0
    for left, right in zip(folder.split("/"), path.split("/"), strict=False):
        if left != right:
            break
        count += 1
    return count
