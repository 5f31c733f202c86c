"""Compile databases: how a build that was once made here compiled each file.

In: the root folder of a source. Out: for a path of the tree, the folder and the arguments of its compiler call. Only
read: nothing of what a database names is run, and flags are not judged here.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable

from msgspec import Struct

#: Where a database may lie, below the root; the first one that is there counts.
PLACES = ("compile_commands.json", "build/compile_commands.json")

#: Larger ones are not read: a database has some kilobytes a file.
_MOST_BYTES = 256 << 20


class CompileCommand(Struct, frozen=True):
    """One compiler call: ``arguments`` without the compiler, relative paths in them being relative to ``directory``."""

    directory: str
    arguments: tuple[str, ...]


class CompileDatabase(Struct, frozen=True):
    """A database: where it lies below the root, and the first call for each path of the tree."""

    path: str
    commands: dict[str, CompileCommand]


def find_database(root: str, say: Callable[[str], None]) -> CompileDatabase | None:
    """The database of a source, None where there is none. One that cannot be read is said in one line."""
    for place in PLACES:
        full = os.path.join(root, place)
        if not os.path.isfile(full):
            continue
        try:
            if os.path.getsize(full) > _MOST_BYTES:
                raise ValueError("it is too large")
            with open(full, encoding="utf-8") as file:
                entries = json.load(file)
            return CompileDatabase(place, _commands(root, entries))
        except (OSError, ValueError, RecursionError) as error:
            say(f"{place} is not used, as it cannot be read: {error}")
    return None


def _commands(root: str, entries: object) -> dict[str, CompileCommand]:
    if not isinstance(entries, list):
        raise ValueError("it is no list of compiler calls")
    base = os.path.join(os.path.realpath(root), "")
    found: dict[str, CompileCommand] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            continue
        words = entry.get("arguments")
        if not isinstance(words, list):
            command = entry.get("command")
            words = shlex.split(command) if isinstance(command, str) else []
        directory = os.path.join(root, str(entry.get("directory") or "."))
        full = os.path.realpath(os.path.join(directory, entry["file"]))
        if full.startswith(base) and all(isinstance(word, str) for word in words):
            path = full[len(base) :].replace(os.sep, "/")
            found.setdefault(path, CompileCommand(directory, tuple(words[1:])))
    return found
