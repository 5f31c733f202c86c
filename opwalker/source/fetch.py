"""Released packages from a package index, into the cache. No setup code of a package is ever run.

In: a name and a version. Out: paths of complete files, their digests compared with the index's. What was fetched
before is used again without asking the network. Unpacking is for ``archive``.

Layout of the cache: ``downloads/NAME/VERSION/`` holds the one file that stands for the sources,
``wheels/NAME/VERSION/`` the wheels.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.source.cache import make_folder, write_error
from opwalker.source.index_settings import VARIABLE, IndexSettings, index_settings
from opwalker.source.versions import canonical_version, normalise_name

if TYPE_CHECKING:
    import requests
    from pypi_simple import DigestMismatchError, DistributionPackage, PyPISimple

    from opwalker.source.archive import Progress

#: The processors that wheels are fetched for; the first where nothing is said.
MACHINES = ("x86_64", "aarch64")
#: No wheel is larger: package indexes stop far below.
MAX_WHEEL_BYTES = 8 * 1024**3

TRIES = 3
FIRST_PAUSE_SECONDS = 0.5
#: Connecting, and waiting for the next bytes.
TIMEOUT_SECONDS = (10.0, 60.0)

_SDIST_SUFFIXES = (".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz")
_PART = ".part"
_SHOWN_VERSIONS = 5

T = TypeVar("T")


def fetch_sdist(name: str, version: str, cache: Path, progress: Progress | None = None) -> Path:
    """The source distribution of ``name`` at ``version``; its wheel when it has none (see the suffix of the path).

    InputError for an unknown package or version, EnvironmentMissing without network or without room.
    """
    folder = _folder(cache, "downloads", name, version)
    kept = _complete(folder)
    if kept:
        return kept[0]
    with _Index(cache) as index:
        released = index.files(name, version)
        sdists = [file for file in released if file.package_type == "sdist" and file.filename.endswith(_SDIST_SUFFIXES)]
        sdists.sort(key=lambda file: next(n for n, end in enumerate(_SDIST_SUFFIXES) if file.filename.endswith(end)))
        chosen = sdists or _by_preference([file for file in released if file.package_type == "wheel"])
        if not chosen:
            raise InputError(f"{name}=={version} was released with neither sources nor wheels")
        return index.download(chosen[0], folder, progress)


def fetch_wheels(
    name: str, version: str, cache: Path, progress: Progress | None = None, machine: str = MACHINES[0]
) -> list[Path]:
    """The wheels of ``name`` at ``version`` for 64-bit Linux on ``machine`` or any platform, sorted by file name.

    Where there is one wheel for each Python, only those of the newest Python are fetched. InputError when there
    is none, or one is larger than ``MAX_WHEEL_BYTES``.
    """
    folder = _folder(cache, "wheels", name, version)
    if machine != MACHINES[0]:
        folder = folder.with_name(f"{folder.name}-{machine}")
    kept = _complete(folder)
    if kept:
        return kept
    with _Index(cache) as index:
        released = [file for file in index.files(name, version) if file.package_type == "wheel"]
        wheels = _for_linux(released, machine)
        if not wheels:
            others = sorted({file.filename.removesuffix(".whl").rpartition("-")[2] for file in released})
            told = f"its wheels are for {', '.join(others)}" if others else "it was released without wheels"
            raise InputError(f"{name}=={version} has no wheel for 64-bit Linux on {machine}", told)
        for wheel in wheels:
            if (wheel.size or 0) > MAX_WHEEL_BYTES:
                raise InputError(
                    f"{wheel.filename} is {wheel.size / 1e9:.1f} GB large", "no wheel of that size is fetched"
                )
        # All are fetched into another folder first: a killed run must not leave half of them looking complete.
        staged = folder.with_name(f"{folder.name}-{os.getpid()}{_PART}")
        try:
            for wheel in wheels:
                index.download(wheel, staged, progress)
            os.rename(staged, folder)
        except OSError as error:
            if not _complete(folder):
                raise write_error(error, folder.parent) from error
        finally:
            if staged.exists():
                import shutil

                shutil.rmtree(staged, ignore_errors=True)
    return _complete(folder)


def _folder(cache: Path, part: str, name: str, version: str) -> Path:
    return cache / part / normalise_name(name) / canonical_version(version)


def _complete(folder: Path) -> list[Path]:
    """The files in ``folder`` that were fetched to the end."""
    try:
        return sorted(folder / name for name in os.listdir(folder) if not name.endswith(_PART))
    except OSError:
        return []


_ANY, _GLIBC, _MUSL, _OTHER = range(4)


def _platform(filename: str, machine: str = MACHINES[0]) -> int:
    """What a wheel runs on: any platform, 64-bit Linux on ``machine`` by its C library, or something else."""
    tag = filename.removesuffix(".whl").rpartition("-")[2]
    if tag == "any":
        return _ANY
    if "linux" in tag and machine in tag:
        return _MUSL if "musllinux" in tag else _GLIBC
    return _OTHER


def _newness(filename: str) -> int:
    """Greater for a newer Python; a wheel for many Pythons counts as newer than any for one."""
    *_, python, abi, _ = filename.removesuffix(".whl").split("-")
    if abi in ("abi3", "none") or not python.startswith("cp"):
        return 1000
    # cp39 is older than cp310: the first digit is the major version. A free-threaded build is a variant of its version.
    minor = python[3:]
    return 2 * int(minor) - abi.endswith("t") if minor.isdigit() else 0


def _by_preference(wheels: list[DistributionPackage]) -> list[DistributionPackage]:
    """The wheel to read sources from first: for any platform before Linux before others, the newest Python first."""
    return sorted(wheels, key=lambda file: (_platform(file.filename), -_newness(file.filename), file.filename))


def _for_linux(wheels: list[DistributionPackage], machine: str) -> list[DistributionPackage]:
    """Of the wheels for any platform and of those for Linux, the ones for the newest Python."""
    names = [file.filename for file in wheels]
    platforms = {_ANY, _GLIBC} if any(_platform(name, machine) == _GLIBC for name in names) else {_ANY, _MUSL}
    chosen: list[DistributionPackage] = []
    for platform in sorted(platforms):
        fitting = [file for file in wheels if _platform(file.filename, machine) == platform]
        newest = max((_newness(file.filename) for file in fitting), default=0)
        chosen += [file for file in fitting if _newness(file.filename) == newest]
    return chosen


class _Index:
    """The configured package indexes, asked in turn, with retries."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._settings = index_settings()
        self._client = _client(self._settings.urls[0], self._settings)

    def __enter__(self) -> _Index:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.s.close()

    def files(self, name: str, version: str) -> list[DistributionPackage]:
        """The files of one release, from the first index that has it. Downloads then go through that index's client."""
        from pypi_simple import NoSuchProjectError

        wanted = canonical_version(version)
        versions: list[str] = []
        for number, url in enumerate(self._settings.urls):
            if number:
                self._client.s.close()
                self._client = _client(url, self._settings)
            try:
                page = self._try(lambda: self._client.get_project_page(name, timeout=TIMEOUT_SECONDS))
            except NoSuchProjectError:
                continue
            released = [file for file in page.packages if file.version and canonical_version(file.version) == wanted]
            if released:
                return released
            versions += [file.version for file in page.packages if file.version]
        if versions:
            raise _no_such_version(name, version, versions)
        raise _no_such_package(name, self._cache)

    def download(self, file: DistributionPackage, folder: Path, progress: Progress | None) -> Path:
        """Fetch one file into ``folder``; it appears there when it is complete and its digest is right."""
        if os.path.basename(file.filename) != file.filename or file.filename.startswith("."):
            raise InputError(f"the package index names a file {file.filename!r}, which is no file name")
        make_folder(folder)
        target = folder / file.filename
        part = folder / f"{file.filename}.{os.getpid()}{_PART}"
        try:
            self._try(
                lambda: self._client.download_package(
                    file,
                    part,
                    # An index of bare files may give no digest that is known here; then there is nothing to compare.
                    verify=not hashlib.algorithms_available.isdisjoint(file.digests),
                    progress=lambda size: _Tracker(file.filename, size, progress),
                    timeout=TIMEOUT_SECONDS,
                )
            )
            os.replace(part, target)
        except OSError as error:
            raise write_error(error, folder) from error
        finally:
            part.unlink(missing_ok=True)
        return target

    def _try(self, act: Callable[[], T]) -> T:
        """Do it, up to three times when the network or the other side is at fault."""
        import requests
        from pypi_simple import DigestMismatchError, UnsupportedRepoVersionError

        tried = 0
        while True:
            tried += 1
            try:
                return act()
            except (DigestMismatchError, requests.RequestException) as error:
                if tried == TRIES or not _may_pass(error):
                    raise EnvironmentMissing(_network_fault(error), self._hint()) from error
            except (ValueError, UnsupportedRepoVersionError) as error:
                raise EnvironmentMissing(_NO_LIST, self._hint()) from error
            time.sleep(FIRST_PAUSE_SECONDS * 2 ** (tried - 1))

    def _hint(self) -> str:
        named = self._settings.named_by
        where = f"the index is set by {named}" if named else f"{VARIABLE} sets another index"
        return f"check the network ({where}), or give a folder or an archive as the source"


