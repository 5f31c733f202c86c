"""What a user asked for as a place, ``path`` or ``path::function``, that is not there: which part of it is missing.

In: what was typed, the files of the source and what those of C and C++ define. Out: an error with the nearest names, or
None where what was typed is no place.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import PurePosixPath

from opwalker.errors import InputError
from opwalker.link.index import Index

_SHOWN = 5


def no_such_place(name: str, index: Index, paths: Iterable[str]) -> InputError | None:
    """Why a place cannot be walked; None for what is spelt as no place. ``paths`` are all files of the source."""
    path, _, rest = name.partition("::")
    known = sorted(paths)
    if "/" not in path and PurePosixPath(path).suffix not in {PurePosixPath(p).suffix for p in known} - {""}:
        return None
    found = [one for one in known if one == path or one.endswith(f"/{path}")]
    if not found:
        near = _nearest_paths(path, known)
        return InputError(f"no file `{path}` in this source", f"nearest: {', '.join(near)}" if near else _LISTED)
    if not set(found) & set(index.paths):
        return InputError(
            f"{found[0]} is no C or C++ file: no functions of it are walked", "`opwalker ops` lists what there is"
        )
    if not rest:
        return None
    defined = _defined(index, found[0])
    message = f"no function, kernel or class `{rest}` is defined in {found[0]}"
    near = difflib.get_close_matches(rest, defined, _SHOWN, 0.6)
    simple = {one.rsplit("::", 1)[-1]: one for one in reversed(defined)}
    near += [simple[one] for one in difflib.get_close_matches(rest.rsplit("::", 1)[-1], simple, _SHOWN, 0.6)]
    if near:
        return InputError(message, f"nearest: {', '.join(list(dict.fromkeys(near))[:_SHOWN])}")
    more = f" and {len(defined) - _SHOWN} more" if len(defined) > _SHOWN else ""
    listed = f"it defines {', '.join(defined[:_SHOWN])}{more}" if defined else "it defines none"
    return InputError(message, listed)


_LISTED = "a path is relative to the source, or the end of one"


def _defined(index: Index, path: str) -> list[str]:
    """The qualified names of what a file defines, in its order."""
    facts = index.facts(path)
    entries = [(f.offset, f.qualified_name) for f in facts.functions if f.body_end]
    entries += [(c.offset, "::".join((*c.scope, c.name))) for c in facts.classes if c.name]
    return list(dict.fromkeys(name for _, name in sorted(entries)))


def _nearest_paths(path: str, known: Iterable[str]) -> list[str]:
    """Files of a name like this one's, those in a folder like its own first."""
    by_stem: dict[str, list[str]] = {}
    for one in known:
        by_stem.setdefault(PurePosixPath(one).stem, []).append(one)
    stems = difflib.get_close_matches(PurePosixPath(path).stem, by_stem, _SHOWN, 0.6)

    def order(one: str) -> tuple[int, float]:
        return stems.index(PurePosixPath(one).stem), -difflib.SequenceMatcher(None, path, one).ratio()

    return sorted((one for stem in stems for one in by_stem[stem]), key=order)[:_SHOWN]
