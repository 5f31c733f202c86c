"""The files of a source tree as a build sees them: absolute paths, what exists, what a pattern matches.

In: the paths of the tree, relative to its root. Out: answers about paths. The tree lies at a made-up absolute place,
so that a build file's own path arithmetic works on it; nothing is read from disk.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property, lru_cache

from opwalker.link.build_values import MARK

#: Where the tree and its build folder lie for the evaluators.
ROOT = "/@source"
BINARY = "/@binary"

#: A pattern that matches more files than this is cut off.
MAX_MATCHES = 5000


def absolute(path: str) -> str:
    """The made-up absolute path of a path of the tree."""
    return f"{ROOT}/{path}" if path not in ("", ".") else ROOT


def resolve(path: str, directory: str) -> str:
    """``path`` as an absolute path, normalised; a relative one starts at ``directory`` (absolute)."""
    if MARK in path:
        return path
    return posixpath.normpath(path if path.startswith("/") else f"{directory}/{path}")


class Tree:
    """The paths of one source tree."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._paths)

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(self._paths)

    @cached_property
    def _folders(self) -> frozenset[str]:
        found: set[str] = {""}
        for path in self._paths:
            folder = posixpath.dirname(path)
            while folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)

    def relative(self, path: str) -> str | None:
        """The path below the root of an absolute path, or None if it lies elsewhere."""
        if path == ROOT:
            return ""
        return path[len(ROOT) + 1 :] if path.startswith(ROOT + "/") else None

    def is_file(self, path: str) -> bool | None:
        """Whether an absolute path is a file of the tree; None for paths outside it, which nobody can tell."""
        relative = self.relative(path)
        return None if relative is None else relative in self._files

    def is_folder(self, path: str) -> bool | None:
        relative = self.relative(path)
        return None if relative is None else relative in self._folders

    def exists(self, path: str) -> bool | None:
        relative = self.relative(path)
        return None if relative is None else relative in self._files or relative in self._folders

    def matching(self, pattern: str, any_depth: bool = False) -> list[str]:
        """The absolute paths that match a glob; ``**`` crosses folders. ``any_depth`` looks below the folder too."""
        relative = self.relative(pattern)
        if relative is None or MARK in relative:
            return []
        if any_depth:
            folder, name = posixpath.split(relative)
            relative = f"{folder}/**/{name}" if folder else f"**/{name}"
        regex = glob_regex(relative)
        prefix = re.split(r"[*?\[]", relative, maxsplit=1)[0]
        found: list[str] = []
        for index in range(bisect_left(self._sorted, prefix), len(self._sorted)):
            path = self._sorted[index]
            if not path.startswith(prefix) or len(found) >= MAX_MATCHES:
                break
            if regex.fullmatch(path):
                found.append(absolute(path))
        return found


@lru_cache(maxsize=2000)
def glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob over whole paths: ``*`` and ``?`` stay within one folder, ``**/`` is any number of folders."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            parts.append("(?:[^/]+/)*")
            position += 3
        elif pattern[position] == "*":
            parts.append("[^/]*")
            position += 2 if pattern.startswith("**", position) else 1
        elif pattern[position] == "?":
            parts.append("[^/]")
            position += 1
        elif pattern[position] == "[" and "]" in pattern[position + 2 :]:
            end = pattern.index("]", position + 2)
            inside = pattern[position + 1 : end].replace("\\", "\\\\")
            inside = "^" + inside[1:] if inside[0] == "!" else inside
            parts.append(f"[{inside}]")
            position = end + 1
        else:
            parts.append(re.escape(pattern[position]))
            position += 1
    try:
        return re.compile("".join(parts))
    except re.error:
        return re.compile(re.escape(pattern))
