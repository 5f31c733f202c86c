"""What the text of a type or an initialiser says.

In: text of a body. Out: answers by its words alone.
"""

from __future__ import annotations

import re

from opwalker.notation.regex import Regex

_QUALIFIER = Regex(r"\b(?:const|volatile|__restrict__|__restrict|restrict|constexpr|static|inline|register)\b")


def element_of(kind: str) -> str:
    """The type that a pointer or array type points to."""
    return " ".join(_QUALIFIER.sub(" ", re.sub(r"[*&]|\[.*|__shared__|extern|__align__\([^)]*\)", " ", kind)).split())


def is_float(kind: str) -> bool:
    """Whether a type holds fractions."""
    return bool(re.search(r"\b(?:float|double|half|__half|bfloat16|nv_bfloat16)\b", kind))


def closes(text: str) -> bool:
    """Whether the bracket that a text begins with closes at its end."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if depth == 0:
            return at == len(text) - 1
    return False
