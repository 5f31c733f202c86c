"""Python type annotations, text to value.

In: an annotation's text (``Optional[torch.Tensor]``, ``"list[int] | None"``). Out: ``PyType``, in which ``Optional``
and ``|`` are unions and quotes are gone. What a name stands for is not decided here.
"""

from __future__ import annotations

import re

from msgspec import Struct

from opwalker.notation.regex import Regex

_TOKEN = Regex(
    r"""\s*(?:([A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)|(\.\.\.)|([\[\],|()])|(["'])(.*?)\4|(\#[^\n]*))""", re.DOTALL
)
_DEEPEST = 40


class NotAType(ValueError):
    """The text is no annotation of the forms that are read here."""


class PyType(Struct, frozen=True):
    """``name`` is dotted as written, or ``"union"`` with its members in ``arguments``, or ``"..."``."""

    name: str
    arguments: tuple[PyType, ...] = ()
    subscripted: bool = False


def parse_type(text: str) -> PyType:
    """The type that an annotation's text names. Raises ``NotAType``."""
    parser = _Parser(text)
    found = parser.union(0)
    if parser.peek() is not None:
        raise NotAType(text)
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise NotAType(text)
            name, dots, sign, quote, quoted, comment = found.groups()
            if comment:
                pass
            elif name:
                self._tokens.append(("name", re.sub(r"\s", "", name)))
            elif quote:
                self._tokens.append(("quoted", quoted))
            else:
                self._tokens.append(("sign", dots or sign))
            at = found.end()
        self._at = 0

    def peek(self) -> tuple[str, str] | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self) -> tuple[str, str]:
        token = self.peek()
        if token is None:
            raise NotAType(self._text)
        self._at += 1
        return token

    def union(self, depth: int) -> PyType:
        """Members joined by ``|``."""
        if depth > _DEEPEST:
            raise NotAType(self._text)
        members = [self._single(depth)]
        while self.peek() == ("sign", "|"):
            self._take()
            members.append(self._single(depth))
        return members[0] if len(members) == 1 else PyType("union", _flat(members))

    def _single(self, depth: int) -> PyType:
        kind, text = self._take()
        if kind == "quoted":
            return _Parser(text).whole(depth + 1)
        if (kind, text) == ("sign", "..."):
            return PyType("...")
        if kind != "name":
            raise NotAType(self._text)
        if self.peek() != ("sign", "["):
            return PyType(text)
        self._take()
        arguments = self._arguments(depth + 1)
        leaf = text.rpartition(".")[2]
        if leaf == "Optional" and len(arguments) == 1:
            return PyType("union", _flat([arguments[0], PyType("None")]))
        if leaf == "Union":
            return PyType("union", _flat(arguments)) if len(arguments) > 1 else arguments[0]
        if leaf == "Annotated":
            return arguments[0]
        return PyType(text, tuple(arguments), True)

    def whole(self, depth: int) -> PyType:
        """The type that all of the text names."""
        found = self.union(depth)
        if self.peek() is not None:
            raise NotAType(self._text)
        return found

    def _arguments(self, depth: int) -> list[PyType]:
        found: list[PyType] = []
        if self.peek() == ("sign", "("):
            self._take()
            if self._take() != ("sign", ")") or self._take() != ("sign", "]"):
                raise NotAType(self._text)
            return found
        while True:
            found.append(self.union(depth))
            closing = self._take()
            if closing == ("sign", "]"):
                return found
            if closing != ("sign", ","):
                raise NotAType(self._text)
            if self.peek() == ("sign", "]"):
                self._take()
                return found


def _flat(members: list[PyType]) -> tuple[PyType, ...]:
    """The members of a union, unions in it taken apart, each once."""
    found: list[PyType] = []
    for member in members:
        for one in member.arguments if member.name == "union" else (member,):
            if one not in found:
                found.append(one)
    return tuple(found)
