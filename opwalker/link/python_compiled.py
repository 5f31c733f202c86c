"""Which imports of a tree lead to modules that the tree compiles: no file of it is such a module, and a file that makes
extensions names it.

In: the light facts of all files and ``Modules``. Out: entries that ask the importing files for calls through these
modules, ``mod:alias=@module`` or ``mod:alias=@module.function``. A module goes by its last word, as its definition in
C++ does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from opwalker.link.python_modules import Modules
from opwalker.model.python import COMPILED, PyLight
from opwalker.notation.python_imports import ImportedName


def last_words(names: Iterable[str]) -> frozenset[str]:
    """The last words of dotted names."""
    return frozenset(name.rpartition(".")[2] for name in names)


def compiled_imports(
    paths: Iterable[str], light: Mapping[str, PyLight], modules: Modules, names: frozenset[str]
) -> dict[str, list[str]]:
    """The entries of those files that import one of the compiled modules ``names``."""
    if not names:
        return {}
    words = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(names))) + r")\b")
    telling: dict[str, bool] = {}
    found: dict[str, list[str]] = {}
    for path in paths:
        entries: dict[str, None] = {}
        for statement in light[path].imports:
            known = telling.get(statement)
            if known is None:
                known = telling[statement] = words.search(statement) is not None
            if known:
                for one in modules.parsed(statement):
                    entries.update((entry, None) for entry in _of(path, one, modules, names))
        if entries:
            found[path] = sorted(entries)
    return found


def imported_modules(entries: Iterable[str]) -> Iterator[str]:
    """The modules that entries are about, each with its mark."""
    return (entry.partition("=")[2].partition(".")[0] for entry in entries)


def _of(path: str, one: ImportedName, modules: Modules, names: frozenset[str]) -> Iterator[str]:
    target = modules.module(path, one.module, one.level)
    last = one.module.rpartition(".")[2]
    if target is None:
        if last in names and one.name != "*":
            yield f"mod:{one.alias}={COMPILED}{last}" + (f".{one.name}" if one.name is not None else "")
    elif one.name in names and (target.endswith("/") or target.rpartition("/")[2] == "__init__.py"):
        # An attribute of a package: a module of it, unless the package has a file of the name or imports it.
        if modules.below(target, one.name) is None and one.name not in modules.exports(target):
            yield f"mod:{one.alias}={COMPILED}{one.name}"
