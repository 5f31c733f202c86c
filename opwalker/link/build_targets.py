"""All build files of a tree to one answer: which targets each kind of build makes, of which files, with which macros.

In: build files, each read on its own (``BuildFile``), and the paths of the tree. Out: ``BuildFacts``. The files are
evaluated once for every kind of build, never run; what depends on a condition that cannot be decided is listed with
that condition.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from opwalker.link.build_architectures import architectures_in_text, architectures_of
from opwalker.link.build_assemble import DEVICE_SUFFIXES, needs_device
from opwalker.link.build_cmake import Outcome, entry_files, evaluate_entry, is_foreign
from opwalker.link.build_cuda import AskedArchitectures
from opwalker.link.build_guard import Guard
from opwalker.link.build_py_names import ParsedFiles
from opwalker.link.build_scripts import Scripts, builds_of_file, evaluate_others, evaluate_setup, may_compile
from opwalker.link.build_seeds import Seeds
from opwalker.link.build_tree import Tree
from opwalker.model.build import (
    BUILDS,
    BuildFacts,
    BuildFile,
    BuildProblem,
    Define,
    ProjectFacts,
    Target,
    TargetSource,
)
from opwalker.model.source import Problem

Seeding = Mapping[str, Mapping[str, str]]


def read_builds(
    files: Mapping[str, BuildFile],
    paths: Iterable[str] | None = None,
    seeds: Seeding | None = None,
    cuda: AskedArchitectures | None = None,
) -> BuildFacts:
    """Evaluate all build files of a tree.

    ``files`` are the build files by path; ``paths`` all files of the tree, against which patterns and questions about
    files are answered (the build files alone if not given). ``seeds`` gives further variables for a kind of build
    (``{"cuda": {"MY_OPTION": "ON"}}``); ``cuda`` are the architectures to build for, where that is known: then what
    is not built for any of them is left out. Never raises on bad input: what is wrong with a file is among the
    problems.
    """
    return _Reading(files, Tree(files if paths is None else paths), seeds or {}, cuda).facts()


class _Reading:
    """One evaluation of a tree for all kinds of build."""

    def __init__(
        self, files: Mapping[str, BuildFile], tree: Tree, seeds: Seeding, cuda: AskedArchitectures | None
    ) -> None:
        self._cuda = cuda
        self._files = files
        self._tree = tree
        self._seeds = seeds
        self._parsed = ParsedFiles()
        self._found: list[Target] = []
        self._defines: dict[str, list[Define]] = {build: [] for build in BUILDS}
        self._problems: dict[tuple[str, int, str, str], None] = {}
        self._architectures: dict[str, None] = {}
        self._module_names: dict[str, list[tuple[str, Guard]]] = {build: [] for build in BUILDS}

    def facts(self) -> BuildFacts:
        for path, file in self._files.items():
            for problem in file.problems:
                self._problem((path, problem.line, problem.kind, problem.message))
        for entry, project, builds in self._cmake_entries():
            self._run_cmake(entry, project, builds)
        python = [path for path, file in self._files.items() if file.language == "python" and not is_foreign(path)]
        scripts = [path for path in python if _is_setup(path)]
        for path in sorted(scripts, key=lambda p: (p.count("/"), p)):
            self._run_setup(path)
        self._run_others(sorted(path for path in python if not _is_setup(path) and builds_of_file(path)))
        self._list_projects()
        for problem in self._parsed.problems:
            self._problem(problem)
        return BuildFacts(
            targets=tuple(self._named(target) for target in _grouped(self._found)),
            defines=tuple((build, tuple(dict.fromkeys(self._defines[build]))) for build in BUILDS),
            architectures=tuple(self._architectures),
            problems=tuple(BuildProblem(f, Problem(kind, text, line)) for f, line, kind, text in self._problems),
        )

    def _problem(self, problem: tuple[str, int, str, str]) -> None:
        self._problems.setdefault(problem)

    # --- CMake -------------------------------------------------------------------------------------------------

    def _cmake_entries(self) -> list[tuple[str, ProjectFacts | None, tuple[str, ...]]]:
        """Where CMake starts: the folders that a ``pyproject.toml`` names, and the outermost others."""
        entries: dict[str, tuple[str, ProjectFacts | None, tuple[str, ...]]] = {}
        for path, file in self._files.items():
            if file.project is None or is_foreign(path) or "scikit" not in (file.project.backend or ""):
                continue
            folder = posixpath.join(posixpath.dirname(path), file.project.cmake_source_dir)
            listed = posixpath.normpath(posixpath.join(folder, "CMakeLists.txt"))
            if listed in self._files:
                name = file.project.name or ""
                defines = (("SKBUILD", "2"), ("SKBUILD_PROJECT_NAME", name), *file.project.cmake_defines)
                project = replace(file.project, cmake_defines=defines)
                entries.setdefault(path, (listed, project, builds_of_file(path)))
        taken = {listed for listed, _, _ in entries.values()}
        found = list(entries.values())
        found.extend((entry, None, BUILDS) for entry in entry_files(self._files) if entry not in taken)
        return sorted(found, key=lambda entry: (entry[0].count("/"), entry[0]))

    def _run_cmake(self, entry: str, project: ProjectFacts | None, builds: tuple[str, ...]) -> None:
        asked: set[str] = set()
        outcomes: dict[str, Outcome] = {}
        for build in builds:
            seeds = self._for(build, asked)
            outcomes[build] = evaluate_entry(self._files, self._tree, entry, seeds, project)
        for build, outcome in outcomes.items():
            self._take(build, outcome.targets, asked)
            self._defines[build].extend(outcome.defines)
            for problem in outcome.problems:
                self._problem(problem)
        entered = dict.fromkeys(path for outcome in outcomes.values() for path in outcome.entered)
        for path in entered:
            self._architectures.update(dict.fromkeys(architectures_of(self._files[path].commands)))

    # --- Python ------------------------------------------------------------------------------------------------

    def _run_setup(self, path: str) -> None:
        builds = builds_of_file(path)
        # A script that is there for one kind of build alone says so by its name.
        asked = set(builds) if len(builds) == 1 else set()
        outcomes = {
            build: evaluate_setup(self._files, self._parsed, self._tree, self._for(build, asked), path)
            for build in builds
        }
        for build, outcome in outcomes.items():
            self._take_scripts(build, outcome, asked)
        self._architectures.update(dict.fromkeys(architectures_in_text(self._files[path].text)))

    def _run_others(self, paths: list[str]) -> None:
        paths = [path for path in paths if may_compile(self._files, self._parsed, path)]
        if not paths:
            return
        first: list[Target] = []
        for build in BUILDS:
            seeds = self._for(build, set())
            outcome = evaluate_others(self._files, self._parsed, self._tree, seeds, paths)
            if build == "rocm":
                # Compiled on first use, on whatever is there: ROCm counts where something is different for it.
                same = {_for_any_device(target) for target in first}
                kept = [t for t in outcome.targets if not (_has_device(t) and _for_any_device(t) in same)]
                outcome.targets = kept
            else:
                first.extend(outcome.targets)
            self._take_scripts(build, outcome, {"rocm"})
        for target in first:
            if target.file in self._files:
                self._architectures.update(dict.fromkeys(architectures_in_text(self._files[target.file].text)))

    def _for(self, build: str, asked: set[str]) -> Seeds:
        return Seeds(build, self._seeds.get(build, {}), asked, self._cuda)

    def _take_scripts(self, build: str, outcome: Scripts, asked: set[str]) -> None:
        self._take(build, outcome.targets, asked)
        self._module_names[build].extend(outcome.module_names)
        for problem in outcome.problems:
            self._problem(problem)

    def _list_projects(self) -> None:
        for path, file in self._files.items():
            for extension in file.project.extensions if file.project and not is_foreign(path) else ():
                folder = posixpath.dirname(path)
                sources = tuple(
                    TargetSource(posixpath.normpath(posixpath.join(folder, source)), path, extension.line)
                    for source in extension.sources
                )
                defines = tuple(Define(name, value, path, extension.line) for name, value in extension.defines)
                package, _, name = extension.name.rpartition(".")
                module = extension.name if package else None
                target = Target(name, module, (), sources, defines, extension.include_dirs, path, extension.line)
                self._found.extend(replace(target, builds=(build,)) for build in builds_of_file(path))

    # --- together ----------------------------------------------------------------------------------------------

    def _take(self, build: str, targets: list[Target], asked: set[str]) -> None:
        """Keep what this kind of build can have.

        Device sources need a device compiler; and for ROCm, a library that asks about it: otherwise nobody has said
        that its CUDA sources are ever built there.
        """
        for target in targets:
            if build == "cpu" and needs_device(target):
                continue
            if build == "rocm" and "rocm" not in asked and _has_device(target):
                continue
            self._found.append(target)

    def _named(self, target: Target) -> Target:
        """A target with the dotted module name that a setup script gives it, if nothing else did."""
        if target.module is not None or target.kind != "module":
            return target
        for build in target.builds:
            for name, _ in self._module_names[build]:
                if name.rpartition(".")[2] == target.name and "." in name:
                    return replace(target, module=name)
        return target


def _is_setup(path: str) -> bool:
    name = posixpath.basename(path)
    return name.startswith("setup") and name.endswith(".py")


def _has_device(target: Target) -> bool:
    return any(source.path.endswith(DEVICE_SUFFIXES) for source in target.sources)


def _for_any_device(target: Target) -> Target:
    """A target without what only says which device compiler its macros are for."""
    defines = tuple(replace(d, language="CUDA") if d.language == "HIP" else d for d in target.defines)
    return replace(target, builds=(), defines=defines)


def _grouped(targets: list[Target]) -> list[Target]:
    """Targets that are the same in several kinds of build, once."""
    groups: dict[Target, list[str]] = {}
    for target in targets:
        groups.setdefault(replace(target, builds=()), []).extend(target.builds)
    return [replace(target, builds=tuple(dict.fromkeys(builds))) for target, builds in groups.items()]
