"""The patterns that a walk passes, from the store where what it passes has been looked at before.

In: a session and a walk. Out: the walk with its ``PatternRef`` values. What is looked for is ``views.patterns``'s; its
pages and queries are loaded where they are needed.
"""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.model.walk import PatternRef, Walk


def with_patterns(session, walk: Walk) -> Walk:
    """A walk with the patterns that it passes: kept for as long as what it passes does not change."""

    def passed(bench) -> tuple[PatternRef, ...]:
        from opwalker.views.patterns import of_walk

        return of_walk(session, bench, walk)

    # Where the functions are registered has no say in what they hold, nor have lines that say nothing.
    ways = tuple(replace(one, registered_at=None, condition=None) for one in walk.implementations)
    way = session.still((ways, walk.flags))
    return replace(walk, patterns=session.apart(f"patterns of:{way}", tuple[PatternRef, ...], passed, moves=True))