_NO_LIST = "the package index answers with something that is no package list"


def _network_fault(error: requests.RequestException | DigestMismatchError) -> str:
    """What went wrong, in words that carry no address: an address may hold credentials."""
    import requests

    if not isinstance(error, requests.RequestException):
        return f"a download came damaged {TRIES} times: its digest is not the one that the index gives"
    if isinstance(error, requests.exceptions.InvalidJSONError):
        return _NO_LIST
    if isinstance(error, ValueError):
        return "the address of the package index is not valid"
    if error.response is not None:
        return f"the package index answers with status {error.response.status_code}"
    if isinstance(error, requests.exceptions.SSLError):
        what = "its certificate is not trusted"
    elif isinstance(error, requests.Timeout):
        what = "it does not answer in time"
    else:
        what = "no connection"
    return f"the package index cannot be reached: {what}"


def _may_pass(error: requests.RequestException | DigestMismatchError) -> bool:
    """Whether the same request may go better next time."""
    import requests

    if not isinstance(error, requests.RequestException):
        return True
    if isinstance(error, ValueError):
        return False
    response = error.response
    return response is None or response.status_code == 429 or response.status_code >= 500


class _Tracker:
    """pypi-simple's progress protocol, passed on to ours."""

    def __init__(self, filename: str, size: int | None, progress: Progress | None) -> None:
        self._label = f"fetching {filename}"
        self._size = size
        self._progress = progress
        self._done = 0

    def __enter__(self) -> _Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, increment: int) -> None:
        self._done += increment
        if self._progress is not None:
            self._progress(self._done, self._size, self._label)


