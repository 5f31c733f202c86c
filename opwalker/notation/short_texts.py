"""Functions of a text, whose answers for short texts are kept: the same few are asked about again and again.

In: a function whose first argument is a text. Out: the same function. Long texts, which may be whole bodies of lambdas,
are not held on to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

#: Characters of a text that is kept.
LONGEST = 400
#: Answers of one function that are kept.
MOST = 16384


def kept_if_short(function: F) -> F:
    """The function, which answers once for each short text with the same further arguments."""
    kept = lru_cache(maxsize=MOST)(function)

    @wraps(function)
    def answer(text: str, *further: Any) -> Any:
        return kept(text, *further) if len(text) <= LONGEST else function(text, *further)

    return cast("F", answer)
