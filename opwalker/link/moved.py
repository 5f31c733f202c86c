"""Answers brought up to date with files whose lines have moved, and with nothing else.

In: an answer, and where the lines of each file have gone. Out: the same answer with its lines as they are now, or None
where that cannot be said of one of them. Whether a file's lines have only moved is not looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from opwalker.notation.regex import Regex

#: Where a line of a file is now; None where it is not known.
Move = Callable[[int], int | None]

#: The fields of answers that hold lines: of the file that their record names, or the nearest record around it does.
LINES = frozenset("line end_line layout_line made_line call_line released_at caught also_at".split())
#: The fields that hold other numbers. A number in a field that is in neither of the two may be anything.
NUMBERS = frozenset("alignment bytes depth dimension followed of rank ranks ways".split())
#: The field that names a file.
FILE = "file"
#: Lines in words: of a file that stands before them (``csrc/a.cu:12``), of the same one (``(:12)``), of the host
#: function's (``(checked at :12)``), of one that the words around them tell (``at :12``).
_SAID = Regex(r"([\w./+-]+\.\w+|\(|\(checked at |\bat ):(\d+)(?![\w:.])")


class _Unknown(Exception):
    """A line of which it cannot be said where it is now."""


def moved(answer: Any, moves: Mapping[str, Move]) -> Any:
    """An answer with its lines moved: ``moves`` are by file, and files without one are as they were. None where a line
    has no place any more, or may be none at all."""
    try:
        return _Moving(moves).value(answer, None)
    except _Unknown:
        return None


class _Moving:
    """Moves what an answer holds; ``_host`` is the move of the file of the host function that it is about."""

    def __init__(self, moves: Mapping[str, Move]) -> None:
        self._moves = moves
        self._host: Move | None = None

    def value(self, value: Any, move: Move | None) -> Any:
        """A value within a record whose file moves so."""
        if isinstance(value, str):
            return _SAID.sub(lambda found: self._said(found, move), value) if ":" in value else value
        if isinstance(value, Struct):
            return self._record(value, move)
        if isinstance(value, tuple):
            return tuple([self.value(one, move) for one in value]) if value else value
        if value is None or isinstance(value, bool):
            return value
        raise _Unknown

    def _record(self, value: Struct, move: Move | None) -> Any:
        names = type(value).__struct_fields__
        file = getattr(value, FILE, None)
        if file is not None:
            move = self._moves.get(file)
        host = getattr(value, "host", None)
        if host is not None:
            self._host = self._moves.get(host.file)
        held = [(name, getattr(value, name)) for name in names]
        return type(value)(**{name: self._field(name, one, move) for name, one in held})

    def _field(self, name: str, value: Any, move: Move | None) -> Any:
        if name in LINES:
            return _line(value, move)
        return value if name in NUMBERS and _is_number(value) else self.value(value, move)

    def _said(self, found: re.Match[str], move: Move | None) -> str:
        before, line = found.groups()
        if before == "at ":
            raise _Unknown
        of = move if before == "(" else self._host if before[0] == "(" else self._moves.get(before)
        return f"{before}:{_line(int(line), of)}"


def _is_number(value: Any) -> bool:
    """Whether a value is a number, or several: a field of the same name may hold records in another record."""
    return all(map(_is_number, value)) if isinstance(value, tuple) else type(value) in (int, float)


def _line(value: Any, move: Move | None) -> Any:
    """A line, or several."""
    if value is None or move is None:
        return value
    if isinstance(value, tuple):
        return tuple([_line(one, move) for one in value])
    now = move(value) if value else value
    # The first line may stand for the whole file.
    if now is None or (value == 1 and now != 1):
        raise _Unknown
    return now
