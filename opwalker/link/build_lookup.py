"""Questions to the build facts: which targets compile a file, in which kinds of build, with which macros.

In: ``BuildFacts`` and a path. Out: targets, kinds of build, names, macros. Nothing is evaluated here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from opwalker.model.build import BUILDS, BuildFacts, Define, Target

#: The macro that torch's build helpers set to the name of the module.
EXTENSION_NAME = "TORCH_EXTENSION_NAME"

_LANGUAGES = {".cu": "CUDA", ".cuh": "CUDA", ".hip": "HIP", ".c": "C"}


def source_index(facts: BuildFacts) -> dict[str, tuple[Target, ...]]:
    """Every path that a target compiles, with the targets, for callers that ask about many paths."""
    found: dict[str, list[Target]] = {}
    for target in facts.targets:
        for source in target.sources:
            group = found.setdefault(source.path, [])
            if target not in group:
                group.append(target)
    return {path: tuple(targets) for path, targets in found.items()}


def archs_index(facts: BuildFacts) -> dict[str, tuple[str, ...]]:
    """The CUDA architectures that a file is compiled for, where its targets agree; other files are left out."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for target in facts.targets:
        for source in target.sources if "cuda" in target.builds else ():
            found.setdefault(source.path, set()).add(source.archs)
    return {path: next(iter(archs)) for path, archs in found.items() if len(archs) == 1 and () not in archs}


def targets_of(facts: BuildFacts, path: str) -> tuple[Target, ...]:
    """The targets that compile a file (``path`` relative to the root)."""
    return tuple(target for target in facts.targets if any(source.path == path for source in target.sources))


def builds_of(
    facts: BuildFacts, path: str, includes_closure: Mapping[str, Iterable[str]] | None = None
) -> tuple[str, ...] | None:
    """The kinds of build whose targets compile a file, in the order of BUILDS; None if no build file names it.

    ``includes_closure`` gives, for a path, the files that include it, directly or not: a file that is only included
    belongs to the builds of those.
    """
    including = includes_closure.get(path, ()) if includes_closure is not None else ()
    found = {build for name in (path, *including) for target in targets_of(facts, name) for build in target.builds}
    return tuple(build for build in BUILDS if build in found) or None


def extension_names(facts: BuildFacts, path: str) -> tuple[str, ...]:
    """What ``TORCH_EXTENSION_NAME`` can stand for in a file: one name for each target that says so, each once."""
    names: dict[str, None] = {}
    for target in targets_of(facts, path):
        own = next(source.defines for source in target.sources if source.path == path)
        for define in (*own, *target.defines):
            if define.name == EXTENSION_NAME and define.value:
                names.setdefault(define.value)
                break
    return tuple(names)


def defines_of(facts: BuildFacts, build: str, path: str | None = None) -> tuple[Define, ...]:
    """The macros that a kind of build sets: for the whole build, or those that a file is compiled with.

    A macro of a target that exists only under a condition has that condition too. A file that several targets compile
    gets the macros of each.
    """
    if path is None:
        return next((defines for name, defines in facts.defines if name == build), ())
    language = _language(path, build)
    found: dict[Define, None] = {}
    for target in targets_of(facts, path):
        if build not in target.builds:
            continue
        own = next(source.defines for source in target.sources if source.path == path)
        for define in (*target.defines, *own):
            if define.language in (None, language):
                found.setdefault(_under(define, target.condition))
    return tuple(found)


def _language(path: str, build: str) -> str:
    language = _LANGUAGES.get(posixpath.splitext(path)[1], "CXX")
    return "HIP" if language == "CUDA" and build == "rocm" else language


def _under(define: Define, condition: str | None) -> Define:
    if condition is None:
        return define
    return replace(define, condition=f"{condition} AND {define.condition}" if define.condition else condition)
