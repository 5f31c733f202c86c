"""Which members of an archive are written, and under which path.

In: the names that an archive gives. Out: safe relative paths, or ``Unsafe``.

The rule for writing: a member whose name has a language (see ``languages``) always; any other file when it is at most
1 MiB, has no suffix known to be binary and no NUL byte in its first 8 KiB: metadata, licences, build settings, lists,
templates. Hidden folders and caches are left out, as discovery would. Links are checked and not written: what they
point to is in the archive at its own place.
"""

from __future__ import annotations

from opwalker.notation.regex import Regex
from opwalker.source.discover import IGNORED_FOLDERS
from opwalker.source.languages import language_of

MAX_OTHER_BYTES = 1024 * 1024
SNIFF_BYTES = 8 * 1024

#: Paths beyond these are made to break the tools that meet them; real trees stay below a fifth of them.
MAX_PATH_CHARACTERS = 1024
MAX_PATH_PARTS = 128

_BINARY_SUFFIXES = frozenset(
    """
    .so .a .o .obj .lib .dll .dylib .pyd .exe .bin .dat .pyc .whl .egg .jar .class .node .wasm .gz .xz .bz2 .zst
    .zip .7z .tar .tgz .cubin .fatbin .pt .pth .onnx .safetensors .gguf .npy .npz .pkl .parquet .arrow .png .jpg
    .jpeg .gif .bmp .ico .webp .svg .pdf .mp3 .mp4 .mov .wav .webm .ttf .otf .woff .woff2
    """.split()
)

_DRIVE = Regex(r"[A-Za-z]:")


class Unsafe(Exception):
    """A member that would be written outside the tree, or is of a kind that no source tree holds."""


def safe_path(name: str) -> str:
    """``name`` as a relative path with ``/``; ``""`` for the root itself. Raises Unsafe.

    ``..`` is refused wherever it stands, and a backslash counts as a separator: what would climb out on another
    system is refused on this one.
    """
    if "\0" in name:
        raise Unsafe("a name with a NUL byte")
    unified = name.replace("\\", "/")
    if unified.startswith("/") or _DRIVE.match(unified):
        raise Unsafe(f"an absolute path ({shown(name)})")
    parts = [part for part in unified.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Unsafe(f"a path that climbs out of the tree ({shown(name)})")
    if len(unified) > MAX_PATH_CHARACTERS or len(parts) > MAX_PATH_PARTS:
        raise Unsafe(f"a path of {len(unified)} characters ({shown(name)})")
    return "/".join(parts)


def check_link(path: str, target: str) -> None:
    """Raises Unsafe when the symbolic link at ``path`` (a safe path) leads out of the tree."""
    unified = target.replace("\\", "/")
    if unified.startswith("/") or _DRIVE.match(unified):
        raise Unsafe(f"a link to an absolute path ({shown(path)} -> {shown(target)})")
    depth = path.count("/")
    for part in unified.split("/"):
        if part == "..":
            depth -= 1
        elif part not in ("", "."):
            depth += 1
        if depth < 0:
            raise Unsafe(f"a link that leaves the tree ({shown(path)} -> {shown(target)})")


def is_wanted(path: str, size: int) -> bool:
    """Whether a file at ``path`` is worth writing, as far as its name and size say."""
    folders, _, name = path.rpartition("/")
    if folders:
        for folder in folders.split("/"):
            if folder[0] == "." or folder in IGNORED_FOLDERS:
                return False
    if name.startswith("._"):
        # macOS stores resource forks under such names.
        return False
    if language_of(name) is not None:
        return True
    return size <= MAX_OTHER_BYTES and name[name.rfind(".") :].lower() not in _BINARY_SUFFIXES


def is_wanted_content(path: str, head: bytes) -> bool:
    """Whether a wanted file that begins with ``head`` is written."""
    return language_of(path) is not None or b"\0" not in head[:SNIFF_BYTES]


def shown(name: str) -> str:
    """A name for a message: short, printable, on one line."""
    text = name.encode("utf-8", "backslashreplace").decode("utf-8")
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return text if len(text) <= 120 else text[:60] + "…" + text[-50:]
