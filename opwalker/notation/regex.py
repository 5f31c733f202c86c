"""Regular expressions that are compiled when they are first used, and in one run only.

In: a regular expression as ``re.compile`` takes it. Out: what has the methods of a compiled one, or the compiled one
itself. A start of the program makes hundreds of them and uses few; compiling those that one edit asks for takes a tenth
of the time that its answer takes. So the code that the matching engine runs is kept (``CODES``): a pattern is made of
it in a hundredth of the time. Where the codes of an earlier run are kept is the caller's affair.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType

import msgspec
from msgspec import Struct

from opwalker.notation.readings import Readings

try:
    import _sre
    from re import _compiler, _parser
except ImportError:  # an interpreter whose engine is another
    _sre = _compiler = _parser = None

_COMPILED = ("match", "search", "fullmatch", "finditer", "findall", "sub", "subn", "split", "groups", "groupindex")
#: Up to how many codes those of expressions that stand in this program are kept, and those of others, which may name
#: anything that a source names.
_MOST_CODES, _MOST_OTHERS = 2_000, 1_000
#: Expressions that are held compiled in one process, of those that are no ``Regex``.
_MOST_HELD = 2_000
#: What an engine says of a code that is none of its own.
_NO_CODE = (AttributeError, IndexError, TypeError, ValueError, OverflowError, RuntimeError, msgspec.MsgspecError)


class Code(Struct, frozen=True, array_like=True):
    """What a regular expression compiles to: its ``flags`` with those that it sets itself, its number of ``groups``,
    the numbers of those with ``names``, and the ``words`` of code, four bytes each in this machine's order."""

    flags: int
    groups: int
    names: dict[str, int]
    words: bytes


#: The codes of all expressions so far, each a packed ``Code``, by the flags asked for and the expression.
CODES: Readings[msgspec.Raw] = Readings()


def engine() -> str:
    """What codes can be used by: the interpreter, and the version of its engine."""
    magic = getattr(_sre, "MAGIC", None)
    return f"{sys.implementation.name} {sys.hexversion:x} {magic} {array('I').itemsize} {sys.byteorder}"


@lru_cache(maxsize=_MOST_HELD)
def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As ``re.compile``; raises ``re.error`` where it does."""
    return _compiled(pattern, flags, _MOST_OTHERS)


def _compiled(pattern: str, flags: int, most: int) -> re.Pattern[str]:
    key = f"{int(flags)}:{pattern}"
    if isinstance(_sre, ModuleType) and (key in CODES.known or len(CODES.known) < most):
        try:
            return _made(pattern, CODES.reading(key, lambda _: _read(pattern, int(flags))))
        except _NO_CODE:
            CODES.known.pop(key, None)
    return re.compile(pattern, flags)


def _read(pattern: str, flags: int) -> msgspec.Raw:
    """The code of an expression, packed; as ``re.compile`` works it out."""
    tree = _parser.parse(pattern, flags)
    words = array("I", _compiler._code(tree, flags)).tobytes()
    state = tree.state
    return msgspec.Raw(msgspec.msgpack.encode(Code(flags | state.flags, state.groups - 1, state.groupdict, words)))


def _made(pattern: str, held: msgspec.Raw) -> re.Pattern[str]:
    """An expression made of its code. Raises one of ``_NO_CODE`` where it is none."""
    code = msgspec.msgpack.decode(held, type=Code)
    names: list[str | None] = [None] * (code.groups + 1)
    for name, number in code.names.items():
        names[number] = name
    words = array("I", code.words).tolist()
    return _sre.compile(pattern, code.flags, words, code.groups, code.names, tuple(names))


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
        found = _compiled(self.pattern, self.flags, _MOST_CODES)
        # From here on the methods are found on the object itself, as fast as those of a compiled one.
        self.__dict__.update({known: getattr(found, known) for known in _COMPILED})
        return self.__dict__[name]

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"
