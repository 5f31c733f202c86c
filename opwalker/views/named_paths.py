"""Which files and folders of a source a user's words name.

In: the top of a source, the paths of the files that were read, and words of a command. Out: paths from the top. What
lies in the source and was not read may be named too; nothing is looked for outside it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from opwalker.errors import InputError


def named_paths(top: str, known: Collection[str], words: Sequence[str]) -> tuple[str, ...]:
    """The paths that words name, seen from the top of a source or else from the current folder; ``.`` for the top.

    InputError for a word that names nothing in the source: a misspelt path would read as one where nothing is wrong.
    """
    return tuple(_named(top, known, word) for word in words)


def _named(top: str, known: Collection[str], word: str) -> str:
    tried = (top, word), (os.path.realpath(top), os.path.realpath(word))
    for start, path in tried:
        found = os.path.relpath(os.path.join(start, path), start).replace(os.sep, "/")
        inside = found != ".." and not found.startswith("../")
        if inside and (found in known or os.path.lexists(os.path.join(top, found))):
            return found
    raise InputError(f"{word!r} names no file or folder of this source", "paths are seen from the top of the source")


def lies_below(file: str, paths: Sequence[str]) -> bool:
    """Whether a file is one of some paths or lies below one; without any paths, every file does."""
    return not paths or any(
        path in ("", ".") or file == path or file.startswith(path.rstrip("/") + "/") for path in paths
    )
