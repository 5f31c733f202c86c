"""What the text of a type or an initialiser says.

In: text of a body. Out: answers by its words alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression
from opwalker.notation.regex import Regex

_ASSERTED = Regex(r"\bstatic_assert\s*\(\s*sizeof\b")
_SIZEOF = Regex(r"sizeof\((.*)\)\Z", re.DOTALL)
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


def initialiser_value(text: str) -> str:
    """What an initialiser gives: ``16`` for ``(16)`` and ``{16}``, all of it for ``(16) / (2)``."""
    return text[1:-1].strip() if text[:1] in ("(", "{") and closes(text) else text


@lru_cache(maxsize=64)
def asserted_sizes(text: str) -> dict[str, tuple[Expr, int]]:
    """What ``static_assert(sizeof(T) == SIZE)`` of a body state: the sizes by type, with where they stand."""
    out: dict[str, tuple[Expr, int]] = {}
    for found in _ASSERTED.finditer(text):
        opened = text.index("(", found.start())
        stop = match_bracket(text, opened)
        span = split_commas(text, opened + 1, stop - 1)[0] if stop > 0 else (0, 0)
        expr = parse_expression(text[slice(*span)])
        held = _SIZEOF.match(print_expression(expr.parts[0])) if expr.kind == "binary" and expr.text == "==" else None
        if held:
            out["".join(held.group(1).split())] = expr.parts[1], found.start()
    return out
