"""Dispatch macros in use: on what each one branches, which name a branch binds, and to which values.

In: a body with its expansions. Out: ``Dispatch`` facts in source order. A macro counts as dispatching when a branch of
what it expands to (``switch``/``case``, ``if``/``else``) tests something that its use passes in. No name decides.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.expanded import Expansion
from opwalker.expand.macros import KNOWN
from opwalker.expand.owners import lineage, owner, switch_of, use_place
from opwalker.expand.scalar_types import cpp_type
from opwalker.model.body import Block, LocalFact
from opwalker.model.walk import Dispatch, Span
from opwalker.notation.regex import Regex, compiled
from opwalker.views.branches import Branches
from opwalker.views.dispatch_rows import Leaf, axes_of, failures, rows_of
from opwalker.views.returns import Returns, past_words, words_of

#: What may be a constant without saying ``constexpr``: a number, a truth value, an enumerator.
_CONSTANT = Regex(r"-?\d[\w.]*|true|false|(?:::)?\w+(?:::\w+)+|k?[A-Z]\w*")
_BRANCHES = ("case", "if", "else", "if constexpr", "else constexpr")


def dispatches(body: Body) -> tuple[Dispatch, ...]:
    """The dispatch macros used in a body, in the order of their uses."""
    groups: dict[int, list[Block]] = {}
    for block in body.facts.blocks:
        if block.kind in _BRANCHES or block.kind == "switch":
            # A case belongs to its switch, whichever helper macro wrote it.
            made_by = owner(body, switch_of(body, block) if block.kind == "case" else block)
            if made_by is not None:
                groups.setdefault(made_by, []).append(block)
    out: dict[tuple, Dispatch] = {}
    for number, blocks in groups.items():
        entry = body.expanded.expansions[number - 1]
        found = _dispatch(body, entry, blocks, tuple(groups))
        if found is None:
            continue
        key = (found.macro, found.file, found.line)
        held = out.get(key)
        if held is not None:
            # The same use inside several branches of an outer dispatch: one use for a reader.
            values = tuple(dict.fromkeys((*held.values, *found.values)))
            rows = tuple(dict.fromkeys((*held.rows, *found.rows)))
            axes = held.axes if held.axes == found.axes else ()
            fails = tuple(dict.fromkeys((*held.fails, *found.fails)))
            under = tuple(text for text in held.under if text in found.under)
            binds = held.binds or found.binds
            found = replace(held, binds=binds, values=values, axes=axes, rows=rows, fails=fails, under=under)
        out[key] = found
    return tuple(sorted(out.values(), key=lambda d: (d.file != body.path, d.file, d.line)))


def _dispatch(body: Body, entry: Expansion, blocks: list[Block], others: tuple[int, ...]) -> Dispatch | None:
    tested = _tested(body, entry, blocks)
    if not tested:
        return None
    branches = [b for b in blocks if b.kind in _BRANCHES]
    names, leaves = _bound(body, entry, branches)
    values = tuple(dict.fromkeys(value for leaf in leaves for value in leaf.values if value))
    leaves = _whole(body, leaves)
    if not leaves:
        names, leaves = _applied(body, entry)
        values = tuple(dict.fromkeys(", ".join(leaf.values) for leaf in leaves))
    if not leaves:
        return None
    definition = entry.definition
    defined_at = None
    if definition.path != KNOWN:
        defined_at = Span(definition.path, definition.event.line, definition.event.end_line)
    place, line = use_place(body, entry)
    return Dispatch(
        entry.name,
        place,
        line,
        tested,
        ", ".join(names) or None,
        values,
        defined_at,
        axes_of(body, entry, names, leaves),
        rows_of(body, entry, leaves),
        failures(body, entry, others),
        _held(body, tested, blocks),
        _under(body, min(block.start for block in blocks), entry),
    )


def _under(body: Body, offset: int, entry: Expansion) -> tuple[str, ...]:
    """What the function itself, or a macro whose text holds the use of this one, tests before it, and what holds there
    as nothing has returned; what macros test that get the use as an argument is told of them."""
    branches, blocks = Returns(body), body.facts.blocks
    holding = {one.id for one in body.expanded.chain(entry.id)} - {entry.id}
    around = [
        one
        for one in branches.around(branches.innermost(offset))
        if one.own or (one.block >= 0 and owner(body, blocks[one.block]) in holding)
    ]
    return (*past_words(branches.past(branches.innermost(offset), offset), around), *words_of(around))


def _held(body: Body, tested: str, blocks: list[Block]) -> str | None:
    """What the local holds that is tested, where it is one and has one value."""
    start = min(block.start for block in blocks)
    found = [local for local in body.locals.get(tested, ()) if local.end <= start]
    if len(found) != 1 or found[0].value is None or _is_changed(body, found[0]):
        return None
    return body.written(found[0].value)


def _is_changed(body: Body, local: LocalFact) -> bool:
    """Whether a body ever changes a local. How it touches memory takes long to read: words give a quick no, and its
    assignments are read with its calls."""
    name, text = re.escape(local.name), body.expanded.text
    assigned = local.name in body.assigns
    if not assigned and not compiled(rf"(?:\+\+|--)\s*{name}\b|\b{name}\s*(?:\+\+|--)").search(text):
        return False
    operators = r"\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=)"
    places = compiled(rf"(?:\+\+|--)\s*{name}\b|\b{name}\s*(?:{operators})").finditer(text)
    if all(local.start <= place.start() < local.end for place in places):
        return False
    return assigned or any(one.target == local.name for one in body.accesses.changes)


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
            if local.value is not None and entry.id in lineage(body, local.start):
                texts.append(body.text(local.value))
    flat = [" ".join(t.split()) for t in texts]
    found = []
    for argument in entry.arguments:
        plain = " ".join(argument.split())
        if not plain or plain.startswith(("[", '"')) or "{" in plain:
            continue
        if any(_contains(text, plain) for text in flat):
            found.append(plain)
    # Commas of the body part macro arguments as well: a number among them is no value of run time.
    values = [one for one in found if not re.fullmatch(r"[\d.]+\w*|true|false", one)]
    return ", ".join(dict.fromkeys(values or found)) or None


def _contains(text: str, piece: str) -> bool:
    squeezed, wanted = text.replace(" ", ""), piece.replace(" ", "")
    at = squeezed.find(wanted)
    if at < 0:
        return False
    before = squeezed[at - 1 : at]
    after = squeezed[at + len(wanted) : at + len(wanted) + 1]
    return not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_")


def _bound(body: Body, entry: Expansion, branches: list[Block]) -> tuple[list[str], list[Leaf]]:
    """What the branches bind by ``using`` or a constant of their own: the names, and the values of each branch."""
    names: dict[str, None] = {}
    bound: list[tuple[int, dict[str, str], int]] = []
    for block in branches:
        held: dict[str, str] = {}
        for local in body.facts.locals:
            if not (block.start <= local.start < block.end) or local.value is None:
                continue
            # The name may be an argument of the use; then only the value stands in the macro.
            here = entry.id in lineage(body, local.start) or entry.id in lineage(body, local.value[0])
            if not here or _innermost(body, local.block) is not block:
                continue
            if local.type == "using":
                value = body.text(local.value)
                held[local.name] = cpp_type(value) or value
            elif re.search(r"\bconstexpr\b|\bconst\b", local.type):
                text = body.text(local.value).strip("{}() ")
                if "constexpr" not in local.type and not _CONSTANT.fullmatch(text):
                    continue  # a value of run time, kept for short
                held[local.name] = text
        if held:
            names.update(dict.fromkeys(held))
            bound.append((body.facts.blocks.index(block), held, block.start))
    # Each with a place for every name, empty for what another branch binds.
    leaves = [Leaf(number, tuple(held.get(name, "") for name in names), start) for number, held, start in bound]
    return list(names), leaves


def _whole(body: Body, leaves: list[Leaf]) -> list[Leaf]:
    """The innermost branches, each with what the branches around it bind as well."""
    branches = Branches(body)
    by_block = {leaf.block: leaf for leaf in leaves}
    outer = {number for leaf in leaves for number in branches.chain(leaf.block)[:-1]}
    out = []
    for leaf in leaves:
        if leaf.block in outer:
            continue
        values = list(leaf.values)
        for number in reversed(branches.chain(leaf.block)[:-1]):
            around = by_block.get(number)
            if around is not None:
                values = [value or held for value, held in zip(values, around.values, strict=True)]
        out.append(Leaf(leaf.block, tuple(values), leaf.offset))
    return out


def _innermost(body: Body, number: int) -> Block | None:
    while number >= 0 and body.facts.blocks[number].kind not in _BRANCHES:
        number = body.facts.blocks[number].parent
    return body.facts.blocks[number] if number >= 0 else None


def _applied(body: Body, entry: Expansion) -> tuple[list[str], list[Leaf]]:
    """Where branches apply a macro that was passed in: its parameters, and the arguments in each branch."""
    passed = set(entry.arguments or ())
    names: list[str] = []
    leaves: list[Leaf] = []
    branches = Branches(body)
    for inner in body.expanded.expansions:
        if (
            inner.name in passed
            and inner.arguments
            and entry.id in [e.id for e in body.expanded.chain(inner.applied_in)]
        ):
            offset = body.expanded.offset_of(inner.id)
            values = tuple(" ".join(argument.split()) for argument in inner.arguments)
            leaves.append(Leaf(branches.innermost(offset), values, offset))
            names = list(inner.definition.event.parameters or ()) or names
    return names, leaves
