"""What a git checkout says about itself, read from its files: the revision, and which files it ignores.

In: the path of a folder that holds ``.git`` (a folder, or the file that a worktree or submodule has). Out: a commit id,
and ``IgnoreRules`` for a walk from the top down. No git process is started; user-wide ignore files are not looked at.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from opwalker.notation.regex import Regex

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_COMMIT = Regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = Regex(r"refs/[^\s~^:?*\[\\]+")

# Fixed part of an index entry up to its flags: ten 32-bit words and the object id.
_ENTRY_STAT_BYTES = 40
_SHA1_BYTES = 20
_SHA256_BYTES = 32
_EXTENDED = 0x4000
_NAME_LENGTH = 0x0FFF


def git_folder(top: str) -> str | None:
    """The folder that holds HEAD and the index of the checkout at ``top``, or None when it is no checkout."""
    path = os.path.join(top, ".git")
    if os.path.isdir(path):
        return path
    text = _text(path)
    if text is None or not text.startswith("gitdir:"):
        return None
    folder = os.path.join(top, text[len("gitdir:") :].strip())
    return folder if os.path.isdir(folder) else None


def revision(top: str) -> str | None:
    """The commit that is checked out at ``top``; None without git, before a first commit, or when it is unreadable."""
    folder = git_folder(top)
    if folder is None:
        return None
    head = (_text(os.path.join(folder, "HEAD")) or "").strip()
    if not head.startswith("ref:"):
        return head if _COMMIT.fullmatch(head) else None
    ref = head[len("ref:") :].strip()
    if not _REF.fullmatch(ref) or ".." in ref:
        return None
    common = (_text(os.path.join(folder, "commondir")) or "").strip()
    shared = os.path.join(folder, common) if common else folder
    for base in dict.fromkeys((folder, shared)):
        loose = (_text(os.path.join(base, ref)) or "").strip()
        if _COMMIT.fullmatch(loose):
            return loose
    for line in (_text(os.path.join(shared, "packed-refs")) or "").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _COMMIT.fullmatch(commit):
            return commit
    return None


class Checkout:
    """The files that a checkout tracks, read from its index when first asked for.

    A tracked file is never ignored, whatever ``.gitignore`` says; so the index decides first, which is also faster
    than matching every file against every pattern.
    """

    def __init__(self, top: str, prefix: str) -> None:
        self._top = top
        self.prefix = prefix
        self._tracked: tuple[frozenset[str], frozenset[str]] | None = None

    def tracks(self, path: str, is_folder: bool) -> bool:
        """Whether ``path`` (relative to the source root) is a tracked file, or a folder that holds one."""
        if self._tracked is None:
            folder = git_folder(self._top)
            data = _bytes(os.path.join(folder, "index")) if folder else None
            files = index_paths(data) if data else ()
            self._tracked = (frozenset(files), frozenset(_parents(files)))
        return path[len(self.prefix) :] in self._tracked[1 if is_folder else 0]


class IgnoreRules:
    """The ignore file of one folder (if it has one) and, by ``parent``, those above it in the same checkout.

    Made while walking down; patterns are compiled when the first untracked path asks for them.
    """

    def __init__(
        self, checkout: Checkout, parent: IgnoreRules | None, folder: str, prefix: str, has_file: bool
    ) -> None:
        self.checkout = checkout
        self._parent = parent
        self._folder = folder
        self._prefix = prefix
        self._has_file = has_file
        self._any_file: bool = has_file or (parent is not None and parent._any_file)
        self._spec: GitIgnoreSpec | None = None

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Whether git leaves ``path`` (relative to the source root) out. Folders above it are taken as not ignored."""
        if not self._any_file or self.checkout.tracks(path, is_folder):
            return False
        rules: IgnoreRules | None = self
        while rules is not None:
            verdict = rules._verdict(path, is_folder) if rules._has_file else None
            if verdict is not None:
                return verdict
            rules = rules._parent
        return False

    def _verdict(self, path: str, is_folder: bool) -> bool | None:
        if self._spec is None:
            from pathspec import GitIgnoreSpec

            text = _text(os.path.join(self._folder, ".gitignore")) or ""
            self._spec = _compiled(GitIgnoreSpec, text.splitlines())
        below = path[len(self._prefix) :]
        return self._spec.check_file(below + "/" if is_folder else below).include


def _compiled(spec_class: type[GitIgnoreSpec], lines: list[str]) -> GitIgnoreSpec:
    """The patterns of one file; a line that is no valid pattern is passed over, as git does."""
    try:
        return spec_class.from_lines(lines)
    except ValueError:
        if len(lines) == 1:
            return spec_class.from_lines([])
    good = [line for line in lines if _compiled(spec_class, [line]).patterns]
    return spec_class.from_lines(good)


def index_paths(data: bytes) -> tuple[str, ...]:
    """The paths in a git index (versions 2 to 4); empty for an index in a form that cannot be read (split, damaged)."""
    if data[:4] != b"DIRC" or len(data) < 12:
        return ()
    version, count = struct.unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        return ()
    for id_bytes in (_SHA1_BYTES, _SHA256_BYTES):
        try:
            return _entries(data, version, count, id_bytes)
        except (IndexError, ValueError, struct.error):
            continue
    return ()


def _entries(data: bytes, version: int, count: int, id_bytes: int) -> tuple[str, ...]:
    """Raises ValueError, IndexError or struct.error when the bytes do not fit this layout."""
    paths: list[str] = []
    flags_at = _ENTRY_STAT_BYTES + id_bytes
    at = 12
    previous = b""
    for _ in range(count):
        flags = (data[at + flags_at] << 8) | data[at + flags_at + 1]
        name_at = at + flags_at + (4 if version >= 3 and flags & _EXTENDED else 2)
        if version == 4:
            cut, name_at = _offset_number(data, name_at)
            end = data.index(0, name_at)
            name = previous[: len(previous) - cut] + data[name_at:end]
            previous = name
            following = end + 1
        else:
            length = flags & _NAME_LENGTH
            end = name_at + length if length < _NAME_LENGTH else data.index(0, name_at)
            name = data[name_at:end]
            # Entries are padded with 1 to 8 NULs to a multiple of eight bytes.
            following = at + ((end - at + 8) & ~7)
        if data[end] != 0 or not name:
            raise ValueError("not an index entry")
        paths.append(os.fsdecode(name))
        at = following
    return tuple(paths)


def _offset_number(data: bytes, at: int) -> tuple[int, int]:
    """git's variable-length number (each continuation adds one), and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _parents(paths: tuple[str, ...]) -> set[str]:
    """Every folder above one of ``paths``."""
    folders: set[str] = set()
    for path in paths:
        cut = path.rfind("/")
        while cut > 0:
            path = path[:cut]
            if path in folders:
                break
            folders.add(path)
            cut = path.rfind("/")
    return folders


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _text(path: str) -> str | None:
    data = _bytes(path)
    return None if data is None else data.decode("utf-8", "surrogateescape")
