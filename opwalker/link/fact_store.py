"""The index's view of the store: facts decoded on demand, texts read through the source stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from opwalker.link.store import Store
from opwalker.model.cpp import CppFacts


class StoredFacts:
    """Facts of C++/CUDA files out of a ``Store``. ``read_text`` gives a file's text by path, ``names`` all names of a
    kind where they are known otherwise than from the store's table."""

    LANGUAGES = ("cuda", "cpp")

    def __init__(
        self,
        store: Store,
        producer: str,
        read_text: Callable[[str], str],
        names: Callable[[str], set[str]] | None = None,
    ) -> None:
        self._store = store
        self._producer = producer
        self._read_text = read_text
        self._read_names = names or store.distinct_names
        self._names: dict[str, set[str]] = {}
        self._decoded: dict[str, CppFacts | None] = {}
        self._decoder = msgspec.msgpack.Decoder(CppFacts)

    def cpp_paths(self) -> Sequence[str]:
        """Every C++/CUDA file, sorted."""
        return sorted(self._store.paths(self.LANGUAGES))

    def cpp_facts(self, path: str) -> CppFacts | None:
        """The facts of one file, None for a path that is not in the tree."""
        if path not in self._decoded:
            digest = self._store.digest_of(path)
            blob = self._store.facts(digest, "cpp", self._producer) if digest else None
            self._decoded[path] = self._decoder.decode(blob) if blob is not None else None
        return self._decoded[path]

    def text(self, path: str) -> str:
        """The file's text."""
        return self._read_text(path)

    def op_lists(self) -> Sequence[tuple[str, str]]:
        """The files that may list ops, sorted, each with its text."""
        return [(path, self._read_text(path)) for path in sorted(self._store.paths(("yaml",)))]

    def paths_of(self, name: str, kinds: Sequence[str]) -> Sequence[str]:
        """Files in which ``name`` is one of ``kinds``, sorted."""
        return sorted(self._store.paths_of(name, kinds))

    def paths_with(self, kind: str) -> Sequence[str]:
        """Files that hold any name of a kind, sorted."""
        return sorted(self._store.paths_with(kind))

    def names_of_kind(self, kind: str) -> Iterable[str]:
        """All names of a kind."""
        if kind not in self._names:
            self._names[kind] = self._read_names(kind)
        return self._names[kind]
