"""A revision of a git repository as a tree on disk, without a checkout.

In: what may name a revision (``HEAD~3``, a tag, a branch, a commit), and a folder in the repository. Out: a
``SourceRoot``, its files written to the cache once per commit. git is asked for objects alone: no filter, hook, text
conversion or network transfer that a repository's settings may name is run.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.model.source import SourceRoot
from opwalker.notation.regex import Regex
from opwalker.source.git import git_folder
from opwalker.source.git_process import command, environment
from opwalker.source.identity import identify
from opwalker.source.members import Unsafe

if TYPE_CHECKING:
    from opwalker.source.archive import Progress
    from opwalker.source.tree import Tree

_PIECE = 4 * 1024**2
_SECONDS = 120
#: What a revision may look like: git itself decides, but an option or a path must not reach it.
_REVISION = Regex(r"[\w@][\w./@{}~^+-]*")
_BLOB = Regex(rb"(\d{6}) blob ([0-9a-f]+) +(\d+)\t(.*)", re.DOTALL)
_LINK = b"120000"


def open_revision(spec: str, folder: str, cache: Path, progress: Progress | None = None) -> SourceRoot | None:
    """The tree of revision ``spec`` of the repository whose top is ``folder``; None where it names no revision there.

    InputError when git refuses to read the repository; EnvironmentMissing when git is not installed.
    """
    if git_folder(folder) is None or not _REVISION.fullmatch(spec) or ".." in spec:
        return None
    commit = _commit(folder, spec)
    if commit is None:
        return None
    name, _ = identify(folder, os.path.basename(folder) or "source")
    target = cache / "sources" / f"git-{commit}"
    if not target.is_dir():
        from opwalker.source.archive import make_tree

        make_tree(target, lambda tree: _written(tree, target, folder, commit, spec, progress))
    found, version = identify(str(target), name)
    return SourceRoot(str(target), found if found != target.name else name, version, commit, immutable=True)


def _written(tree: Tree, target: Path, folder: str, commit: str, spec: str, progress: Progress | None) -> Path:
    """Writes the files of a commit; the whole of the tree is its root, however few folders it has."""
    try:
        entries = [entry for entry in _entries(folder, commit) if tree.wants(tree.admit(entry[0]), entry[2])]
        with _batch(folder) as asked:
            assert asked.stdin is not None and asked.stdout is not None
            for number, (path, blob, _) in enumerate(entries):
                if progress is not None:
                    progress(number, len(entries), f"reading {spec}")
                asked.stdin.write(blob + b"\n")
                asked.stdin.flush()
                pieces = _content(asked.stdout, spec)
                tree.write(path, pieces)
                for _ in pieces:  # a file that was not wanted after all is read to its end
                    pass
            asked.stdin.close()
    except Unsafe as error:
        raise InputError(f"revision {spec} is refused: it holds {error}") from error
    return tree.path


def _entries(folder: str, commit: str) -> Iterator[tuple[str, bytes, int]]:
    """``(path, blob, size)`` of every file of a commit; links and submodules are left out."""
    listed = _git(folder, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    if listed.returncode:
        raise InputError(f"git cannot list {commit[:12]}: {_said(listed.stderr)}")
    for record in listed.stdout.split(b"\0"):
        found = _BLOB.fullmatch(record)
        if found is not None and found[1] != _LINK:
            yield os.fsdecode(found[4]), found[2], int(found[3])


def _content(out: IO[bytes], spec: str) -> Iterator[bytes]:
    """The pieces of the next object in a batch; at the end the batch stands before the one after."""
    head = out.readline().split()
    if len(head) != 3 or not head[2].isdigit():
        raise InputError(f"a file of revision {spec} is missing from the repository", "fetch it with git first")
    left = int(head[2])
    while left:
        piece = out.read(min(left, _PIECE))
        if not piece:
            raise InputError(f"git stopped while revision {spec} was read")
        left -= len(piece)
        yield piece
    out.read(1)


def _commit(folder: str, spec: str) -> str | None:
    answer = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{spec}^{{commit}}")
    if answer.returncode == 0:
        return answer.stdout.decode("ascii", "replace").strip()
    said = _said(answer.stderr)
    if "dubious ownership" in said:
        raise InputError(f"git does not read {folder}: {said}", "see git's safe.directory")
    return None


def _git(folder: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command(folder, *words), capture_output=True, env=environment(), timeout=_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise EnvironmentMissing("git is not installed, and a revision can be read with it alone") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"git did not answer within {_SECONDS} s") from error


def _batch(folder: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(folder, "cat-file", "--batch"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )


def _said(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else "no reason given"
