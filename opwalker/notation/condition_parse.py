"""Reads a preprocessor condition, by hand: it is asked for at every branch of every file, and lark takes 50 ms to load.

In: the text behind ``#if``/``#elif`` (comments and continued lines may still be in it), or a name behind ``#ifdef``.
Out: a ``Cond``. Function-like macros and ``__has_include(...)`` are not expanded: each is an ``Opaque`` atom, and so is
a whole text that is no expression. Reading never fails.
"""

from __future__ import annotations

import re
from functools import lru_cache

from opwalker.notation.condition_terms import (
    BINDING,
    CHOICE,
    UNARY,
    Binary,
    Choice,
    Cond,
    Defined,
    Junction,
    Name,
    Number,
    Opaque,
    Unary,
    negate,
)
from opwalker.notation.regex import Regex
from opwalker.notation.spelt_operators import SPELT

_TOKEN = Regex(
    r"""(?P<blank>(?:\s|\\\r?\n|//[^\n]*|/\*.*?\*/)+)
      | (?P<number>(?:0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)(?P<suffix>[uUlLzZ]*)(?![\w.]))
      | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<mark>&&|\|\||==|!=|<=|>=|<<|>>|[-+*/%<>&|^~!?:(),])""",
    re.VERBOSE | re.DOTALL,
)
#: Operators and brackets that one condition may have, `&&` and `||` apart: no text can exhaust the stack.
_BUDGET = 200


class _Unreadable(Exception):
    """The text is no expression. Never leaves this module."""


@lru_cache(maxsize=8192)
def parse_condition(text: str) -> Cond:
    """The value of an expression, ``"defined(USE_ROCM) && (HIP_VERSION >= 60000)"``. Never fails: see ``Opaque``."""
    tokens = _tokens(text)
    if tokens is not None:
        try:
            parser = _Parser(text, tokens)
            cond = parser.expression(0)
            parser.expect("")
            return cond
        except _Unreadable:
            pass
    return Opaque(_flat(text))


def parse_directive(keyword: str, text: str) -> Cond:
    """The condition of a directive: ``ifdef``/``elifdef`` and ``ifndef``/``elifndef`` take a name, others an
    expression."""
    if keyword.endswith(("ifdef", "ifndef")):
        words = _flat(text).split(" ")
        atom: Cond = Defined(words[0]) if words[0].isidentifier() else Opaque(_flat(text))
        return negate(atom) if keyword.endswith("ndef") else atom
    return parse_condition(text)


def _flat(text: str) -> str:
    """The text on one line, without comments."""
    return " ".join(re.sub(r"\\\r?\n|//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).split())


def _tokens(text: str) -> list[tuple[str, str, int, int]] | None:
    """``(kind, text, start, end)`` of each token, an empty mark at the end; None where a character is no token's.

    What stands in the brackets of a ``__has_...`` word need not be tokens: it becomes a part of that word.
    """
    tokens: list[tuple[str, str, int, int]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        at = match.end()
        kind = match.lastgroup if match.lastgroup != "suffix" else "number"
        if kind == "blank":
            continue
        token = match.group()
        if kind == "word" and token.startswith("__has_"):
            closing = re.compile(r"\s*\([^()]*(?:\([^()]*\)[^()]*)*\)").match(text, at)
            if closing is not None:
                at = closing.end()
                tokens.append(("opaque", token + closing.group().strip(), match.start(), at))
                continue
        if token in SPELT:
            kind, token = "mark", SPELT[token]
        tokens.append((str(kind), token, match.start(), match.end()))
    tokens.append(("mark", "", at, at))
    return tokens


def _number(text: str) -> Number:
    digits = text.rstrip("uUlLzZ").replace("'", "").lower()
    if digits.startswith(("0x", "0b")):
        try:
            return Number(int(digits, 0), text)
        except ValueError:
            raise _Unreadable from None  # a prefix without digits
    octal = digits.startswith("0") and len(digits) > 1
    if octal and not set(digits) <= set("01234567"):
        raise _Unreadable
    return Number(int(digits, 8 if octal else 10), text)


class _Parser:
    """Reads one expression by binding strength."""

    def __init__(self, text: str, tokens: list[tuple[str, str, int, int]]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0
        self._left = _BUDGET

    def expect(self, mark: str) -> None:
        kind, text, _, _ = self._tokens[self._at]
        if kind != "mark" or text != mark:
            raise _Unreadable
        self._at += 1

    def expression(self, least: int) -> Cond:
        """The longest expression from here whose operators bind at least as tightly as ``least``."""
        left = self._operand()
        while True:
            kind, mark, _, _ = self._tokens[self._at]
            if kind == "mark" and mark == "?" and least <= CHOICE:
                self._at += 1
                self._spend()
                then = self.expression(CHOICE)
                self.expect(":")
                left = Choice(left, then, self.expression(CHOICE))
                continue
            binding = BINDING.get(mark, -1) if kind == "mark" else -1
            if binding < max(least, 1):
                break
            self._at += 1
            right = self.expression(binding + 1)
            if mark in ("&&", "||"):
                left = _junction(mark, left, right)
            else:
                self._spend()
                left = Binary(mark, left, right)
        return left

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _Unreadable

    def _operand(self) -> Cond:
        kind, text, start, _ = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return _number(text)
        if kind == "opaque":
            return Opaque(_flat(text))
        if kind == "word":
            if text == "defined":
                return self._defined()
            return self._call(start) if self._tokens[self._at][1] == "(" else Name(text)
        self._spend()
        if text == "(":
            inner = self.expression(CHOICE)
            self.expect(")")
            return inner
        if text in ("!", "-", "+", "~") and text:
            return Unary(text, self.expression(UNARY))
        raise _Unreadable

    def _defined(self) -> Cond:
        bracket = self._tokens[self._at][1] == "("
        self._at += bracket
        kind, name, _, _ = self._tokens[self._at]
        if kind != "word":
            raise _Unreadable
        self._at += 1
        if bracket:
            self.expect(")")
        return Defined(name)

    def _call(self, start: int) -> Cond:
        """A function-like macro in use, up to its closing bracket: kept as text."""
        depth = 0
        while True:
            _, text, _, end = self._tokens[self._at]
            self._at += 1
            depth += (text == "(") - (text == ")")
            if depth == 0:
                return Opaque(_flat(self._text[start:end]))
            if text == "":
                raise _Unreadable


def _junction(operator: str, *conds: Cond) -> Cond:
    """Flat, but with every term as often as it was written."""
    terms: list[Cond] = []
    for cond in conds:
        terms += cond.terms if isinstance(cond, Junction) and cond.operator == operator else (cond,)
    return Junction(operator, tuple(terms))
