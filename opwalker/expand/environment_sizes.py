"""Sizes and alignments at a place: the part of ``Environment`` that lays classes out.

In: canonical types. Out: bytes, as the Itanium ABI has them on 64 bits. A class with virtual functions, bit fields or
members of unknown size raises Unknown.
"""

from __future__ import annotations

import re

from opwalker.expand.deduction import literal_term
from opwalker.expand.environment_classes import Place
from opwalker.expand.expressions import evaluate, value_of
from opwalker.expand.shapes import components, shape
from opwalker.expand.terms import SIZES, ConstTerm, Unknown
from opwalker.notation.regex import Regex

_ALIGNED = Regex(r"\b(?:alignas|__align__|__attribute__\s*\(\(\s*aligned)\s*\(\s*((?:[^()]|\([^()]*\))*)\)")
_POINTER = 8
_VECTOR = Regex(r"(?:u?(?:char|short|int|long|longlong)|float|double)([1-4])\Z")
#: Alignments of built-in vectors that are not those of their elements.
_VECTOR_ALIGN = {2: 2, 4: 4}


class SizeReading:
    """The sizes of types."""

    def size(self, kind: str) -> int:
        """The size of a canonical type in bytes. Raises Unknown where it is not known."""
        return self._extent_of(kind)[0]

    def alignment(self, kind: str) -> int:
        """The alignment of a canonical type in bytes. Raises Unknown."""
        return self._extent_of(kind)[1]

    def _extent_of(self, kind: str) -> tuple[int, int]:
        held = shape(kind)
        marks = held.marks
        while marks and marks[-1] in ("&", "&&"):
            marks = marks[:-1]
        if held.parameters is not None or (marks and marks[-1] == "*"):
            return _POINTER, _POINTER
        if marks and marks[-1].startswith("["):
            count = literal_term(marks[-1][1:-1])
            if isinstance(count, ConstTerm):
                size, align = self._extent_of(kind.rstrip("&")[: kind.rindex("[")])
                return int(count.value) * size, align
        elif not marks and held.base in SIZES:
            return SIZES[held.base], _alignment(held.base)
        elif not marks:
            return self._class_extent(held.base)
        raise Unknown(f"the size of `{kind}` is not known")

    def _class_extent(self, kind: str) -> tuple[int, int]:
        place = self.located(kind)
        underlying = self._underlying(kind) if place is None else None
        if underlying is not None:
            return self._extent_of(underlying)
        if place is None or not place.made.body_end or place.made.kind == "union":
            raise Unknown(f"the size of `{kind}` is not known")
        self._deeper()
        facts = self.tools.index.facts(place.path)
        inside = self.standing_in(place)
        own = [f for f in facts.functions if place.made.body_start < f.offset < place.made.body_end]
        if any("virtual" in f.flags or "override" in f.flags for f in own):
            raise Unknown(f"the size of `{kind}` is not known: it has virtual functions")
        size, align = 0, 1
        before = self.standing_before(place)
        for base in place.made.bases:
            of_base = before.type(base).text
            if self._is_empty(of_base):
                continue
            more, aligned = self._extent_of(of_base)
            size, align = _padded(size, aligned) + more, max(align, aligned)
        for field in self.fields(place):
            if re.search(r"\bstatic\b|:", re.sub(r"::", "", field.type)):
                raise Unknown(f"the size of `{kind}` is not known: `{field.name}` may be a bit field")
            more, aligned = inside._extent_of(inside.type(field.type).text)
            aligned = max(aligned, inside.aligned(field.type))
            size, align = _padded(size, aligned) + more, max(align, aligned)
        align = max(align, self._class_alignment(place, inside))
        return max(_padded(size, align), align if size == 0 and align > 1 else 1), align

    def _underlying(self, kind: str) -> str | None:
        """The canonical type that an enumeration is kept as; None for what is none, and where the compiler chooses."""
        scope = tuple(name for name, _ in components(kind))
        if not scope:
            return None
        entries = self.tools.index.entries(scope[-1], ("enum",), lambda facts: facts.enums)
        found = {
            self.elsewhere(path, enum.scope, {}).type(enum.underlying).text
            if enum.underlying
            else ("int" if enum.scoped else None)
            for path, enum in self._seen(entries)
            if (*enum.scope, enum.name)[-len(scope) :] == scope
        }
        return found.pop() if len(found) == 1 else None

    def _is_empty(self, kind: str) -> bool:
        place = self.located(kind)
        return place is not None and not self.fields(place) and not place.made.bases

    def _class_alignment(self, place: Place, inside) -> int:
        head = self.tools.resolver.source(place.path, place.made.offset, place.made.body_start)
        return inside.aligned(head)

    def aligned(self, text: str) -> int:
        """The alignment that a declaration asks for; 1 for none."""
        found = 1
        for match in _ALIGNED.finditer(text):
            inner = match.group(1)
            try:
                value = value_of(evaluate(inner, self))
            except Unknown:
                value = None
            found = max(found, int(value.value) if value is not None else self.alignment(self.type(inner).text))
        return found


def _alignment(kind: str) -> int:
    vector = _VECTOR.match(kind)
    if vector is None:
        return min(SIZES[kind], 16)
    count = int(vector.group(1))
    element = SIZES[kind] // count
    return min(element * _VECTOR_ALIGN.get(count, 1), 16)


def _padded(size: int, align: int) -> int:
    return (size + align - 1) // align * align
