"""What the user named as the source, as a tree on disk.

In: nothing, a folder, an archive file, ``NAME==VERSION``, or a git revision of the repository around the current
folder. Out: a ``SourceRoot``. An archive, package or revision is unpacked into the cache once; after that, opening it
touches neither the network nor the archive, and imports nothing heavy.

Layout of the cache: ``sources/NAME-VERSION/`` for packages, ``sources/FILE-KEY/`` for archives, ``sources/git-COMMIT/``
for revisions; each is complete or absent.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from opwalker.errors import InputError
from opwalker.model.source import SourceRoot
from opwalker.source.cache import cache_root
from opwalker.source.git import revision
from opwalker.source.identity import identify, wheel_metadata_folder
from opwalker.source.versions import canonical_version, meant_spec, parse_spec

if TYPE_CHECKING:
    from opwalker.source.archive import Progress

#: A folder that holds one of these is the root of a tree that a folder inside it belongs to; the first group is sure.
_ROOT_MARKS = ((".git", "PKG-INFO"), ("pyproject.toml", "setup.py"))

_ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tar", ".zip", ".whl", ".egg")
_KEY_BYTES = 8


def open_source(spec: str | None, *, cache: Path | None = None, progress: Progress | None = None) -> SourceRoot:
    """Open ``spec``, or the tree around the current folder when it is None.

    InputError when there is no such folder, archive, package or version; EnvironmentMissing when the network is needed
    and absent, or the cache cannot be written. ``progress`` is called as ``progress(done, total or None, label)``.
    """
    if spec is None:
        return _open_folder(_enclosing_root())
    if os.path.isdir(spec):
        return _open_folder(os.path.realpath(spec))
    if os.path.lexists(spec):
        return _open_archive(Path(os.path.abspath(spec)), cache or cache_root(), progress)
    package = parse_spec(spec)
    if package is None:
        from opwalker.source.revisions import open_revision

        found = open_revision(spec, _enclosing_root(), cache or cache_root(), progress)
        if found is None:
            raise _not_a_source(spec)
        return found
    return _open_package(*package, cache or cache_root(), progress)


def _open_folder(path: str) -> SourceRoot:
    name, version = identify(path, os.path.basename(path) or "source")
    return SourceRoot(path, name, version, revision(path))


def _open_archive(path: Path, cache: Path, progress: Progress | None) -> SourceRoot:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is neither a folder nor a file")
    from hashlib import blake2b

    # Size and time instead of a digest: reading 100 MB to find out that it is unpacked already takes too long.
    marks = f"{os.path.realpath(path)}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}"
    key = blake2b(marks.encode("utf-8", "surrogateescape"), digest_size=_KEY_BYTES).hexdigest()
    stem = _archive_stem(path.name)
    target = cache / "sources" / f"{stem}-{key}"
    if not target.is_dir():
        from opwalker.source.archive import unpack

        unpack(path, target, progress)
    name, version = identify(str(target), stem)
    return SourceRoot(str(target), name, version, immutable=True)


def _open_package(name: str, version: str, cache: Path, progress: Progress | None) -> SourceRoot:
    called = f"{name}-{canonical_version(version)}"
    target = cache / "sources" / called
    if not target.is_dir():
        from opwalker.source.archive import unpack
        from opwalker.source.fetch import fetch_sdist

        unpack(fetch_sdist(name, version, cache, progress), target, progress)
    found_name, found_version = identify(str(target), called)
    is_wheel = wheel_metadata_folder(str(target)) is not None
    note = f"{name}=={version} was released without a source distribution: this is its wheel" if is_wheel else None
    return SourceRoot(str(target), found_name, found_version or version, immutable=True, note=note)


def _enclosing_root() -> str:
    """The root of the tree that the current folder lies in.

    The nearest checkout or unpacked package around it, else the nearest project, else the folder itself.
    """
    try:
        here = os.getcwd()
    except OSError as error:
        raise InputError("the current folder is gone", "name a source with --source") from error
    for marks in _ROOT_MARKS:
        folder = here
        while True:
            if any(os.path.lexists(os.path.join(folder, mark)) for mark in marks):
                return folder
            parent = os.path.dirname(folder)
            if parent == folder:
                break
            folder = parent
    return here


def _archive_stem(filename: str) -> str:
    """What an archive is called without its suffix; of a wheel, name and version alone."""
    lowered = filename.lower()
    for suffix in _ARCHIVE_SUFFIXES:
        if lowered.endswith(suffix):
            stem = filename[: -len(suffix)]
            return "-".join(stem.split("-")[:2]) if suffix in (".whl", ".egg") else stem
    return filename


def _not_a_source(spec: str) -> InputError:
    """The error for what is neither on disk nor ``NAME==VERSION``, with what was probably meant."""
    meant = None if "/" in spec or os.sep in spec else meant_spec(spec)
    if meant is not None and not meant.endswith("==VERSION"):
        return InputError(f"no folder, archive or git revision {spec!r}", f"for a released package write {meant}")
    near = _near_names(spec)
    if near:
        return InputError(f"no folder, archive or git revision {spec!r}", f"there is {near}")
    if meant is not None:
        return InputError(f"no folder, archive or git revision {spec!r}", f"for a released package write {meant}")
    help = "give a folder, an archive, a git revision or NAME==VERSION"
    return InputError(f"no folder, archive or git revision {spec!r}", help)


def _near_names(spec: str) -> str:
    """Names beside the missing one that look like it, for the message."""
    from difflib import get_close_matches

    folder, name = os.path.split(spec.rstrip("/"))
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return ""
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    return ", ".join(os.path.join(folder, other) for other in near)
