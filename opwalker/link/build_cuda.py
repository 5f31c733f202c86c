"""CUDA architectures in a build: what a list that is asked for sets, and which ones a list of flags compiles for.

In: architectures as people write them (``9.0a``, ``90a``, ``sm_90a``, ``8.0+PTX``), a toolkit version. Out: variables,
environment and flags as torch's build helpers and CMake would have them; and, read back, architectures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from opwalker.notation.regex import Regex

_DOTTED = Regex(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?\Z", re.IGNORECASE)
_WHOLE = Regex(r"(?:sm_|compute_)?(\d{1,2})(\d)([af]?)\Z", re.IGNORECASE)
_GENCODE = Regex(r"arch=compute_(\d{2,3}[af]?),\s*code=\[?\"?((?:(?:sm|compute|lto)_\d{2,3}[af]?[,\s]*)+)\"?\]?")
_BARE = Regex(r"(?:-arch=|--gpu-architecture=)(?:sm|compute)_(\d{2,3}[af]?)\b")
_CODE = Regex(r"(sm|compute)_(\d{2,3}[af]?)")


def architecture(text: str) -> str | None:
    """The canonical spelling (``9.0a``, ``8.0+PTX``); None for what is none."""
    match = _DOTTED.match(text.strip()) or _WHOLE.match(text.strip())
    if match is None or not 3 <= int(match.group(1)) <= 20:
        return None
    ptx = "+PTX" if match.lastindex == 4 and match.group(4) else ""
    return f"{int(match.group(1))}.{match.group(2)}{match.group(3).lower()}{ptx}"


class AskedArchitectures(Struct, frozen=True):
    """The architectures to build for, in canonical spelling, and the version of the toolkit (``13.0``). ``assumed``
    where nobody has asked for them: then only what a build file says of a file or target itself counts for it."""

    names: tuple[str, ...]
    toolkit: str
    assumed: bool = False

    @property
    def listed(self) -> str:
        """As ``TORCH_CUDA_ARCH_LIST`` has them."""
        return ";".join(self.names)

    @property
    def flags(self) -> str:
        """The flags for nvcc that torch's CMake files make of them."""
        return " ".join(_gencode(name) for name in self.names)

    def variables(self) -> dict[str, str]:
        """CMake variables that a configured machine would have."""
        whole = ";".join(name.removesuffix("+PTX").replace(".", "") for name in self.names)
        return {
            "TORCH_CUDA_ARCH_LIST": self.listed,
            "CMAKE_CUDA_ARCHITECTURES": whole,
            "CMAKE_CUDA_COMPILER_VERSION": self.toolkit,
            "CMAKE_CUDA_COMPILER_ID": "NVIDIA",
            "CUDA_VERSION": self.toolkit,
            "CUDAToolkit_VERSION": self.toolkit,
        }

    def environment(self) -> dict[str, str]:
        """The environment variables that choose architectures."""
        return {"TORCH_CUDA_ARCH_LIST": self.listed}


def _gencode(name: str) -> str:
    number = name.removesuffix("+PTX").replace(".", "")
    flag = f"-gencode arch=compute_{number},code=sm_{number}"
    return f"{flag} -gencode arch=compute_{number},code=compute_{number}" if name.endswith("+PTX") else flag


def compiled_for(texts: Iterable[str]) -> tuple[str, ...]:
    """The architectures that flags name, by number; ``8.0+PTX`` where PTX is made, with or without code."""
    joined = " ".join(texts)
    found: dict[str, bool] = {}
    for match in _GENCODE.finditer(joined):
        for kind, number in _CODE.findall(match.group(2)):
            name = architecture(number)
            if name is not None:
                found[name] = found.get(name, False) or kind == "compute"
    for number in _BARE.findall(joined):
        name = architecture(number)
        if name is not None:
            found.setdefault(name, False)
    return in_order(f"{name}+PTX" if ptx else name for name, ptx in found.items())


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Architectures by number, each once."""
    return tuple(sorted(dict.fromkeys(names), key=_rank))


def architectures(names: Iterable[str]) -> tuple[str, ...]:
    """The architectures that CMake's property names (``"90a-real"``), by number; words such as ``native`` name none."""
    found = (architecture(name.removesuffix("-real").removesuffix("-virtual")) for name in names)
    return in_order(name for name in found if name is not None)


def plain(names: Iterable[str]) -> tuple[str, ...]:
    """The same without what is particular to one architecture or its family."""
    return in_order(name.removesuffix("+PTX").rstrip("af") for name in architectures(names))


def _rank(name: str) -> tuple[int, int, str]:
    major, _, minor = name.partition(".")
    return int(major), int(minor[0]), minor
