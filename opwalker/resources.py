"""Finds the data that ships with the program: the folders ``grammars/`` and ``reference_kernels/``.

In: a path below one of these folders. Out: where it lies, or its text. From a checkout they stand beside the package
folder, from an installed wheel inside it. Nothing is parsed, cached on disk or written here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from opwalker.errors import InternalError

_PACKAGE = Path(__file__).resolve().parent

#: Where built parsers may be kept between runs; None: they are built anew. Set once, by ``keep_parsers_in``.
_parsers: Path | None = None

#: The data folders there are.
FOLDERS = ("grammars", "reference_kernels")


@cache
def folder(name: str) -> Path:
    """The absolute path of a data folder; ``name`` is one of ``FOLDERS``.

    Inside the package first: beside an installed package lie other packages, one of which may have the same name.
    Raises ``InternalError`` when the folder is in neither place.
    """
    if name not in FOLDERS:
        raise InternalError(f"no data folder is called {name!r}")
    for parent in (_PACKAGE, _PACKAGE.parent):
        path = parent / name
        if path.is_dir():
            return path
    raise InternalError(f"the data folder {name}/ is missing beside or inside {_PACKAGE}", "reinstall opwalker")


def path(relative: str) -> Path:
    """The absolute path of a data file such as ``"grammars/op_schema.lark"``. Raises ``InternalError`` if it is not
    there."""
    top, _, rest = relative.partition("/")
    found = folder(top) / rest
    if not found.is_file():
        raise InternalError(f"the data file {relative} is missing", "reinstall opwalker")
    return found


def text(relative: str) -> str:
    """The text of a data file, decoded as UTF-8."""
    return path(relative).read_text(encoding="utf-8")


def keep_parsers_in(place: Path) -> None:
    """Let grammars' parser tables be kept in a folder: building them costs more than a small walk."""
    global _parsers
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    _parsers = place


def parser_cache(name: str) -> str | bool:
    """The file that a grammar's tables are kept in, as lark takes it: False where nothing is kept."""
    return str(_parsers / f"{name}.lark-tables") if _parsers is not None else False
