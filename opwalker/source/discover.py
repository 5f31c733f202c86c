"""Which files of a tree are read.

In: a ``SourceRoot``. Out: a ``Discovery``: its source files by path, with size, time and language, and the problems
met. No file is opened here except ``.gitignore`` and the git index of a checkout. Left out: hidden folders, version
control, caches, virtual environments, build output, and what git ignores. Symbolic links to folders are not followed:
what they point to inside the root is found at its own place.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from opwalker.errors import InputError
from opwalker.model.source import FileEntry, Problem, SourceRoot
from opwalker.source.languages import language_of

if TYPE_CHECKING:
    from opwalker.source.git import IgnoreRules

#: Files above this size are generated data; they become a problem instead of filling the memory of a worker.
MAX_FILE_BYTES = 64 * 1024 * 1024

#: Folders that never hold a tree's own sources. Hidden folders are left out as well.
IGNORED_FOLDERS = frozenset(("__pycache__", "node_modules", "CVS", "_darcs", "__MACOSX"))

#: A folder with one of these inside is an installed environment.
_ENVIRONMENT_MARKS = frozenset(("pyvenv.cfg", "conda-meta"))

#: A folder called like this is build output when it also looks like it inside.
_BUILD_NAMES = ("build", "_build", "cmake-build")
_BUILD_MARKS = frozenset(("CMakeCache.txt", "build.ninja"))
_BUILD_MARK_STARTS = ("lib.", "temp.", "bdist.")


class Discovery(Struct, frozen=True):
    """``entries`` sorted by path; ``problems`` as (path, problem), sorted by path."""

    entries: tuple[FileEntry, ...]
    problems: tuple[tuple[str, Problem], ...] = ()


def discover(root: SourceRoot) -> Discovery:
    """List the files of ``root`` that some stage reads. InputError when the root itself cannot be listed."""
    walk = _Walk(root)
    walk.run()
    return walk.result()


class _Walk:
    """One pass over a tree, from the top down."""

    def __init__(self, root: SourceRoot) -> None:
        self._root = root.path
        self._real_root = os.path.realpath(root.path)
        # The ignore file of an unpacked archive says what its authors kept out of git, not out of the release.
        self._use_git = not root.immutable and os.path.lexists(os.path.join(root.path, ".git"))
        self._found: dict[str, FileEntry] = {}
        self._problems: list[tuple[str, Problem]] = []
        self._links: list[tuple[str, str, str]] = []
        self._stack: list[tuple[str, str, IgnoreRules | None]] = [(root.path, "", None)]

    def run(self) -> None:
        stack = self._stack
        while stack:
            folder, prefix, rules = stack.pop()
            try:
                with os.scandir(folder) as listing:
                    items = list(listing)
            except OSError as error:
                if not prefix:
                    raise InputError(f"cannot list the source folder {folder}: {_reason(error)}") from error
                self._problem(prefix[:-1], "unreadable", f"the folder cannot be listed: {_reason(error)}")
                continue
            names = {item.name for item in items}
            if prefix and _is_output(prefix, names):
                continue
            if self._use_git:
                rules = _rules_for(folder, prefix, names, rules)
            self._read_folder(items, prefix, rules)
        self._resolve_links()

    def result(self) -> Discovery:
        entries = tuple(self._found[path] for path in sorted(self._found))
        return Discovery(entries, tuple(sorted(self._problems, key=lambda pair: (pair[0], pair[1].kind))))

    def _read_folder(self, items: list[os.DirEntry[str]], prefix: str, rules: IgnoreRules | None) -> None:
        for item in items:
            name = item.name
            if name[0] == ".":
                continue
            language = language_of(name)
            if item.is_dir(follow_symlinks=False):
                if name not in IGNORED_FOLDERS:
                    self._enter(item.path, prefix + name, rules)
                continue
            if item.is_symlink():
                if name not in IGNORED_FOLDERS:
                    self._note_link(item, prefix + name, language, rules)
                continue
            if language is None:
                continue
            path = prefix + name
            if rules is not None and rules.ignores(path, False):
                continue
            self._regular(item, path, language)

    def _enter(self, folder: str, path: str, rules: IgnoreRules | None) -> None:
        if rules is not None and rules.ignores(path, True):
            return
        if self._printable(path):
            self._stack.append((folder, path + "/", rules))

    def _regular(self, item: os.DirEntry[str], path: str, language: str) -> None:
        """Note a file that is no link, or the problem that it has."""
        if not self._printable(path):
            return
        try:
            if not item.is_file(follow_symlinks=False):
                self._problem(path, "unreadable", "not a regular file")
                return
            status = item.stat(follow_symlinks=False)
        except OSError as error:
            self._problem(path, "unreadable", _reason(error))
            return
        self._add(path, status, language)

    def _add(self, path: str, status: os.stat_result, language: str) -> None:
        if status.st_size > MAX_FILE_BYTES:
            megabytes, limit = status.st_size / (1024 * 1024), MAX_FILE_BYTES // (1024 * 1024)
            self._problem(path, "too-large", f"{megabytes:.0f} MB is above the limit of {limit} MB")
            return
        self._found[path] = FileEntry(path, status.st_size, status.st_mtime_ns, language)

    def _problem(self, path: str, kind: str, message: str) -> None:
        self._problems.append((path, Problem(kind, message)))

    def _printable(self, path: str) -> bool:
        """Names that are no UTF-8 cannot be printed as JSON or stored, so they are named once and left out."""
        if path.isascii():
            return True
        try:
            path.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(path).decode("utf-8", "backslashreplace")
            self._problem(shown, "bad-name", "the name is not UTF-8")
            return False
        return True

    def _note_link(self, item: os.DirEntry[str], path: str, language: str | None, rules: IgnoreRules | None) -> None:
        """A symbolic link: out of the root it is a problem, inside it is settled when all files are known."""
        if not self._printable(path) or (rules is not None and rules.ignores(path, False)):
            return
        try:
            target = os.path.realpath(item.path, strict=True)
            is_folder = os.path.isdir(target)
        except OSError as error:
            if language is not None:
                self._problem(path, "unreadable", f"a link that leads nowhere: {_reason(error)}")
            return
        if not is_folder and language is None:
            return
        inside = os.path.relpath(target, self._real_root).replace(os.sep, "/")
        if inside == ".." or inside.startswith("../"):
            what = "folder" if is_folder else "file"
            self._problem(path, "outside-root", f"a link to a {what} outside the source")
        elif not is_folder and language is not None:
            self._links.append((path, inside, language))

    def _resolve_links(self) -> None:
        """A link to a file that was found is a duplicate of it; the first to a file that no walk meets is read."""
        settled = {path for path, _ in self._problems} | self._found.keys() if self._links else set()
        for path, target, language in sorted(self._links):
            if target in settled:
                continue
            settled.add(target)
            try:
                status = os.stat(os.path.join(self._root, path))
            except OSError as error:
                self._problem(path, "unreadable", _reason(error))
                continue
            self._add(path, status, language)


def _is_output(prefix: str, names: set[str]) -> bool:
    """Whether the folder that holds ``names`` is an environment or what a build left behind."""
    if not _ENVIRONMENT_MARKS.isdisjoint(names):
        return True
    folder = prefix[prefix.rfind("/", 0, -1) + 1 : -1]
    if not folder.startswith(_BUILD_NAMES):
        return False
    return not _BUILD_MARKS.isdisjoint(names) or any(name.startswith(_BUILD_MARK_STARTS) for name in names)


def _rules_for(folder: str, prefix: str, names: set[str], rules: IgnoreRules | None) -> IgnoreRules | None:
    """The ignore rules that hold below ``folder``: a nested checkout starts anew, a ``.gitignore`` adds to them."""
    starts_checkout = ".git" in names
    has_file = ".gitignore" in names
    if not starts_checkout and (rules is None or not has_file):
        return rules
    from opwalker.source.git import Checkout, IgnoreRules

    if starts_checkout or rules is None:
        return IgnoreRules(Checkout(folder, prefix), None, folder, prefix, has_file)
    return IgnoreRules(rules.checkout, rules, folder, prefix, True)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
