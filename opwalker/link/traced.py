"""What an answer was read from: a store of facts that notes whose facts and texts it gave out.

In: a ``FactStore``. Out: the same answers, and the paths asked for so far. An answer that is kept with its trace holds
for as long as those files say the same, and no file anywhere defines or drops a name. Whether that is so,
``opwalker.asking`` compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from opwalker.link.index import FactStore
from opwalker.model.cpp import CppFacts


class Trace(Struct, frozen=True):
    """What an answer was read from: ``paths``, sorted, and ``state``, a digest of what these said then; ``said`` are
    digests of each of them, where they are kept."""

    paths: tuple[str, ...]
    state: str
    said: tuple[str, ...] = ()


class TracedFacts:
    """A store of facts that notes what was read. Lookups by name are not noted: they are the same everywhere while the
    names of all files are."""

    def __init__(self, facts: FactStore) -> None:
        self._facts = facts
        self.read: set[str] = set()

    def cpp_paths(self) -> Sequence[str]:
        """Every C++/CUDA file, sorted."""
        return self._facts.cpp_paths()

    def cpp_facts(self, path: str) -> CppFacts | None:
        """The facts of one file, None for a path that is not in the tree."""
        self.read.add(path)
        return self._facts.cpp_facts(path)

    def text(self, path: str) -> str:
        """The file's text."""
        self.read.add(path)
        return self._facts.text(path)

    def paths_of(self, name: str, kinds: Sequence[str]) -> Sequence[str]:
        """Files in which ``name`` is one of ``kinds``, sorted."""
        return self._facts.paths_of(name, kinds)

    def paths_with(self, kind: str) -> Sequence[str]:
        """Files that hold any name of a kind, sorted."""
        return self._facts.paths_with(kind)

    def names_of_kind(self, kind: str) -> Iterable[str]:
        """All names of a kind."""
        return self._facts.names_of_kind(kind)
