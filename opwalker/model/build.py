"""What the build files say: targets, their sources, and the macros that are set for them, per kind of build."""

from __future__ import annotations

from dataclasses import dataclass

#: The kinds of build that are told apart.
BUILDS = ("cuda", "rocm", "cpu")


@dataclass(frozen=True, slots=True)
class Define:
    """A preprocessor macro that a build sets. ``condition`` is the build-file condition it stands under, or None."""

    name: str
    value: str | None
    file: str
    line: int
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class TargetSource:
    """A source file of a target (relative to the root, ``/``), with the build-file condition it is added under."""

    path: str
    file: str
    line: int
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """An extension module that a build makes.

    ``name`` is the module's last component (``_C``): what ``TORCH_EXTENSION_NAME`` stands for in it. ``module`` is
    the dotted name where known (``vllm._C``). ``builds`` are the kinds of build that make it.
    """

    name: str
    module: str | None
    builds: tuple[str, ...]
    sources: tuple[TargetSource, ...]
    defines: tuple[Define, ...]
    include_dirs: tuple[str, ...]
    file: str
    line: int
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """All targets of a tree, macros set for a whole build (``defines`` by build), and the architectures named.

    ``architectures`` are as the build files spell them (``"9.0a"``), in order of appearance.
    """

    targets: tuple[Target, ...] = ()
    defines: tuple[tuple[str, tuple[Define, ...]], ...] = ()
    architectures: tuple[str, ...] = ()
