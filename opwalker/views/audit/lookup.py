"""What the text of the source says of a name that its definitions do not have.

In: the index of a tree and the texts of its files. Out: ``SourceText``, which answers for kernels that only libraries
have: a kernel of that name elsewhere, a file that is included and not there, a script that writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from opwalker.link.index import Index
from opwalker.model.places import Span


class SourceText:
    """Questions to the files of a tree. ``text`` gives a file's text, ``""`` for one that is not there."""

    def __init__(self, index: Index, paths: Iterable[str], text: Callable[[str], str]) -> None:
        self._index = index
        self._paths = frozenset(paths)
        self._text = lru_cache(maxsize=64)(text)

    def kernel(self, name: str) -> Span | None:
        """Where the source has a kernel of a simple name."""
        if not name.isidentifier():
            return None
        for path, function in self._index.functions(name):
            if "global" in function.flags:
                return Span(path, function.line, function.line)
        return None

    def missing_include(self, sources: Iterable[str], name: str) -> tuple[Span, str] | None:
        """The first file among ``sources`` that names ``name`` and includes a file that the tree does not hold: where
        it does so, and what it includes. Only includes in quotes count: others may be of any library."""
        word = _word(name)
        for path in sources:
            facts = self._index.facts(path)
            if facts is None or not word.search(self._text(path)):
                continue
            for include in facts.includes:
                if not include.system and self._index.resolve_include(path, include.target) is None:
                    return Span(path, include.line, include.line), include.target
        return None

    def script_names(self, script: str, name: str) -> bool:
        """Whether a script, or a file beside it that is no C++ and may be its template, has a name in its text."""
        folder = script.rpartition("/")[0]
        word = _word(name)
        others = self._paths - self._index.paths
        beside = (path for path in sorted(others) if folder and path.rpartition("/")[0] == folder)
        return any(word.search(self._text(path)) for path in (script, *beside) if path in self._paths)


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
