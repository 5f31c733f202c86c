"""Which files say how a library is built, and one such file read on its own.

In: a path and a text. Out: a ``BuildFile``. CMake files come as commands, ``pyproject.toml`` as facts; of a Python
file the text is kept, since what it makes depends on other files, and evaluated while linking.
"""

from __future__ import annotations

import posixpath

from opwalker.facts.build_cmake import read_cmake
from opwalker.facts.build_project import read_project
from opwalker.facts.build_words import makes_extensions
from opwalker.model.build import BuildFile
from opwalker.notation.regex import Regex

_PROJECT = Regex(r"pyproject(?:[_-]\w+)?\.toml\Z")
_SETUP = Regex(r"setup(?:[_-]\w+)?\.py\Z")

#: Larger ones are data or generated.
MAX_SIZE = 2_000_000


def build_language(path: str) -> str | None:
    """``cmake``, ``project`` or ``python`` for a file that may say how to build; None for all others.

    Any Python file may: whether one does is told by ``makes_extensions`` of its text.
    """
    name = posixpath.basename(path)
    if name == "CMakeLists.txt" or name.endswith(".cmake"):
        return "cmake"
    if _PROJECT.match(name):
        return "project"
    return "python" if name.endswith(".py") else None


def is_setup_script(path: str) -> bool:
    """True for ``setup.py`` and its variants (``setup_rocm.py``)."""
    # Thousands of paths are asked about: most are told by one word that they lack.
    return "setup" in path and _SETUP.match(posixpath.basename(path)) is not None


def read_build_file(path: str, text: str) -> BuildFile | None:
    """Read one file; None if it says nothing about how to build."""
    language = build_language(path)
    if language is None or len(text) > MAX_SIZE:
        return None
    if language == "cmake":
        commands, problems = read_cmake(text)
        return BuildFile(path, language, commands, problems=problems)
    if language == "project":
        project, problems = read_project(text)
        return BuildFile(path, language, project=project, problems=problems)
    if is_setup_script(path) or makes_extensions(text):
        return BuildFile(path, language, text=text)
    return None


__all__ = ["MAX_SIZE", "build_language", "is_setup_script", "makes_extensions", "read_build_file"]
