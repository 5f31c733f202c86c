"""Which lines of a checkout differ from a revision.

In: a folder in a checkout, and what names a revision. Out: line ranges by path, of files as they lie there now; a file
that git does not know counts as all new. git is asked for objects and names alone: nothing that a repository's settings
name is run, no filter either. It answers while its caller does other things.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from itertools import accumulate
from types import TracebackType

from msgspec import Struct

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.notation.regex import Regex
from opwalker.source.git import git_folder
from opwalker.source.git_process import command, environment

_HUNK = Regex(r"^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_REVISION = Regex(r"[\w@][\w./@{}~^+#=,%-]*")
_SECONDS = 60
#: A diff in one form, whatever the user's settings or the attributes of a file say of it.
_DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--unified=0", "--inter-hunk-context=0", "--no-renames",
    "--text", "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/", "--relative",
)  # fmt: skip
_NEW = ("ls-files", "--others", "--exclude-standard", "-z")
_HELD = ("ls-files", "--stage", "-z")
_FILTERS = ("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process|required)$")
#: How the index says that an entry is another repository.
_SUBMODULE = "160000 "
_WHOLE = ((1, 1 << 31),)

Changes = dict[str, tuple[tuple[int, int], ...]]


class Changed(Struct, frozen=True):
    """``lines``: ranges ``(first, last)`` of lines that were added or changed, by path from the folder that was asked
    about; where lines were taken out, those on either side. ``apart``: the folders below it that are repositories of
    their own, in which nothing is known to have changed."""

    lines: Changes
    apart: tuple[str, ...] = ()


class Asked:
    """What has changed below ``folder`` since ``revision``: asked at once, read when it is wanted. Use it in a
    ``with``: git is stopped where nobody wants to know any more.

    InputError where ``folder`` lies in no checkout or the revision is not known; EnvironmentMissing without git.
    """

    def __init__(self, folder: str, revision: str) -> None:
        if ".." in revision:
            raise InputError(f"{revision!r} names two revisions", "name the one since which code has changed")
        if not _REVISION.fullmatch(revision):
            raise InputError(f"{revision!r} names no revision")
        if not _in_checkout(folder):
            raise InputError(
                f"{folder} is no git checkout, so nothing is known to have changed", "leave --changed-since out"
            )
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        unfiltered = self._unfiltered()
        self._diff = self._ask((*_DIFF, revision, "--", "."), unfiltered)
        self._new = self._ask(_NEW)
        self._held = self._ask(_HELD)

    def __enter__(self) -> Asked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._running:
            if one.poll() is None:
                one.kill()
            one.communicate()

    def answer(self) -> Changed:
        """What git says; it may be asked for once."""
        # First what git says alike of every repository that it does not take: a diff may be one of any two folders.
        held = [entry for entry in self._read(self._held).split("\0") if entry]
        new = [name for name in self._read(self._new).split("\0") if name]
        out = dict(_changed(self._read(self._diff).split("\n")))
        if not new and not held:
            raise InputError(
                f"git keeps nothing below {self._folder}, so nothing is known to have changed",
                "leave --changed-since out",
            )
        out |= {name: _WHOLE for name in new if not name.endswith("/")}
        submodules = (entry.partition("\t")[2] for entry in held if entry.startswith(_SUBMODULE))
        others = (name.rstrip("/") for name in new if name.endswith("/"))
        return Changed(out, tuple(sorted({*submodules, *others})))

    def _unfiltered(self) -> dict[str, str]:
        """Settings by which no filter is run, be it a repository's own. A key may hold any character: as words of a
        command they could not be told apart."""
        keys = [key for key in self._read(self._ask(_FILTERS), quiet=True).split("\0") if key]
        known = os.environ.get("GIT_CONFIG_COUNT", "")
        first = int(known) if known.isdigit() else 0
        out = {"GIT_CONFIG_COUNT": str(first + len(keys))}
        for number, key in enumerate(keys, start=first):
            value = "false" if key.endswith(".required") else ""
            out |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return out

    def _ask(self, words: Sequence[str], more: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        try:
            asked = subprocess.Popen(
                command(self._folder, *words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment() | (more or {}),
            )
        except FileNotFoundError as error:
            raise EnvironmentMissing("git is not installed, and --changed-since asks it") from error
        self._running.append(asked)
        return asked

    def _read(self, asked: subprocess.Popen[bytes], quiet: bool = False) -> str:
        try:
            out, errors = asked.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise InputError(f"git did not answer within {_SECONDS} s") from error
        if asked.returncode and not quiet:
            said = errors.decode("utf-8", "replace").strip().splitlines()
            raise InputError(f"git refuses: {said[0].removeprefix('fatal: ') if said else 'no reason given'}")
        return out.decode("utf-8", "surrogateescape")


def lines_of_python(text: str, ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges of lines as git counts them, as Python does: to it, a carriage return alone ends a line as well."""
    pieces = text.split("\n")
    held = [one.removesuffix("\r").count("\r") for one in pieces[:-1]] + [pieces[-1].count("\r")]
    if not any(held):
        return tuple(ranges)
    above = [0, *accumulate(held)]
    last = len(pieces)
    return tuple((a + above[min(a, last) - 1], b + above[min(b, last)]) for a, b in ranges)


def _in_checkout(folder: str) -> bool:
    """Whether a folder, or one above it, is the top of a checkout."""
    while git_folder(folder) is None:
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return True


def _changed(lines: Sequence[str]) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """The changed ranges of each file of a diff. What stands in a hunk is counted: a line may look like a head."""
    path, ranges, inside = "", [], 0
    for line in lines:
        if inside and line[:1] in ("+", "-"):
            inside -= 1
        elif line.startswith("+++ "):
            if path and ranges:
                yield path, tuple(ranges)
            path, ranges = _path(line[4:]), []
        elif found := _HUNK.match(line):
            first, count = int(found[2]), int(found[3] or 1)
            inside = int(found[1] or 1) + count
            ranges.append((first, first + count - 1) if count else (max(first, 1), first + 1))
    if path and ranges:
        yield path, tuple(ranges)


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
