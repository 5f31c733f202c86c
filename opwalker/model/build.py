"""What the build files say: targets, their sources, and the macros that are set for them, per kind of build.

``BuildFile`` is one build file as it was read, on its own; ``BuildFacts`` is what all of them come to together.
"""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.source import Problem

#: The kinds of build that are told apart.
BUILDS = ("cuda", "rocm", "cpu")

#: What a target is: an extension module, one that Python compiles when it is first used, a plain library or object
#: library, a program.
TARGET_KINDS = ("module", "jit", "library", "executable")


class BuildArgument(Struct, frozen=True):
    """One argument of a CMake command as written, without its quotes. ``style`` is ``bare``, ``quoted``,
    ``bracket``."""

    text: str
    style: str
    line: int


class BuildCommand(Struct, frozen=True):
    """One CMake command, its name in lower case.

    A block (``if``, ``foreach``, ``function``, ...) holds its commands in ``body``; ``elseif`` and ``else`` follow
    their ``if`` as commands of their own, and the closing commands are left out.
    """

    name: str
    arguments: tuple[BuildArgument, ...]
    line: int
    body: tuple[BuildCommand, ...] = ()


class ProjectExtension(Struct, frozen=True):
    """An extension module that ``pyproject.toml`` or ``setup.cfg`` lists."""

    name: str
    sources: tuple[str, ...]
    defines: tuple[tuple[str, str | None], ...]
    include_dirs: tuple[str, ...]
    line: int


class ProjectFacts(Struct, frozen=True):
    """What ``pyproject.toml`` says about compiling: the CMake cache entries and the folder that it installs to."""

    name: str | None = None
    backend: str | None = None
    cmake_source_dir: str = "."
    cmake_defines: tuple[tuple[str, str], ...] = ()
    install_dir: str | None = None
    extensions: tuple[ProjectExtension, ...] = ()


class BuildFile(Struct, frozen=True):
    """One build file. ``language`` is ``cmake`` (then ``commands``), ``python`` (then ``text``) or ``project``."""

    path: str
    language: str
    commands: tuple[BuildCommand, ...] = ()
    text: str = ""
    project: ProjectFacts | None = None
    problems: tuple[Problem, ...] = ()


class Define(Struct, frozen=True):
    """A preprocessor macro that a build sets. ``condition`` is the build-file condition it stands under, or None.

    ``language`` is set where only the files of one language get it: ``CUDA``, ``HIP``, ``CXX`` or ``C``.
    """

    name: str
    value: str | None
    file: str
    line: int
    condition: str | None = None
    language: str | None = None


class TargetSource(Struct, frozen=True):
    """A source file of a target, with the build-file condition it is added under.

    ``path`` is relative to the root, with ``/``; a file outside the tree keeps the build file's spelling
    (``${dep_SOURCE_DIR}/a.cu``). ``defines`` are those set for this file alone; ``archs`` the CUDA architectures that
    it is compiled for, empty where nothing says.
    """

    path: str
    file: str
    line: int
    condition: str | None = None
    defines: tuple[Define, ...] = ()
    archs: tuple[str, ...] = ()


class Target(Struct, frozen=True):
    """Something that a build compiles, mostly an extension module; see ``TARGET_KINDS``.

    ``name`` is the last component of the module that it makes (``_C``), ``module`` the dotted name where known
    (``vllm._C``). What ``TORCH_EXTENSION_NAME`` stands for is the define of that name, if there is one.
    ``builds`` are the kinds of build that make it in just this way: a target whose sources or macros differ between
    two kinds of build is listed once for each.
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
    kind: str = "module"


class BuildProblem(Struct, frozen=True):
    """A fault or a gap of one build file: what could not be read, found or evaluated there."""

    file: str
    problem: Problem


class BuildFacts(Struct, frozen=True):
    """All targets of a tree, macros set for a whole build (``defines`` by build), and the architectures named.

    ``architectures`` are as the build files spell them (``"9.0a"``), in order of appearance. ``flagged`` are macros
    that flags in Python set, for whatever is built with them.
    """

    targets: tuple[Target, ...] = ()
    defines: tuple[tuple[str, tuple[Define, ...]], ...] = ()
    architectures: tuple[str, ...] = ()
    problems: tuple[BuildProblem, ...] = ()
    flagged: tuple[str, ...] = ()
