"""Where a body may change a variable otherwise than by an assignment: counted up or down, read into, its address taken,
or given to a function that takes a reference.

In: a body. Out: offsets. Whether the change matters at a place, ``views/values.py`` judges.
"""

from __future__ import annotations

import re
from functools import cached_property

from opwalker.expand.bodies import Body
from opwalker.notation.regex import Regex, compiled
from opwalker.views.value_facts import Known

#: Where a change may begin: every form of one but that of a name with its operator behind it.
_BEGINS = Regex(r"\+(?=\+)|-(?=-)|[(,={](?=\s*&)|>(?=>)|\b(?:tie|swap)(?=\()")
#: The word that a form of a change is of, or what it lists.
_CHANGED = Regex(r"(?:\+\+|--|[(,={]\s*&|>>)\s*(\w+)|(?:tie|swap)\(([^()]*)")
_WORD = Regex(r"\w+")


class Marks:
    """The changes of one body's variables."""

    def __init__(self, body: Body, known: Known) -> None:
        self._body = body
        self._known = known
        self._found: dict[str, list[int]] = {}
        #: What stands in the text is the same whatever is known besides.
        self._counted: dict[str, list[int]] = body.kept.setdefault("marks", {})

    def of(self, text: str) -> list[int]:
        """The changes of one variable, or of a part of one."""
        found = self._found.get(text)
        if found is None:
            found = self._found[text] = self._read(text)
        return found

    @property
    def _words(self) -> frozenset[str]:
        """The words that stand in any form of a change: a quick no for most."""
        if "marked words" not in self._body.kept:
            self._body.kept["marked words"] = self._read_words()
        return self._body.kept["marked words"]

    def _read_words(self) -> frozenset[str]:
        full = self._body.expanded.full
        words: set[str] = set()
        for begin in self._begins:
            match = _CHANGED.match(full, begin)
            if match is not None:
                words.update(_WORD.findall(match[1] or match[2] or ""))
            if full[begin] in "+-":
                start = end = self._ends_before(begin)
                while start and (full[start - 1].isalnum() or full[start - 1] == "_"):
                    start -= 1
                words.update(_WORD.findall(full[start:end]))
        return frozenset(words)

    @property
    def _begins(self) -> list[int]:
        """Where changes may begin, whatever they are of."""
        if "marks begin" not in self._body.kept:
            found = [match.start() for match in _BEGINS.finditer(self._body.expanded.full)]
            self._body.kept["marks begin"] = found
        return self._body.kept["marks begin"]

    def _ends_before(self, offset: int) -> int:
        """Where the last text before an offset ends that is no white space."""
        full = self._body.expanded.full
        while offset and full[offset - 1].isspace():
            offset -= 1
        return offset

    @cached_property
    def _given(self) -> dict[str, list[tuple[str, int, int]]]:
        """By what is given, the calls: ``(function, position, offset)``."""
        full = self._body.expanded.full
        out: dict[str, list[tuple[str, int, int]]] = {}
        for call in self._body.facts.calls:
            for position, span in enumerate(call.arguments):
                out.setdefault(full[span[0] : span[1]], []).append((call.simple, position, call.start))
        return out

    def _read(self, text: str) -> list[int]:
        if text not in self._counted:
            self._counted[text] = self._written(text) if not _WORD.fullmatch(text) or text in self._words else []
        given = self._given.get(text, ())
        named = [start for name, position, start in given if self._known.takes_reference(name, position)]
        return self._counted[text] + named

    def _written(self, text: str) -> list[int]:
        word = re.escape(text)
        counted = rf"(?:\+\+|--)\s*{word}\b|\b{word}\s*(?:\+\+|--)|[(,={{]\s*&\s*{word}\b(?!\s*[.\[(]|->)"
        read = rf">>\s*{word}\b\s*;|\btie\([^()]*\b{word}\b|\bswap\([^()]*\b{word}\b"
        form, full = compiled(f"{counted}|{read}"), self._body.expanded.full
        before = (self._ends_before(begin) - len(text) for begin in self._begins if full[begin] in "+-")
        found: list[int] = []
        end = 0
        for begin in sorted({*self._begins, *(place for place in before if place >= 0)}):
            match = form.match(full, begin) if begin >= end else None
            if match is not None:
                found.append(begin)
                end = match.end()
        return found
