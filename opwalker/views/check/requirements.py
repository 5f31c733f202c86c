"""The least version of torch that a source asks for, by its own files.

In: the root of a source. Out: a version, from ``pyproject.toml``, ``setup.cfg``, ``setup.py`` (its string literals; the
script is not run) and ``requirements*.txt`` at the root; None where none of them bounds it.
"""

from __future__ import annotations

import re
from pathlib import Path

from opwalker.notation.regex import Regex

_NAMED = Regex(r"(?:^|[\"'\s,\[])torch\s*((?:(?:[<>=!~]=|[<>])\s*[\w.*+!-]+\s*,?\s*)+)", re.MULTILINE)
_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "requirements/*.txt")


def least_torch(root: str) -> tuple[int, ...] | None:
    """The lowest of the bounds that the files name: what one of them allows may be installed."""
    found = [
        bound
        for pattern in _FILES
        for path in sorted(Path(root).glob(pattern))
        if path.is_file()
        for written in _NAMED.findall(_text(path))
        if (bound := least(written)) is not None
    ]
    return min(found, default=None)


def least(specifiers: str) -> tuple[int, ...] | None:
    """The least release that specifiers allow: ``>=2.4,<3`` → ``(2, 4)``; None where nothing bounds it from below."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        bounds = [
            Version(one.version.removesuffix(".*")).release
            for one in SpecifierSet(specifiers.strip().rstrip(","))
            if one.operator in (">=", ">", "==", "~=", "===")
        ]
    except (InvalidSpecifier, InvalidVersion):
        return None
    return max(bounds, default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
