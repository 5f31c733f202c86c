"""Which lines of a checkout differ from a revision.

In: the top of a checkout, and what names a revision. Out: line ranges by path, of files as they lie there now; a file
that git does not know counts as all new. git is asked for objects and names alone; nothing its settings name is run.
"""

from __future__ import annotations

import os
import subprocess

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.notation.regex import Regex
from opwalker.source.git import git_folder

_HUNK = Regex(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_REVISION = Regex(r"[\w@][\w./@{}~^+-]*")
_SECONDS = 60
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never")
_WHOLE = ((1, 1 << 31),)

Changes = dict[str, tuple[tuple[int, int], ...]]


def changed_lines(top: str, revision: str) -> Changes:
    """Ranges ``(first, last)`` of lines that were added or changed since ``revision``, by path from ``top``.

    InputError where ``top`` lies in no checkout or the revision is not known; EnvironmentMissing without git.
    """
    if not _REVISION.fullmatch(revision):
        raise InputError(f"{revision!r} names no revision")
    if git_folder(top) is None:
        raise InputError(f"{top} is no git checkout, so nothing is known to have changed", "leave --changed-since out")
    words = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--unified=0", "--no-renames", revision, "--")
    out: Changes = {}
    path = ""
    for line in _git(top, *words).splitlines():
        if line.startswith("+++ "):
            path = _path(line[4:])
        elif path and (found := _HUNK.match(line)):
            first, count = int(found[1]), int(found[2] or 1)
            if count:
                out[path] = (*out.get(path, ()), (first, first + count - 1))
    for name in _git(top, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
        if name:
            out[name] = _WHOLE
    return out


def _path(text: str) -> str:
    """The path of a ``+++`` line; empty for a file that is gone."""
    plain = text.split("\t")[0]
    if plain.startswith('"') and plain.endswith('"'):
        plain = (
            plain[1:-1]
            .encode("latin-1", "backslashreplace")
            .decode("unicode_escape")
            .encode("latin-1")
            .decode("utf-8", "surrogateescape")
        )
    return plain[2:] if plain.startswith("b/") else ""


def _git(top: str, *words: str) -> str:
    environment = os.environ | {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", top, *_QUIET, *words], capture_output=True, env=environment, timeout=_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise EnvironmentMissing("git is not installed, and --changed-since asks it") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"git did not answer within {_SECONDS} s") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(f"git refuses: {said[0].removeprefix('fatal: ') if said else 'no reason given'}")
    return done.stdout.decode("utf-8", "surrogateescape")
