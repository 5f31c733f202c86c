"""Whether an ``#include`` brings in anything: a file with a guard or ``#pragma once`` is read one time in a unit.

In: a file, and the files that were included before it. Out: whether it was among them, or in one of them. What they
hold is no concern here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opwalker.link.index import Index
from opwalker.model.cpp import CppFacts

#: Files that were included, and for each whether it is sure to be.
Included = frozenset[tuple[str, bool | None]]


class ReadOnce:
    """``reached`` says whether the include at an offset of a file is read in a unit: None where that is open."""

    def __init__(self, index: Index, reached: Callable[[str, int, str], bool | None]) -> None:
        self._index = index
        self._reached = reached
        self._known: dict[tuple[str, str, str], bool] = {}

    def was_read(self, path: str, before: Included, root: str) -> bool | None:
        """Whether an include of a file brings in nothing behind others: None where that is open."""
        facts = self._index.stored(path) if before else None
        if facts is None or not facts.once or self._is_opened_again(facts):
            return False
        return _any(value and self._includes(one, path, root) for one, value in sorted(before, key=repr))

    def _is_opened_again(self, facts: CppFacts) -> bool:
        """Whether some file ends the macro of a guard, so that what it guards may be read once more."""
        first = next((event for event in facts.macros if event.body is not None), None)
        return first is not None and not first.body.strip() and first.name in self._index.names_of_kind("undef")

    def _includes(self, path: str, wanted: str, root: str) -> bool | None:
        found = self._known.get((path, wanted, root))
        if found is None and (found := self._holds(path, wanted, root, {path})) is not None:
            self._known[path, wanted, root] = found
        return found

    def _holds(self, path: str, wanted: str, root: str, seen: set[str]) -> bool | None:
        """Whether a file is another one or includes it, through others or not."""
        if path == wanted:
            return True
        found: list[bool | None] = []
        for at, included in self._index.includes(path):
            if included not in seen and wanted in self._index.closure(included):
                value = self._reached(path, at, root)
                if value is not False:
                    seen.add(included)
                    found.append(self._holds(included, wanted, root, seen) and value)
        return _any(found)


def _any(values: Iterable[bool | None]) -> bool | None:
    """Whether one of several is true: None where none is and one is not known."""
    found = list(values)
    return True if True in found else None if None in found else False
