"""Which translation units a second opinion needs, and the flags that each is read with.

In: a walk, the workbench that made it, what the build files say, a compile database if there is one, and the headers
that are installed. Out: ``UnitPlan`` rows, in the order of the walk. Nothing is read by clang here.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from opwalker.expand.workbench import Workbench
from opwalker.facts.clang_flags import translated
from opwalker.facts.clang_headers import Headers, base_arguments, system_arguments
from opwalker.link.build_lookup import EXTENSION_NAME, defines_of, targets_of
from opwalker.model.build import BuildFacts
from opwalker.model.clang import UnitRequest
from opwalker.model.walk import Implementation, PathStep, Walk
from opwalker.notation.regex import Regex
from opwalker.source.compile_database import CompileCommand, CompileDatabase
from opwalker.views.clang_instances import instantiation_uses

#: Files that are compiled by themselves.
_UNIT_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c++", ".c")

#: Units that one walk reads at most.
MOST_UNITS = 24

_NAME = Regex(r"[A-Za-z_]\w*(?:\([\w, ]*\))?\Z")


class UnitPlan(Struct, frozen=True):
    """A unit to read, and the file that its flags come from (None: only opwalker's own reading of the includes)."""

    request: UnitRequest
    flags_from: str | None


class Surroundings(Struct, frozen=True):
    """What flags are made of besides the tree: ``asked`` are the user's own ``--define``."""

    root: str
    builds: BuildFacts
    database: CompileDatabase | None
    headers: Headers
    asked: tuple[tuple[str, str | None], ...] = ()


def judged(walk: Walk, build: str) -> list[Implementation]:
    """The implementations that a second opinion is about: those in C++ that the build asked for has."""
    return [
        one
        for one in walk.implementations
        if not one.python and one.host is not None and (one.builds is None or build in one.builds)
    ]


class UnitChooser:
    """Finds the unit that a piece of the walk is compiled in."""

    def __init__(self, workbench: Workbench, around: Surroundings) -> None:
        self._workbench = workbench
        self._around = around
        self._chosen: dict[str, None] = {}
        self._sources: list[str] | None = None

    def units(self, implementations: Sequence[Implementation]) -> list[str]:
        """The paths of the units, in the order of the walk."""
        for one in implementations:
            at = None
            if one.registered_at is not None and not one.registered_at.file.endswith(".py"):
                at = self._unit(one.registered_at.file, None)
            if one.host is not None:
                at = self._unit(one.host.file, at)
            for path in self._paths(one):
                unit = at
                for step in path:
                    unit = self._unit(step.file, unit)
        return list(self._chosen)

    @staticmethod
    def _paths(one: Implementation) -> Iterator[tuple[PathStep, ...]]:
        yield from (launch.path for launch in one.launches)
        yield from (end.path for end in one.terminals)

    def _unit(self, path: str, before: str | None) -> str | None:
        """The unit that holds a file: the one that the walk comes from where it includes the file."""
        index = self._workbench.index
        if before is not None and (path == before or path in index.closure(before)):
            return before
        if self._is_unit(path):
            found: str | None = path
        else:
            held = [unit for unit in self._chosen if path in index.closure(unit)]
            found = held[0] if held else next((u for u in self._all_sources() if path in index.closure(u)), None)
        if found is not None:
            self._chosen.setdefault(found)
        return found

    def _is_unit(self, path: str) -> bool:
        if self._workbench.builds.builds_of(path) is not None and not path.endswith((".h", ".hpp", ".cuh")):
            return True
        if self._around.database is not None and path in self._around.database.commands:
            return True
        return path.endswith(_UNIT_SUFFIXES)

    def _all_sources(self) -> list[str]:
        """Every unit of the tree, those of the build asked for first."""
        if self._sources is None:
            build = self._workbench.build
            paths = [path for path in sorted(self._workbench.index.paths) if self._is_unit(path)]
            self._sources = sorted(paths, key=lambda p: build not in (self._workbench.builds.builds_of(p) or ()))
        return self._sources

    def plan(self, path: str) -> UnitPlan:
        """How a unit is read."""
        around = self._around
        command = around.database.commands.get(path) if around.database is not None else None
        device = path.endswith(".cu") or (command is not None and _as_device(command))
        if command is not None:
            flags, flags_from = list(translated(command.arguments, command.directory)), around.database.path
        else:
            flags, flags_from = self._from_build_files(path)
        for name, value in around.asked:
            flags.append(f"-D{name}" if value is None else f"-D{name}={value}")
        arguments = (
            *base_arguments(path, around.headers, device),
            *flags,
            *self._seen_folders(path),
            *system_arguments(around.headers),
        )
        outside = sorted((os.path.realpath(f) for f in around.headers.folders), key=lambda f: -len(f))
        return UnitPlan(
            UnitRequest(around.root, path, arguments, tuple(outside), instantiation_uses(self._workbench.index, path)),
            flags_from,
        )

    def _from_build_files(self, path: str) -> tuple[list[str], str | None]:
        """Macros and include folders as the build files give them to a unit, for the build asked for."""
        builds, build = self._around.builds, self._workbench.build
        targets = [target for target in targets_of(builds, path) if build in target.builds]
        defines = defines_of(builds, build, path) if targets else self._workbench.builds.defines_of(build)
        values: dict[str, str | None] = {}
        for define in defines:
            if _NAME.match(define.name) and "${" not in (define.value or ""):
                values.setdefault(define.name, define.value)
        if EXTENSION_NAME not in values:
            named = self._workbench.builds.names_of(path)
            values[EXTENSION_NAME] = named[0] if named else "extension"
        flags = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in values.items()]
        for target in targets:
            for folder in target.include_dirs:
                full = os.path.join(self._around.root, folder)
                if "${" not in folder and os.path.isdir(full) and full not in flags:
                    flags += ["-I", full]
        return flags, targets[0].file if targets else None

    def _seen_folders(self, path: str) -> list[str]:
        """The folders from which the includes of a unit mean what opwalker takes them to mean."""
        index = self._workbench.index
        folders: dict[str, None] = {}
        for file in sorted(index.closure(path)):
            facts = index.facts(file)
            for include in facts.includes if facts else ():
                target = posixpath.normpath(include.target)
                found = index.resolve_include(file, target)
                if found is None or posixpath.normpath(posixpath.join(posixpath.dirname(file), target)) == found:
                    continue
                if found == target or found.endswith("/" + target):
                    folders[found[: -len(target)].rstrip("/")] = None
        return [word for folder in folders for word in ("-I", os.path.join(self._around.root, folder))]


def _as_device(command: CompileCommand) -> bool:
    """Whether a compiler call says that its file is CUDA whatever its name."""
    words = command.arguments
    return any(word in ("-x", "--x") and after in ("cu", "cuda") for word, after in pairwise(words))
