"""Op lists in YAML, in the form of ``native_functions.yaml``: schemas, and the function for each dispatch key.

In: the text of a file. Out: its entries in order, with lines from 1. No more YAML is read than such a list is made of:
items that begin with ``- func:``, and their ``dispatch:`` table in block or flow form. Any other file has no entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from opwalker.notation.regex import Regex

_ITEM = Regex(r"(\s*)-\s+(?:func|schema):\s*(\S.*)")
_KEY = Regex(r"(\s*)([\w, ]+?):\s*(\S.*)?")
_PAIR = Regex(r"([A-Za-z]\w*)\s*:\s*([A-Za-z_][\w:]*)")
_SCHEMA = Regex(r"[A-Za-z_][\w:.]*\(.*\)\s*->\s*\S", re.DOTALL)
_FUNCTION = Regex(r"[A-Za-z_][\w:]*\Z")


class ListedOp(Struct, frozen=True):
    """One entry. ``dispatch`` is ``(dispatch key, function, line)`` in order; ``delegates`` says that another entry
    implements this one."""

    schema: str
    line: int
    dispatch: tuple[tuple[str, str, int], ...] = ()
    delegates: bool = False


def read_op_list(text: str) -> tuple[ListedOp, ...]:
    """The entries of a list; a schema that goes on over several lines is joined."""
    found: list[ListedOp] = []
    lines = [_without_comment(line) for line in text.splitlines()]
    starts = [number for number, line in enumerate(lines) if _ITEM.match(line)]
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        found.append(_entry(lines, start, end))
    return tuple(one for one in found if _SCHEMA.match(one.schema))


def _entry(lines: list[str], start: int, end: int) -> ListedOp:
    first = _ITEM.match(lines[start])
    assert first is not None
    depth = len(first[1])
    schema, dispatch, delegates = first[2].strip(), [], False
    table: int | None = None
    for number in range(start + 1, end):
        line = lines[number]
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if indent <= depth:
            break  # the list is over
        key = _KEY.fullmatch(line)
        if key is None:
            if table is None and not dispatch and "->" not in schema:
                schema += " " + line.strip()
            continue
        if table is not None and indent > table:
            dispatch += [(one, (key[3] or "").strip(), number + 1) for one in _names(key[2])]
            continue
        table = indent if key[2] == "dispatch" else None
        delegates |= key[2] == "structured_delegate"
        if key[2] == "dispatch" and key[3]:
            dispatch += [(one[1], one[2], number + 1) for one in _PAIR.finditer(key[3])]
    kept = tuple(one for one in dispatch if _FUNCTION.match(one[1]))
    return ListedOp(schema.strip("'\""), start + 1, kept, delegates)


def _names(keys: str) -> Iterator[str]:
    return (one.strip() for one in keys.split(",") if one.strip())


def _without_comment(line: str) -> str:
    return re.sub(r"(?:\A|\s)#.*", "", line).rstrip()
