"""Which files of a source are other projects' code, copied in.

In: the paths of a source, the paths that the project calls its own, and those that were asked for. Out: the folders
that hold such code, with their files. They are told by their names alone: a folder for them (``third_party``), or a
well-known library's with its ``include`` folder. A folder that a path was asked for in is the asker's concern.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opwalker.notation.regex import Regex

_FOLDER = Regex(
    r"(?i)(?:third[-_]?party|3rd[-_]?party|external|extern|vendor|vendored|submodules|_deps|node_modules)\Z"
)
#: The most folders that a note names.
_NAMED = 3
#: Libraries that kernel repositories carry a whole copy of.
_LIBRARIES = frozenset(
    "cutlass composable_kernel cccl cub thrust libcudacxx googletest pybind11 nanobind fmt spdlog dlpack json eigen"
    " boost xbyak onednn mkl-dnn abseil-cpp benchmark hipify_torch cudnn-frontend".split()
)


def vendored(paths: Iterable[str], own: Sequence[str], asked: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The folders of other projects' code, each with its files."""
    held = sorted(paths)
    above = {parent: _folders(parent) for parent in {path.rpartition("/")[0] for path in held}}
    whole = {parts[at] for parts in above.values() for at in range(len(parts)) if _is_library(parts, at)}
    foreign = {
        parent: next((one for one in parts if one in whole or _FOLDER.match(one.rsplit("/", 1)[-1])), None)
        for parent, parts in above.items()
    }
    out: dict[str, list[str]] = {}
    for path in held:
        folder = foreign[path.rpartition("/")[0]]
        if folder is None or any(_meets(path, one) for one in own) or any(_meets(one, folder) for one in asked):
            continue
        out.setdefault(folder, []).append(path)
    return {folder: tuple(files) for folder, files in out.items()}


def left_out(others: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A note on what is not checked because it is somebody else's, the folders with the most files named."""
    if not others:
        return ()
    number = sum(map(len, others.values()))
    largest = sorted(others, key=lambda folder: (-len(others[folder]), folder))
    more = f" and {len(largest) - _NAMED} more" if len(largest) > _NAMED else ""
    files = f"{number} file{'s' if number != 1 else ''} in {', '.join(largest[:_NAMED])}{more}"
    return (f"other projects' code is not checked ({files}); name a folder as a path to check it",)


def _folders(parent: str) -> list[str]:
    """A folder and those above it, the outermost first, each as a path of its own."""
    parts = parent.split("/") if parent else []
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]


def _is_library(folders: Sequence[str], at: int) -> bool:
    """Whether a folder is a known library's, with ``include`` directly below it."""
    inner = folders[at + 1] if at + 1 < len(folders) else ""
    return folders[at].rsplit("/", 1)[-1].lower() in _LIBRARIES and inner.endswith("/include")


def _meets(path: str, folder: str) -> bool:
    plain = folder.strip("/")
    return path == plain or path.startswith(plain + "/")
