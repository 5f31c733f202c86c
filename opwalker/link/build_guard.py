"""Conditions that cannot be decided, and the state that both sides of them are run on.

In: closures to run, one for each way that an undecided condition can go. Out: the state after all of them, where each
part knows under which conditions it holds. It knows nothing of CMake or Python: the evaluators of both say how two
values are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

#: An evaluation that leaves more conditions undecided than this is cut off.
MAX_FORKS = 6_000

#: More undecided conditions than this on one fact, and the further ones are dropped from it.
MAX_LITERALS = 24


class Literal(NamedTuple):
    """One undecided condition and the way it is taken to go. ``key`` tells conditions apart, ``text`` is as written."""

    key: int
    truth: bool
    text: str

    def negated(self) -> Literal:
        return Literal(self.key, not self.truth, self.text)


#: All of these hold.
Guard = tuple[Literal, ...]


class Stopped(Exception):
    """The build ends here with an error: what led here does not happen in a build that succeeds."""


class LimitReached(Exception):
    """The evaluation has grown too long; what was found so far stands."""


class GivenUp(Exception):
    """Too many undecided conditions for one computation; its result is left unknown."""


def join(first: Guard, second: Guard) -> Guard:
    """Both guards at once, each condition named once."""
    if not second:
        return first
    if not first:
        return second
    if len(first) == 1:
        key = first[0].key
        return (first + tuple([literal for literal in second if literal.key != key]))[:MAX_LITERALS]
    held = {literal.key for literal in first}
    return (first + tuple([literal for literal in second if literal.key not in held]))[:MAX_LITERALS]


def excludes(first: Guard, second: Guard) -> bool:
    """True if the two cannot hold at once."""
    for key, truth, _ in first:
        for other, other_truth, _ in second:
            if key == other and truth != other_truth:
                return True
    return False


def implied(guard: Guard, context: Guard) -> bool:
    """True if ``guard`` holds wherever ``context`` does."""
    return all(literal in context for literal in guard)


def without(guard: Guard, context: Guard) -> Guard:
    """The part of ``guard`` that ``context`` does not already say."""
    return tuple(literal for literal in guard if literal not in context)


def put_together(first: Guard, second: Guard) -> Guard | None:
    """The guard of "one of the two", where that is a guard: one says more, or they differ in one condition."""
    a, b = set(first), set(second)
    if a <= b:
        return first
    if b <= a:
        return second
    only_a, only_b = a - b, b - a
    if len(only_a) == 1 and only_b == {next(iter(only_a)).negated()}:
        return tuple(literal for literal in first if literal not in only_a)
    return None


def resolved(guards: Iterable[Guard]) -> list[Guard]:
    """Guards of which at least one holds, with pairs that differ in one condition alone put together."""
    found = list(dict.fromkeys(guards))
    position = 0
    while position < len(found):
        merged = None
        for other in range(position + 1, len(found)):
            merged = put_together(found[position], found[other])
            if merged is not None:
                del found[other]
                found[position] = merged
                break
        position = 0 if merged is not None else position + 1
    return found


def pairwise_exclusive(guards: Sequence[Guard]) -> bool:
    """True if at most one of several guards can hold."""
    return len(guards) < 2 or all(
        excludes(guards[i], guards[j]) for i in range(len(guards)) for j in range(i + 1, len(guards))
    )


def guard_text(guard: Guard) -> str | None:
    """The condition as a reader would write it, or None for an empty guard."""
    texts: list[str] = []
    for literal in guard:
        text = literal.text
        compound = " OR " in text or " or " in text
        if not literal.truth:
            text = _negation(text)
        elif compound and len(guard) > 1:
            text = f"({text})"
        if text not in texts:
            texts.append(text)
    return " AND ".join(texts) or None


def _negation(text: str) -> str:
    for word in ("NOT ", "not "):
        if text.startswith(word) and not any(w in text for w in (" AND ", " OR ", " and ", " or ")):
            return text[len(word) :]
    return f"NOT ({text})" if " " in text else f"NOT {text}"


def either_text(guards: Iterable[Guard]) -> str | None:
    """The condition under which at least one of several guards holds; None if that is always so."""
    texts = [guard_text(guard) for guard in resolved(guards)]
    if None in texts or not texts:
        return None
    return texts[0] if len(texts) == 1 else " OR ".join(f"({t})" if " " in str(t) else str(t) for t in texts)


_MISSING = object()

#: The places that were written, each as the dict, the key and the value at the end.
_Written = dict[tuple[int, Any], tuple[dict, Any, Any]]

#: Merges the values that one place (its key is given) has after each way; a way that left it unset gives ``absent``.
Merge = Callable[[list[tuple[Guard, Any]], Any], Any]


class _Later:
    """A merge that nobody has asked for yet: most variables are set anew before they are read again."""

    __slots__ = ("ways", "depth", "value")

    def __init__(self, ways: list[tuple[Guard, Any]], depth: int) -> None:
        self.ways = ways
        self.depth = depth
        self.value: Any = _MISSING


_MAX_LATER = 40


class Branches:
    """Runs the ways of an undecided condition one after the other, each on the state from before.

    All state lives in dicts that are written through ``put``; the writes of each way are taken back and merged. With
    ``lazy``, values are merged when they are read, and must be read through ``get``.
    """

    def __init__(self, merge: Merge, absent: Any, lazy: bool = False) -> None:
        self._lazy = lazy
        self.guard: Guard = ()
        self.known: dict[int, bool] = {}
        #: Lists that only grow; what a way that ends the build has added is taken off again.
        self.logs: list[list] = []
        #: How often a condition was left undecided so far, and how often it may be before the work is given up.
        self.forks = 0
        self.fork_limit: int | None = None
        self._merge = merge
        self._absent = absent
        self._journals: list[_Written] = []
        self._born: list[set[int]] = []
        self._keys: dict[Any, int] = {}

    def literal(self, identity: Any, text: str) -> Literal:
        """The literal of a condition; equal ``identity`` (hashable) means that it must go the same way."""
        return Literal(self._keys.setdefault(identity, len(self._keys)), True, text)

    def decided(self, literal: Literal) -> bool | None:
        """How a condition goes here if an enclosing branch or an earlier dead end says so."""
        for held in self.guard:
            if held.key == literal.key:
                return held.truth is literal.truth
        known = self.known.get(literal.key)
        return None if known is None else known is literal.truth

    def get(self, store: dict, key: Any, default: Any = None) -> Any:
        """The value of a place."""
        value = store.get(key, default)
        if type(value) is _Later:
            value = self._merged(value, key)
            # The place holds the same as before, only worked out: nothing that would have to be taken back.
            store[key] = value
        return value

    def _merged(self, later: _Later, key: Any) -> Any:
        if later.value is _MISSING:
            ways = [(guard, self._merged(v, key) if type(v) is _Later else v) for guard, v in later.ways]
            later.value = self._merge(ways, key)
        return later.value

    def born(self, store: dict) -> None:
        """Say that a dict is new: nothing outside the present way knows it, so its writes need not be taken back."""
        if self._born:
            self._born[-1].add(id(store))

    def put(self, store: dict, key: Any, value: Any) -> None:
        if self._journals and id(store) not in self._born[-1]:
            journal = self._journals[-1]
            place = (id(store), key)
            if place not in journal:
                journal[place] = (store, key, store.get(key, _MISSING))
        store[key] = value

    def run(self, ways: Sequence[tuple[Guard, Callable[[], Any]]]) -> list[tuple[Guard, Any]]:
        """Run every way and merge. Gives the result of each way that did not end the build.

        Raises Stopped if all of them do.
        """
        self.forks += 1
        if self.forks > MAX_FORKS:
            raise LimitReached
        if self.fork_limit is not None and self.forks > self.fork_limit:
            raise GivenUp
        outer = self.guard
        ended: list[tuple[Guard, Any, _Written]] = []
        for literals, thunk in ways:
            self.guard = join(outer, literals)
            lengths = [len(log) for log in self.logs]
            try:
                result, written = self._apart(thunk)
                ended.append((literals, result, written))
            except Stopped:
                for log, length in zip(self.logs, lengths, strict=True):
                    del log[length:]
            finally:
                self.guard = outer
        if not ended:
            raise Stopped
        if len(ended) == 1:
            self._settle(ended[0][0], len(ways))
        self._merge_written(ended, certain=len(ended) == 1)
        return [(literals, result) for literals, result, _ in ended]

    def attempt(self, thunk: Callable[[], Any], forks: int) -> bool:
        """Run something that may leave ``forks`` conditions undecided; with more it has not happened, and False."""
        outer = self.fork_limit
        limit = self.forks + forks
        self.fork_limit = limit if outer is None else min(limit, outer)
        try:
            _, written = self._apart(thunk)
        except GivenUp:
            if outer is not None and self.forks > outer:
                raise
            return False
        finally:
            self.fork_limit = outer
        for store, key, value in written.values():
            if value is not _MISSING:
                self.put(store, key, value)
        return True

    def _apart(self, thunk: Callable[[], Any]) -> tuple[Any, _Written]:
        """Run on the present state, take all writes back, and hand them out."""
        self._journals.append({})
        self._born.append(set())
        try:
            result = thunk()
        finally:
            self._born.pop()
            journal = self._journals.pop()
            written = {place: (store, key, store.get(key, _MISSING)) for place, (store, key, _) in journal.items()}
            for store, key, old in journal.values():
                _restore(store, key, old)
        return result, written

    def _settle(self, literals: Guard, ways: int) -> None:
        # The other ways end the build, so this one is a fact from here on: later tests of it need no branch.
        if ways > 1 and not self._journals:
            self.known.update((literal.key, literal.truth) for literal in literals)

    def _merge_written(self, ended: list, certain: bool) -> None:
        places: dict[tuple[int, Any], tuple[dict, Any]] = {}
        for _, _, written in ended:
            for place, (store, key, _) in written.items():
                places.setdefault(place, (store, key))
        for place, (store, key) in places.items():
            old = store.get(key, _MISSING)
            finals = [(literals, written[place][2] if place in written else old) for literals, _, written in ended]
            if certain or all(value is finals[0][1] for _, value in finals):
                value = finals[0][1]
            else:
                ways = [(g, self._absent if v is _MISSING else v) for g, v in finals]
                depth = 1 + max(v.depth if type(v) is _Later else 0 for _, v in ways)
                value = _Later(ways, depth)
                if not self._lazy or depth > _MAX_LATER:
                    value = self._merged(value, key)
            if value is not _MISSING:
                self.put(store, key, value)


def _restore(store: dict, key: Any, old: Any) -> None:
    if old is _MISSING:
        store.pop(key, None)
    else:
        store[key] = old


def merge_sequences(ways: list[tuple[Guard, tuple]]) -> tuple:
    """Merge lists that differ in some items: what all have stays, the rest gets the guard of its way.

    Items have a ``guard``, and ``under(guard)`` gives them a further one.
    """
    lists = [items for _, items in ways]
    shortest = min(map(len, lists))
    first = lists[0]
    start = 0
    while start < shortest and all(items[start] == first[start] for items in lists):
        start += 1
    end = 0
    while end < shortest - start and all(items[-1 - end] == first[-1 - end] for items in lists):
        end += 1
    middles = [(literals, items[start : len(items) - end]) for literals, items in ways]
    merged = list(first[:start])
    merged.extend(_merge_middles(middles))
    merged.extend(first[len(first) - end :])
    return tuple(merged)


def _merge_middles(middles: list[tuple[Guard, tuple]]) -> list:
    if not all(items for _, items in middles):
        return [
            item.under(literals) for literals, items in middles for item in items if not excludes(item.guard, literals)
        ]
    shared = set(middles[0][1]).intersection(*(items for _, items in middles[1:]))
    orders = [[item for item in items if item in shared] for _, items in middles]
    if any(order != orders[0] for order in orders):
        shared, orders = set(), [[]]
    merged: list = []
    positions = [0] * len(middles)
    for stop in [*orders[0], None]:
        for way, (literals, items) in enumerate(middles):
            while positions[way] < len(items) and (stop is None or items[positions[way]] != stop):
                item = items[positions[way]]
                if not excludes(item.guard, literals):
                    merged.append(item.under(literals))
                positions[way] += 1
            positions[way] += 1
        if stop is not None:
            merged.append(stop)
    return merged
