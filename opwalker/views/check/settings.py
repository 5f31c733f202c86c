"""A project's own settings of the check.

In: the root of a source. Out: ``ProjectSettings`` from ``opwalker.toml``, else from ``[tool.opwalker]`` of
``pyproject.toml``; empty where neither is there. A setting that is not known, or of the wrong form, is an InputError
that names the file.
"""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.errors import InputError
from opwalker.model.check import Settings
from opwalker.views.check.requirements import least, least_torch

_LISTS = ("select", "ignore", "extend-select", "launch-checks", "guards", "required-dtypes", "exclude", "own")


class ProjectSettings(Struct, frozen=True):
    """``select`` and ``ignore`` as on the command line, which comes first; ``per_path`` are rules ignored below a path
    pattern; ``exclude`` are path patterns without findings; ``own`` are folders that look like other projects' code."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_path: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    names: Settings = field(default_factory=Settings)

    def ignores(self, rule: str, file: str) -> bool:
        """Whether a rule's findings in a file are not wanted."""
        if any(matches(file, pattern) for pattern in self.exclude):
            return True
        return any(matches(file, pattern) and (rule in rules or "ALL" in rules) for pattern, rules in self.per_path)


def matches(file: str, pattern: str) -> bool:
    """Whether a path is, or lies below, what a pattern names (``csrc/old``, ``**/*.cuh``)."""
    plain = pattern.rstrip("/")
    return file == plain or file.startswith(plain + "/") or fnmatch.fnmatchcase(file, plain)


def read_settings(root: str) -> ProjectSettings:
    """The settings of the source at ``root``, with the version of torch that its own files ask for."""
    found = _own_settings(root)
    if found.names.torch is not None:
        return found
    return replace(found, names=replace(found.names, torch=least_torch(root)))


def _own_settings(root: str) -> ProjectSettings:
    for name, path in (("opwalker.toml", ()), ("pyproject.toml", ("tool", "opwalker"))):
        file = Path(root) / name
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {name}: {error}") from error
        try:
            table: Any = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            if name == "pyproject.toml":
                return ProjectSettings()  # another tool's file: what reads it will say so
            raise InputError(f"{name}: {error}") from error
        for key in path:
            table = table.get(key, {}) if isinstance(table, dict) else {}
        if name == "opwalker.toml" or table:
            return _read(table, name)
    return ProjectSettings()


def _read(table: Any, name: str) -> ProjectSettings:
    if not isinstance(table, dict):
        raise InputError(f"{name}: the settings are no table")
    lists: dict[str, tuple[str, ...]] = {}
    torch: tuple[int, ...] | None = None
    per_path: list[tuple[str, tuple[str, ...]]] = []
    for key, value in table.items():
        if key == "per-path":
            if not isinstance(value, dict):
                raise InputError(
                    f"{name}: per-path is no table", 'write [per-path] with lines like "csrc/old" = ["ALL"]'
                )
            per_path = [(pattern, _list(f"per-path.{pattern}", rules, name)) for pattern, rules in value.items()]
        elif key == "torch":
            torch = least(value) if isinstance(value, str) else None
            if torch is None:
                raise InputError(f"{name}: torch says no least version", 'write torch = ">=2.5"')
        elif key in _LISTS:
            lists[key] = _list(key, value, name)
        else:
            raise InputError(
                f"{name}: no setting is called {key!r}", f"there are {', '.join((*_LISTS, 'torch', 'per-path'))}"
            )
    return ProjectSettings(
        select=lists.get("select", ()),
        extend_select=lists.get("extend-select", ()),
        ignore=lists.get("ignore", ()),
        per_path=tuple(per_path),
        exclude=lists.get("exclude", ()),
        own=lists.get("own", ()),
        names=Settings(
            launch_checks=lists.get("launch-checks", ()),
            guards=lists.get("guards", ()),
            required_dtypes=lists.get("required-dtypes", ()),
            torch=torch,
        ),
    )


def _list(key: str, value: Any, name: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise InputError(f"{name}: {key} is no list of texts", f'write {key} = ["…"]')


def known_only(names: Sequence[str], known: set[str], where: str) -> None:
    """InputError for a rule id in settings that no rule has."""
    for one in names:
        if one != "ALL" and one not in known:
            raise InputError(f"{where}: no rule is called {one!r}", "see 'opwalker check --rules'")
