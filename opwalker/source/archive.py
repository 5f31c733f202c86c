"""Unpacking an archive of sources, safely and all or nothing.

In: a ``.tar.gz``, ``.tar.xz``, ``.tar.bz2``, ``.tar``, ``.zip`` or ``.whl`` file (judged by its first bytes). Out: a
folder that appears complete or not at all. Which members are written says ``members``; a single top folder becomes the
root. Refused with one line and nothing left behind: paths and links out of the tree, devices and pipes, bombs, damage.
"""

from __future__ import annotations

import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from opwalker.errors import InputError
from opwalker.source.cache import make_folder, write_error
from opwalker.source.members import Unsafe, check_link, is_wanted, safe_path, shown
from opwalker.source.streams import MAGIC, BoundedStream, Damaged, allowed_bytes, bomb
from opwalker.source.tree import Tree

if TYPE_CHECKING:
    from tarfile import TarInfo
    from zipfile import ZipFile, ZipInfo

#: What is said about a long step: bytes done, bytes in all if known, and a label.
Progress = Callable[[int, int | None, str], None]

_PIECE = 4 * 1024**2
_BLOCK = 512
_CHECKSUM = slice(148, 156)
_PARTIAL = ".partial"
_STALE_SECONDS = 24 * 3600
_LONGEST_LINK = 4096
_ENCRYPTED = 0x1

#: What ``tarfile`` and ``zipfile`` raise on damaged or forged data besides their own errors.
_PARSE_ERRORS = (ValueError, LookupError, ArithmeticError, RuntimeError, EOFError, OSError, zlib.error)


