"""Where the ends of a way stand: under which conditions, and in which loops of their function.

In: ends that are no kernel of the source, and the way to them. Out: the same with ``under`` and ``loops``; an end whose
call is not found in the function that its path names keeps none.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from opwalker.model.walk import Terminal
from opwalker.views.entered import Entered
from opwalker.views.held import held_by
from opwalker.views.ops import shown_condition
from opwalker.views.way import Way

#: A call that moves memory is shown up to so many characters.
_LONG = 200


def placed(way: Way, entered: Entered, ends: Iterable[Terminal]) -> list[Terminal]:
    """The ends with what holds where they stand: for several calls on one line, what all of them stand under."""
    return [_placed(way, entered, end) for end in ends]


def _placed(way: Way, entered: Entered, end: Terminal) -> Terminal:
    values = way.at(end.path) if end.path else None
    if values is None:
        return end
    body = values.body
    simple = end.name.replace(".", "::").rsplit("::", 1)[-1].split("<", 1)[0]
    calls = [c for c in body.facts.calls if c.simple == simple and body.use_line(c.start) == end.line]
    if body.path != end.file or not calls:
        return end
    outer = entered.of(body.path, body.function) if body.function is not None else ()
    places = [entered.place(body, call.start) for call in calls]
    under = [text for text in places[0] if all(text in place for place in places)]
    loops = [entered.branches(body).loops_around(call.start) for call in calls]
    common = [head for head in loops[0] if all(head in other for other in loops)]
    compiled = [entered.compiled(body, call.start) for call in calls]
    both = shown_condition([term for term in compiled[0] if all(term in other for other in compiled)])
    end = replace(end, under=tuple(dict.fromkeys((*outer, *under))), loops=tuple(common), compiled=both)
    texts = {body.written((call.start, call.end)) for call in calls}
    if end.kind != "memory" or len(texts) > 1 or len(text := texts.pop()) > _LONG:
        return end
    return replace(end, text=text, held=held_by(body, [text], known=way.known))
