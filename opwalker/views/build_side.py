"""What the build files say of a tree's source files, in the form that the workbench asks for it.

In: evaluated build files. Out: ``BuildView``: kinds of build per file, module names, macros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from msgspec.structs import replace

from opwalker.expand.workbench import BuildView
from opwalker.link.build_cuda import AskedArchitectures
from opwalker.model.build import BUILDS, BuildFacts, BuildFile, Define, Target


def read_build_facts(
    paths: Iterable[str],
    text: Callable[[str], str],
    may_build: Callable[[str], bool],
    seeds: Mapping[str, Mapping[str, str]] | None = None,
    cuda: AskedArchitectures | None = None,
) -> BuildFacts:
    """Read and evaluate every build file among ``paths``. ``may_build`` says which Python files are worth a look;
    ``cuda`` are the architectures to build for, if some were asked for."""
    from opwalker.facts.build_files import build_language, makes_extensions, read_build_file
    from opwalker.facts.build_words import flag_macros
    from opwalker.link.build_targets import read_builds

    everything = sorted(paths)
    files: dict[str, BuildFile] = {}
    flagged: set[str] = set()
    for path in everything:
        language = build_language(path)
        if language is None or (language == "python" and not may_build(path)):
            continue
        content = text(path)
        if language == "python" and not makes_extensions(content):
            continue
        if language == "python":
            flagged |= flag_macros(content)
        made = read_build_file(path, content)
        if made is not None:
            files[path] = made
    return replace(read_builds(files, everything, seeds, cuda), flagged=tuple(sorted(flagged)))


def build_view(
    facts: BuildFacts,
    everything: BuildFacts | None = None,
    archs: tuple[str, ...] = (),
    gates: Callable[[], BuildFacts] | None = None,
) -> BuildView:
    """The view of a tree's builds. A file that no target names is known to no build: it may be a header, or
    generated.

    ``everything`` are the facts for all architectures, where ``facts`` are those for ``archs`` alone. ``gates`` gives
    the facts that say which architectures a file is compiled for, when somebody asks.
    """
    from opwalker.link.build_lookup import archs_index, extension_names, source_index

    ordered = {
        path: tuple(b for b in BUILDS if any(b in target.builds for target in targets))
        for path, targets in source_index(facts).items()
    }
    by_build = _defines(facts)
    units: dict[str, dict[str, list[Define]]] = {}
    for target in facts.targets:
        for source in target.sources:
            for build in target.builds if source.defines else ():
                units.setdefault(build, {}).setdefault(source.path, []).extend(source.defines)
    compiled = lru_cache(maxsize=1)(lambda: archs_index(gates() if gates is not None else facts))
    absent: dict[str, str] = {}
    unset: dict[str, tuple[str, ...]] = {}
    if everything is not None:
        for path, targets in source_index(everything).items():
            if "cuda" not in ordered.get(path, ()) and any("cuda" in target.builds for target in targets):
                absent[path] = _why_absent(path, targets, archs)
                ordered.setdefault(path, ())
        for build, defines in _defines(everything).items():
            kept = {define.name for define in by_build.get(build, ())}
            unset[build] = tuple(dict.fromkeys(d.name for d in defines if d.name not in kept))
    return BuildView(
        ordered.get,
        lru_cache(maxsize=None)(lambda path: extension_names(facts, path)),
        lambda build: by_build.get(build, ()),
        bool(facts.targets),
        archs,
        lambda build: unset.get(build, ()),
        absent.get,
        lambda path: compiled().get(path, ()),
        lambda build: units.get(build, {}),
        facts.flagged,
    )


def _why_absent(path: str, targets: Iterable[Target], archs: tuple[str, ...]) -> str:
    """Why no target compiles a file for the architectures asked for."""
    target = next(t for t in targets if "cuda" in t.builds)
    source = next(s for s in target.sources if s.path == path)
    conditions = [c for c in (target.condition, source.condition) if c is not None]
    told = " AND ".join(f"({c})" if " OR " in c and len(conditions) > 1 else c for c in conditions)
    where = f"{source.file}:{source.line}" + (f", under `{told}`" if told else "")
    return f"{path} is not compiled for {', '.join(archs)} (target {target.name}, {where})"


def _defines(facts: BuildFacts) -> dict[str, tuple[Define, ...]]:
    """Macros set for each kind of build: for all of it, or for any of its targets."""
    out: dict[str, list[Define]] = {build: list(defines) for build, defines in facts.defines}
    for target in facts.targets:
        for build in target.builds:
            out.setdefault(build, []).extend(d for d in target.defines if d.name != "TORCH_EXTENSION_NAME")
    return {build: tuple(dict.fromkeys(defines)) for build, defines in out.items()}
