"""CMake projects to targets: finds the files to start from and evaluates them for one kind of build.

In: the parsed CMake files of a tree. Out: targets, macros of the whole build, problems, and which files were read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from msgspec import Struct

from opwalker.link.build_assemble import Assembly
from opwalker.link.build_control import HANDLERS as CONTROL
from opwalker.link.build_guard import LimitReached, Stopped
from opwalker.link.build_lists import run_list
from opwalker.link.build_making import HANDLERS as MAKING
from opwalker.link.build_run import Run
from opwalker.link.build_seeds import Seeds
from opwalker.link.build_strings import run_string
from opwalker.link.build_tree import Tree
from opwalker.link.build_values import Item
from opwalker.link.build_variables import HANDLERS as VARIABLES
from opwalker.model.build import BuildFile, Define, ProjectFacts, Target
from opwalker.notation.regex import Regex

_HANDLERS = {**VARIABLES, **MAKING, **CONTROL, "list": run_list, "string": run_string}

#: Folders whose build files are somebody else's, or no part of what is shipped.
_FOREIGN = Regex(
    r"(?:^|/)(?:third[-_]?party|3rd[-_]?party|external|extern|vendor|vendored|deps|submodules|_deps|CMakeFiles"
    r"|examples?|tests?|testing|benchmarks?|docs?|node_modules|build)(?:/|$)",
    re.IGNORECASE,
)


class Outcome(Struct):
    """What one entry file came to in one kind of build."""

    targets: list[Target]
    defines: tuple[Define, ...]
    problems: list[tuple[str, int, str, str]]
    entered: list[str]


def entry_files(files: Mapping[str, BuildFile]) -> list[str]:
    """The ``CMakeLists.txt`` files that somebody would start from, the outermost first.

    That is one with no other above it, or one beside its own ``pyproject.toml`` or ``setup.py``.
    """
    listed = sorted((p for p in files if posixpath.basename(p) == "CMakeLists.txt"), key=lambda p: (p.count("/"), p))
    chosen: list[str] = []
    for path in listed:
        folder = posixpath.dirname(path)
        if _FOREIGN.search(folder):
            continue
        packaged = any(posixpath.join(folder, name) in files for name in ("pyproject.toml", "setup.py"))
        above = any(_contains(posixpath.dirname(other), folder) for other in chosen)
        if packaged or not above:
            chosen.append(path)
    return chosen


def is_foreign(path: str) -> bool:
    """True for files below a folder of vendored code, examples or tests."""
    return _FOREIGN.search(posixpath.dirname(path)) is not None


def _contains(outer: str, inner: str) -> bool:
    return outer == "" or inner == outer or inner.startswith(outer + "/")


def evaluate_entry(
    files: Mapping[str, BuildFile], tree: Tree, entry: str, seeds: Seeds, project: ProjectFacts | None
) -> Outcome:
    """Evaluate one entry file. A build that ends with an error makes nothing."""
    run = Run(files, tree, seeds, _HANDLERS)
    if project is not None:
        for name, value in project.cmake_defines:
            run.put_cache(name, (Item(value),) if value else (), force=True)
    try:
        run.enter(entry)
    except Stopped:
        return Outcome([], (), list(run.problems), run.entered)
    except (LimitReached, RecursionError):
        run.problem("limit", "the evaluation was cut off here")
    problems = list(run.problems)
    assembly = Assembly(run.events, tree, seeds.build, project.install_dir if project else None, seeds.cuda)
    targets = assembly.targets()
    problems.extend(assembly.problems)
    return Outcome(targets, assembly.folder_defines(run.directory), problems, run.entered)
