"""Constant expressions worked out: numbers, names, operators, casts, sizeof, type traits, calls of constexpr functions.

In: an expression's text and a ``Scope`` that knows names. Out: a ``Term``; ``Unknown`` is raised with the part that
stopped it. Integer arithmetic is C++'s: division truncates, comparison gives bool.
"""

from __future__ import annotations

import re

from opwalker.expand.arithmetic import BINARY, apply, cast, fold, promoted, wrapped
from opwalker.expand.cursor import Cursor
from opwalker.expand.result_types import literal_type
from opwalker.expand.scope import Scope
from opwalker.expand.terms import SIZES, ConstTerm, FunctionTerm, ListTerm, Term, TypeTerm, Unknown
from opwalker.expand.tokens import Token
from opwalker.facts.cpp_brackets import split_commas
from opwalker.notation.regex import Regex

_NUMBER = Regex(r"(0[xX][0-9a-fA-F']+|0[bB][01']+|\d[\d']*)([uUlLzZ]*)\Z")
_FLOAT = Regex(r"(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?\Z")
_CHARACTER = Regex(r"'(\\?.)'\Z", re.DOTALL)
_ESCAPES = {"\\n": 10, "\\t": 9, "\\0": 0, "\\r": 13, "\\\\": 92, "\\'": 39}
_SUFFIXES = {
    "u": "unsigned int", "l": "long", "ul": "unsigned long", "lu": "unsigned long", "ll": "long long",
    "ull": "unsigned long long", "llu": "unsigned long long", "uz": "unsigned long", "zu": "unsigned long", "z": "long",
}  # fmt: skip
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast"))
_TRANSPARENT = frozenset(("std::move", "std::forward", "std::as_const"))
_CONSTANT = Regex(r"std::integral_constant<(.*), ([^,]*)>\s*\Z")
_FOLDED = Regex(r"(\|\||&&|[-+*&|^])\s*\.\.\.(?:\s*(\|\||&&|[-+*&|^])\s*(.+))?\Z", re.DOTALL)
_FOLDED_LEFT = Regex(
    r"\A\s*(?:(?P<first>.+?)\s*(?:\|\||&&|[-+*&|^])\s*)?\.\.\.\s*(?P<op>\|\||&&|[-+*&|^])(?P<rest>.+)\Z", re.DOTALL
)
_MAX_DEPTH = 60
_WORDS = frozenset(("true", "false", "sizeof", "typename", "decltype", "alignof", "this", "nullptr"))


def evaluate(text: str, scope: Scope) -> Term:
    """The value of a constant expression."""
    simple = text.strip()
    if simple.isidentifier() and simple not in _WORDS:
        return scope.name(simple)
    if simple.isdecimal() and (simple == "0" or simple[0] != "0"):
        return ConstTerm(int(simple), literal_type(int(simple), "int", True))
    return scope.kept("value", text, lambda told: _Reader(told, scope).whole())


def value_of(term: Term) -> ConstTerm | None:
    """The number that a term is, or that an object of its type converts to; None for none."""
    if isinstance(term, ConstTerm):
        return term
    if isinstance(term, ListTerm) and len(term.items) == 1 and not term.type:
        return value_of(term.items[0])
    if isinstance(term, ListTerm) and (constant := _CONSTANT.match(term.type)):
        from opwalker.expand.deduction import literal_term

        found = literal_term(constant.group(2))
        return ConstTerm(found.value, constant.group(1)) if isinstance(found, ConstTerm) else None
    return None


