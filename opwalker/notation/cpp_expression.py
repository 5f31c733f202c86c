"""C++ expressions of host code: text to a small tree and back.

In: the text of one expression, comments gone. Out: an ``Expr``, and its text again with as few parentheses as mean the
same. Conditions, sizes and launch extents are read with it. It knows no types: ``a < b`` is a comparison unless the
angle brackets close in front of something that only template arguments are followed by. Statements and lambdas are no
expressions here; their text is kept whole (``raw``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from opwalker.notation.regex import Regex
from opwalker.notation.spelt_operators import marked


class Expr(Struct, frozen=True):
    """A node. ``kind`` says what ``text`` and ``parts`` are:

    ``name`` (the name, with qualifiers and template arguments), ``number``, ``string``, ``raw`` (text alone);
    ``member`` (``.size`` or ``->size``; the object), ``call`` (the callee, then the arguments), ``index`` (the object,
    then the indices), ``unary`` and ``postfix`` (operator; operand), ``binary`` (operator; both sides), ``ternary``
    (condition, both values), ``cast`` (``static_cast<int>`` or ``(int)``; operand), ``braces`` (type or nothing;
    items).
    """

    kind: str
    text: str = ""
    parts: tuple[Expr, ...] = ()

    @property
    def simple(self) -> str:
        """A name or member without qualifiers, template arguments and dots; empty for anything else."""
        if self.kind not in ("name", "member"):
            return ""
        bare = (_ARGUMENTS.sub("", self.text) if "<" in self.text else self.text).lstrip(".->")
        return bare.rsplit("::", 1)[-1].strip()


#: Operators of two sides by how tightly they bind.
BINDING = {
    "=": 0, "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, ">": 8, "<=": 8, ">=": 8, "<<": 9,
    ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11,
}  # fmt: skip
_TERNARY, _UNARY, _POSTFIX = 1, 12, 13
_PREFIX = frozenset(("!", "-", "+", "~", "*", "&", "++", "--"))

_TOKEN = Regex(
    r"""(?P<space>\s+)
      | (?P<string>(?:u8|[uUL])?R"([^()\\\s]{0,16})\([\s\S]*?\)\3"|(?:u8|[uUL])?"(?:[^"\\]|\\[\s\S])*"
                 | '(?:[^'\\]|\\.)+')
      | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
      | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<other>->|::|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
    """,
    re.VERBOSE,
)
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"))
_BUILTIN = frozenset("void bool char short int long unsigned signed float double auto const volatile".split())
_TYPE_NAME = Regex(r"(?:std::)?(?:u?int(?:8|16|32|64|ptr)?_t|s?size_t|ptrdiff_t|fptr_t)\Z|(?:[a-z_]\w*::)*\w+_t\Z")
#: What may follow the ``>`` of template arguments; ``a < b > c`` is none.
_BEHIND_ANGLES = frozenset(("(", "{", "::", ")", ",", "", ";", "]", "}", "?", ":", "&&", "||", "==", "!="))
_IN_ANGLES = Regex(r"\A[\w\s:,*&<>.+\-()/%]*\Z")
_ARGUMENTS = Regex(r"<.*>", re.DOTALL)
_MAX_NESTING = 80


class _Stop(Exception):
    """The text is no expression that this file reads."""


@lru_cache(maxsize=8192)
def parse_expression(text: str) -> Expr:
    """The tree of an expression; a ``raw`` node with the text where it is none."""
    try:
        reader = _Reader(text)
        found = reader.expression(0)
        reader.end()
        return found
    except (_Stop, RecursionError):
        return Expr("raw", " ".join(text.split()))


def print_expression(expr: Expr) -> str:
    """The text of a tree: one blank around operators of two sides, parentheses only where they mean something."""
    return _print(expr, 0)


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and all below it, from left to right."""
    yield expr
    for part in expr.parts:
        yield from walk(part)


