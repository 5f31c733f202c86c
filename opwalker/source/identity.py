"""What a tree calls itself: name and version.

In: the root of a tree on disk. Out: ``(name, version or None)`` from package metadata, ``pyproject.toml`` or the
folder's name, in that order. ``setup.py`` is never run, so a version that only it can compute stays unknown.
"""

from __future__ import annotations

import os

from opwalker.source.versions import normalise_name, split_stem

_METADATA_BYTES = 64 * 1024
_PYPROJECT_BYTES = 4 * 1024 * 1024


def identify(root: str, called: str) -> tuple[str, str | None]:
    """Name and version of the tree at ``root``; ``called`` is what its folder or archive is called."""
    for path in _metadata_files(root):
        found = _metadata(path)
        if found is not None:
            return found
    stem_name, stem_version = split_stem(called)
    project = _pyproject(os.path.join(root, "pyproject.toml"))
    if project is None:
        return stem_name, stem_version
    name, version = project
    if version is None and normalise_name(name) == normalise_name(stem_name):
        version = stem_version
    return name, version


def wheel_metadata_folder(root: str) -> str | None:
    """The ``*.dist-info`` folder at the top of an unpacked wheel, None for any other tree."""
    try:
        names = os.listdir(root)
    except OSError:
        return None
    for name in sorted(names):
        if name.endswith(".dist-info") and os.path.isfile(os.path.join(root, name, "METADATA")):
            return os.path.join(root, name)
    return None


def _metadata_files(root: str) -> list[str]:
    files = [os.path.join(root, "PKG-INFO")]
    if not os.path.isfile(files[0]):
        folder = wheel_metadata_folder(root)
        files = [os.path.join(folder, "METADATA")] if folder else []
    return files


def _metadata(path: str) -> tuple[str, str | None] | None:
    """Name and version from the header of a PKG-INFO or METADATA file."""
    text = _head(path, _METADATA_BYTES)
    if text is None:
        return None
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            break
        key, colon, value = line.partition(":")
        if colon and key in ("Name", "Version"):
            fields.setdefault(key, value.strip())
    name = fields.get("Name")
    return (name, fields.get("Version") or None) if name else None


def _pyproject(path: str) -> tuple[str, str | None] | None:
    """Name and version from ``[project]``, else from poetry's table; None when there is neither."""
    text = _head(path, _PYPROJECT_BYTES)
    if text is None:
        return None
    import tomllib

    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    tool = document.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    for table in (document.get("project"), poetry):
        if isinstance(table, dict) and isinstance(table.get("name"), str) and table["name"].strip():
            version = table.get("version")
            return table["name"].strip(), version if isinstance(version, str) and version.strip() else None
    return None


def _head(path: str, size: int) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(size).decode("utf-8-sig", "replace")
    except OSError:
        return None
