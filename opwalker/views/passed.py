"""The patterns that a walk passes, from the store where what it passes has been looked at before.

In: a session and a walk. Out: the walk with its ``PatternRef`` values. What is looked for is ``views.patterns``'s; its
pages and queries are loaded where they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.link.store_rows import value_digest
from opwalker.model.walk import PatternRef, Walk


class Place(Struct, frozen=True):
    """A line that something begins on."""

    file: str
    line: int


class Passed(Struct, frozen=True):
    """The patterns at some places: of functions, and of what these use."""

    functions: tuple[Place, ...]
    definitions: tuple[Place, ...]
    patterns: tuple[PatternRef, ...]


def with_patterns(session, walk: Walk) -> Walk:
    """A walk with the patterns that it passes: kept for as long as what it passes does not change, host functions apart
    from the rest."""
    hosts = tuple(dict.fromkeys(_hosts(walk)))
    further = tuple(place for place in dict.fromkeys(_functions(walk)) if place not in hosts)
    pieces = ((hosts, ()), (further, tuple(dict.fromkeys(_definitions(walk)))))
    found = {one for functions, definitions in pieces for one in _passed(session, functions, definitions)}
    return replace(walk, patterns=tuple(sorted(found, key=lambda ref: (ref.id, ref.file, ref.line))))


def _passed(session, functions: tuple[Place, ...], definitions: tuple[Place, ...]) -> tuple[PatternRef, ...]:
    """The patterns at some places."""
    if not functions and not definitions:
        return ()

    def passed(bench) -> Passed:
        from opwalker.views.patterns import of_places

        return Passed(functions, definitions, of_places(session, bench, functions, definitions))

    def asked(about: object) -> Passed:
        return session.apart(f"patterns of:{value_digest(about)}", Passed, passed, moves=True)

    # On which lines things stand has no say in what they hold: but what stood there must be what stands there now.
    found = asked((_files(functions), _files(definitions)))
    if (found.functions, found.definitions) != (functions, definitions):
        found = asked((functions, definitions))
    return found.patterns


def _files(places: Sequence[Place]) -> tuple[str, ...]:
    return tuple(place.file for place in places)


def _hosts(walk: Walk) -> Iterator[Place]:
    """The host functions of a walk."""
    for one in walk.implementations:
        if one.host is not None and not one.host.file.endswith(".py"):
            yield Place(one.host.file, one.host.line)


def _functions(walk: Walk) -> Iterator[Place]:
    """What host functions enter in a walk: helpers, kernels, and the device functions that these call."""
    for one in walk.implementations:
        for part in (*one.helpers, *one.kernels):
            if not part.file.endswith(".py"):
                yield Place(part.file, part.line)
        for kernel in one.kernels:
            yield from (Place(call.at.file, call.at.line) for call in kernel.calls)


def _definitions(walk: Walk) -> Iterator[Place]:
    """The macros and structures that a walk names: those of its dispatch, and those that its threads wait on."""
    for one in walk.implementations:
        yield from (Place(d.defined_at.file, d.defined_at.line) for d in one.dispatch if d.defined_at is not None)
    yield from (Place(flag.file, flag.line) for flag in walk.flags)
