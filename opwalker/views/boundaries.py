"""What can be raised in functions with C linkage: nothing may leave them.

In: the functions of a walk. Out: a ``BoundaryFact`` for each that has C linkage and is entered from outside (the first
one, and those that nothing on the walk calls). What a library's own functions raise is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from opwalker.expand.bodies import Body
from opwalker.model.cpp import Function
from opwalker.model.reach import Reach
from opwalker.model.walk import BoundaryFact, UseFact
from opwalker.notation.regex import Regex
from opwalker.views.checks import raises

_CATCH = Regex(r"\bcatch\s*\(")


def boundaries_of(reach: Reach, body_of: Callable[[str, Function], Body]) -> tuple[BoundaryFact, ...]:
    """The boundary of a walk's first function, where it has C linkage."""
    if not reach.functions:
        return ()
    path, function, _ = reach.functions[0]
    if "extern_c" not in function.flags:
        return ()
    found: dict[UseFact, None] = {}
    caught: list[int] = []
    for number, (where, other, _) in enumerate(reach.functions):
        body = body_of(where, other)
        inside = _guarded(body)
        if number == 0:
            caught = [body.use_line(match.start()) for match in _CATCH.finditer(body.expanded.full)]
        for offset, what in raises(body):
            if not any(a <= offset < b for a, b in inside):
                found[UseFact(what, other.qualified_name, where, body.use_line(offset))] = None
    return (
        BoundaryFact(function.qualified_name, path, function.line, tuple(found), tuple(caught), len(reach.functions)),
    )


def _guarded(body: Body) -> Sequence[tuple[int, int]]:
    """The parts of a body that stand in a ``try`` with a ``catch (...)`` or one of ``std::exception``."""
    from opwalker.facts.cpp_brackets import match_bracket

    full = body.expanded.full
    out = []
    for match in re.finditer(r"\btry\s*\{", full):
        end = match_bracket(full, match.end() - 1)
        behind = full[end : end + 80] if end > 0 else ""
        if re.match(r"\s*catch\s*\(\s*(?:\.\.\.|(?:const\s+)?std::exception\b)", behind):
            out.append((match.end(), end))
    return out
