"""Dispatch macros in use: on what each one branches, which name a branch binds, and to which values.

In: a body with its expansions. Out: ``Dispatch`` facts in source order. A macro counts as dispatching when a branch of
what it expands to (``switch``/``case``, ``if``/``else``) tests something that its use passes in. No name decides.
"""

from __future__ import annotations

import re

from opwalker.expand.bodies import Body
from opwalker.expand.expanded import Expansion
from opwalker.expand.files import Files
from opwalker.expand.macros import KNOWN
from opwalker.expand.scalar_types import cpp_type
from opwalker.model.body import Block
from opwalker.model.walk import Dispatch, Span

#: What may be a constant without saying ``constexpr``: a number, a truth value, an enumerator.
_CONSTANT = re.compile(r"-?\d[\w.]*|true|false|(?:::)?\w+(?:::\w+)+|k?[A-Z]\w*")
_BRANCHES = ("case", "if", "else", "if constexpr", "else constexpr")


def dispatches(body: Body, files: Files) -> tuple[Dispatch, ...]:
    """The dispatch macros used in a body, in the order of their uses."""
    groups: dict[int, list[Block]] = {}
    for block in body.facts.blocks:
        if block.kind in _BRANCHES or block.kind == "switch":
            # A case belongs to its switch, whichever helper macro wrote it.
            owner = _owner(body, _switch_of(body, block) if block.kind == "case" else block)
            if owner is not None:
                groups.setdefault(owner, []).append(block)
    out: dict[tuple, Dispatch] = {}
    for owner, blocks in groups.items():
        entry = body.expanded.expansions[owner - 1]
        found = _dispatch(body, files, entry, blocks)
        if found is None:
            continue
        key = (found.macro, found.file, found.line)
        held = out.get(key)
        if held is not None:
            # The same use inside several branches of an outer dispatch: one use for a reader.
            values = tuple(dict.fromkeys((*held.values, *found.values)))
            found = Dispatch(
                held.macro, held.file, held.line, held.on, held.binds or found.binds, values, held.defined_at
            )
        out[key] = found
    return tuple(sorted(out.values(), key=lambda d: (d.file != body.path, d.file, d.line)))


def _switch_of(body: Body, block: Block) -> Block:
    number = block.parent
    while number >= 0:
        held = body.facts.blocks[number]
        if held.kind == "switch":
            return held
        number = held.parent
    return block


def _lineage(body: Body, offset: int) -> list[int]:
    tokens = body.expanded.tokens
    expansion = tokens[body.expanded.token_at(max(0, offset))].expansion if tokens else 0
    return [e.id for e in body.expanded.chain(expansion)]


def _owner(body: Body, block: Block) -> int | None:
    """The macro use that made a branch: the outermost expansion that the branch is in and its tested value is not."""
    here = _lineage(body, block.start)
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
            lineage = [e.id for e in body.expanded.chain(token.expansion)]
            foreign = [e for e in here if e not in lineage]
            if foreign and len(lineage) < len(here) and lineage == here[: len(lineage)]:
                return foreign[0]
    # A branch on the macro's own variable joins the use whose other branches test what was passed in.
    return here[0]


def _dispatch(body: Body, files: Files, entry: Expansion, blocks: list[Block]) -> Dispatch | None:
    tested = _tested(body, entry, blocks)
    if not tested:
        return None
    branches = [b for b in blocks if b.kind in _BRANCHES]
    binds, values = _bound(body, entry, branches)
    if not values:
        binds, values = _applied(body, entry)
    if not values:
        return None
    definition = entry.definition
    defined_at = None
    if definition.path != KNOWN:
        defined_at = Span(definition.path, definition.event.line, definition.event.end_line)
    place = body.path
    line = files.view(body.path).blanked.line(entry.use_pos) if entry.parent == 0 else 0
    if entry.parent:
        outer = body.expanded.expansions[entry.parent - 1].definition.path
        if outer == KNOWN:
            line = files.view(body.path).blanked.line(entry.outermost_pos)
        else:
            place, line = outer, files.view(outer).blanked.line(entry.use_pos)
    return Dispatch(entry.name, place, line, tested, binds, values, defined_at)


def _tested(body: Body, entry: Expansion, blocks: list[Block]) -> str | None:
    """The arguments of the use that the branches test, directly or through a variable that the macro makes of them."""
    if entry.arguments is None:
        return None
    texts = []
    for block in blocks:
        if block.condition is not None and block.kind != "case":
            texts.append(body.text(block.condition))
    words = set(re.findall(r"\w+", " ".join(texts)))
    for word in words:
        for local in body.locals.get(word, ()):
            if local.value is not None and entry.id in _lineage(body, local.start):
                texts.append(body.text(local.value))
    flat = [" ".join(t.split()) for t in texts]
    found = []
    for argument in entry.arguments:
        plain = " ".join(argument.split())
        if not plain or plain.startswith(("[", '"')) or "{" in plain:
            continue
        if any(_contains(text, plain) for text in flat):
            found.append(plain)
    return ", ".join(dict.fromkeys(found)) or None


def _contains(text: str, piece: str) -> bool:
    squeezed, wanted = text.replace(" ", ""), piece.replace(" ", "")
    at = squeezed.find(wanted)
    if at < 0:
        return False
    before = squeezed[at - 1 : at]
    after = squeezed[at + len(wanted) : at + len(wanted) + 1]
    return not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_")


def _bound(body: Body, entry: Expansion, branches: list[Block]) -> tuple[str | None, tuple[str, ...]]:
    """What the branches bind by ``using`` or a constant of their own."""
    names: dict[str, None] = {}
    values: dict[str, None] = {}
    for block in branches:
        for local in body.facts.locals:
            if not (block.start <= local.start < block.end) or local.value is None:
                continue
            # The name may be an argument of the use; then only the value stands in the macro.
            here = entry.id in _lineage(body, local.start) or entry.id in _lineage(body, local.value[0])
            if not here or _innermost(body, local.block) is not block:
                continue
            if local.type == "using":
                value = body.text(local.value)
                names[local.name] = None
                values[cpp_type(value) or value] = None
            elif re.search(r"\bconstexpr\b|\bconst\b", local.type):
                text = body.text(local.value).strip("{}() ")
                if "constexpr" not in local.type and not _CONSTANT.fullmatch(text):
                    continue  # a value of run time, kept for short
                names[local.name] = None
                values[text] = None
    return ", ".join(names) or None, tuple(values)


def _innermost(body: Body, number: int) -> Block | None:
    while number >= 0 and body.facts.blocks[number].kind not in _BRANCHES:
        number = body.facts.blocks[number].parent
    return body.facts.blocks[number] if number >= 0 else None


def _applied(body: Body, entry: Expansion) -> tuple[str | None, tuple[str, ...]]:
    """Where branches apply a macro that was passed in: its parameters, and the argument lists of each branch."""
    passed = set(entry.arguments or ())
    binds = None
    values: dict[str, None] = {}
    for inner in body.expanded.expansions:
        if (
            inner.name in passed
            and inner.arguments
            and entry.id in [e.id for e in body.expanded.chain(inner.applied_in)]
        ):
            values[", ".join(" ".join(a.split()) for a in inner.arguments)] = None
            binds = ", ".join(inner.definition.event.parameters or ()) or binds
    return binds, tuple(values)
