"""Which library a file of the source goes into, and why a file goes into none.

In: the targets of the build files, the libraries that were read. Out: ``SourceSide``, which answers for each path. It
compares no ops and no kernels.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from opwalker.link.build_origins import BuildOrigins
from opwalker.model.audit import Provenance, TargetRef
from opwalker.model.binary import LibraryFacts
from opwalker.model.build import BuildFacts, Target, TargetSource


class SourceSide:
    """The source as far as it says what is built from what. ``closure`` gives a file and all that it includes."""

    def __init__(
        self,
        facts: BuildFacts,
        origins: BuildOrigins,
        build: str,
        libraries: Sequence[LibraryFacts],
        paths: frozenset[str],
        closure: Callable[[str], frozenset[str]],
    ) -> None:
        self.build = build
        self.origins = origins
        self._facts = facts
        self._paths = paths
        self._closure = closure
        self.targets: dict[str, tuple[Target, ...]] = {
            library.path: tuple(_made_by(library, facts.targets, build)) for library in libraries
        }
        self._provenances = {library.path: self._read_provenances(library.path) for library in libraries}

    @cached_property
    def _uses(self) -> Mapping[str, tuple[tuple[Target, TargetSource], ...]]:
        """For every file, the sources of targets that it goes into: itself, or those that include it."""
        found: dict[str, dict[tuple[Target, TargetSource], None]] = {}
        for target in self._facts.targets:
            for source in target.sources:
                if source.path in self._paths:
                    for path in self._closure(source.path):
                        found.setdefault(path, {})[target, source] = None
        return {path: tuple(uses) for path, uses in found.items()}

    def uses(self, path: str) -> tuple[tuple[Target, TargetSource], ...]:
        """The targets that a file goes into, in the build that is asked about, each with the source that brings it."""
        return tuple((t, s) for t, s in self._uses.get(path, ()) if self.build in t.builds)

    def builds_of(self, path: str) -> tuple[str, ...]:
        """The kinds of build that compile a file."""
        return tuple(dict.fromkeys(build for target, _ in self._uses.get(path, ()) for build in target.builds))

    def libraries_of(self, path: str) -> tuple[str, ...]:
        """The libraries that were read whose targets a file goes into."""
        used = [target for target, _ in self.uses(path)]
        wanted = {_key(target) for target in used}
        found = tuple(
            library for library, targets in self.targets.items() if any(_key(target) in wanted for target in targets)
        )
        if found:
            return found
        # An object or static library goes into others of its build file, which one is not said.
        linked = {target.file for target in used if target.kind == "library"}
        return tuple(
            library for library, targets in self.targets.items() if any(target.file in linked for target in targets)
        )

    def absent(self, path: str) -> str | None:
        """Why nothing of a file may be in the libraries, as the build files say it; None where they do not."""
        if not self._facts.targets:
            return None
        builds = self.builds_of(path)
        if builds and self.build not in builds:
            return f"its file is compiled for {', '.join(builds)} only"
        uses = self.uses(path)
        if not uses:
            return "no target of the build files compiles its file"
        if not self.libraries_of(path):
            names = sorted({t.module or t.name for t, _ in uses})
            jit = all(t.kind == "jit" for t, _ in uses)
            return f"its file goes into {', '.join(names)}, " + (
                "which is compiled when it is first used" if jit else "which is not among the libraries"
            )
        conditions = {s.condition or t.condition for t, s in uses}
        if None not in conditions:
            return f"its file is compiled only if {' or '.join(sorted(c for c in conditions if c))}"
        return None

    def target_refs(self, library: str) -> tuple[TargetRef, ...]:
        """The targets that make a library."""
        return tuple(
            TargetRef(t.module or t.name, t.file, t.line, len(t.sources), len(self._outside(t)), t.condition)
            for t in self.targets[library]
        )

    def provenances(self, library: str) -> tuple[Provenance, ...]:
        """Where the sources of a library come from that are not in the tree; for a library that no target makes,
        the repositories of the build files that name it."""
        return self._provenances[library]

    def _read_provenances(self, library: str) -> tuple[Provenance, ...]:
        targets = self.targets[library]
        found: dict[Provenance, None] = {}
        for target in targets:
            for source in self._outside(target):
                found.update(dict.fromkeys(self.origins.mentioned(source.path)))
        if not targets:
            found.update(dict.fromkeys(self.origins.naming(library)))
        return tuple(found)

    def is_foreign(self, library: str) -> bool:
        """Whether a library is known to be made of other sources than those of the tree."""
        whole = all(len(self._outside(target)) == len(target.sources) for target in self.targets[library])
        return whole and bool(self.provenances(library))

    def may_hold(self, paths: Iterable[str], libraries: Iterable[str]) -> list[str]:
        """Of ``libraries``, those that may be made from files: by the build files, or for all that they say."""
        named = {library for path in paths for library in self.libraries_of(path)}
        chosen = [library for library in libraries if library in named]
        if chosen:
            return chosen
        placed = any(self.uses(path) for path in paths)
        return [one for one in libraries if not self.is_foreign(one) and not (placed and self.targets[one])]

    def sources(self, library: str) -> tuple[str, ...]:
        """The files of the tree that the targets of a library compile, and what they include."""
        own = [s.path for target in self.targets[library] for s in target.sources if s.path in self._paths]
        return tuple(dict.fromkeys(path for source in own for path in (source, *sorted(self._closure(source)))))

    def generated(self, library: str) -> tuple[Provenance, ...]:
        """The scripts that write sources of a library's targets when it is built, with the files that they make."""
        files = {target.file for target in self.targets[library]}
        own = {posixpath.dirname(source.path) for target in self.targets[library] for source in target.sources}
        made: dict[Provenance, list[str]] = {}
        for one in self._facts.problems:
            pattern = one.problem.message.partition("GLOB ")[2].partition(")")[0]
            if one.file in files and one.problem.kind == "unresolved" and pattern:
                script = self.origins.generator_before(one.file, one.problem.line)
                # A script lies beside the sources that it adds to.
                if script is not None and posixpath.dirname(script.name) in own:
                    made.setdefault(script, []).append(pattern)
        return tuple(Provenance(p.kind, p.name, p.span, tuple(patterns)) for p, patterns in made.items())

    def _outside(self, target: Target) -> list[TargetSource]:
        return [source for source in target.sources if source.path not in self._paths]


def _key(target: Target) -> tuple[str, str | None, str, int]:
    return target.name, target.module, target.file, target.line


def stem(library: str) -> str:
    """The name of a library without its folder and all that follows the first dot."""
    return posixpath.basename(library).split(".", 1)[0]


def _made_by(library: LibraryFacts, targets: Iterable[Target], build: str) -> list[Target]:
    """The targets that make a library: those of its name, and of these the ones whose module lies where it lies."""
    name = stem(library.path)
    names = {name, name.removeprefix("lib"), *library.modules}
    fitting = [t for t in targets if build in t.builds and (t.name in names or f"lib{t.name}" in names)]
    folder = posixpath.dirname(library.path)
    placed = [t for t in fitting if t.module and _fits(t.module, folder)]
    return placed or [t for t in fitting if not t.module or not folder]


def _fits(module: str, folder: str) -> bool:
    """Whether a module's package is the end of a folder."""
    package = module.rpartition(".")[0].replace(".", "/")
    return not package or folder == package or folder.endswith(f"/{package}")
