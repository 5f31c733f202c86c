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
    """A walk with the patterns that it passes: kept for as long as what it passes does not change."""
    functions, definitions = tuple(dict.fromkeys(_functions(walk))), tuple(dict.fromkeys(_definitions(walk)))

    def passed(bench) -> Passed:
        from opwalker.views.patterns import of_places

        return Passed(functions, definitions, of_places(session, bench, functions, definitions))

    def asked(about: object) -> Passed:
        return session.apart(f"patterns of:{value_digest(about)}", Passed, passed, moves=True)

    # On which lines things stand has no say in what they hold: but what stood there must be what stands there now.
    found = asked((_files(functions), _files(definitions)))
    if (found.functions, found.definitions) != (functions, definitions):
        found = asked((functions, definitions))
    return replace(walk, patterns=found.patterns)


def _files(places: Sequence[Place]) -> tuple[str, ...]:
    return tuple(place.file for place in places)


def _functions(walk: Walk) -> Iterator[Place]:
    """The functions of a walk: host functions, helpers, kernels, and the device functions that these call."""
    for one in walk.implementations:
        for part in (one.host, *one.helpers, *one.kernels):
            if part is not None and not part.file.endswith(".py"):
                yield Place(part.file, part.line)
        for kernel in one.kernels:
            yield from (Place(call.at.file, call.at.line) for call in kernel.calls)


def _definitions(walk: Walk) -> Iterator[Place]:
    """The macros and structures that a walk names: those of its dispatch, and those that its threads wait on."""
    for one in walk.implementations:
        yield from (Place(d.defined_at.file, d.defined_at.line) for d in one.dispatch if d.defined_at is not None)
    yield from (Place(flag.file, flag.line) for flag in walk.flags)
