"""Under which conditions the functions of a walk are entered: those that all their calls stand under.

In: what was reached from a host function. Out: conditions in words, in the names of the callers, outermost first. A
function that is handed on to an unknown caller is entered under none that is known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from msgspec import Struct

from opwalker.expand.bodies import Body
from opwalker.model.cpp import Function
from opwalker.model.reach import Reach
from opwalker.notation.check_words import said
from opwalker.notation.condition_parse import parse_condition
from opwalker.notation.condition_terms import Junction, conjoin, disjoin, negate, print_condition
from opwalker.notation.cpp_expression import Expr, negated, print_expression
from opwalker.notation.regex import Regex
from opwalker.views.branches import any_of
from opwalker.views.checks import checks_of
from opwalker.views.returns import Returns, all_of
from opwalker.views.way import Way

#: Callers on callers that are looked at.
_DEEP = 6
#: Ways into a function that are told apart.
_WAYS = 3
_STRING = Regex(r'"(?:[^"\\]|\\.)*"')
_MENTIONED = Regex(r"(?<![\w.])&?([A-Za-z_]\w*)\b(?!\s*[(<])")
_LONG = 200
_DEFINITION = " is the one that is called"


class _Site(Struct, frozen=True):
    """A call of a function, or a place where it is handed to one: in which function, and what holds there, in words and
    as expressions; ``own`` is what the caller itself tests, ``demanded`` what it raises without."""

    caller: tuple[str, Function] | None
    held: tuple[str, ...]
    own: tuple[str, ...]
    tests: dict[str, Expr]
    demanded: tuple[str, ...] = ()


class _Use(Struct, frozen=True):
    """A call of a function, or a place where it is handed to one, of which it was not asked yet what holds there."""

    caller: tuple[str, Function] | None
    body: Body
    offset: int
    demanded: tuple[str, ...]


class Entered:
    """The conditions under which functions of one implementation are entered."""

    def __init__(self, way: Way, reach: Reach) -> None:
        self._way = way
        self._reach = reach
        self._found: dict[tuple[str, int], tuple[str, ...]] = {}
        self._branches: dict[tuple, Returns] = {}
        self._uses: dict[str, list[_Use]] | None = None
        self._read_sites: dict[str, list[_Site]] = {}
        #: Functions that are handed on to an unknown caller, with the places where they are.
        self._loose: dict[str, list[_Use]] = {}
        self._compiled: dict[tuple[str, int], tuple[str, ...]] = {}

    def of(self, path: str, function: Function, deep: int = 0) -> tuple[str, ...]:
        """What holds whenever a function is entered; nothing for the host function."""
        key = (path, function.offset)
        if self._is_host(key):
            return ()
        if key not in self._found:
            self._found[key] = ()  # a function that calls itself is entered from elsewhere first
            self._found[key] = self._read(path, function, deep)
        return self._found[key]

    def _is_host(self, key: tuple[str, int]) -> bool:
        own = self._way.host.body
        return own.function is not None and key == (own.path, own.function.offset)

    def compiled(self, body: Body, offset: int) -> tuple[str, ...]:
        """The preprocessor conditions that a place stands under, with what all ways from the host function to it have
        in common: a launch that one of two calls leads to is compiled where either of them is."""
        outer = self._compiled_of(body.path, body.function) if body.function is not None else ()
        # Of two that differ in the order of their parts alone, one is enough.
        said: dict[Hashable, str] = {}
        for term in (*self._way.compiled(body, offset), *outer):
            said.setdefault(_unordered(term), term)
        return tuple(said.values())

    def _compiled_of(self, path: str, function: Function) -> tuple[str, ...]:
        """The preprocessor conditions that every use of a function stands under."""
        key = (path, function.offset)
        if self._is_host(key):
            return ()
        if key not in self._compiled:
            self._compiled[key] = ()  # a function that calls itself is entered from elsewhere first
            uses = self._uses_of(function.name)
            uses = [use for use in uses if use.caller is None or (use.caller[0], use.caller[1].offset) != key]
            self._compiled[key] = _in_common([self.compiled(use.body, use.offset) for use in uses])
        return self._compiled[key]

    def _uses_of(self, name: str) -> list[_Use]:
        """Everything that uses a function of the walk: what hands it on has to be compiled for it to be called."""
        if self._uses is None:
            self._uses = self._all_uses()
        return [*self._uses.get(name, ()), *self._loose.get(name, ())]

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
        if self._uses is None:
            self._uses = self._all_uses()
        if deep > _DEEP or function.name in self._loose:
            return ()
        sites = [
            site for site in self._sites_of(function.name)
            if site.caller is None or (site.caller[0], site.caller[1].offset) != (path, function.offset)
        ]  # fmt: skip
        common: dict[str, None] | None = None
        ways: list[tuple[str, ...]] = []
        for site in sites:
            outer = self.of(*site.caller, deep + 1) if site.caller is not None else ()
            held = dict.fromkeys((*outer, *site.held))
            common = held if common is None else {text: None for text in common if text in held}
            ways.append((*outer, *site.own))
        rest = list(dict.fromkeys(tuple(text for text in way if text not in (common or ())) for way in ways))
        tests = {word: test for site in sites for word, test in site.tests.items()}
        demanded = {word for site in sites for word in site.demanded}
        same = [
            f for p, f, _ in self._reach.functions if p == path and f.qualified_name == function.qualified_name
            and len(f.parameters) == len(function.parameters)
        ]  # fmt: skip
        # A specialisation beside its template: which one a call means, its template arguments decide.
        chosen = (f"the definition of {function.name} at :{function.line}{_DEFINITION}",) if len(same) > 1 else ()
        return (*(common or ()), *_one_of(rest, tests, demanded), *chosen)

    def _all_uses(self) -> dict[str, list[_Use]]:
        """Where the bodies of a walk call its functions: each body is looked at once."""
        names = {function.name for _, function, _ in self._reach.functions}
        own = self._way.host.body
        out: dict[str, list[_Use]] = {}
        host = (own.path, own.function.offset) if own.function is not None else None
        self._of_body(None, own, names, out)
        for path, function, _ in self._reach.functions:
            if (path, function.offset) != host:
                self._of_body((path, function), self._way.body_of(path, function), names, out)
        return out

    def _of_body(
        self, caller: tuple[str, Function] | None, body: Body, names: set[str], out: dict[str, list[_Use]]
    ) -> None:
        uses = list(_uses(body, names - {caller[1].name} if caller is not None else names))
        counts = Counter(name for name, _, _ in uses)
        # Several calls of one function may be the branches of a choice that raises for everything else.
        several = any(count > 1 for count in counts.values())
        demanded = tuple(check.words for check in checks_of(body) if check.words) if several else ()
        for name, offset, loose in uses:
            use = _Use(caller, body, offset, demanded if counts[name] > 1 else ())
            (self._loose if loose else out).setdefault(name, []).append(use)

    def _sites_of(self, name: str) -> list[_Site]:
        """The places that use a function, with what holds at each: only of functions that are asked about."""
        found = self._read_sites.get(name)
        if found is None:
            found = self._read_sites[name] = []
            for use in (self._uses or {}).get(name, ()):
                branches = self.branches(use.body)
                held, own = branches.place(use.offset), branches.place(use.offset, own=True)
                found.append(_Site(use.caller, held, own, branches.tests(use.offset), use.demanded))
        return found


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


def _unordered(term: str) -> Hashable:
    """What tells preprocessor conditions apart but for the order of their parts."""
    told = parse_condition(term)
    return (told.operator, frozenset(told.terms)) if isinstance(told, Junction) else told


def _in_common(ways: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What the preprocessor conditions of several ways have in common, and of what differs that one of them holds."""
    common = [term for term in ways[0] if all(term in way for way in ways)] if ways else []
    rest = {frozenset(way) - frozenset(common): way for way in ways}
    # One that holds whenever another does says nothing besides.
    kept = [way for held, way in rest.items() if not any(other < held for other in rest)]
    differing = [conjoin(parse_condition(term) for term in way if term not in common) for way in kept]
    always = any(negate(one) in differing for one in differing)
    if 1 < len(differing) <= _WAYS and not always:
        common.append(print_condition(disjoin(differing)))
    return tuple(common)


def _subject(test: Expr) -> str:
    """What an equality tests; what it is itself for anything else."""
    return print_expression(test.parts[0] if test.kind == "binary" and test.text == "==" else test)


def _uses(body: Body, names: set[str]) -> Iterator[tuple[str, int, bool]]:
    """Where a body calls one of some functions or hands it to a call, ``(name, offset, False)``, and where it does
    something else with it, ``(name, offset, True)``."""
    calls = body.facts.calls
    for call in calls:
        if call.simple in names:
            yield call.simple, call.start, False
    # What a message says is no use.
    text = _STRING.sub(lambda one: " " * len(one.group()), body.expanded.full)
    for found in _MENTIONED.finditer(text):
        name = found[1]
        if name not in names or text[found.end() :].lstrip().startswith("::"):
            continue  # nothing of these, or a class or namespace of the name
        at = found.start(1)
        inside = next((c for c in calls if any(start <= at < end for start, end in c.arguments)), None)
        yield name, inside.start if inside is not None else at, inside is None
