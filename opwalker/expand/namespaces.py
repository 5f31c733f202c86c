"""The namespaces that a translation unit sees without naming them: inline ones, and those of using-directives.

In: a unit's file. Out: qualified names. Where they are of use is not said here.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.expand.qualified import strip_arguments
from opwalker.link.index import Index
from opwalker.model.cpp import Alias

_KINDS = ("inline", "directive")


class Namespaces:
    """Reads each file's once."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._of_file: dict[str, tuple[Alias, ...]] = {}
        self._inline: dict[str, frozenset[tuple[str, ...]]] = {}
        self._used: dict[str, tuple[tuple[str, ...], ...]] = {}

    def inline(self, root: str) -> frozenset[tuple[str, ...]]:
        """The inline namespaces that a unit sees: their names are those of the one around, too."""
        found = self._inline.get(root)
        if found is None:
            names = ((*alias.scope, alias.name) for alias in self._seen(root) if alias.kind == "inline")
            found = self._inline[root] = frozenset(names)
        return found

    def used(self, root: str) -> tuple[tuple[str, ...], ...]:
        """The namespaces of the using-directives that a unit sees, outside of functions."""
        found = self._used.get(root)
        if found is None:
            targets = (strip_arguments(alias.target) for alias in self._seen(root) if alias.kind == "directive")
            names = (tuple(part for part in target.split("::") if part) for target in targets)
            found = self._used[root] = tuple(dict.fromkeys(names))
        return found

    def _seen(self, root: str) -> Iterator[Alias]:
        for path in (root, *sorted(self._index.closure(root))):
            found = self._of_file.get(path)
            if found is None:
                facts = self._index.declared(path)
                aliases = facts.aliases if facts is not None else ()
                found = self._of_file[path] = tuple(alias for alias in aliases if alias.kind in _KINDS)
            yield from found
