"""CMake's regular expressions, and what is done with them.

In: patterns and texts of a build file. Out: compiled patterns, replaced texts. Patterns that could run for too long on
a hostile text are refused.
"""

from __future__ import annotations

import re
from functools import lru_cache

from opwalker.link.build_values import MARK
from opwalker.notation.regex import Regex

#: Regular expressions of CMake whose repetitions are nested could take forever on a hostile text.
_NESTED_REPEAT = Regex(r"[+*][^()]*\)[+*?]")

#: Texts longer than this are not searched.
MAX_TEXT = 20_000


@lru_cache(maxsize=2000)
def compile_regex(pattern: str) -> re.Pattern[str] | None:
    """A CMake regular expression, or None if it is none or could run for too long."""
    if MARK in pattern or _NESTED_REPEAT.search(pattern):
        return None
    # Braces are plain characters in CMake's dialect.
    text = pattern.replace("{", r"\{").replace("}", r"\}")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return None


def substitute(regex: re.Pattern[str], replacement: str, text: str) -> str:
    """Replace all matches; ``\\1`` in the replacement is a group."""

    def expand_groups(match: re.Match[str]) -> str:
        def group(reference: re.Match[str]) -> str:
            number = int(reference.group(1))
            return (match.group(number) or "") if number <= (match.re.groups or 0) else ""

        return re.sub(r"\\(\d)", group, replacement)

    return regex.sub(expand_groups, text[:MAX_TEXT])
