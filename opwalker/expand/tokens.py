"""Preprocessing tokens: the text of code cut where a preprocessor cuts it, each piece knowing where it came from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from opwalker.notation.regex import Regex
from opwalker.notation.short_texts import kept_if_short

_TOKEN = Regex(
    r"""(?P<space>\s+)
      | (?:\bu8|\b[uUL])?R"([^()\\\s]{0,16})\([\s\S]*?\)\2"
      | (?:\bu8|\b[uUL])?"(?:[^"\\]|\\[\s\S])*"
      | (?:\bu8|\b[uUL])?'(?:[^'\\\n]|\\[\s\S])+'
      | (?P<word>[A-Za-z_$][\w$]*)
      | \.?\d(?:[eEpP][+-]|'?[\w.])*
      | <<<|>>>|<<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|\#
      | .
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A token. ``space`` says that white space stands before it; ``pos`` is its offset in the file it was written in,
    ``expansion`` the id of the macro expansion whose body it was written in (0: the function's own file); ``hidden``
    are macros that must not be expanded in it again; ``via`` are the expansions that put it where it stands, as
    ``(id, outer)``, None for none: what is passed as an argument is written outside of the expansion that places it."""

    text: str
    space: bool
    pos: int
    expansion: int
    word: bool
    hidden: frozenset[str]
    via: tuple | None = None


NOTHING: frozenset[str] = frozenset()
#: Makes a token of all its parts: tokens are made by the hundred thousand, and this takes a third of the time.
NEW = tuple.__new__


def tokenize(text: str, base: int = 0, expansion: int = 0, hidden: frozenset[str] = NOTHING) -> list[Token]:
    """Cut ``text`` into tokens; ``base`` is the offset of its first character in its file."""
    out: list[Token] = []
    space = False
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        if group == "space":
            space = True
            continue
        out.append(NEW(Token, (match.group(), space, base + match.start(), expansion, group == "word", hidden, None)))
        space = False
    return out


_WORD = Regex(r"\w+")


@kept_if_short
def words_of(text: str) -> frozenset[str]:
    """The words and numbers of a text."""
    return frozenset(_WORD.findall(text))


def names_any(text: str, names: Iterable[str]) -> bool:
    """Whether any of some names stands in a text; one that is empty, where there is a word at all."""
    words = words_of(text)
    return any(name in words if name else bool(words) for name in names)


def spell(tokens: list[Token]) -> str:
    """The tokens as text, one blank where white space stood."""
    parts: list[str] = []
    for number, token in enumerate(tokens):
        if token.space and number:
            parts.append(" ")
        parts.append(token.text)
    return "".join(parts)