def archive_kind(path: Path) -> str | None:
    """``"gzip"``, ``"xz"``, ``"bzip2"``, ``"zip"`` or ``"plain"`` (a bare tar) by the first bytes; None for no archive.

    Raises InputError when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_BLOCK)
    except OSError as error:
        raise InputError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    for kind, magic in MAGIC.items():
        if head.startswith(magic):
            return kind
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "plain" if _is_tar_header(head) else None


def unpack(archive: Path, target: Path, progress: Progress | None = None) -> None:
    """Unpack ``archive`` into the new folder ``target``.

    When another process has made ``target`` meanwhile, that one stands. Raises InputError for an archive that is
    damaged, unsafe or none; EnvironmentMissing when the disk is full or cannot be written. Nothing is left behind.
    """
    kind = archive_kind(archive)
    if kind is None:
        raise InputError(
            f"{archive} is no archive that can be read", "give a folder, or a .tar.gz, .tar.xz, .tar.bz2, .zip or .whl"
        )

    def write(tree: Tree) -> Path:
        _fill(tree, archive, kind, progress)
        return tree.root()

    make_tree(target, write)


def make_tree(target: Path, write: Callable[[Tree], Path]) -> None:
    """Make the folder ``target``, complete or not at all: what ``write`` puts into a tree and names as its root.

    When another process has made it meanwhile, that one stands. EnvironmentMissing when the disk cannot be written.
    """
    make_folder(target.parent)
    _sweep(target.parent)
    partial = target.parent / f".{target.name}-{os.getpid()}-{os.urandom(4).hex()}{_PARTIAL}"
    try:
        root = write(Tree(partial))
        try:
            os.rename(root, target)
        except OSError as error:
            if not target.is_dir():
                raise write_error(error, target.parent) from error
    finally:
        _remove(partial)


def _fill(tree: Tree, archive: Path, kind: str, progress: Progress | None) -> None:
    """Write the members of ``archive``; whatever is wrong with it becomes an InputError that names it."""
    try:
        with archive.open("rb") as opened:
            file = _Counted(opened, os.fstat(opened.fileno()).st_size, f"unpacking {archive.name}", progress)
            if kind == "zip":
                _fill_from_zip(tree, file)
            else:
                _fill_from_tar(tree, BoundedStream(file, kind, file.size))
    except Unsafe as error:
        raise InputError(f"{archive.name} is refused: it holds {error}") from error
    except InputError as error:
        raise InputError(f"{archive.name} is refused: {error.message}", error.help) from error
    except (Damaged, OSError) as error:
        raise InputError(f"{archive.name} is damaged or no source archive: {error}") from error


def _fill_from_tar(tree: Tree, stream: BoundedStream) -> None:
    import tarfile

    try:
        # Any: the stream can read and seek, all that is used of a file; ``members`` is missing from the type stubs.
        tar: Any = tarfile.TarFile(fileobj=cast(Any, stream), mode="r")
        while (member := tar.next()) is not None:
            # The list of members is kept by tarfile for its own random access, which is not needed here.
            tar.members.clear()
            _take_tar_member(tree, stream, member)
        # tarfile takes a damaged header behind the first for the end; the real end is a block of zeros.
        if stream.last_read.strip(b"\0"):
            raise Damaged("a header in it is damaged")
        stream.drain()
    except (tarfile.TarError, *_PARSE_ERRORS) as error:
        raise Damaged(str(error)) from error


def _take_tar_member(tree: Tree, stream: BoundedStream, member: TarInfo) -> None:
    path = tree.admit(member.name)
    if member.size < 0:
        raise Damaged(f"a size below zero ({shown(path)})")
    if member.isdir():
        return
    if member.issym():
        check_link(path, member.linkname)
    elif member.islnk():
        tree.link(path, safe_path(member.linkname))
    elif not member.isreg():
        raise Unsafe(f"a device, pipe or other member that is no file ({shown(path)})")
    elif member.issparse():
        # Its data does not stand in the stream as it is; no tool that packs sources makes one of a text.
        if is_wanted(path, member.size):
            raise Unsafe(f"a sparse file ({shown(path)})")
    elif tree.wants(path, member.size):
        tree.write(path, _tar_pieces(stream, member.size))


def _tar_pieces(stream: BoundedStream, size: int) -> Iterator[bytes]:
    while size:
        piece = stream.read(min(size, _PIECE))
        if not piece:
            raise Damaged("it ends too soon")
        size -= len(piece)
        yield piece


def _fill_from_zip(tree: Tree, file: _Counted) -> None:
    import zipfile

    try:
        with zipfile.ZipFile(file) as bundle:
            members = bundle.infolist()
            allowed = allowed_bytes(file.size)
            # zipfile gives no member more bytes than its header says, so the headers can be trusted as a limit.
            if sum(member.file_size for member in members) > allowed:
                raise bomb(allowed)
            for member in members:
                _take_zip_member(tree, bundle, member)
    except (zipfile.BadZipFile, *_PARSE_ERRORS) as error:
        raise Damaged(str(error)) from error


def _take_zip_member(tree: Tree, bundle: ZipFile, member: ZipInfo) -> None:
    # The original name: zipfile cuts the other one at a NUL byte.
    path = tree.admit(member.orig_filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if member.flag_bits & _ENCRYPTED:
        raise InputError(f"it is encrypted ({shown(path)})")
    if kind == stat.S_IFLNK:
        if member.file_size > _LONGEST_LINK:
            raise Unsafe(f"a link with a target of {member.file_size} bytes ({shown(path)})")
        check_link(path, bundle.read(member).decode("utf-8", "surrogateescape"))
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Unsafe(f"a device, pipe or other member that is no file ({shown(path)})")
    elif not member.is_dir() and kind != stat.S_IFDIR and tree.wants(path, member.file_size):
        tree.write(path, _zip_pieces(bundle, member))


def _zip_pieces(bundle: ZipFile, member: ZipInfo) -> Iterator[bytes]:
    try:
        with bundle.open(member) as data:
            while piece := data.read(_PIECE):
                yield piece
    except OSError as error:
        # Told apart from an error of the disk that is written to.
        raise Damaged(str(error)) from error


class _Counted:
    """The archive file, with its reads reported as progress."""

    def __init__(self, file: IO[bytes], size: int, label: str, progress: Progress | None) -> None:
        self._file = file
        self.size = size
        self._label = label
        self._progress = progress
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if self._progress is not None:
            self._progress(self._file.tell(), self.size, self._label)
        return data


def _is_tar_header(head: bytes) -> bool:
    """Whether ``head`` is a tar header: its checksum field is right, taken as signed or unsigned bytes."""
    if len(head) < _BLOCK:
        return False
    try:
        expected = int(head[_CHECKSUM].strip(b" \0") or b"x", 8)
    except ValueError:
        return False
    blanked = head[: _CHECKSUM.start] + b" " * 8 + head[_CHECKSUM.stop :]
    unsigned = sum(blanked)
    return expected in (unsigned, unsigned - 256 * sum(byte > 127 for byte in blanked))


def _sweep(folder: Path) -> None:
    """Remove what killed runs left behind more than a day ago, as far as that is possible."""
    limit = time.time() - _STALE_SECONDS
    for path in folder.glob(f".*{_PARTIAL}"):
        try:
            stale = path.lstat().st_mtime < limit
        except OSError:
            continue
        if stale:
            _remove(path)


def _remove(folder: Path) -> None:
    if os.path.lexists(folder):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
