"""The names that the conditions, sizes and strides of a walk are told with, and what they hold.

In: a host function's body, and an implementation whose checks, choices and launches are known. Out: facts of the locals
that their words and code mention, and of those in these values. A name that is ever changed, or that is declared twice
with different values, is left out, as are sizes, which are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opwalker.expand.bodies import Body
from opwalker.model.held import HeldFact
from opwalker.model.walk import Implementation
from opwalker.notation.regex import Regex
from opwalker.views.held import held_by, names_in
from opwalker.views.value_facts import Known

#: Words of conditions: a local of such a name is only meant where code has it.
_WORDS = frozenset(
    "is not of and or at least most less greater than divisible by the same size in dimension dimensions number "
    "elements element type contiguous given where aligned to bytes stride last device all any has have does equals one "
    "a an none otherwise".split()
)
_NO_VALUE = Regex(r"using|namespace|dim3|\w*(?:Guard|Stream_t|stream)\b|const char ?\*")


def told_names(body: Body, found: Implementation, known: Known) -> tuple[HeldFact, ...]:
    """The names in source order, but for those that are told with a check."""
    host = found.host
    if host is None:
        return ()
    told = {one.name for one in (*host.parameters, *host.sizes, *host.strides, *host.held) if one.name}
    words = (word for text in _words(found) for word in names_in(text))
    spoken = [word for word in words if word in body.locals and word not in _WORDS]
    held = held_by(body, (*spoken, *_code(found)), told, known)
    return tuple(
        sorted((one for one in held if one.line and not _is_plumbing(body, one.name)), key=lambda one: one.line)
    )


def _is_plumbing(body: Body, name: str) -> bool:
    """Whether a local is a guard, a stream or an extent: no condition speaks of those."""
    return any(_NO_VALUE.search(local.type) for local in body.locals.get(name, ()))


def _words(found: Implementation) -> Iterator[str]:
    host = found.host
    for parameter in host.parameters if host else ():
        yield parameter.layout or ""
    for check in host.checks if host else ():
        yield from (check.words or "", *check.under, *check.past)
    for fact in (*host.guards, *host.streams, *host.contiguous_calls) if host else ():
        yield from (*fact.under, *getattr(fact, "past", ()))
    for one in host.returns if host else ():
        yield from one.words
    for use in found.dispatch:
        yield from (*use.under, *_rows(use.rows), *(fail.words or "" for fail in use.fails))
    for choice in found.branches:
        yield from (*choice.under, *_rows(choice.rows), *(fail.words or "" for fail in choice.fails))
    for launch in found.launches:
        yield from launch.conditions


def _rows(rows: Iterable) -> Iterator[str]:
    for row in rows:
        yield from row.under


def _code(found: Implementation) -> Iterator[str]:
    for use in found.dispatch:
        yield from (use.on or "", *(axis.on for axis in use.axes))
    for choice in found.branches:
        yield choice.on
    for size in (*found.host.sizes, *found.host.strides) if found.host else ():
        yield size.value
