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
from opwalker.notation.check_words import said
from opwalker.notation.cpp_expression import Expr, negated, print_expression
from opwalker.views.branches import any_of
from opwalker.views.checks import checks_of
from opwalker.views.returns import Returns, all_of
from opwalker.views.way import Way

#: Callers on callers that are looked at.
_DEEP = 6
#: Ways into a function that are told apart.
_WAYS = 3
_LONG = 200
_DEFINITION = " is the one that is called"


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
        sites: list[tuple[str, ...]] = []
        tests: dict[str, Expr] = {}
        demanded: set[str] = set()
        same = [
            f for p, f, _ in self._reach.functions if p == path and f.qualified_name == function.qualified_name
            and len(f.parameters) == len(function.parameters)
        ]  # fmt: skip
        # A specialisation beside its template: which one a call means, its template arguments decide.
        chosen = (f"the definition of {function.name} at :{function.line}{_DEFINITION}",)
        for caller, body in self._bodies(path, function):
            places = list(_uses(body, function.name))
            if None in places:
                return ()
            outer = self.of(*caller, deep + 1) if caller is not None and places else ()
            if len(places) > 1:
                demanded.update(check.words for check in checks_of(body) if check.words)
            for offset in places:
                held = dict.fromkeys((*outer, *self.place(body, offset)))
                common = held if common is None else {text: None for text in common if text in held}
                tests.update(self.branches(body).tests(offset))
                sites.append((*outer, *self.branches(body).place(offset, own=True)))
        rest = list(dict.fromkeys(tuple(text for text in site if text not in (common or ())) for site in sites))
        return (*(common or ()), *_one_of(rest, tests, demanded), *(chosen if len(same) > 1 else ()))

    def _bodies(self, path: str, function: Function) -> Iterator[tuple[tuple[str, Function] | None, Body]]:
        """The bodies that may call a function: all that are entered, but its own."""
        own = self._way.host.body
        yield None, own
        for other_path, other, _ in self._reach.functions:
            key = (other_path, other.offset)
            if key != (path, function.offset) and (own.function is None or key != (own.path, own.function.offset)):
                yield (other_path, other), self._way.body_of(other_path, other)


def _one_of(rest: list[tuple[str, ...]], tests: dict[str, Expr], demanded: set[str]) -> tuple[str, ...]:
    """That one of several sets of conditions holds, where that says something and is short; ``demanded`` is what the
    caller raises without."""
    # One that holds whenever another does says nothing besides.
    ways = [way for way in rest if not any(set(other) < set(way) for other in rest)]
    single = [way[0] for way in ways if len(way) == 1]
    if len(ways) < 2 or not all(ways):
        return ()
    for way in ways:
        if all(word in tests and said(negated(tests[word])) in single for word in way):
            return ()  # one of them always holds
    if len(single) == len(ways) and all(word in tests for word in single):
        merged = said(any_of(tuple(tests[word] for word in single)))
        if merged in demanded:
            return ()
        if " || " not in merged and (len({_subject(tests[word]) for word in single}) == 1 or len(ways) <= _WAYS):
            return (merged,)
    texts = [f"({all_of(way)})" if len(way) > 1 or re.search(" or | and ", way[0]) else way[0] for way in ways]
    whole = " or ".join(texts)
    if len(ways) > _WAYS or len(whole) > _LONG or any(_DEFINITION in word for way in ways for word in way):
        return (f"one of {len(ways)} branches leads to it",)
    return (whole,)


def _subject(test: Expr) -> str:
    """What an equality tests; what it is itself for anything else."""
    return print_expression(test.parts[0] if test.kind == "binary" and test.text == "==" else test)


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
