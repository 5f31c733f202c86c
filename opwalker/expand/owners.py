"""Which macro use a branch belongs to, and where that use stands.

In: a body with its expansions, a block of it. Out: ids of expansions, places. Nothing is decided by a macro's name.
"""

from __future__ import annotations

from opwalker.expand.bodies import Body
from opwalker.expand.expanded import Expansion
from opwalker.expand.macros import KNOWN
from opwalker.model.body import Block


def lineage(body: Body, offset: int) -> list[int]:
    """The macro uses that the text at an offset was written in, outermost first."""
    tokens = body.expanded.tokens
    expansion = tokens[body.expanded.token_at(max(0, offset))].expansion if tokens else 0
    return [e.id for e in body.expanded.chain(expansion)]


def switch_of(body: Body, block: Block) -> Block:
    """The ``switch`` around a ``case``; a block without one is returned as it is."""
    number = block.parent
    while number >= 0:
        held = body.facts.blocks[number]
        if held.kind == "switch":
            return held
        number = held.parent
    return block


def owner(body: Body, block: Block) -> int | None:
    """The macro use that made a branch: the outermost expansion that the branch is in and its tested value is not."""
    known: dict[Block, int | None] = body.kept.setdefault("owners", {})
    if block not in known:
        known[block] = _owner(body, block)
    return known[block]


def _owner(body: Body, block: Block) -> int | None:
    here = lineage(body, block.start)
    if not here:
        return None
    if block.condition is not None:
        first = body.expanded.token_at(block.condition[0])
        if block.kind.startswith(("if", "else")) and first > 0:
            # What a branch of the function's own does may be all one macro; the branch is not the macro's then.
            bracket = body.expanded.tokens[first - 1]
            if here[0] not in [e.id for e in body.expanded.chain(bracket.expansion)]:
                return None
        last = body.expanded.token_at(max(block.condition[0], block.condition[1] - 1))
        for number in range(first, last + 1):
            token = body.expanded.tokens[number]
            if not token.word:
                continue
            within = [e.id for e in body.expanded.chain(token.expansion)]
            foreign = [e for e in here if e not in within]
            if foreign and len(within) < len(here) and within == here[: len(within)]:
                return foreign[0]
    # A branch on the macro's own variable joins the use whose other branches test what was passed in.
    return here[0]


def use_place(body: Body, entry: Expansion) -> tuple[str, int]:
    """``(path, line)`` of a macro use: in the function's file, or in the macro that its name is written in."""
    if entry.parent:
        outer = body.expanded.expansions[entry.parent - 1].definition.path
        if outer != KNOWN:
            return outer, body.line_in(outer, entry.use_pos)
        return body.path, body.line_in(body.path, entry.outermost_pos)
    return body.path, body.line_in(body.path, entry.use_pos)
