"""What the build files say of a tree's source files, in the form that the workbench asks for it.

In: evaluated build files. Out: ``BuildView``: kinds of build per file, module names, macros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from opwalker.expand.workbench import BuildView
from opwalker.model.build import BUILDS, BuildFacts, BuildFile, Define


def read_build_facts(
    paths: Iterable[str],
    text: Callable[[str], str],
    may_build: Callable[[str], bool],
    seeds: Mapping[str, Mapping[str, str]] | None = None,
) -> BuildFacts:
    """Read and evaluate every build file among ``paths``. ``may_build`` says which Python files are worth a look."""
    from opwalker.facts.build_files import build_language, makes_extensions, read_build_file
    from opwalker.link.build_targets import read_builds

    everything = sorted(paths)
    files: dict[str, BuildFile] = {}
    for path in everything:
        language = build_language(path)
        if language is None or (language == "python" and not may_build(path)):
            continue
        content = text(path)
        if language == "python" and not makes_extensions(content):
            continue
        made = read_build_file(path, content)
        if made is not None:
            files[path] = made
    return read_builds(files, everything, seeds)


def build_view(facts: BuildFacts) -> BuildView:
    """The view of a tree's builds. A file that no target names is known to no build: it may be a header, or
    generated."""
    builds: dict[str, set[str]] = {}
    names: dict[str, dict[str, None]] = {}
    for target in facts.targets:
        explicit = [d.value for d in target.defines if d.name == "TORCH_EXTENSION_NAME" and d.value]
        for source in target.sources:
            builds.setdefault(source.path, set()).update(target.builds)
            for name in explicit or [target.name]:
                names.setdefault(source.path, {})[name] = None
    ordered = {path: tuple(b for b in BUILDS if b in found) for path, found in builds.items()}
    by_build = _defines(facts)

    def builds_of(path: str) -> tuple[str, ...] | None:
        return ordered.get(path)

    def names_of(path: str) -> tuple[str, ...]:
        return tuple(names.get(path, ()))

    return BuildView(builds_of, names_of, lambda build: by_build.get(build, ()))


def _defines(facts: BuildFacts) -> dict[str, tuple[Define, ...]]:
    """Macros set for each kind of build: for all of it, or for any of its targets."""
    out: dict[str, list[Define]] = {build: list(defines) for build, defines in facts.defines}
    for target in facts.targets:
        for build in target.builds:
            out.setdefault(build, []).extend(d for d in target.defines if d.name != "TORCH_EXTENSION_NAME")
    return {build: tuple(dict.fromkeys(defines)) for build, defines in out.items()}
