"""Sizes of the small types that device code moves whole: an array of elements in a struct, an alias of one.

In: a type as written, and a reader of the body it is written in. Out: its size as a polynomial in bytes, None
where the source does not show it.
"""

from __future__ import annotations

import re

from opwalker.expand.resolve import strip_arguments, visible
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import SIZES, builtin
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.values import Number
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.link.index import Index
from opwalker.model.cpp import ClassDef
from opwalker.notation.cpp_expression import Expr, parse_expression
from opwalker.notation.polynomial import Poly, poly, quotient, symbol
from opwalker.notation.regex import Regex

_ARRAY = Regex(r"(.+?)((?:\[[^\]]*\])+)\Z")
_MAX_DEPTH = 6


class DeviceTypes:
    """Sizes of types of one tree."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def size(self, kind: str, reader: ValueReader, depth: int = 0, within: tuple[str, ...] = ()) -> Poly | None:
        """The bytes of a type; a template's parameter counts as ``sizeof(T)``. ``within`` names the class that the
        type is written in, below the scope of the body."""
        text = re.sub(r"\b(?:const|volatile|typename|struct)\b", " ", kind)
        text = " ".join(text.split()).strip()
        body = reader.body
        name = builtin(text)
        if name is not None:
            return poly(SIZES[name]) if name in SIZES else None
        if depth > _MAX_DEPTH or not text or text.endswith("*"):
            return poly(8) if text.endswith("*") else None
        for alias, target in body.context.aliases:
            if alias == text and target != text:
                return self.size(target, reader, depth + 1)
        if body.function is not None and any(p.name == text for p in template_parameters(body.function.template)):
            return symbol(f"sizeof({text})")
        return self._class(text, reader, depth, within)

    def _class(self, text: str, reader: ValueReader, depth: int, within: tuple[str, ...]) -> Poly | None:
        """The size of a struct whose only member is an array of a known type."""
        body = reader.body
        opened = text.find("<")
        close = match_angle(text, opened) if opened >= 0 else -1
        given = [text[a:b].strip() for a, b in split_commas(text, opened + 1, close - 1)] if close > 0 else []
        simple = strip_arguments(text).split("::")[-1]
        near = self._index.near(body.root, body.path)
        found = [
            (path, made)
            for path, made in self._index.entries(simple, ("class",), lambda facts: facts.classes)
            if isinstance(made, ClassDef) and path in near and made.specialisation is None and made.body_end > 0
        ]
        if len(found) != 1:
            return self._alias(simple, given, reader, depth, within)
        path, made = found[0]
        members = [
            v for v in self._index.declared(path).variables if v.scope == (*made.scope, made.name) and not v.constant
        ]
        if len(members) != 1 or made.bases:
            return None
        names = [p.name for p in template_parameters(made.template)]
        if len(given) > len(names):
            return None
        bound = dict(zip(names, given, strict=False))
        array = _ARRAY.match(members[0].type)
        element, extents = (
            (array.group(1), re.findall(r"\[([^\]]*)\]", array.group(2))) if array else (members[0].type, [])
        )
        size = self.size(_bound(element, bound), reader, depth + 1, (*within, made.name))
        for extent in extents:
            count = _extent(parse_expression(_bound(extent, bound)), self, reader)
            if size is None or count is None:
                return None
            size = size * count
        return size

    def _alias(
        self, simple: str, given: list[str], reader: ValueReader, depth: int, within: tuple[str, ...]
    ) -> Poly | None:
        """The size of what an alias stands for; one of a class counts within that class alone."""
        near = self._index.near(reader.body.root, reader.body.path)
        scope = (*visible(reader.body.context.scope), *within)
        for path, alias in self._index.entries(simple, ("alias",), lambda facts: facts.aliases):
            own = visible(alias.scope)
            if path in near and alias.kind in ("type", "using") and scope[: len(own)] == own:
                names = [p.name for p in template_parameters(alias.template)]
                return self.size(_bound(alias.target, dict(zip(names, given, strict=False))), reader, depth + 1)
        return None


def _bound(text: str, bound: dict[str, str]) -> str:
    """A text with template parameters replaced by their arguments."""
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: bound.get(m[0], m[0]), text)


def _extent(expr: Expr, types: DeviceTypes, reader: ValueReader) -> Poly | None:
    """An array's extent as a polynomial."""
    if expr.kind == "number" and expr.text.isdigit():
        return poly(int(expr.text))
    if expr.kind == "name" and expr.text.startswith("sizeof("):
        return types.size(expr.text[7:-1], reader)
    if expr.kind == "name":
        found = reader.name(expr.text, len(reader.body.expanded.text) - 1)
        return found.poly if isinstance(found, Number) else None
    if expr.kind == "binary" and expr.text in "*/+-":
        left, right = (_extent(part, types, reader) for part in expr.parts)
        if left is None or right is None or (expr.text == "/" and not right):
            return None
        if expr.text == "/":
            return quotient(left, right)
        return {"*": left * right, "+": left + right, "-": left - right}[expr.text]
    return None
