"""A place in an expression's tokens, and the steps that every reader of expressions takes.

In: a text. Out: tokens and pieces of the text. What a piece means is not known here.
"""

from __future__ import annotations

from functools import lru_cache

from opwalker.expand.arithmetic import BINARY
from opwalker.expand.terms import Unknown
from opwalker.expand.tokens import Token, tokenize
from opwalker.facts.cpp_brackets import match_angle


@lru_cache(maxsize=8192)
def _tokens(text: str) -> list[Token]:
    """The tokens of an expression: the same few are read again for every instance."""
    return tokenize(text)


class Cursor:
    """The tokens of a text and where a reader is in them. What does not fit raises Unknown with the whole text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[Token] = _tokens(text)
        self._at = 0

    def _stop(self) -> Unknown:
        return Unknown(f"`{self._text.strip()[:100]}` is not a constant that could be worked out")

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _take(self) -> Token:
        if self._at >= len(self._tokens):
            raise self._stop()
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, text: str) -> None:
        if self._take().text != text:
            raise self._stop()

    def _pos(self) -> int:
        return self._tokens[self._at].pos if self._at < len(self._tokens) else len(self._text)

    def _span(self, stop: str) -> str:
        """The text up to a token at depth 0."""
        start = self._pos()
        depth = nested = 0
        while self._at < len(self._tokens):
            text = self._tokens[self._at].text
            if depth == 0 and text == "?":
                nested += 1
            elif depth == 0 and text == stop:
                if not nested:
                    return self._text[start : self._tokens[self._at].pos]
                nested -= 1
            depth += (text in "([{") - (text in ")]}") if len(text) == 1 else 0
            if depth < 0:
                break
            self._at += 1
        raise self._stop()

    def _rest_of_operand(self) -> str:
        start = self._pos()
        depth = 0
        while self._at < len(self._tokens):
            text = self._tokens[self._at].text
            if depth == 0 and text in (",", ")", "]", "}", ";"):
                break
            depth += (text in "([{") - (text in ")]}") if len(text) == 1 else 0
            self._at += 1
        return self._text[start : self._pos()]

    def _operator(self) -> str:
        """The operator that stands here; two closing angles side by side shift."""
        operator = self._peek()
        if operator == ">" and self._at + 1 < len(self._tokens):
            following = self._tokens[self._at + 1]
            if following.text == ">" and not following.space:
                return ">>"
            if following.text == "=" and not following.space:
                return ">="
        return operator

    def _skip_operand(self, strength: int) -> None:
        """Pass over what a decided ``&&`` or ``||`` does not evaluate."""
        depth = 0
        while self._at < len(self._tokens):
            text = self._tokens[self._at].text
            if depth == 0 and (text in ("?", ":", ",", ")") or (0 < BINARY.get(text, 99) <= strength)):
                return
            if text == "<" and self._at and self._tokens[self._at - 1].word:
                try:
                    self._angle()
                    continue
                except Unknown:
                    pass
            depth += (text in "([{") - (text in ")]}") if len(text) == 1 else 0
            self._at += 1

    def _group(self, opened: Token, first: str = "(", last: str = ")") -> str:
        """The text inside a bracket that was just taken; the closing one is taken too."""
        depth = 1
        while self._at < len(self._tokens):
            token = self._take()
            depth += (token.text == first) - (token.text == last)
            if depth == 0:
                return self._text[opened.pos + 1 : token.pos]
        raise self._stop()

    def _angle(self) -> str:
        """Template arguments: the text between ``<`` and its ``>``; both are taken."""
        start = self._pos()
        close = match_angle(self._text, start)
        if close < 0:
            raise self._stop()
        while self._at < len(self._tokens) and self._tokens[self._at].pos < close:
            self._at += 1
        return self._text[start + 1 : close - 1]
