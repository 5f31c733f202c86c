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
    from opwalker.link.build_lookup import extension_names, source_index

    ordered = {
        path: tuple(b for b in BUILDS if any(b in target.builds for target in targets))
        for path, targets in source_index(facts).items()
    }
    by_build = _defines(facts)
    return BuildView(
        ordered.get,
        lambda path: extension_names(facts, path),
        lambda build: by_build.get(build, ()),
        bool(facts.targets),
    )


def _defines(facts: BuildFacts) -> dict[str, tuple[Define, ...]]:
    """Macros set for each kind of build: for all of it, or for any of its targets."""
    out: dict[str, list[Define]] = {build: list(defines) for build, defines in facts.defines}
    for target in facts.targets:
        for build in target.builds:
            out.setdefault(build, []).extend(d for d in target.defines if d.name != "TORCH_EXTENSION_NAME")
    return {build: tuple(dict.fromkeys(defines)) for build, defines in out.items()}
