"""Which file of a tree an ``#include`` means.

In: the tree's paths, and the folders that each target of the build looks in, with the sources that it compiles. Out:
a path. It reads no file; a header that is outside the tree is None.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

#: The folders of a target, in the order they are looked in, and the sources that it compiles.
Searched = tuple[Sequence[str], Collection[str]]


def includers(included: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """By file, those that include it, directly or not, and itself, sorted; ``included`` says of every file what it
    includes."""
    out: dict[str, list[str]] = {}
    for includer in sorted(included):
        seen = {includer}
        stack = [includer]
        while stack:
            further = set(included[stack.pop()]) - seen
            seen |= further
            stack += further
        for found in seen:
            out.setdefault(found, []).append(includer)
    return out


class IncludeFolders:
    """Finds what includes mean in a tree; ``searched`` are the targets, ``paths`` gives every file of the tree."""

    def __init__(self, paths: Callable[[], frozenset[str]], searched: Sequence[Searched] = ()) -> None:
        self._paths = paths
        self._searched = tuple((tuple(folders), frozenset(sources)) for folders, sources in searched)
        self._folders = tuple(dict.fromkeys(folder for folders, _ in self._searched for folder in folders))
        self._listed: dict[str, list[str]] = {}
        self._by_base: dict[str, list[str]] | None = None
        self._near: dict[str, tuple[tuple[str, ...], ...]] = {}

    def resolve(self, includer: str, target: str) -> str | None:
        """The file that an include in ``includer`` means; None for one that is outside the tree."""
        paths = self._paths()
        target = posixpath.normpath(target)
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(includer), target))
        if beside in paths:
            return beside
        listed = self._listed.get(target)
        if listed is None:
            listed = self._listed[target] = self._in(self._folders, target)
        if len(listed) > 1:
            # Targets of one tree list folders of their own: those of the includer's target are the ones looked in.
            meant = [found[0] for folders in self._of_targets(includer) if (found := self._in(folders, target))]
            listed = meant or listed
        if listed:
            return max(listed, key=lambda p: len(posixpath.commonpath([p, includer])))
        return self._guessed(includer, target)

    def _in(self, folders: Sequence[str], target: str) -> list[str]:
        """The files of that name in folders, in order."""
        meant = [posixpath.normpath(posixpath.join(folder, target)) for folder in folders]
        return [candidate for candidate in meant if candidate in self._paths()]

    def _of_targets(self, includer: str) -> tuple[tuple[str, ...], ...]:
        """The folders of each target that compiles a file, or for a header the files of the nearest folder."""
        if includer in self._near:
            return self._near[includer]
        found = tuple(folders for folders, sources in self._searched if includer in sources)
        folder = posixpath.dirname(includer)
        while not found and folder:
            inside = folder + "/"
            found = tuple(
                folders for folders, sources in self._searched if any(source.startswith(inside) for source in sources)
            )
            folder = posixpath.dirname(folder)
        self._near[includer] = found = tuple(dict.fromkeys(found))
        return found

    def _guessed(self, includer: str, target: str) -> str | None:
        """The file of that name nearest to the includer, where no folder of the build holds one."""
        if self._by_base is None:
            by_base: dict[str, list[str]] = defaultdict(list)
            for path in sorted(self._paths()):
                by_base[posixpath.basename(path)].append(path)
            self._by_base = dict(by_base)
        clean = target
        while clean.startswith("../"):
            clean = clean[3:]
        tail = "/" + clean
        matching = [p for p in self._by_base.get(posixpath.basename(clean), ()) if p == clean or p.endswith(tail)]
        if not matching:
            return None
        # Several trees may hold the same header: the one nearest to the includer is meant.
        return max(matching, key=lambda p: (len(posixpath.commonpath([p, includer]) or ""), -len(p), p))
