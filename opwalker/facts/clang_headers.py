"""The headers of torch and CUDA that are installed on this machine, found without importing or running anything.

In: nothing but the environment. Out: ``Headers``: include folders and versions. What is not there is None.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator

from msgspec import Struct

from opwalker import resources
from opwalker.facts import clang_library

#: The shim of clang's own headers, for a library that comes without them.
_OWN = "grammars/clang/include"
PRELUDE = "grammars/clang/prelude.h"

#: What the prelude counts as where no CUDA is installed: the newest that opwalker reads sources for.
_CUDA_ASSUMED = 13000

#: Where the toolkit's own installer puts it.
CUDA_HOME = "/usr/local/cuda"

#: The language standard where no flag says: what torch's newest headers ask for.
_STANDARD = "-std=c++20"


class Headers(Struct, frozen=True):
    """Absolute include folders: of torch (``torch``, with its ``torch_version``), of CUDA (``cuda``, with
    ``cuda_version`` as ``CUDA_VERSION`` counts it), of Python (``python``)."""

    torch: tuple[str, ...] = ()
    torch_version: str | None = None
    cuda: tuple[str, ...] = ()
    cuda_version: int | None = None
    python: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        """All of them, in the order in which they are searched."""
        return (*self.torch, *self.cuda, *self.python)


def find_headers() -> Headers:
    """What is installed: in this Python, in an active environment, or where CUDA is commonly put."""
    torch, version = _torch()
    # The toolkit that is found first counts; what it lacks (a library's headers) the others may have.
    places = [found for found in _cuda_folders() if found]
    whole = [found for found in places if os.path.isfile(os.path.join(found[0], "cuda_runtime.h"))]
    cuda = tuple(dict.fromkeys(folder for found in (*whole[:1], *places) for folder in found if os.path.isdir(folder)))
    cuda = cuda if whole else ()
    python = os.path.join(sys.base_prefix, "include", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return Headers(
        torch,
        version,
        cuda,
        _cuda_version(cuda[0]) if cuda else None,
        (python,) if os.path.isfile(os.path.join(python, "Python.h")) else (),
    )


def _torch() -> tuple[tuple[str, ...], str | None]:
    for folder in _package_folders("torch"):
        include = os.path.join(folder, "include")
        if os.path.isfile(os.path.join(include, "torch", "extension.h")) or os.path.isdir(
            os.path.join(include, "torch", "csrc")
        ):
            api = os.path.join(include, "torch", "csrc", "api", "include")
            return tuple(f for f in (include, api) if os.path.isdir(f)), _torch_version(folder)
    return (), None


def _torch_version(folder: str) -> str | None:
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
            found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", file.read(), re.MULTILINE)
    except OSError:
        return None
    return found[1] if found else None


def _package_folders(name: str) -> Iterator[str]:
    """Where a package lies: in this Python, then in the active environment, where opwalker has one of its own."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is not None:
        yield from found.submodule_search_locations or ()
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix:
            pattern = os.path.join(glob.escape(prefix), "lib", "python3*", "site-packages", name)
            yield from sorted(glob.glob(pattern))


def _cuda_folders() -> Iterator[tuple[str, ...]]:
    """Include folders of CUDA, the best one of each place first."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    compiler = shutil.which("nvcc")
    if compiler:
        homes.append(os.path.dirname(os.path.dirname(os.path.realpath(compiler))))
    for home in (*homes, CUDA_HOME):
        if home:
            yield _with_library(os.path.join(home, "include"))
    for folder in _package_folders("nvidia"):
        # One folder a component up to CUDA 12 (cuda_runtime, cublas, …), one for all since (cu13).
        found = sorted(glob.glob(os.path.join(glob.escape(folder), "*", "include")))
        found.sort(key=lambda f: not os.path.isfile(os.path.join(f, "cuda_runtime.h")))
        if found:
            yield (*_with_library(found[0]), *found[1:])


def _with_library(include: str) -> tuple[str, ...]:
    """An include folder with that of the C++ core libraries in it, which moved there with CUDA 13."""
    inner = os.path.join(include, "cccl")
    return (include, inner) if os.path.isdir(inner) else (include,)


def _cuda_version(include: str) -> int | None:
    try:
        with open(os.path.join(include, "cuda.h"), encoding="utf-8", errors="replace") as file:
            found = re.search(r"#\s*define\s+CUDA_VERSION\s+(\d+)", file.read())
    except OSError:
        return None
    return int(found[1]) if found else None


def base_arguments(path: str, headers: Headers, as_device: bool | None = None) -> tuple[str, ...]:
    """The arguments that any unit is read with; ``as_device`` says that a file is device code whatever its name.

    Macros, include folders and the standard of its build go behind these and win.
    """
    own = clang_library.resources()
    builtin = ("-resource-dir", own) if own else ("-nobuiltininc", "-isystem", _own_headers())
    common = (*builtin, _STANDARD, "-ferror-limit=0", "-w", "-fsyntax-only")
    if not (path.endswith(".cu") if as_device is None else as_device):
        return ("-x", "c++", *common)
    cuda = headers.cuda_version or _CUDA_ASSUMED
    return (
        *("-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-Xclang", "-target-sdk-version=12.0"),
        *common,
        *(f"-DOPWALKER_CUDA={cuda}", "-include", str(resources.path(PRELUDE))),
    )


def _own_headers() -> str:
    return str(resources.path(f"{_OWN}/stddef.h").parent)


def system_arguments(headers: Headers) -> tuple[str, ...]:
    """The include folders of what is installed, searched last."""
    return tuple(word for folder in headers.folders for word in ("-isystem", folder))
