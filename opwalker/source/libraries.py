"""The shared libraries that a user named: files, what lies in folders, members of wheels.

In: paths. Out: ``LibraryFile`` values, each of which can be had as a file on disk for as long as it is read. Of one
module built for several Pythons the newest is taken, of equal files one; what a wheel tool put in beside the package's
own libraries is left out. A member of a wheel is unpacked alone, into a temporary file.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.errors import InputError
from opwalker.notation.regex import Regex
from opwalker.source.cache import make_folder, write_error
from opwalker.source.members import Unsafe, safe_path, shown

if TYPE_CHECKING:
    from opwalker.source.archive import Progress

#: The largest library that is unpacked; the largest published ones are a third of it.
MAX_LIBRARY_BYTES = 4 << 30
_LIBRARY = Regex(r"[^/]+\.so(?:\.\d+)*\Z")
#: Folders in which tools that repair wheels put other people's libraries.
_BUNDLED = Regex(r"(?:^|/)[^/]+\.libs/")
_TAGGED = Regex(r"\.(?:cpython-(?P<minor>\d+)t?(?:-[\w-]+)?|abi3|pypy[\w-]+)(?=\.so\Z)")
_PIECE = 4 << 20
_ARCHIVES = (".whl", ".zip", ".egg")


class LibraryFile(Struct, frozen=True):
    """One library. ``called`` is its path in the wheel or as given, ``key`` tells its contents from others', ``also``
    are the paths of what is the same module for other Pythons, or the same file again; ``named`` says that the user
    named this very file."""

    called: str
    size: int
    key: str
    place: Path
    member: str | None = None
    also: tuple[str, ...] = field(default=())
    named: bool = False

    @contextlib.contextmanager
    def on_disk(self, cache: Path, progress: Progress | None = None) -> Iterator[Path]:
        """The library as a file, which is there until the block ends."""
        if self.member is None:
            yield self.place
            return
        folder = cache / "libraries"
        make_folder(folder)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            target = Path(made) / "library.so"
            _unpack(self, target, progress)
            yield target


def find_libraries(paths: Sequence[str]) -> tuple[LibraryFile, ...]:
    """The libraries that ``paths`` name, sorted by path. InputError for a path that is nothing of the kind."""
    found: list[LibraryFile] = []
    single: list[LibraryFile] = []
    for path in paths:
        if os.path.isdir(path):
            inside = list(_in_folder(Path(path)))
            if not inside:
                raise InputError(f"no shared library lies in {path}")
            found += inside
        elif path.lower().endswith(_ARCHIVES):
            found += _in_wheel(Path(path))
        else:
            single.append(replace(_file(Path(path), path), named=True))
    found += _below_their_folder(single)
    return tuple(sorted(_distinct(found), key=lambda one: one.called))


def _below_their_folder(files: list[LibraryFile]) -> list[LibraryFile]:
    """Files that were named one by one go by their paths below the folder that holds all of them."""
    places = [os.path.abspath(one.place) for one in files]
    common = os.path.commonpath([os.path.dirname(place) for place in places]) if places else ""
    return [
        replace(one, called=os.path.relpath(place, common).replace(os.sep, "/"))
        for one, place in zip(files, places, strict=True)
    ]


def _file(path: Path, called: str) -> LibraryFile:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"cannot read {called}: {(error.strerror or str(error)).lower()}") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{called} is no file")
    key = f"{os.path.realpath(path)}:{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
    return LibraryFile(called, status.st_size, key, path)


def _in_folder(folder: Path) -> Iterator[LibraryFile]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            called = path.relative_to(folder).as_posix()
            if _LIBRARY.match(name) and path.is_file() and not _BUNDLED.search(called):
                yield _file(path, called)


def _in_wheel(wheel: Path) -> Iterator[LibraryFile]:
    import zipfile

    status = _file(wheel, str(wheel))
    try:
        with zipfile.ZipFile(wheel) as bundle:
            members = bundle.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, LookupError, NotImplementedError) as error:
        raise InputError(f"{wheel.name} is damaged or no wheel: {error}") from error
    for member in members:
        try:
            called = safe_path(member.orig_filename)
        except Unsafe as error:
            raise InputError(f"{wheel.name} is refused: it holds {error}") from error
        if not _LIBRARY.search(called) or _BUNDLED.search(called) or member.is_dir():
            continue
        if stat.S_ISLNK(member.external_attr >> 16):
            continue
        if member.file_size > MAX_LIBRARY_BYTES:
            raise InputError(f"{wheel.name} is refused: {shown(called)} is larger than any library")
        key = f"{status.key}:{member.CRC:08x}:{member.file_size}"
        yield LibraryFile(called, member.file_size, key, wheel, member.filename)


def _distinct(found: Iterable[LibraryFile]) -> list[LibraryFile]:
    """One library for each module, and each file once."""
    groups: dict[str, list[LibraryFile]] = {}
    for one in found:
        groups.setdefault(_TAGGED.sub("", one.called), []).append(one)
    chosen: dict[str, LibraryFile] = {}
    for same in groups.values():
        newest = max(same, key=lambda one: (_minor(one.called), one.called))
        others = tuple(sorted(one.called for one in same if one is not newest))
        content = newest.key.partition(":")[2] if newest.member else newest.key
        if content in chosen:
            first = chosen[content]
            chosen[content] = replace(first, also=(*first.also, newest.called, *others))
        else:
            chosen[content] = replace(newest, also=others)
    return list(chosen.values())


def _minor(called: str) -> int:
    tagged = _TAGGED.search(called)
    number = tagged["minor"] if tagged else None
    # cp39 is older than cp310: the first digit is the major version.
    return int(number[1:] or 0) if number else 0


def _unpack(library: LibraryFile, target: Path, progress: Progress | None) -> None:
    import zipfile

    done = 0
    try:
        with (
            zipfile.ZipFile(library.place) as bundle,
            bundle.open(library.member or "") as data,
            target.open("wb") as out,
        ):
            while piece := data.read(_PIECE):
                out.write(piece)
                done += len(piece)
                if progress is not None:
                    progress(done, library.size, f"unpacking {library.called}")
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{library.place.name} is damaged: {library.called} cannot be unpacked") from error
    except OSError as error:
        raise write_error(error, target.parent) from error
