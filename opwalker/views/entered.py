"""Under which conditions the functions of a walk are entered: those that all their calls stand under.

In: what was reached from a host function. Out: conditions in words, in the names of the callers, outermost first. A
function that is handed on to an unknown caller is entered under none that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.expand.bodies import Body
from opwalker.model.cpp import Function
from opwalker.model.reach import Reach
from opwalker.views.returns import Returns
from opwalker.views.way import Way

#: Callers on callers that are looked at.
_DEEP = 6


class Entered:
    """The conditions under which functions of one implementation are entered."""

    def __init__(self, way: Way, reach: Reach) -> None:
        self._way = way
        self._reach = reach
        self._found: dict[tuple[str, int], tuple[str, ...]] = {}
        self._branches: dict[tuple, Returns] = {}

    def of(self, path: str, function: Function, deep: int = 0) -> tuple[str, ...]:
        """What holds whenever a function is entered; nothing for the host function."""
        key = (path, function.offset)
        own = self._way.host.body
        if own.function is not None and key == (own.path, own.function.offset):
            return ()
        if key not in self._found:
            self._found[key] = ()  # a function that calls itself is entered from elsewhere first
            self._found[key] = self._read(path, function, deep)
        return self._found[key]

    def place(self, body: Body, offset: int) -> tuple[str, ...]:
        """What holds at a place of a body: around it, and because nothing before it has returned."""
        return self.branches(body).place(offset)

    def branches(self, body: Body) -> Returns:
        """The branches of a body, read once."""
        found = self._branches.get(body.key)
        if found is None:
            found = self._branches[body.key] = Returns(body)
        return found

    def _read(self, path: str, function: Function, deep: int) -> tuple[str, ...]:
        if deep > _DEEP:
            return ()
        common: dict[str, None] | None = None
        same = [
            f for p, f, _ in self._reach.functions if p == path and f.qualified_name == function.qualified_name
            and len(f.parameters) == len(function.parameters)
        ]  # fmt: skip
        # A specialisation beside its template: which one a call means, its template arguments decide.
        chosen = (f"the definition of {function.name} at :{function.line} is the one that is called",)
        for caller, body in self._bodies(path, function):
            places = list(_uses(body, function.name))
            if None in places:
                return ()
            outer = self.of(*caller, deep + 1) if caller is not None and places else ()
            for offset in places:
                held = dict.fromkeys((*outer, *self.place(body, offset)))
                common = held if common is None else {text: None for text in common if text in held}
        return (*(common or ()), *(chosen if len(same) > 1 else ()))

    def _bodies(self, path: str, function: Function) -> Iterator[tuple[tuple[str, Function] | None, Body]]:
        """The bodies that may call a function: all that are entered, but its own."""
        own = self._way.host.body
        yield None, own
        for other_path, other, _ in self._reach.functions:
            key = (other_path, other.offset)
            if key != (path, function.offset) and (own.function is None or key != (own.path, own.function.offset)):
                yield (other_path, other), self._way.body_of(other_path, other)


def _uses(body: Body, name: str) -> Iterator[int | None]:
    """Where a body calls a function of the name or hands it to a call; None where it does something else with it."""
    text = body.expanded.full
    if name not in text:
        return
    calls = body.facts.calls
    for call in calls:
        if call.simple == name:
            yield call.start
    for found in re.finditer(rf"(?<![\w.])&?{re.escape(name)}\b(?!\s*[(<])", text):
        at = found.start()
        if text[found.end() :].lstrip().startswith("::"):
            continue  # a class or namespace of the name
        inside = next((c for c in calls if any(start <= at < end for start, end in c.arguments)), None)
        yield inside.start if inside is not None else None
