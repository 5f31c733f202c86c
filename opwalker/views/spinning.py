"""Loops that wait: those that go round until what they read has the value that they test for.

In: a body, and a place in it that reads memory. Out: whether a loop waits there. A loop that does anything besides
reading the same address again and asking about it is taken to work, not to wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opwalker.expand.bodies import Body
from opwalker.model.access import Leave, Loop
from opwalker.notation.regex import Regex

_WORD = Regex(r"(?<![\w.])[A-Za-z_]\w*")
#: Calls of a loop that do nothing but wait, give up, or look at what was read.
_IDLE = Regex(
    r"(?:ld|load)_\w+|\w*(?:sleep|pause|yield|clock\w*|timer?|now|printf|trap|assert\w*|abort|likely|min|max)\Z"
    r"|__(?:syncwarp|shfl\w*|any\w*|all\w*|ballot\w*|builtin_expect\w*|threadfence\w*|activemask)\Z"
)


def waits_at(body: Body, start: int, end: int, address: str | None, outputs: Iterable[str] = ()) -> bool:
    """Whether a loop waits for what ``[start, end)`` reads from ``address``: it stands in the loop's condition, or it
    gives a name (``outputs``, or the variable that is set there) that the loop tests."""
    facts = body.accesses
    loops = (*facts.loops, *facts.again)
    if any(one.condition is not None and one.condition[0] <= start < one.condition[1] for one in loops):
        return True
    around = [one for one in loops if one.body[0] <= start < one.body[1]]
    if not around or address is None:
        return False
    loop = max(around, key=lambda one: one.start)
    given = {word for text in (*outputs, *_set_at(body, start, end)) for word in _WORD.findall(text)}
    moved = _moved(body, loop)
    tests = [one for one in (loop.condition, *(leave.condition for leave in _leaves(body, loop))) if one is not None]
    return (
        bool(given)
        and moved.isdisjoint(_WORD.findall(address))
        and any(given.intersection(_WORD.findall(body.text(test))) for test in tests)
        and not _works(body, loop, start, end)
    )


def _set_at(body: Body, start: int, end: int) -> Iterator[str]:
    """The variables whose value what stands at a place is, or is part of."""
    for local in body.facts.locals:
        if local.name and local.value is not None and local.value[0] <= start and end <= local.value[1]:
            yield local.name
    for change in body.accesses.changes:
        if change.value is not None and change.value[0] <= start and end <= change.value[1]:
            yield change.target


def _moved(body: Body, loop: Loop) -> set[str]:
    """The variables that a loop makes or changes: an address with one of them is another one in each round."""
    made = {local.name for local in body.facts.locals if loop.start <= local.start < loop.end and local.name}
    return made | {change.target for change in body.accesses.changes if loop.start <= change.start < loop.end}


def _leaves(body: Body, loop: Loop) -> Iterator[Leave]:
    """What leaves a loop by ``break`` or ``return`` out of a branch of its own."""
    inner = [one for one in (*body.accesses.loops, *body.accesses.again) if loop.start < one.start < loop.end]
    for leave in body.accesses.leaves:
        place = leave.condition[0]
        within = loop.body[0] <= place < loop.body[1] and not any(one.start <= place < one.end for one in inner)
        if within and leave.kind in ("break", "return"):
            yield leave


def _works(body: Body, loop: Loop, start: int, end: int) -> bool:
    """Whether a loop writes memory or calls what may do work, besides ``[start, end)`` and the branches that leave."""
    left_out = [(start, end), *((leave.condition[1], leave.start) for leave in _leaves(body, loop))]

    def inside(at: int) -> bool:
        return loop.start <= at < loop.end and not any(first <= at < last for first, last in left_out)

    written = any(wrote and inside(at) for one in body.accesses.accesses for at, wrote, _ in one.uses)
    calls = any(inside(one.start) and not _IDLE.match(one.simple) for one in body.facts.calls)
    return written or calls or any(inside(span[0]) and "sleep" not in body.text(span) for span in body.facts.asm)
