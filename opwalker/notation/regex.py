"""Regular expressions that are compiled when they are first used.

In: a regular expression as ``re.compile`` takes it. Out: what has the methods of a compiled one. A start of the program
makes hundreds of them and uses few; compiling all takes as long as a small walk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_COMPILED = ("match", "search", "fullmatch", "finditer", "findall", "sub", "subn", "split", "groups", "groupindex")


class Regex:
    """A regular expression. Raises ``re.error`` at its first use where it is none."""

    match: Callable[..., re.Match[str] | None]
    search: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    findall: Callable[..., list]
    sub: Callable[..., str]
    subn: Callable[..., tuple[str, int]]
    split: Callable[..., list]
    groups: int
    groupindex: dict[str, int]

    def __init__(self, pattern: str, flags: int | re.RegexFlag = 0) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> object:
        if name not in _COMPILED:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        # From here on the methods are found on the object itself, as fast as those of a compiled one.
        self.__dict__.update({known: getattr(compiled, known) for known in _COMPILED})
        return self.__dict__[name]

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"
