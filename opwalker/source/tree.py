"""The folder that an archive is unpacked into, while it is being filled.

In: members, one by one. Out: files on disk, and which folder becomes the root. It decides nothing about safety or worth
(see ``members``); it counts, writes, and turns the disk's refusals into errors.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from opwalker.errors import InputError, OpwalkerError
from opwalker.source.cache import write_error
from opwalker.source.discover import IGNORED_FOLDERS
from opwalker.source.members import Unsafe, is_wanted, is_wanted_content, safe_path, shown

MAX_MEMBERS = 300_000

_NAME_ERRNOS = {errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}
_SHAPE_ERRNOS = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR}
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)


class Tree:
    """A new folder at ``path``. Its methods raise InputError, EnvironmentMissing or Unsafe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: set[str] = {""}
        #: Every file of the archive by path, and whether it was written.
        self._files: dict[str, bool] = {}
        self._tops: set[str] = set()
        self._file_on_top = False
        self._count = 0
        try:
            os.mkdir(path)
        except OSError as error:
            raise write_error(error, path.parent) from error

    def admit(self, name: str) -> str:
        """The safe path of the next member, which is counted."""
        self._count += 1
        if self._count > MAX_MEMBERS:
            raise InputError(f"it holds more than {MAX_MEMBERS} members")
        path = safe_path(name)
        top = path.partition("/")[0]
        if top and top[0] != "." and top not in IGNORED_FOLDERS:
            self._tops.add(top)
        return path

    def wants(self, path: str, size: int) -> bool:
        """Whether the content of the file at ``path`` is worth reading."""
        if not path:
            raise Unsafe("a file without a name")
        if "/" not in path and path[0] != ".":
            self._file_on_top = True
        self._files[path] = False
        return is_wanted(path, size)

    def write(self, path: str, pieces: Iterator[bytes]) -> None:
        """Write a wanted file, unless its first piece shows that it is binary. Of two of one name the later stands."""
        head = next(pieces, b"")
        if not is_wanted_content(path, head):
            return
        try:
            handle = os.open(self._place(path), _CREATE, 0o644)
            try:
                _write_all(handle, head)
                for piece in pieces:
                    _write_all(handle, piece)
            finally:
                os.close(handle)
        except OSError as error:
            raise self._failure(error, path) from error
        self._files[path] = True

    def link(self, path: str, target: str) -> None:
        """A hard link: a second name for a member that came before. Without content when that one was not written."""
        if target not in self._files:
            raise Unsafe(f"a link to what is not in it ({shown(path)} -> {shown(target)})")
        written = self._files[target]
        if path == target or not self.wants(path, 0) or not written:
            return
        try:
            place = self._place(path)
            if os.path.lexists(place):
                os.unlink(place)
            os.link(os.path.join(self.path, target), place)
        except OSError as error:
            raise self._failure(error, path) from error
        self._files[path] = True

    def root(self) -> Path:
        """What becomes the root: the single folder at the top, else the whole."""
        if self._file_on_top or len(self._tops) != 1:
            return self.path
        only = self.path / next(iter(self._tops))
        return only if only.is_dir() else self.path

    def _place(self, path: str) -> str:
        folder = path.rpartition("/")[0]
        if folder not in self._made:
            os.makedirs(os.path.join(self.path, folder), exist_ok=True)
            self._made.add(folder)
        return os.path.join(self.path, path)

    def _failure(self, error: OSError, path: str) -> OpwalkerError:
        if error.errno in _NAME_ERRNOS:
            return InputError(f"it holds a name that this disk does not take ({shown(path)})")
        if error.errno in _SHAPE_ERRNOS:
            return InputError(f"it holds a path that is both a file and a folder ({shown(path)})")
        return write_error(error, self.path.parent)


def _write_all(handle: int, data: bytes) -> None:
    done = os.write(handle, data)
    while done < len(data):
        done += os.write(handle, data[done:])