def _client(url: str | None, settings: IndexSettings) -> PyPISimple:
    """A client for one index. Credentials in its address go to that host alone, never to where the files lie."""
    from urllib.parse import unquote, urlsplit, urlunsplit

    from pypi_simple import PyPISimple

    parts = urlsplit(url or "")
    host = parts.netloc.rpartition("@")[2]
    client = PyPISimple(urlunsplit(parts._replace(netloc=host))) if url else PyPISimple()
    if settings.certificates and os.path.exists(settings.certificates):
        client.s.verify = settings.certificates
    if parts.username:
        from requests import PreparedRequest
        from requests.auth import HTTPBasicAuth

        basic = HTTPBasicAuth(unquote(parts.username), unquote(parts.password or ""))

        def authorise(request: PreparedRequest) -> PreparedRequest:
            return basic(request) if urlsplit(request.url or "").netloc == host else request

        client.s.auth = authorise
    return client


def _no_such_version(name: str, version: str, versions: list[str]) -> InputError:
    from difflib import get_close_matches

    from packaging.version import InvalidVersion, Version

    def order(text: str) -> tuple[int, Version]:
        try:
            return 1, Version(text)
        except InvalidVersion:
            return 0, Version("0")

    known = sorted(dict.fromkeys(versions), key=order, reverse=True)
    newest = known[:_SHOWN_VERSIONS]
    near = [close for close in get_close_matches(version, known, n=3, cutoff=0.8) if close not in newest]
    text = "the newest are " + ", ".join(newest)
    if near:
        text += "; the nearest " + ", ".join(near)
    return InputError(f"{name} has no version {version}", text)


def _no_such_package(name: str, cache: Path) -> InputError:
    """An index has no search, so near names come from what is known here: earlier fetches and installed packages."""
    from difflib import get_close_matches
    from importlib.metadata import distributions

    known: set[str] = set()
    for part in ("downloads", "wheels"):
        try:
            known.update(os.listdir(cache / part))
        except OSError:
            continue
    for distribution in distributions():
        installed = distribution.metadata["Name"]
        if installed:
            known.add(normalise_name(installed))
    near = get_close_matches(normalise_name(name), sorted(known), n=3, cutoff=0.7)
    help = f"nearest known here: {', '.join(near)}" if near else "check the spelling, or give a folder or an archive"
    return InputError(f"the package index has no package {name}", help)
