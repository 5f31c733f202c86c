"""What texts mean, kept by place: the part of ``Environment`` that works out once what is asked for again and again.

In: a text, a place, and how the text is read there. Out: what the reading gives, from an earlier one where nothing that
it can depend on differs: the text, what is bound, and the variables that its words mean. What is found while a class or
a member is being worked out that it asks for itself is not kept: it may be known later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from opwalker.expand.bodies import Body
from opwalker.expand.frames import Frame
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import ConstTerm, ListTerm, PackTerm, Term, Unknown
from opwalker.model.body import LambdaFact, LocalFact
from opwalker.model.cpp import Function
from opwalker.notation.regex import Regex

T = TypeVar("T", bound=Term)

#: Deeper than this nothing is kept: there a reading may end for its depth alone.
_SHALLOW = 12
#: Readings kept for frames, and those kept for places outside of bodies.
_MOST_IN_FRAMES = 150_000
_MOST_OUTSIDE = 60_000
#: What is bound in a place outside of bodies is compared for up to so many names, and packs of so many elements.
_FEW = 16
_WORD = Regex(r"[A-Za-z_]\w*")


class Readings:
    """What texts were found to mean in one tree. ``circles`` counts how often a reading met what it was asked for."""

    def __init__(self) -> None:
        self.circles = 0
        #: The classes and members that are being worked out.
        self._busy: set[tuple] = set()
        self.outside: dict[tuple, Term | Unknown] = {}
        self._frames: dict[tuple, dict[tuple, Term | Unknown]] = {}
        self._added = 0
        self._changes = -1

    def of_frame(self, frame: Frame, body: Body) -> dict[tuple, Term | Unknown]:
        """The readings of a body in a frame: frames that bind the same share them."""
        key = ("readings", body.key, self._changes)
        held = frame.memo.get(key)
        if held is None:
            if frame.candidate is None:
                held = {}
            else:
                whole = (frame.key, frame.unbound, body.key)
                held = self._frames.get(whole)
                if held is None:
                    held = self._frames[whole] = {}
            frame.memo[key] = held
        return held

    def current(self, changes: int) -> None:
        """Forget everything where the tree has become another one, and where it is too much."""
        if changes != self._changes or self._added > _MOST_IN_FRAMES or len(self.outside) > _MOST_OUTSIDE:
            self._changes, self._added = changes, 0
            self.outside.clear()
            self._frames.clear()

    @contextlib.contextmanager
    def working_out(self, key: tuple) -> Iterator[None]:
        """Around the search for a class or a member."""
        self._busy.add(key)
        try:
            yield
        finally:
            self._busy.discard(key)

    def met(self, key: tuple) -> None:
        """A class or a member was asked for that was asked for before: it may be being worked out."""
        if key in self._busy:
            self.circles += 1

    def add(self, held: dict[tuple, Term | Unknown], key: tuple, found: Term | Unknown) -> None:
        """Keep a reading."""
        held[key] = found
        self._added += 1


class KeptReadings:
    """Readings at a place, kept."""

    def kept(self, kind: str, text: str, read: Callable[[str], T]) -> T:
        """What ``read`` gives for a text. ``kind`` tells apart what is asked of it."""
        if self.depth > _SHALLOW:
            return read(text)
        readings: Readings = self.tools.readings
        readings.current(self.tools.index.changes)
        if self.frame is not None and self.body is not None:
            around = _bound_key(self.bound)
            held = readings.of_frame(self.frame, self.body)
            key = (kind, text, self.depth, around, self._variables(text))
        elif self.frame is None and self.body is None:
            around = _bound_key(self.bound)
            held = readings.outside
            key = (kind, text, self.depth, around, self.context, self.owner)
        else:
            return read(text)
        if around is None:
            return read(text)
        found = held.get(key)
        if found is None:
            circles = readings.circles
            try:
                found = read(text)
            except Unknown as unknown:
                if circles == readings.circles:
                    readings.add(held, key, type(unknown)(*unknown.args))
                raise
            if circles == readings.circles:
                readings.add(held, key, found)
        elif isinstance(found, Unknown):
            raise type(found)(*found.args)
        return found

    def _variables(self, text: str) -> tuple:
        """The variables that the words of a text mean at this place, and for which calls of the lambdas around."""
        words = _declared_words(self.body, self.frame, text)
        if not words:
            return ()
        places = tuple(_place(self.holder(word)) for word in words)
        if not self.choices or not any(places):
            return places
        return places, tuple((at, _call_key(call)) for at, call in sorted(self.choices.items()))


def _place(held: LocalFact | LambdaFact | None) -> int:
    """A number that tells apart what one name can mean in a body; 0 for nothing of the body."""
    if held is None:
        return 0
    return held.start + 1 if isinstance(held, LocalFact) else -held.start - 1


def _call_key(call) -> object:
    callee = getattr(call, "callee", None)
    return call if callee is None else (call.start, callee)


def _bound_key(bound: dict[str, Term | None]) -> tuple | None:
    """What is bound, as it can be compared; None where that would take longer than it saves."""
    if not bound:
        return ()
    if len(bound) > _FEW:
        return None
    for term in bound.values():
        if isinstance(term, ListTerm) or (isinstance(term, PackTerm) and len(term.items) > _FEW):
            return None
        if isinstance(term, ConstTerm) and isinstance(term.value, float):
            return None  # 1.0 is no 1
    return tuple(bound.items())


def _declared_words(body: Body, frame: Frame, text: str) -> tuple[str, ...]:
    """The names of variables of a body that a text can ask about: its own words, and those in the types of the
    parameters that it names."""
    known = body.kept.get("words")
    if known is None:
        known = body.kept["words"] = {}
    found = known.get(text)
    if found is None:
        function = frame.candidate.function if frame.candidate is not None else None
        found = known[text] = _words(body, function, text)
    return found


def _words(body: Body, function: Function | None, text: str) -> tuple[str, ...]:
    declared = body.kept.get("declared")
    if declared is None:
        declared = body.kept["declared"] = _parameters(body, function)
    pending, words = _WORD.findall(text), set()
    while pending:
        word = pending.pop()
        if word not in words:
            words.add(word)
            for kind in declared.get(word, ()):
                pending += _WORD.findall(kind)
    return tuple(sorted(word for word in words if word in body.locals or word in declared))


def _parameters(body: Body, function: Function | None) -> dict[str, list[str]]:
    """By the name of a parameter of the function or of a lambda in it, the texts that say what it is."""
    out: dict[str, list[str]] = {}
    for parameter in function.parameters if function is not None else ():
        out.setdefault(parameter.name.strip(". "), []).append(parameter.type)
    for held in body.facts.lambdas:
        for kind, name in held.parameters:
            out.setdefault(name, []).append(kind)
        for parameter in template_parameters(held.template):
            out.setdefault(parameter.name, []).extend((parameter.type or "", parameter.default or ""))
    return out
