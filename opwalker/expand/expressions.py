"""Constant expressions worked out: numbers, names, operators, casts, sizeof, type traits, calls of constexpr functions.

In: an expression's text and a ``Scope`` that knows names. Out: a ``ConstTerm``; ``Unknown`` is raised with the part
that stopped it. Integer arithmetic is C++'s: division truncates, comparison gives bool.
"""

from __future__ import annotations

import math
import re
from typing import Protocol

from opwalker.expand.terms import SIZES, ConstTerm, FunctionTerm, Term, TypeTerm, Unknown
from opwalker.expand.tokens import Token, tokenize
from opwalker.facts.cpp_brackets import match_angle, split_commas

_NUMBER = re.compile(r"(0[xX][0-9a-fA-F']+|0[bB][01']+|\d[\d']*)([uUlLzZ]*)\Z")
_FLOAT = re.compile(r"(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?\Z")
_BINARY = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_SUFFIXES = {
    "u": "unsigned int", "l": "long", "ul": "unsigned long", "lu": "unsigned long", "ll": "long long",
    "ull": "unsigned long long", "llu": "unsigned long long",
}  # fmt: skip
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast"))
_RANK = ("bool", "int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "double")
_MAX_DEPTH = 60


class Scope(Protocol):
    """What an expression's names mean."""

    def name(self, text: str) -> Term:
        """The term that a (qualified) name without template arguments means. Raises Unknown."""

    def template(self, text: str, arguments: str, member: str | None) -> Term:
        """The term that ``text<arguments>`` or ``text<arguments>::member`` means. Raises Unknown."""

    def type(self, text: str) -> TypeTerm:
        """A type. Raises Unknown."""

    def member(self, owner: TypeTerm, name: str) -> Term:
        """A member of a type. Raises Unknown."""

    def call(self, text: str, template: str | None, arguments: list[str]) -> Term:
        """A call of a constexpr function. Raises Unknown."""


def evaluate(text: str, scope: Scope) -> Term:
    """The value of a constant expression."""
    return _Reader(text, scope).whole()


class _Reader:
    def __init__(self, text: str, scope: Scope) -> None:
        self._text = text
        self._scope = scope
        self._tokens: list[Token] = tokenize(text)
        self._at = 0
        self._depth = 0

    def whole(self) -> Term:
        """The expression, all of it."""
        value = self._ternary()
        if self._at < len(self._tokens):
            raise self._stop()
        return value

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

    def _ternary(self) -> Term:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._stop()
        try:
            condition = self._binary(1)
            if self._peek() != "?":
                return condition
            self._take()
            # Only the chosen side has to be known.
            taken, other = self._span(":"), None
            self._expect(":")
            other = self._rest_of_operand()
            chosen = taken if self._number(condition).value else other
            return evaluate(chosen, self._scope)
        finally:
            self._depth -= 1

    def _span(self, stop: str) -> str:
        """The text up to a token at depth 0."""
        start = self._tokens[self._at].pos if self._at < len(self._tokens) else len(self._text)
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
        start = self._tokens[self._at].pos if self._at < len(self._tokens) else len(self._text)
        depth = 0
        while self._at < len(self._tokens):
            text = self._tokens[self._at].text
            if depth == 0 and text in (",", ")", "]", "}", ";"):
                break
            depth += (text in "([{") - (text in ")]}") if len(text) == 1 else 0
            self._at += 1
        end = self._tokens[self._at].pos if self._at < len(self._tokens) else len(self._text)
        return self._text[start:end]

    def _number(self, term: Term) -> ConstTerm:
        if not isinstance(term, ConstTerm):
            raise self._stop()
        return term

    def _binary(self, level: int) -> Term:
        left = self._unary()
        while True:
            operator = self._peek()
            if operator == ">" and self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].text == ">":
                raise self._stop()
            strength = _BINARY.get(operator)
            if strength is None or strength < level:
                return left
            self._take()
            number = self._number(left)
            if operator in ("&&", "||") and bool(number.value) == (operator == "||"):
                self._skip_operand(strength)
                left = ConstTerm(int(operator == "||"), "bool")
                continue
            right = self._number(self._binary(strength + 1))
            left = _apply(operator, number, right, self._stop)

    def _skip_operand(self, strength: int) -> None:
        """Pass over what a decided ``&&`` or ``||`` does not evaluate."""
        depth = 0
        while self._at < len(self._tokens):
            text = self._tokens[self._at].text
            if depth == 0 and (text in ("?", ":", ",", ")") or (0 < _BINARY.get(text, 99) <= strength)):
                return
            if text == "<" and self._at and self._tokens[self._at - 1].word:
                try:
                    self._angle()
                    continue
                except Unknown:
                    pass
            depth += (text in "([{") - (text in ")]}") if len(text) == 1 else 0
            self._at += 1

    def _unary(self) -> Term:
        token = self._take()
        text = token.text
        if text in ("!", "-", "+", "~"):
            value = self._number(self._unary())
            if text == "!":
                return ConstTerm(int(not value.value), "bool")
            if text == "~":
                return ConstTerm(~int(value.value), _promoted(value.type))
            return ConstTerm(-value.value if text == "-" else value.value, _promoted(value.type))
        if text == "(":
            return self._parenthesis(token)
        if text == "&":
            return self._unary()
        if text == "sizeof":
            return self._sizeof()
        if text in ("true", "false"):
            return ConstTerm(int(text == "true"), "bool")
        number = _NUMBER.match(text)
        if number:
            digits = number.group(1).replace("'", "")
            base = 0 if digits[:2].lower() in ("0x", "0b") else 10
            return ConstTerm(int(digits, base), _SUFFIXES.get(number.group(2).lower(), "int"))
        if _FLOAT.match(text):
            return ConstTerm(float(text.rstrip("fFlL").replace("'", "")), "double")
        if token.word or text == "::":
            return self._named(token)
        raise self._stop()

    def _parenthesis(self, opened: Token) -> Term:
        """``(expression)`` or ``(type) operand``."""
        inside = self._group(opened)
        following = self._peek()
        if following and (self._tokens[self._at].word or following in ("(", "-", "~", "!") or following[0].isdigit()):
            try:
                kind = self._scope.type(inside)
            except Unknown:
                kind = None
            if kind is not None:
                return _cast(self._number(self._unary()), kind.text)
        return evaluate(inside, self._scope)

    def _group(self, opened: Token) -> str:
        """The text inside a parenthesis that was just taken; the closing one is taken too."""
        depth = 1
        while self._at < len(self._tokens):
            token = self._take()
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return self._text[opened.pos + 1 : token.pos]
        raise self._stop()

    def _sizeof(self) -> Term:
        if self._peek() == "...":
            raise self._stop()
        inside = self._group(self._take()) if self._peek() == "(" else self._take().text
        kind = self._scope.type(inside).text
        if kind.endswith("*"):
            return ConstTerm(8, "unsigned long")
        if kind not in SIZES:
            raise Unknown(f"the size of `{kind}` is not known")
        return ConstTerm(SIZES[kind], "unsigned long")

    def _named(self, first: Token) -> Term:
        """A name with its qualifiers, template arguments and call."""
        name = first.text
        while True:
            if name.endswith("::") or name == "::":
                following = self._take()
                if following.text == "template":
                    following = self._take()
                name += following.text
            if self._peek() == "::":
                self._take()
                name += "::"
                continue
            break
        if name == "decltype" and self._peek() == "(":
            inside = self._group(self._take())
            self._expect("::")
            return self._scope.member(self._scope.type(f"decltype({inside})"), self._take().text)
        if name in _CASTS and self._peek() == "<":
            kind = self._scope.type(self._angle())
            return _cast(self._number(evaluate(self._group(self._take()), self._scope)), kind.text)
        template = None
        member = None
        if self._peek() == "<":
            held = self._at
            try:
                template = self._angle()
            except Unknown:
                self._at = held
        if template is not None and self._peek() == "::":
            self._take()
            member = self._take().text
            if self._peek() == "<":
                raise self._stop()
        if self._peek() in ("(", "{"):
            opened = self._take()
            if opened.text == "{":
                inside = self._braces(opened)
            else:
                inside = self._group(opened)
            return self._called(name, template, member, inside)
        if template is not None:
            return self._scope.template(name, template, member)
        return self._scope.name(name)

    def _called(self, name: str, template: str | None, member: str | None, inside: str) -> Term:
        arguments = [inside[a:b].strip() for a, b in split_commas(inside)]
        if member is not None:
            raise self._stop()
        if template is None and len(arguments) <= 1:
            try:
                kind = self._scope.type(name)
            except Unknown:
                kind = None
            if kind is not None and kind.text in SIZES:
                if not arguments:
                    return _cast(ConstTerm(0), kind.text)
                return _cast(self._number(evaluate(arguments[0], self._scope)), kind.text)
        simple = name.rsplit("::", 1)[-1]
        if simple in ("min", "max", "gcd", "lcm", "abs") and arguments:
            listed = arguments
            if len(arguments) == 1 and arguments[0].startswith("{"):
                inner = arguments[0].strip("{} ")
                listed = [inner[a:b] for a, b in split_commas(inner)]
            values = [self._number(evaluate(a, self._scope)) for a in listed]
            return _fold(simple, values)
        return self._scope.call(name, template, arguments)

    def _braces(self, opened: Token) -> str:
        depth = 1
        while self._at < len(self._tokens):
            token = self._take()
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0:
                return self._text[opened.pos + 1 : token.pos]
        raise self._stop()

    def _angle(self) -> str:
        """Template arguments: the text between ``<`` and its ``>``; both are taken."""
        start = self._tokens[self._at].pos
        close = match_angle(self._text, start)
        if close < 0:
            raise self._stop()
        while self._at < len(self._tokens) and self._tokens[self._at].pos < close:
            self._at += 1
        return self._text[start + 1 : close - 1]


