"""The operators of C++ that may be spelt as words: ``not (a and b)``.

In: the tokens of an expression. Out: the same, operators spelt by their marks. ``8 or 16``, as what is worked out says
that one of several values is meant, is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from opwalker.notation.regex import Regex

SPELT = {"and": "&&", "or": "||", "not": "!", "not_eq": "!=", "bitand": "&", "bitor": "|", "xor": "^", "compl": "~"}
#: What tells a condition from values one of which is meant.
_TESTS = Regex(r"[=!<>]=|&&|\|\||!|\s[<>]\s|\b(?:and|not)\b")


def marked(text: str, tokens: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The tokens of a text, each with its kind."""
    out = list(tokens)
    if not any(token in SPELT for token, _ in out) or ("or" in (token for token, _ in out) and not _TESTS.search(text)):
        return out
    return [(SPELT[token], "other") if token in SPELT else (token, kind) for token, kind in out]
