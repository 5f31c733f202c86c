"""What sets the kinds of build apart before any file is read: variables, packages, languages, torch's own facts.

All of it is data. A build is the default build of its kind: options have their defaults, environment variables are
unset, and what the tables here say is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from opwalker.link.build_cuda import AskedArchitectures


class Seed(NamedTuple):
    """Names that match ``pattern`` have this value in each kind of build. ``tells`` names the kind that only a library
    that knows of it would ask about."""

    pattern: re.Pattern[str]
    cuda: str
    rocm: str
    cpu: str
    tells: str | None = None


def _seed(pattern: str, cuda: str, rocm: str, cpu: str, tells: str | None = None) -> Seed:
    return Seed(re.compile(pattern), cuda, rocm, cpu, tells)


#: CMake variables and Python names. The first pattern that matches the whole name counts.
VARIABLES = (
    _seed(r".*TARGET_DEVICE", "cuda", "rocm", "cpu", "rocm"),
    _seed(r"(CUDA|CUDAToolkit)_FOUND|TORCH_CUDA_FOUND", "TRUE", "FALSE", "FALSE", "cuda"),
    _seed(r"(HIP|hip|ROCM|rocm)_FOUND|PYTORCH_FOUND_HIP", "FALSE", "TRUE", "FALSE", "rocm"),
    _seed(r"(.*_)?(USE|WITH|ENABLE|BUILD|HAS|HAVE)_CUDA", "ON", "OFF", "OFF", "cuda"),
    _seed(r"(.*_)?(USE|WITH|ENABLE|BUILD|HAS|HAVE)_(ROCM|HIP)", "OFF", "ON", "OFF", "rocm"),
    _seed(r"(.*_)?(CPU_ONLY|ONLY_CPU)", "OFF", "OFF", "ON", "cpu"),
)

#: Names whose truth alone is asked, as in ``if(HIP)``: as a value each of them may as well be a plain word.
SWITCHES = (
    _seed(r"CUDA(_ENABLED|_AVAILABLE)?", "ON", "", "", "cuda"),
    _seed(r"(ROCM|HIP)(_ENABLED|_AVAILABLE)?", "", "ON", "", "rocm"),
)

#: Packages of ``find_package`` that only one kind of build finds.
PACKAGES = {
    "CUDA": "cuda",
    "CUDAToolkit": "cuda",
    "CUDNN": "cuda",
    "cudnn": "cuda",
    "NCCL": "cuda",
    "NVSHMEM": "cuda",
    "HIP": "rocm",
    "hip": "rocm",
    "ROCM": "rocm",
    "rocblas": "rocm",
    "hipblas": "rocm",
    "hipblaslt": "rocm",
    "rccl": "rocm",
}

#: Languages of ``project`` and ``enable_language`` that only one kind of build has.
LANGUAGES = {"CUDA": "cuda", "HIP": "rocm"}

#: What torch and its build helpers say, by the end of the dotted name: the truth of the value in each kind of build.
#: The last entry is the kind that only a library that knows of it would ask about.
TORCH_FACTS: dict[str, tuple[bool, bool, bool, str]] = {
    "torch.version.hip": (False, True, False, "rocm"),
    "torch.version.cuda": (True, False, False, "cuda"),
    "torch.cuda.is_available": (True, True, False, "cuda"),
    "cpp_extension.CUDA_HOME": (True, False, False, "cuda"),
    "cpp_extension.ROCM_HOME": (False, True, False, "rocm"),
    "cpp_extension.HIP_HOME": (False, True, False, "rocm"),
    "cpp_extension.IS_HIP_EXTENSION": (False, True, False, "rocm"),
    "torch.xpu.is_available": (False, False, False, "xpu"),
    "torch.backends.mps.is_available": (False, False, False, "mps"),
}

#: Names that a library imports from a file of its own for the same facts.
PYTHON_NAMES = (
    _seed(r"(.*\.)?_?(IS|is)_(ROCM|rocm|HIP|hip)(_pytorch|_build)?", "", "1", "", "rocm"),
    _seed(r"(.*\.)?_?(IS|is)_(CUDA|cuda)(_build)?", "1", "", "", "cuda"),
)

_COLUMNS = {"cuda": 1, "rocm": 2, "cpu": 3}


@lru_cache(maxsize=20000)
def _row(name: str, table: tuple[Seed, ...]) -> Seed | None:
    return next((seed for seed in table if seed.pattern.fullmatch(name)), None)


class Seeds:
    """The values that are given for one kind of build, and which kinds were asked about (``asked``).

    ``cuda`` are the architectures to build for where some were asked for; without, they are left undecided.
    """

    def __init__(
        self, build: str, extra: Mapping[str, str], asked: set[str], cuda: AskedArchitectures | None = None
    ) -> None:
        self.build = build
        self.asked = asked
        self.cuda = cuda if build == "cuda" else None
        self.environment = self.cuda.environment() if self.cuda else {}
        self._extra = {**self.cuda.variables(), **extra} if self.cuda else extra
        self._column = _COLUMNS[build]

    def variable(self, name: str) -> str | None:
        """The given value of a variable, or None."""
        found = self._extra.get(name)
        return found if found is not None else self._from(name, VARIABLES)

    def switch(self, name: str) -> bool | None:
        """The truth of a name that no file gives a value, where it is used as a condition by itself; or None."""
        value = self._from(name, SWITCHES)
        return None if value is None else bool(value)

    def python_name(self, name: str) -> bool | None:
        """The truth that a name of a Python build file has in this kind of build, or None."""
        for suffix, fact in TORCH_FACTS.items():
            if name == suffix or name.endswith("." + suffix):
                self.asked.add(fact[3])
                return fact[self._column - 1]
        value = self._from(name, PYTHON_NAMES)
        return None if value is None else bool(value)

    def package(self, name: str) -> bool | None:
        """Whether ``find_package`` finds it: None for packages that say nothing about the kind of build."""
        return self._only(PACKAGES.get(name))

    def language(self, name: str) -> bool | None:
        """Whether a build of this kind has the language; None for those that say nothing about it."""
        return self._only(LANGUAGES.get(name))

    def _only(self, build: str | None) -> bool | None:
        if build is None:
            return None
        self.asked.add(build)
        return build == self.build

    def _from(self, name: str, table: tuple[Seed, ...]) -> str | None:
        seed = _row(name, table)
        if seed is None:
            return None
        if seed.tells:
            self.asked.add(seed.tells)
        return seed[self._column]
