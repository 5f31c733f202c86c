"""Small trees of C++/CUDA files held in memory: scanned, joined and read without a disk or a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import BuildView, Workbench
from opwalker.facts.cpp_scan import names, scan
from opwalker.link.index import Index
from opwalker.model.build import Define
from opwalker.model.cpp import CppFacts, Function
from opwalker.model.reach import Reach
from opwalker.model.source import SourceFile


class MemoryStore:
    """A ``FactStore`` over texts: what the index asks, answered from scanned files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)
        self._facts = {path: scan_text(text, path) for path, text in self.files.items() if path in self.cpp_paths()}
        self._names: dict[tuple[str, str], set[str]] = {}
        for path, facts in self._facts.items():
            for name in names(facts):
                self._names.setdefault(name, set()).add(path)

    def cpp_paths(self) -> Sequence[str]:
        return sorted(path for path in self.files if not path.endswith(".yaml"))

    def op_lists(self) -> Sequence[tuple[str, str]]:
        return sorted(one for one in self.files.items() if one[0].endswith(".yaml"))

    def cpp_facts(self, path: str) -> CppFacts | None:
        return self._facts.get(path)

    def text(self, path: str) -> str:
        return self.files[path]

    def paths_of(self, name: str, kinds: Sequence[str]) -> Sequence[str]:
        return sorted({path for kind in kinds for path in self._names.get((name, kind), ())})

    def paths_with(self, kind: str) -> Sequence[str]:
        return sorted({path for (_, held), paths in self._names.items() if held == kind for path in paths})

    def names_of_kind(self, kind: str) -> Iterable[str]:
        return {name for name, held in self._names if held == kind}


def scan_text(text: str, path: str = "a.cu") -> CppFacts:
    """The facts of one text."""
    return scan(SourceFile(path, text, "cuda" if path.endswith((".cu", ".cuh")) else "cpp", ""))


def tree(
    files: Mapping[str, str],
    build: str = "cuda",
    *,
    asked: Sequence[tuple[str, str | None]] = (),
    builds_of: Mapping[str, tuple[str, ...]] | None = None,
    names_of: Mapping[str, Sequence[str]] | None = None,
    defines_of: Mapping[str, Sequence[Define]] | None = None,
    include_dirs: Sequence[str] = (),
    view: BuildView | None = None,
) -> Workbench:
    """A workbench over ``{"a.cu": "text"}``. What no mapping names, no build file says; ``view`` says all of it."""
    view = view or BuildView(
        lambda path: (builds_of or {}).get(path),
        lambda path: (names_of or {}).get(path, ()),
        lambda name: (defines_of or {}).get(name, ()),
    )
    return Workbench(Index(MemoryStore(files), [(include_dirs, ())]), view, build, asked)


def functions(facts: CppFacts) -> list[str]:
    """Qualified names of the functions that a file defines, in source order."""
    found = sorted((f for f in facts.functions if f.is_definition), key=lambda f: f.offset)
    return [f.qualified_name for f in found]


def function(facts: CppFacts, name: str) -> Function:
    """The one function of a qualified or simple name; an assertion fails when there is none, or are several."""
    found = [f for f in facts.functions if name in (f.name, f.qualified_name)]
    assert len(found) == 1, f"{name}: {[f.qualified_name for f in facts.functions]}"
    return found[0]


def expand(text: str, head: str = "", build: str = "cuda", **headers: str) -> str:
    """``text`` as the body of a function below ``head``, expanded; ``headers`` are files ``NAME.h`` beside it."""
    files = {f"{name}.h": content for name, content in headers.items()}
    files["a.cu"] = f"{head}\nvoid body_of_test() {{\n{text}\n}}\n"
    bench = tree(files, build)
    body = function(bench.index.facts("a.cu"), "body_of_test")
    made = bench.unit().preprocessor.span("a.cu", body.body_start + 1, body.body_end - 1, "a.cu")
    return " ".join(made.full.split())


def follow(bench: Workbench, path: str, name: str, build: str | None = None) -> Reach:
    """What the function ``name`` of ``path`` reaches."""
    found = [f for f in bench.index.facts(path).functions if f.is_definition and name in (f.name, f.qualified_name)]
    assert len(found) == 1, f"{name}: {[f.qualified_name for f in bench.index.facts(path).functions]}"
    return bench.unit(build).follower().follow(Candidate(path, found[0]), path)


def kernels(reach: Reach) -> list[str]:
    """The qualified names of the kernels that a reach launches, in order, without repeats."""
    return list(dict.fromkeys(k.name for site in reach.launches for k in site.kernels))
