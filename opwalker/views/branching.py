"""Choices that functions write themselves on the way to their launches: ``switch``, ``if`` chains, early returns.

In: the bodies on the way and what was reached. Out: ``Branching`` facts: which branch calls what, and which one raises.
Branches of macros are ``views/dispatch.py``'s. A choice counts where at least two of its branches lead to different
ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.model.reach import Reach
from opwalker.model.walk import Branching, DispatchFailure, DispatchRow
from opwalker.notation.check_words import said
from opwalker.notation.cpp_expression import Expr, print_expression, terms
from opwalker.notation.regex import Regex
from opwalker.views.branches import Branches, compiled_under, needed
from opwalker.views.checks import failures_of
from opwalker.views.entered import Entered
from opwalker.views.returns import Returns, past_words, words_of

_RETURNS = Regex(r"(?:\breturn\b[^;]*;|\bthrow\b[^;]*;)\s*\}?\s*\Z")
_NEVER = ("false", "0", "!true", "!1")
#: Rows of one choice that are told.
MAX_ROWS = 40


def branchings(
    bodies: Sequence[tuple[str, Body]], reach: Reach, entered: Entered | None = None
) -> tuple[Branching, ...]:
    """The choices in functions on the way; ``bodies`` are ``(function, body)`` of those that lead to an end."""
    wanted = {body.function.name for _, body in bodies if body.function is not None} | _ends(reach)
    out: dict[Branching, None] = {}
    for name, body in bodies:
        outer = entered.of(body.path, body.function) if entered is not None and body.function is not None else ()
        for found in _of_body(name, body, wanted):
            out[replace(found, under=tuple(dict.fromkeys((*outer, *found.under))))] = None
    return tuple(out)


def _ends(reach: Reach) -> set[str]:
    """Simple names of the ends of ways: kernels, and functions of libraries."""
    names = {kernel.function.name for site in reach.launches for kernel in site.kernels}
    names.update(end.name.rsplit("::", 1)[-1] for end in reach.terminals if end.kind == "library")
    return names


def _of_body(name: str, body: Body, wanted: set[str]) -> Iterator[Branching]:
    branches = Returns(body)
    blocks = body.facts.blocks
    for number, block in enumerate(blocks):
        if block.kind == "switch" and block.condition is not None and _own(body, block.start):
            cases = [n for n, b in enumerate(blocks) if b.kind == "case" and _switch_of(body, n) == number]
            found = _branching(body, branches, name, "switch", cases, wanted, body.written(block.condition))
            if found is not None:
                yield found
    for chain in _chains(body):
        found = _branching(body, branches, name, "if", chain, wanted, None)
        if found is not None:
            yield found


def _own(body: Body, offset: int) -> bool:
    """Whether the function itself writes what stands at an offset."""
    return not body.expanded.origin(offset)[2]


def _switch_of(body: Body, number: int) -> int:
    parent = body.facts.blocks[number].parent
    while parent >= 0 and body.facts.blocks[parent].kind != "switch":
        parent = body.facts.blocks[parent].parent
    return parent


def _chains(body: Body) -> Iterator[list[int]]:
    """The branches of each ``if … else if … else``, and runs of ``if``s of one block that each return."""
    blocks = body.facts.blocks
    runs: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        if not block.kind.startswith("if") or block.condition is None or not _own(body, block.condition[0]):
            continue
        if not _own(body, block.start):
            continue
        parent = blocks[block.parent] if block.parent >= 0 else None
        if parent is not None and _is_else_if(body, parent.start) and parent.kind.startswith("else"):
            continue  # told with the chain that it continues
        chain = _chain(body, number)
        if len(chain) > 1:
            yield chain
        elif _RETURNS.search(body.expanded.full[block.start : block.end]):
            runs.setdefault(block.parent, []).append(number)
    for run in runs.values():
        if len(run) > 1:
            yield run


def _is_else_if(body: Body, offset: int) -> bool:
    return bool(re.match(r"else\s+if\b", body.expanded.full[offset : offset + 40]))


def _chain(body: Body, number: int) -> list[int]:
    """The leaves of a chain, first to last."""
    blocks = body.facts.blocks
    out = [number]
    while True:
        block = blocks[number]
        other = next(
            (
                n
                for n in range(number + 1, len(blocks))
                if blocks[n].kind.startswith("else")
                and blocks[n].condition == block.condition
                and blocks[n].parent == block.parent
            ),
            None,
        )
        if other is None:
            return out
        inner = next((n for n in range(other + 1, len(blocks)) if blocks[n].parent == other), None)
        if _is_else_if(body, blocks[other].start) and inner is not None and blocks[inner].kind.startswith("if"):
            out.append(inner)
            number = inner
        else:
            return [*out, other]


def _branching(
    body: Body, branches: Returns, name: str, kind: str, leaves: list[int], wanted: set[str], on: str | None
) -> Branching | None:
    rows = []
    first = body.facts.blocks[leaves[0] if kind == "if" else _switch_of(body, leaves[0])]
    starts = [body.facts.blocks[leaf].start for leaf in leaves]
    for leaf in leaves:
        calls = _calls(body, branches, leaf, wanted)
        if calls:
            outer = branches.chain(_outer(body, leaves))
            guards = [g for g in branches.around(leaf) if g.block not in outer]
            start = body.facts.blocks[leaf].start
            # A branch that some builds alone have beside the others.
            held = (*needed(guards), *compiled_under(body, start, starts))
            rows.append(DispatchRow(tuple(said(g.condition) for g in held), calls, body.use_line(start)))
    if len(rows) < 2 or len({row.values for row in rows}) < 2:
        return None
    start = first.condition[0] if first.condition is not None else first.start
    return Branching(
        kind,
        name,
        on or _subject(branches, leaves),
        body.path,
        body.use_line(start),
        tuple(rows[:MAX_ROWS]),
        tuple(_fails(body, leaves, branches)),
        _under(branches, _outer(body, leaves), start),
    )


def _under(branches: Returns, outer: int, offset: int) -> tuple[str, ...]:
    """What the function itself tests before a choice, and what holds there as nothing has returned."""
    around = [guard for guard in branches.around(outer) if guard.own]
    return (*past_words(branches.past(outer, offset), around), *words_of(around))


def _outer(body: Body, leaves: list[int]) -> int:
    """The block around a whole choice."""
    return body.facts.blocks[leaves[0]].parent


def _calls(body: Body, branches: Branches, leaf: int, wanted: set[str]) -> tuple[str, ...]:
    """What a branch calls of what leads on, as written, without arguments; not what never runs in it."""
    block = body.facts.blocks[leaf]

    def runs(number: int) -> bool:
        return all(print_expression(guard.condition) not in _NEVER for guard in branches.around(number, leaf))

    found: list[tuple[int, str]] = []
    for call in body.facts.calls:
        if block.start <= call.start < block.end and call.simple in wanted and runs(call.block):
            found.append((call.start, body.text(call.callee)))
    for launch in body.facts.launches:
        if block.start <= launch.start < block.end and runs(launch.block):
            kernel = body.text(launch.kernel)
            simple = re.sub(r"<.*|.*::", "", re.sub(r"<.*", "", kernel, flags=re.DOTALL)).strip("&() ")
            # A kernel that the walk does not reach stands in a branch that is cut at compile time.
            if simple in wanted or simple in body.locals or not simple.isidentifier():
                found.append((launch.start, kernel))
    return tuple(dict.fromkeys(re.sub(r"<\s+", "<", text) for _, text in sorted(found)))


def _subject(branches: Branches, leaves: list[int]) -> str:
    """What all conditions of a chain compare, or nothing."""
    subjects: set[str] = set()
    for leaf in leaves:
        guards = branches.around(leaf)
        if guards and guards[-1].block == leaf:
            subjects.update(_left(part) for part in terms(guards[-1].condition, "||"))
    subjects.discard("")
    return subjects.pop() if len(subjects) == 1 else ""


def _left(expr: Expr) -> str:
    compares = expr.kind == "binary" and expr.text in ("==", "<", "<=", ">", ">=")
    return print_expression(expr.parts[0]) if compares else ""


def _fails(body: Body, leaves: list[int], branches: Branches) -> Iterator[DispatchFailure]:
    """Branches of the choice itself that only raise."""
    for offset, fact in failures_of(body):
        inner = branches.innermost(offset)
        if inner in leaves and fact.words:
            yield DispatchFailure(fact.words, fact.message, fact.kind, body.path, fact.line)
