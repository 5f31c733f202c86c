"""Where a body may change a variable otherwise than by an assignment: counted up or down, read into, its address taken,
or given to a function that takes a reference.

In: a body. Out: offsets. Whether the change matters at a place, ``views/values.py`` judges.
"""

from __future__ import annotations

import re
from functools import cached_property

from opwalker.expand.bodies import Body
from opwalker.notation.regex import Regex
from opwalker.views.value_facts import Known

#: The forms of a change, each with the word that it is of; what stands behind a match's first part is looked at alone,
#: since it may be a match of its own.
_CHANGED = (
    Regex(r"(?:\+\+|--)(?=\s*(\w+))"),
    Regex(r"\b(\w+)\b(?=\s*(?:\+\+|--))"),
    Regex(r"[(,={](?=\s*&\s*(\w+))"),
    Regex(r">>(?=\s*(\w+))"),
)
_LISTED = Regex(r"\b(?:tie|swap)\((?=([^()]*))")
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
        words = {match.group(1) for form in _CHANGED for match in form.finditer(full)}
        return frozenset(words.union(*(_WORD.findall(match.group(1)) for match in _LISTED.finditer(full))))

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
        return [match.start() for match in re.finditer(f"{counted}|{read}", self._body.expanded.full)]
