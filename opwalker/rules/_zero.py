"""Whether a condition keeps a zero out, and what an extent is zero with: read by the rule about empty grids.

In: conditions and extents as text, and the locals in sight. Out: a condition's truth where given terms are 0, as far as
its text tells, and the terms that an extent has above its fraction bars.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression
from opwalker.rules._values import size_made, terms_of

#: A name of a constant; those that are compared with sizes are positive.
_CONSTANT = re.compile(r"(?:\w+::)*(?:[A-Z][A-Z0-9_]+|k[A-Z]\w*)\Z")
_QUOTIENT = re.compile(r"(?i)(?:\w+::)*(?:ceil_?div|cdiv|div_?up|div_?ceil|divide\w*|ceil_?divide|round_?up_?div)\Z")
_COUNTS = re.compile(r"\w+(?:\.|->)numel\(\)")
#: How many there are of what a kernel works on, by the name of the variable, and by how such a one is made.
_ITEMS = re.compile(r"(?i)(?:n|num|total)_?(?:el|elem|item)\w*\Z|nnz\Z|numel\Z")
_COUNTED = re.compile(r"(?i)(?:n|num|total)_[a-z]\w*\Z")
_OF_ALL = re.compile(r"\w+(?:\.|->)(?:numel\(\)|size\(0\))\Z")
#: Sizes that a model has, and not its load: they are not 0.
FIXED = re.compile(
    r"(?i)weight|expert|head|vocab|hidden|layer|scale|zero|dim\Z|width|col(?:umn)?s?\Z|channel|feature|\A[kndh]\Z"
    r"|kernel_?(?:size|volume)|(?:size|dim)_[nk]\Z"
)
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_DEEPEST = 8


def excludes_zero(condition: str, holds: bool, terms: set[str], known: Mapping[str, str]) -> bool:
    """Whether none of ``terms`` can be 0 behind a condition that holds, or that was left by those who meet it."""
    truth = _Zero(terms, known).truth(parse_expression(condition))
    return truth is False if holds else truth is True


def zero_with(
    text: str, known: Mapping[str, str], depth: int = 0, unit: frozenset[str] | None = None
) -> set[str]:  # fmt: skip
    """The terms of an extent that it is 0 with: those above a fraction bar, locals followed."""
    return _above_bar(parse_expression(text.strip().removeprefix("=").strip()), known, depth, unit)


def _above_bar(expr: Expr, known: Mapping[str, str], depth: int, unit: frozenset[str] | None = None) -> set[str]:
    """``unit`` is what the extent is divided by, None where it is not: ``(n + unit - 1) / unit`` is 0 with ``n``
    alone, and ``n + 1`` with nothing."""
    if expr.kind == "binary" and expr.text in ("/", "%", ">>"):
        return _above_bar(expr.parts[0], known, depth, frozenset(terms_of(print_expression(expr.parts[1]), known)))
    if expr.kind == "binary" and expr.text in ("+", "-"):
        sides = [_above_bar(one, known, depth, unit) for one in expr.parts]
        if unit is None and expr.text == "+" and any(_is_positive(one) for one in expr.parts):
            return set()
        open_sides = [side for side in sides if side and not side <= (unit or frozenset())]
        return open_sides[0] if len(open_sides) == 1 else set()  # a sum is 0 only where all of it is
    if expr.kind == "name":
        found = terms_of(expr.text, {})
        if found and expr.text in known and depth < _DEEPEST and not known[expr.text].lstrip("= ").startswith("["):
            rest = {name: value for name, value in known.items() if name != expr.text}
            found |= zero_with(known[expr.text], rest, depth + 1, unit)
        return found
    if expr.kind == "call" and expr.parts:
        callee = expr.parts[0]
        if callee.kind == "member":
            asked = re.sub(r"\s", "", print_expression(expr))
            made = size_made(asked, known.get(re.split(r"\.|->", asked)[0], ""))
            return zero_with(made, known, depth + 1) if made and depth < _DEEPEST else terms_of(asked, {})
        if re.search(r"(?:^|::)f?max(?:<.*>)?\Z", callee.text):
            ways = [_above_bar(one, known, depth, unit) for one in expr.parts[1:]]
            return set() if not all(ways) else set().union(*ways)
        arguments = expr.parts[1:2] if _QUOTIENT.match(callee.text) else expr.parts[1:]
        return {term for one in arguments for term in _above_bar(one, known, depth, unit)}
    if expr.kind == "ternary":
        return {term for one in expr.parts[1:] for term in _above_bar(one, known, depth, unit)}
    if expr.kind in ("member", "index", "raw"):
        return terms_of(print_expression(expr), known)
    return {term for one in expr.parts for term in _above_bar(one, known, depth, unit)}


def _is_positive(expr: Expr) -> bool:
    return expr.kind == "number" and re.fullmatch(r"[1-9][\d']*[uUlL]*", expr.text) is not None


class _Zero:
    """Conditions read with some terms at 0."""

    def __init__(self, terms: set[str], known: Mapping[str, str]) -> None:
        self._terms = terms
        self._known = known

    def truth(self, expr: Expr) -> bool | None:
        """Whether a condition is true then; None where that cannot be told."""
        if expr.kind == "binary" and expr.text in ("&&", "||"):
            sides = [self.truth(one) for one in expr.parts]
            decided = expr.text == "||"
            return decided if decided in sides else None if None in sides else not decided
        if expr.kind == "unary" and expr.text == "!":
            inner = self.truth(expr.parts[0])
            return None if inner is None else not inner
        if expr.kind == "binary" and expr.text in ("==", "!=", "<", ">", "<=", ">="):
            return self._compared(expr.text, *expr.parts)
        if expr.kind == "call" and expr.parts and re.search(r"(?i)empty", expr.parts[0].text):
            return True if self._about(expr) else None
        value = 0 if self._counts(expr) else self._value(expr)
        return None if value is None else value != 0

    def _compared(self, operator: str, left: Expr, right: Expr) -> bool | None:
        one, other = self._value(left), self._value(right)
        if one is None and other == 0 and self._counts(left):
            one = 0
        if one is not None and other is not None:
            return {
                "==": one == other, "!=": one != other, "<": one < other, ">": one > other, "<=": one <= other,
                ">=": one >= other,
            }[operator]  # fmt: skip
        if one is None and other is not None:
            operator, left, right, one = _MIRRORED.get(operator, operator), right, left, other
        if one != 0 or not self._about(left):
            return None
        if operator == ">":
            return False  # sizes are compared with what is not negative
        if _CONSTANT.match(print_expression(right)):
            return operator in ("<", "<=", "!=")
        return None

    def _counts(self, expr: Expr) -> bool:
        """Whether an expression counts what there is to do. Where there is nothing of any name, that is dealt with:
        the extents of the others go with it."""
        text = re.sub(r"\s", "", print_expression(expr))
        if _COUNTS.fullmatch(text) or _ITEMS.match(text):
            return True
        made = parse_expression(self._known.get(text, "").strip().removeprefix("=").strip())
        while made.kind in ("cast", "braces") and made.parts:
            made = made.parts[-1]
        of_all = _OF_ALL.match(re.sub(r"\s", "", print_expression(made)))
        return of_all is not None and _COUNTED.match(text) is not None and not FIXED.search(text)

    def _value(self, expr: Expr) -> int | None:
        if expr.kind == "number":
            plain = re.sub(r"[uUlL]+\Z|'", "", expr.text)
            return int(plain, 0) if re.fullmatch(r"0[xX][\da-fA-F]+|[1-9]\d*|0", plain) else None
        if self._is_zero(expr):
            return 0
        if expr.kind == "cast":
            return self._value(expr.parts[-1])
        if expr.kind == "binary" and expr.text in ("*", "/", "%", "+", "-"):
            one, other = self._value(expr.parts[0]), self._value(expr.parts[1])
            if expr.text == "*" and 0 in (one, other):
                return 0
            if expr.text in ("/", "%") and one == 0:
                return 0
            if one is not None and other is not None and expr.text in ("+", "-"):
                return one + other if expr.text == "+" else one - other
        return None

    def _is_zero(self, expr: Expr) -> bool:
        if expr.kind not in ("name", "call", "member"):
            return False
        text = re.sub(r"\s", "", print_expression(expr))
        if text in self._terms:
            return True
        if text not in self._known:
            return False
        value = parse_expression(self._known[text].strip().removeprefix("=").strip())
        rest = {name: held for name, held in self._known.items() if name != text}
        return _Zero(self._terms, rest)._value(value.parts[0] if value.kind == "braces" and value.parts else value) == 0

    def _about(self, expr: Expr) -> bool:
        """Whether an expression speaks of one of the terms, or of a tensor that one of them belongs to."""
        asked = terms_of(print_expression(expr), self._known)
        return bool(_owners(asked) & _owners(self._terms))


def _owners(terms: set[str]) -> set[str]:
    return {re.split(r"\.|->", one)[0] for one in terms}