def changed(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The tree with nodes exchanged: ``change`` gives what stands for a node, None to look into its parts."""
    new = change(expr)
    if new is not None:
        return new
    if not expr.parts:
        return expr
    return replace(expr, parts=tuple(changed(part, change) for part in expr.parts))


def name(text: str) -> Expr:
    """A name as a node."""
    return Expr("name", text)


def negated(expr: Expr) -> Expr:
    """The opposite of a condition; comparisons are turned, ``&&`` and ``||`` change places."""
    turned = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    if expr.kind == "unary" and expr.text == "!":
        return expr.parts[0]
    if expr.kind == "binary" and expr.text in turned:
        return replace(expr, text=turned[expr.text])
    if expr.kind == "binary" and expr.text in ("&&", "||"):
        other = "||" if expr.text == "&&" else "&&"
        return replace(expr, text=other, parts=tuple(negated(part) for part in expr.parts))
    if expr.kind == "name" and expr.text in ("true", "false"):
        return name("false" if expr.text == "true" else "true")
    return Expr("unary", "!", (expr,))


def terms(expr: Expr, operator: str) -> tuple[Expr, ...]:
    """The operands of a chain of one operator: of ``a && b && c`` all three; of anything else, itself."""
    if expr.kind == "binary" and expr.text == operator:
        return (*terms(expr.parts[0], operator), *terms(expr.parts[1], operator))
    return (expr,)


class _Reader:
    def __init__(self, text: str) -> None:
        found = ((m.group(), m.lastgroup or "other") for m in _TOKEN.finditer(text) if m.lastgroup != "space")
        self._tokens = marked(text, found)
        self._at = 0
        self._nesting = 0

    def end(self) -> None:
        """Raises where something is left."""
        if self._at < len(self._tokens):
            raise _Stop

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, wanted: str | None = None) -> str:
        found = self._peek()
        if not found or (wanted is not None and found != wanted):
            raise _Stop
        self._at += 1
        return found

    def expression(self, least: int) -> Expr:
        """An expression whose operators bind at least as tightly as ``least``."""
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise _Stop
        left = self._prefixed()
        while True:
            operator = self._operator()
            if operator == "?" and least <= _TERNARY:
                self._take()
                yes = self.expression(0)
                self._take(":")
                left = Expr("ternary", "", (left, yes, self.expression(_TERNARY)))
                continue
            binding = BINDING.get(operator, -1)
            if binding < least or (operator == "=" and least > 0):
                break
            self._at += 2 if operator == ">>" else 1
            right = self.expression(binding if operator == "=" else binding + 1)
            left = Expr("binary", operator, (left, right))
        self._nesting -= 1
        return left

    def _operator(self) -> str:
        """The operator that stands next; ``>>`` comes as two tokens so that template arguments can close."""
        return ">>" if self._peek() == ">" and self._peek(1) == ">" else self._peek()

    def _prefixed(self) -> Expr:
        token = self._peek()
        if token in _PREFIX:
            self._take()
            return Expr("unary", token, (self.expression(_UNARY),))
        cast = self._c_cast()
        if cast is not None:
            return Expr("cast", cast, (self.expression(_UNARY),))
        return self._suffixed(self._primary())

    def _c_cast(self) -> str | None:
        """``(int)`` or ``(T*)`` in front of an operand, taken; None for anything else."""
        if self._peek() != "(":
            return None
        at, words, stars = 1, [], ""
        while self._at + at < len(self._tokens):
            token, kind = self._tokens[self._at + at]
            if not stars and (kind == "word" or (token == "::" and words)):
                words.append(token)
            elif token in ("*", "&", "&&") and words:
                stars += token
            elif token == ")":
                break
            else:
                return None
            at += 1
        kind_text = " ".join(words).replace(" :: ", "::")
        behind = self._peek(at + 1)
        if not words or not behind or behind in ")]},;:?.=" or (behind in BINDING and behind not in "-*&"):
            return None
        # Behind a bracket no operand can follow: `(Handle)p` casts, whatever the type.
        operand = self._at + at + 1 < len(self._tokens) and self._tokens[self._at + at + 1][1] in ("word", "number")
        if not stars and not operand and not set(words) & _BUILTIN and not _TYPE_NAME.match(kind_text):
            return None
        if behind in ("-", "*", "&") and not stars and not set(words) & _BUILTIN:
            return None
        self._at += at + 1
        return f"({kind_text}{stars})"

    def _primary(self) -> Expr:
        kind = self._kind()
        if kind == "number":
            return Expr("number", self._take())
        if kind == "string":
            text = self._take()
            while self._kind() == "string":
                text += " " + self._take()
            return Expr("string", text)
        if self._peek() == "(":
            self._take()
            inner = self.expression(0)
            self._take(")")
            return inner
        if self._peek() == "{":
            return Expr("braces", "", self._items("{", "}"))
        if kind == "word" or self._peek() == "::":
            return self._name()
        raise _Stop

    def _name(self) -> Expr:
        if self._peek() in ("new", "delete", "throw", "operator", "co_await"):
            raise _Stop
        if self._peek() == "sizeof" and self._peek(1) == "(":
            return self._sizeof()
        text = self._take() if self._peek() == "::" else ""
        while True:
            if self._kind() != "word":
                raise _Stop
            word = self._take()
            text += ("typename " if word == "typename" else "") if word in ("typename", "template") else word
            if word in ("typename", "template"):
                continue
            if self._peek() == "<":
                text += self._angles() or ""
            if self._peek() != "::":
                break
            text += self._take()
        head = text.split("<", 1)[0]
        if head in _CASTS and self._peek() == "(":
            self._take()
            inner = self.expression(0)
            self._take(")")
            return Expr("cast", text, (inner,))
        if head in _BUILTIN and self._peek() in _BUILTIN:
            text += " " + self._take()  # `unsigned int(x)` and its like
        return Expr("name", text)

    def _sizeof(self) -> Expr:
        """``sizeof(…)`` whole: its operand may be a type, and is the size of one in any case."""
        start = self._at
        self._at += 2
        depth = 1
        while depth:
            token = self._take()
            depth += (token == "(") - (token == ")")
        return Expr("name", _spell(self._tokens[start : self._at]))

    def _angles(self) -> str | None:
        """The template arguments that stand next, taken; None where the ``<`` compares."""
        depth = nested = 0
        for at in range(self._at, min(len(self._tokens), self._at + 120)):
            token = self._tokens[at][0]
            if token in ("&&", "||", ";", "{", "}", "?", "==", "!=", "<=", ">=", "<<") and not nested:
                return None
            nested += (token == "(") - (token == ")")
            if nested < 0:
                return None
            depth += (token == "<") - (token == ">") if not nested else 0
            if depth == 0:
                behind = self._tokens[at + 1][0] if at + 1 < len(self._tokens) else ""
                text = _spell(self._tokens[self._at : at + 1])
                if behind not in _BEHIND_ANGLES or not _IN_ANGLES.match(text[1:-1]):
                    return None
                self._at = at + 1
                return text
        return None

    def _suffixed(self, left: Expr) -> Expr:
        while True:
            token = self._peek()
            if token == "(":
                left = Expr("call", "", (left, *self._items("(", ")")))
            elif token == "[":
                left = Expr("index", "", (left, *self._items("[", "]")))
            elif token == "{" and left.kind == "name":
                left = Expr("braces", left.text, self._items("{", "}"))
            elif token in (".", "->"):
                self._take()
                if self._peek() == "template":
                    self._take()
                if self._kind() != "word":
                    raise _Stop
                member = self._take()
                if self._peek() == "<":
                    member += self._angles() or ""
                left = Expr("member", token + member, (left,))
            elif token in ("++", "--"):
                left = Expr("postfix", self._take(), (left,))
            else:
                return left

    def _items(self, opening: str, closing: str) -> tuple[Expr, ...]:
        self._take(opening)
        items: list[Expr] = []
        while self._peek() != closing:
            items.append(self.expression(0))
            if self._peek() != closing:
                self._take(",")
        self._take(closing)
        return tuple(items)


def _spell(tokens: list[tuple[str, str]]) -> str:
    """Tokens as text: a blank between words and behind commas, none elsewhere."""
    out = ""
    for token, kind in tokens:
        if out and ((kind in ("word", "number") and (out[-1].isalnum() or out[-1] in "_*&")) or out[-1] == ","):
            out += " "
        out += token
    return out


def _print(expr: Expr, least: int) -> str:
    kind, text, parts = expr.kind, expr.text, expr.parts
    if kind == "member":
        held = _print(parts[0], _POSTFIX)
        return (f"({held})" if parts[0].kind == "number" else held) + text
    if kind == "call":
        return f"{_print(parts[0], _POSTFIX)}({_list(parts[1:])})"
    if kind == "index":
        return f"{_print(parts[0], _POSTFIX)}[{_list(parts[1:])}]"
    if kind == "braces":
        return f"{text}{{{_list(parts)}}}"
    if kind == "postfix":
        return f"{_print(parts[0], _POSTFIX)}{text}"
    if kind == "unary":
        inner = _print(parts[0], _UNARY)
        blank = " " if inner[0] == text[-1] and text[-1] in "-+&" else ""
        return _wrapped(f"{text}{blank}{inner}", _UNARY, least)
    if kind == "cast":
        if text.startswith("("):
            return _wrapped(f"{text}{_print(parts[0], _UNARY)}", _UNARY, least)
        return f"{text}({_print(parts[0], 0)})"
    if kind == "binary":
        binding = BINDING[text]
        left, right = (binding + 1, binding) if text == "=" else (binding, binding + 1)
        # `a < b > c` would be read as template arguments; `&&` inside `||` reads better apart.
        if text in ("<", ">", "<=", ">="):
            left = binding + 1
        sides = [_print(parts[0], left), _print(parts[1], right)]
        if text == "||":
            sides = [
                f"({side})" if part.kind == "binary" and part.text == "&&" else side
                for side, part in zip(sides, parts, strict=True)
            ]
        return _wrapped(f" {text} ".join(sides), binding, least)
    if kind == "ternary":
        yes, no = _print(parts[1], 0), _print(parts[2], _TERNARY)
        return _wrapped(f"{_print(parts[0], _TERNARY + 1)} ? {yes} : {no}", _TERNARY, least)
    if kind == "raw" and least:
        return f"({text})"
    return text


def _list(items: tuple[Expr, ...]) -> str:
    return ", ".join(_print(item, 0) for item in items)


def _wrapped(text: str, binding: int, least: int) -> str:
    return f"({text})" if binding < least else text