def _promoted(kind: str) -> str:
    return kind if kind in _RANK and kind != "bool" else "int"


def _common(left: str, right: str) -> str:
    if "double" in (left, right) or "float" in (left, right):
        return "double"
    a, b = _promoted(left), _promoted(right)
    return max(a, b, key=_RANK.index)


def _apply(operator: str, left: ConstTerm, right: ConstTerm, stop) -> ConstTerm:
    a, b = left.value, right.value
    if operator in ("==", "!=", "<", ">", "<=", ">="):
        found = {"==": a == b, "!=": a != b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[operator]
        return ConstTerm(int(found), "bool")
    if operator in ("&&", "||"):
        return ConstTerm(int(bool(a) and bool(b) if operator == "&&" else bool(a) or bool(b)), "bool")
    kind = _common(left.type, right.type)
    if operator in ("/", "%"):
        if not b:
            raise stop()
        if kind == "double":
            return ConstTerm(a / b, kind)
        quotient = abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
        return ConstTerm(quotient if operator == "/" else int(a) - quotient * int(b), kind)
    if operator in ("<<", ">>", "&", "|", "^"):
        x, y = int(a), int(b)
        if operator in ("<<", ">>"):
            if not 0 <= y < 64:
                raise stop()
            return ConstTerm(x << y if operator == "<<" else x >> y, _promoted(left.type))
        return ConstTerm({"&": x & y, "|": x | y, "^": x ^ y}[operator], kind)
    return ConstTerm({"+": a + b, "-": a - b, "*": a * b}[operator], kind)


def _cast(term: ConstTerm, kind: str) -> ConstTerm:
    if kind == "bool":
        return ConstTerm(int(bool(term.value)), "bool")
    if kind in ("float", "double"):
        return ConstTerm(float(term.value), "double")
    value = int(term.value)
    if kind.startswith("unsigned") and kind in SIZES:
        value &= (1 << (8 * SIZES[kind])) - 1
    return ConstTerm(value, kind)


def _fold(name: str, values: list[ConstTerm]) -> ConstTerm:
    kind = values[0].type
    numbers = [v.value for v in values]
    if name in ("min", "max"):
        return ConstTerm(min(numbers) if name == "min" else max(numbers), kind)
    whole = [int(n) for n in numbers]
    if name == "abs":
        return ConstTerm(abs(whole[0]), kind)
    return ConstTerm(math.gcd(*whole) if name == "gcd" else math.lcm(*whole), kind)


__all__ = ["FunctionTerm", "Scope", "evaluate"]
