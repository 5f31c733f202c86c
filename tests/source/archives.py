"""Archives for the tests, sound and hostile, built member by member."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path


def tar_of(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo, mode: str = "w:gz") -> Path:
    """A tar archive at ``path``: files as (name, data), anything else as a TarInfo without data."""
    with tarfile.open(path, mode) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            archive.addfile(info, io.BytesIO(member[1]))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """A tar member that is no regular file."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def zip_of(path: Path, *members: tuple[str, bytes] | tuple[str, bytes, int]) -> Path:
    """A zip archive at ``path``: (name, data) or (name, data, Unix file type)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, *kind in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = ((kind[0] if kind else stat.S_IFREG) | 0o644) << 16
            archive.writestr(info, data)
    return path


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder`` with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


#: A small sound source distribution.
SOUND = (
    ("lib-1.0/PKG-INFO", b"Name: lib\nVersion: 1.0\n"),
    ("lib-1.0/csrc/a.cu", b"__global__ void k();\n"),
    ("lib-1.0/lib/ops.py", b"import torch\n"),
)
