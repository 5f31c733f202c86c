"""The name and the template arguments of a kernel, out of its demangled name.

In: a name as ``c++filt`` spells it (``void ns::k<float, 2>(float*)``). Out: ``("ns::k", "float, 2")``.
"""

from __future__ import annotations

import re

_ANONYMOUS = "(anonymous namespace)"
#: Stands in for what holds brackets and is no list; of the same length, so that places stay true.
_MASKED = _ANONYMOUS.replace("(", "_").replace(")", "_").replace(" ", "_")
_PAIRS = {"<": ">", "(": ")", "[": "]", "{": "}"}
_UNIT = re.compile(r"_GLOBAL__N__(?:\w*?)[0-9a-f]{8}_(\d+)_")


def kernel_name(demangled: str) -> tuple[str, str] | None:
    """Qualified name and template arguments of a function; None for what is no function, such as a variable."""
    text = demangled.replace(_ANONYMOUS, _MASKED)
    start = opening = 0
    closing = -1
    open_brackets: list[str] = []
    for at, char in enumerate(text):
        if char == "(" and not open_brackets:
            if not at:
                return None
            return _parts(demangled, start, at, (opening, closing) if closing == at - 1 else None)
        if char == "<":
            # A less-than sign of an expression stands behind a bracket or a blank.
            if at and (text[at - 1].isalnum() or text[at - 1] in "_}]"):
                if not open_brackets:
                    opening = at
                open_brackets.append(">")
        elif char in _PAIRS:
            open_brackets.append(_PAIRS[char])
        elif open_brackets and char == open_brackets[-1] and not (char == ">" and text[at - 1] == "-"):
            open_brackets.pop()
            if not open_brackets and char == ">":
                closing = at
        elif char == " " and not open_brackets:
            # The return type stands before the name.
            start = at + 1
    return None


def _parts(demangled: str, start: int, end: int, listed: tuple[int, int] | None) -> tuple[str, str] | None:
    if listed is None:
        return demangled[start:end], ""
    opening, closing = listed
    name = demangled[start:opening]
    return (name, demangled[opening + 1 : closing].strip()) if name else None


def unit_of(symbol: str) -> str | None:
    """The file that an anonymous namespace stands in, as nvcc writes it into the name (``k_cu`` for ``k.cu``), None
    where the name has none."""
    found = _UNIT.search(symbol)
    if found is None:
        return None
    return symbol[found.end() : found.end() + int(found[1])] or None
