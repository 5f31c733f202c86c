"""Whole words in a text: where they stand, and what begins at a place.

In: a text and a word. Out: places. Strings and comments are not told apart from code here.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwalker.notation.regex import Regex

_WORD = Regex(r"\w+")


def occurrences(text: str, words: str, attribute: bool = False) -> Iterator[int]:
    """The places where ``words`` stands as whole words and, unless ``attribute``, not behind a dot."""
    at = text.find(words)
    size = len(words)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + size : at + size + 1]
        if not is_word(after) and (attribute or before != ".") and not is_word(before):
            yield at
        at = text.find(words, at + size)


def owners(text: str, words: str) -> Iterator[int]:
    """The places where an attribute of ``words`` is taken: as ``occurrences``, and a dot follows."""
    size = len(words)
    at = text.find(f"{words}.")
    while at >= 0:
        before = text[at - 1 : at] if at else ""
        if before != "." and not is_word(before):
            yield at
        at = text.find(f"{words}.", at + size)


def is_word(character: str) -> bool:
    """Whether a character (or nothing) can be part of a name."""
    return character == "_" or character.isalnum()


def word_at(text: str, place: int) -> str:
    """The name that begins at a place, empty where none does."""
    found = _WORD.match(text, place)
    return found.group() if found else ""
