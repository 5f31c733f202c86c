"""``pyproject.toml`` to what it says about compiling.

In: the text of the file. Out: the build backend, the CMake cache entries and folders of scikit-build, the extension
modules that setuptools lists, and problems.
"""

from __future__ import annotations

from typing import Any

from opwalker.model.build import ProjectExtension, ProjectFacts
from opwalker.model.source import Problem


def read_project(text: str) -> tuple[ProjectFacts, tuple[Problem, ...]]:
    """Read a ``pyproject.toml``. A file that is no TOML says nothing and is a problem."""
    import tomllib

    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return ProjectFacts(), (Problem("bad-build-file", f"not TOML: {error}"),)
    build = _table(_table(data, "tool"), "scikit-build")
    cmake = _table(build, "cmake")
    facts = ProjectFacts(
        name=_text(_table(data, "project").get("name")),
        backend=_text(_table(data, "build-system").get("build-backend")),
        cmake_source_dir=_text(cmake.get("source-dir")) or ".",
        cmake_defines=(*_arguments(cmake.get("args")), *_defines(_table(cmake, "define"))),
        install_dir=_text(_table(build, "wheel").get("install-dir")),
        extensions=_extensions(_table(_table(data, "tool"), "setuptools").get("ext-modules"), text),
    )
    return facts, ()


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _arguments(value: object) -> list[tuple[str, str]]:
    """``-DNAME=value`` and ``-DNAME:TYPE=value``."""
    found: list[tuple[str, str]] = []
    for argument in _texts(value):
        name, equals, text = argument.removeprefix("-D").partition("=")
        if argument.startswith("-D") and equals:
            found.append((name.partition(":")[0].strip(), text))
    return found


def _defines(table: dict[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in table.items():
        if isinstance(value, dict):
            # {env = "NAME", default = "..."}: the environment is taken as unset.
            value = value.get("default")
        if isinstance(value, bool):
            found.append((name, "ON" if value else "OFF"))
        elif isinstance(value, (str, int, float)):
            found.append((name, str(value)))
        elif isinstance(value, list):
            found.append((name, ";".join(_texts(value))))
    return found


def _extensions(value: object, text: str) -> tuple[ProjectExtension, ...]:
    found: list[ProjectExtension] = []
    for entry in value if isinstance(value, list) else ():
        name = _text(entry.get("name")) if isinstance(entry, dict) else None
        if name is None:
            continue
        defines: list[tuple[str, str | None]] = []
        for macro in entry.get("define-macros") or ():
            if isinstance(macro, list) and macro and isinstance(macro[0], str):
                defines.append((macro[0], _text(macro[1]) if len(macro) > 1 else None))
        at = text.find(f'"{name}"')
        line = text.count("\n", 0, at) + 1 if at >= 0 else 0
        sources, folders = _texts(entry.get("sources")), _texts(entry.get("include-dirs"))
        found.append(ProjectExtension(name, sources, tuple(defines), folders, line))
    return tuple(found)