class _Reader(Cursor):
    def __init__(self, text: str, scope: Scope) -> None:
        super().__init__(text)
        self._scope = scope
        self._depth = 0

    def whole(self) -> Term:
        """The expression, all of it."""
        value = self._ternary()
        if self._at < len(self._tokens):
            raise self._stop()
        return value

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
            taken = self._span(":")
            self._expect(":")
            other = self._rest_of_operand()
            return evaluate(taken if self._number(condition).value else other, self._scope)
        finally:
            self._depth -= 1

    def _number(self, term: Term) -> ConstTerm:
        found = value_of(term)
        if found is None and isinstance(term, ListTerm) and term.type:
            found = self._scope.converted(term)
        if found is None:
            raise self._stop()
        return found

    def _binary(self, level: int) -> Term:
        left = self._unary()
        while True:
            operator = self._operator()
            strength = BINARY.get(operator)
            if strength is None or strength < level:
                return left
            self._take()
            if operator == ">>":
                self._take()
            number = self._number(left)
            if operator in ("&&", "||") and bool(number.value) == (operator == "||"):
                self._skip_operand(strength)
                left = ConstTerm(int(operator == "||"), "bool")
                continue
            found = apply(operator, number, self._number(self._binary(strength + 1)))
            if found is None:
                raise self._stop()
            left = found

    def _unary(self) -> Term:
        token = self._take()
        text = token.text
        if text in ("!", "-", "+", "~"):
            value = self._number(self._unary())
            if text == "!":
                return ConstTerm(int(not value.value), "bool")
            if text == "~":
                return wrapped(~int(value.value), promoted(value.type))
            return wrapped(-value.value if text == "-" else value.value, promoted(value.type))
        if text == "(":
            return self._postfix(self._parenthesis(token), self._text[token.pos : self._pos()])
        if text == "{":
            return self._list(self._group(token, "{", "}"))
        if text in ("&", "*"):
            return self._unary()
        if text == "sizeof":
            return self._sizeof()
        if text in ("true", "false"):
            return ConstTerm(int(text == "true"), "bool")
        number = _NUMBER.match(text)
        if number:
            digits = number.group(1).replace("'", "")
            base = 0 if digits[:2].lower() in ("0x", "0b") else 8 if digits[:1] == "0" and digits.isdigit() else 10
            value, kind = int(digits, base), _SUFFIXES.get(number.group(2).lower(), "int")
            return ConstTerm(value, literal_type(value, kind, base == 10))
        if _FLOAT.match(text):
            kind = "float" if text[-1] in "fF" else "double"
            return ConstTerm(float(text.rstrip("fFlL").replace("'", "")), kind)
        character = _CHARACTER.match(text)
        if character:
            code = _ESCAPES.get(character.group(1), ord(character.group(1)[-1]))
            return ConstTerm(code, "char")
        if token.word or text == "::":
            return self._postfix(None, "", token)
        raise self._stop()

    def _parenthesis(self, opened: Token) -> Term:
        """``(expression)``, ``(type) operand``, or a fold over a pack."""
        inside = self._group(opened)
        following = self._peek()
        if following and (self._tokens[self._at].word or following in ("(", "-", "~", "!") or following[0].isdigit()):
            try:
                kind = self._scope.type(inside)
            except Unknown:
                kind = None
            if kind is not None:
                return cast(self._number(self._unary()), kind.text)
        if "..." in inside and "sizeof" not in inside:
            return self._fold(inside)
        return evaluate(inside, self._scope)

    def _fold(self, inside: str) -> Term:
        """``(pattern op ...)``, ``(pattern op ... op first)`` or ``(first op ... op pattern)``."""
        right, left = _FOLDED.search(inside), _FOLDED_LEFT.match(inside)
        if right is not None:
            operator, pattern, first = right.group(1), inside[: right.start()], right.group(3)
        elif left is not None:
            operator, pattern, first = left.group("op"), left.group("rest"), left.group("first")
        else:
            raise self._stop()
        found = self._number(evaluate(first, self._scope)) if first else None
        for scope in self._scope.spread(pattern):
            value = self._number(evaluate(pattern, scope))
            found = value if found is None else apply(operator, found, value)
            if found is None:
                raise self._stop()
        if found is None:
            if operator not in ("&&", "||"):
                raise self._stop()
            return ConstTerm(int(operator == "&&"), "bool")
        return found

    def _sizeof(self) -> Term:
        if self._peek() == "...":
            self._take()
            return ConstTerm(self._scope.count(self._group(self._take()).strip()), "unsigned long")
        inside = self._group(self._take()) if self._peek() == "(" else self._take().text
        try:
            kind = self._scope.type(inside).text
        except Unknown:
            kind = self._scope.type_of(inside).text
        if "[]" in kind and inside.strip().isidentifier():  # as many elements as it is initialised with
            held = self._scope.name(inside.strip())
            if not isinstance(held, ListTerm):
                raise self._stop()
            kind = kind.replace("[]", f"[{len(held.items)}]", 1)
        return ConstTerm(self._scope.size(kind), "unsigned long")

    def _list(self, inside: str, kind: str = "") -> ListTerm:
        """``{a, b, …}``; an element that cannot be worked out makes the list unknown."""
        return ListTerm(tuple(evaluate(inside[a:b], self._scope) for a, b in split_commas(inside)), kind)

    # -- names ------------------------------------------------------------------------------------------------------

    def _postfix(self, held: Term | None, text: str, first: Token | None = None) -> Term:
        """A name or a parenthesis, with the indices and members behind it."""
        start = first.pos if first is not None else self._pos()
        if first is not None:
            held = self._named(first)
            text = self._text[start : self._pos()]
        while True:
            following = self._peek()
            if following == "[":
                index = self._number(evaluate(self._group(self._take(), "[", "]"), self._scope))
                if not isinstance(held, ListTerm) or not 0 <= int(index.value) < len(held.items):
                    raise self._stop()
                held = held.items[int(index.value)]
            elif following in (".", "->"):
                held = self._member(held, text)
            elif held is None:
                return self._scope.name(text)
            else:
                return held
            text = self._text[start : self._pos()]

    def _member(self, held: Term | None, text: str) -> Term:
        """``value.name`` or ``value.name()``."""
        self._take()
        name = self._take().text
        if self._peek() == "(":
            inside = self._group(self._take())
            if isinstance(held, ListTerm) and not _CONSTANT.match(held.type):
                given = [inside[a:b].strip() for a, b in split_commas(inside)]
                made = self._scope.call_on(held, name, given) if held.type else None
                if made is not None:
                    return made
                if name == "size":
                    return ConstTerm(len(held.items), "unsigned long")
            if inside.strip():
                raise self._stop()
        if isinstance(held, ListTerm) and not _CONSTANT.match(held.type):
            return self._scope.field_of(held, name)
        kind = TypeTerm(held.type) if isinstance(held, ListTerm) else self._scope.type_of(text)
        return self._scope.member(kind, name)

    def _qualified(self, first: Token) -> str:
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
            return name

    def _named(self, first: Token) -> Term | None:
        """A name with its qualifiers, template arguments and call; None for a plain name with a member behind it."""
        name = self._qualified(first)
        if name == "decltype" and self._peek() == "(":
            inside = self._group(self._take())
            kind = self._scope.type(f"decltype({inside})")
            return self._of_type(kind)
        if name == "typename":
            return self._named(self._take())
        if name in _CASTS and self._peek() == "<":
            kind = self._scope.type(self._angle())
            return cast(self._number(evaluate(self._group(self._take()), self._scope)), kind.text)
        if name in ("alignof", "__alignof__") and self._peek() == "(":
            kind = self._scope.type(self._group(self._take())).text
            return ConstTerm(self._scope.alignment(kind), "unsigned long")
        template = None
        if self._peek() == "<":
            held = self._at
            try:
                template = self._angle()
            except Unknown:
                self._at = held
        if template is not None and self._peek() == "::":
            self._take()
            member = self._take()
            if member.text == "template":
                member = self._take()
            if self._peek() in ("<", "::", "("):
                return self._of_type(self._scope.type(f"{name}<{template}>"), member)
            found = self._scope.template(name, template, member.text)
            return self._of_type(found) if isinstance(found, TypeTerm) else found
        if self._peek() == "(":
            inside = self._group(self._take())
            if name in _TRANSPARENT:
                return evaluate(inside, self._scope)
            return self._called(name, template, inside)
        if self._peek() == "{":
            kind = self._scope.template(name, template, None) if template is not None else self._scope.type(name)
            return self._of_type(kind) if isinstance(kind, TypeTerm) else kind
        if template is not None:
            return self._scope.template(name, template, None)
        if self._peek() in (".", "->"):
            try:
                return self._scope.name(name)
            except Unknown:
                return None
        return self._scope.name(name)

    def _of_type(self, kind: TypeTerm, member: Token | None = None) -> Term:
        """What stands behind a type: a member of it, or braces or parentheses that make an object."""
        while member is not None or self._peek() == "::":
            if member is None:
                self._take()
                member = self._take()
                if member.text == "template":
                    member = self._take()
            name, template = member.text, None
            member = None
            if self._peek() == "<":
                template = self._angle()
            if self._peek() == "(":
                inside = self._group(self._take())
                arguments = [inside[a:b].strip() for a, b in split_commas(inside)]
                return self._scope.call_member(kind, name, template, arguments)
            found = self._scope.member(kind, name if template is None else f"{name}<{template}>")
            if not isinstance(found, TypeTerm):
                return found
            kind = found
        if self._peek() in ("(", "{"):
            opened = self._take()
            inside = self._group(opened, opened.text, ")" if opened.text == "(" else "}")
            return self._made(kind, inside)
        return kind

    def _made(self, kind: TypeTerm, inside: str) -> Term:
        """An object of a type: a number is converted, an aggregate keeps its elements."""
        arguments = [inside[a:b].strip() for a, b in split_commas(inside)]
        if kind.text in SIZES and len(arguments) < 2:
            return cast(self._number(evaluate(arguments[0], self._scope)) if arguments else ConstTerm(0), kind.text)
        return self._scope.object_of(self._list(inside, kind.text))

    def _called(self, name: str, template: str | None, inside: str) -> Term:
        arguments = [inside[a:b].strip() for a, b in split_commas(inside)]
        kind: Term | None = None
        if template is None or not arguments:
            try:
                kind = self._scope.type(name if template is None else f"{name}<{template}>")
            except Unknown:
                kind = None
        if isinstance(kind, TypeTerm) and (kind.text in SIZES or _CONSTANT.match(kind.text)):
            return self._made(kind, inside)
        simple = name.rsplit("::", 1)[-1]
        if simple in ("min", "max", "gcd", "lcm", "abs") and arguments:
            listed = arguments
            if len(arguments) == 1 and arguments[0].startswith("{"):
                inner = arguments[0].strip("{} ")
                listed = [inner[a:b] for a, b in split_commas(inner)]
            return fold(simple, [self._number(evaluate(a, self._scope)) for a in listed])
        try:
            return self._scope.call(name, template, arguments)
        except Unknown:
            if isinstance(kind, TypeTerm):
                return self._made(kind, inside)
            raise


__all__ = ["FunctionTerm", "Scope", "evaluate", "value_of"]
