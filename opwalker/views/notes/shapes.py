"""Shapes and layout in a note: what is documented of each tensor, what the code makes of it, and whether both agree.

In: the host function of an implementation. Out: a section: a statement a parameter, sizes as a table, a figure of each
documented layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.notes import Block, Figure, NoteSection, Statement, Statements, Table
from opwalker.model.walk import DerivedFact, Host, Implementation, ParameterFact, ShapeSource, SizeFact
from opwalker.notation.regex import Regex
from opwalker.views.notes.layout import is_drawable, strides
from opwalker.views.notes.words import (
    Cell,
    both,
    cell,
    code,
    codes,
    condition,
    line,
    listed,
    marked,
    say,
    sentence,
    statement,
)

_SOURCES = {
    "comment": "The comment beside it",
    "above": "The comment above the function",
    "declaration": "Its declaration",
    "python": "The Python wrapper",
    "way": "A function on the way that gets it",
    "kernel": "The kernel that gets it",
}
#: How ``layout`` begins where strides of leading dimensions are passed on.
_STRIDED = "may be strided: the kernel gets the stride"
#: How the part of ``layout`` begins that says which strides are read, passed on or not.
_READ = Regex(r"(?:\A|; )(?:may be strided: the kernel gets )?the stride of ")
#: What is said of a tensor of which nothing is asked; told of all such tensors at once.
_FREE = "neither contiguity nor a stride is asked for"


#: Types of lists of numbers: what is documented of one are its members.
_LIST = Regex(r"ArrayRef\b|(?:vector|array|List|span)\s*<\s*(?:const\s+)?(?:u?int\w*|long|size_t|double|float|bool)")
#: Conditions under which checks demand something of one tensor's shape that are told.
_CASES = 4


def shapes_section(chosen: Implementation) -> NoteSection | None:
    """What is known of shapes, strides and contiguity; None where nothing is."""
    host = chosen.host
    if host is None:
        return None
    said = [one for parameter in host.parameters for one in _parameter(host, parameter)]
    free = [one.name for one in host.parameters if one.layout == _FREE]
    if free:
        said.append(statement("Of ", codes(free), ", no check asks for contiguity or a stride."))
    layouts = " ".join(parameter.layout or "" for parameter in host.parameters)
    for made in host.contiguous_calls:
        if "made contiguous" not in layouts:
            at = [line(host.file, made.line)]
            where = (" where ", condition(both(made.under), [made.tensor])) if made.under else ()
            said.append(
                statement(code(made.tensor), " is made contiguous", *where, ", by a copy where it is not.", at=at)
            )
    blocks: list[Block] = [Statements(tuple(said))] if said else []
    blocks += _sizes(host)
    for helper in chosen.helpers:
        table = _sizes(helper)
        if table:
            at = [line(helper.file, helper.line)]
            blocks += [Statements((statement("On the way, ", code(helper.name), " reads:", at=at),)), *table]
    drawn = [
        one for one in host.parameters if one.shape and is_drawable(one.shape) and not _LIST.search(one.type)
    ]  # fmt: skip
    apart = [one.name for one in drawn if _READ.search(one.layout or "")]
    if apart:
        # Not only larger: of a transposed tensor the first stride is the small one.
        said_of = ("The figures show ", codes(apart), " without gaps; the strides that the code reads may be others.")
        blocks.append(Statements((statement(*said_of),)))
    blocks += [Figure(one.name, one.shape, strides(one.shape)) for one in drawn if one.shape]
    return NoteSection("shapes", "Shapes and layout", tuple(blocks)) if blocks else None


def _parameter(host: Host, fact: ParameterFact) -> Iterator[Statement]:
    """One statement a parameter, what the code says of it below."""
    below = [*_derived(host, fact), *_others(fact), *_groups(host, fact), *_layout(host, fact)]
    derived = f"[{', '.join(fact.derived_shape)}]" if fact.derived_shape else ""
    if fact.shape_text:
        word = " is a list, documented as " if _LIST.search(fact.type) else " is documented as "
        yield statement(code(fact.name), word, code(fact.shape_text), ".", at=[fact.shape_span], below=below)
    elif derived:
        head = (code(fact.name), " has no documented shape; the code takes it for ", code(derived), ".")
        yield statement(*head, at=[line(one.file, one.line) for one in fact.derived_from[:3]], below=below)
    elif below:
        yield statement(code(fact.name), " has no documented shape.", below=below)


def _derived(host: Host, fact: ParameterFact) -> Iterator[Statement]:
    at = list(dict.fromkeys(line(one.file, one.line) for one in fact.derived_from if not one.under))[:4]
    if fact.shape_text and fact.derived_shape:
        shape = code(f"[{', '.join(fact.derived_shape)}]")
        agrees = {True: ", as documented", False: ": **not as documented**", None: ""}[fact.agrees]
        if fact.agrees and "..." in fact.derived_shape[:-1] and "..." not in (fact.shape or ()):
            # The code counts from both ends; it does not say that anything lies between them.
            named = [one for one in fact.derived_shape if one not in ("...", "?")]
            yield statement("The code reads ", codes(named), " of it, as documented.", at=at)
        else:
            yield statement("In the code it is ", shape, f"{agrees}.", at=at)
    if fact.ranks:
        number = " or ".join(str(rank) for rank in fact.ranks)
        noun = "dimension" if fact.ranks == (1,) else "dimensions"
        where = [line(one.file, one.line) for one in fact.derived_from if one.how == "rank"]
        yield statement(f"Checks allow {number} {noun}.", at=where[:2])
    yield from _conditional(host, fact)
    for one in fact.contradictions:
        yield statement(
            "**Contradiction**: documented ", code(one.documented), ", but ", marked(one.reason, [fact.name]), ".",
            at=[one.documented_at, line(one.file, one.line)],
        )  # fmt: skip


def _conditional(host: Host, fact: ParameterFact) -> Iterator[Statement]:
    """What checks demand of the shape under conditions, those of one condition together."""
    groups: dict[tuple[str, ...], list[DerivedFact]] = {}
    for one in fact.derived_from:
        if one.under and one.how in ("checked", "rank"):
            groups.setdefault(one.under, []).append(one)
    for under, found in list(groups.items())[:_CASES]:
        said = []
        for one in found:
            if one.how == "rank":
                said.append(say(f"{one.text} {'dimension' if one.text == '1' else 'dimensions'}"))
            else:
                place = "the last dimension" if one.dimension == -1 else f"dimension {one.dimension}"
                said.append((*say(f"{place} = "), *code(one.text)))
        where = condition(both(under), [one.name for one in host.parameters])
        at = [line(one.file, one.line) for one in found[:4]]
        yield statement("Where ", where, ", checks demand: ", listed(list(dict.fromkeys(said))), ".", at=at)


def _others(fact: ParameterFact) -> Iterator[Statement]:
    """Further documented shapes that differ from the first one."""
    first = fact.sources[0] if fact.sources and fact.shape else None
    seen = {first.alternatives} if first else set()
    for source in fact.sources:
        if source.alternatives not in seen:
            seen.add(source.alternatives)
            yield statement(_who(source), " says ", code(source.text), ".", at=[source.span])


def _who(source: ShapeSource) -> str:
    return _SOURCES.get(source.kind, "Another place")


def _groups(host: Host, fact: ParameterFact) -> Iterator[Statement]:
    """``[.., d/x, n, x]``: what cutting a dimension into groups does to neighbours in memory."""
    dims = fact.shape or ()
    for number, dim in enumerate(dims):
        found = re.fullmatch(r"(\w+)\s*(?:/|//)\s*(\w+)", dim)
        if not found or found[2] not in dims[number + 1 :]:
            continue
        last = dims.index(found[2], number + 1)
        if last != len(dims) - 1:
            continue
        between = dims[number + 1 : last]
        then = (", then those of the next ", codes(between), ",") if between else ()
        yield statement(
            code(found[1]), " is cut into groups of ", code(found[2]), ": the ", code(found[2]),
            " elements of a group stand side by side, so that one wide access can move them",
            *then, " before the next group of ", code(found[1]), " begins.",
        )  # fmt: skip
        yield from _made(host, found[2])


def _made(host: Host, name: str) -> Iterator[Statement]:
    """How large a group is, as Python makes the tensor; that it is not shown where nothing does."""
    known = [one for one in host.dimensions if one.name == name]
    for one in known:
        bytes_of = re.fullmatch(r"(\d+) // (?:[\w.()\[\], =]+\.)?(?:element_size\(\)|itemsize)", one.value)
        so = f": so many elements that a group takes {bytes_of[1]} bytes" if bytes_of else ""
        yield statement(
            "Python makes it with ", code(f"{name} = {one.value}"), so, ", in ", code(one.made), ".",
            at=[line(one.file, one.line), line(one.file, one.made_line)],
        )  # fmt: skip
    if not known:
        yield statement("How large ", code(name), " is, no caller in Python shows: the tensor that is passed decides.")


def _layout(host: Host, fact: ParameterFact) -> Iterator[Statement]:
    """What is asked of the strides, a statement each."""
    for number, part in enumerate(fact.layout.split("; ") if fact.layout and fact.layout != _FREE else ()):
        apart = ", so rows may lie apart: a slice of a wider tensor, as of a fused QKV, needs no copy"
        if "..." in (fact.shape or ()):
            apart = ", so rows may lie apart, as in a slice of a wider matrix; dimensions before them must lie as one"
        more = apart if part.startswith(_STRIDED) and _all_told(part, fact) else ""
        at = [line(host.file, fact.layout_line)] if fact.layout_line and not number else []
        at += [fact.layout_at] if fact.layout_at and not number else []
        at += [line(host.file, one.line) for one in host.strides if one.name and one.name in part]
        lead = "it " if part.startswith(("must", "may")) else "it is " if part.startswith("made") else ""
        yield statement(sentence(lead, marked(part, [fact.name]), more), at=at[:4])


def _all_told(part: str, fact: ParameterFact) -> bool:
    """Whether the strides that ``part`` names leave out none of a dimension further out: where one is left out, the
    kernel makes it of the others, and not every slice can be passed."""
    told = part.removeprefix(_STRIDED).partition("(")[0]
    dimensions = {int(number) for number in re.findall(r"-?\d+", told)}
    if not dimensions:
        return "all dimensions" in told
    shape = fact.shape or ()
    if shape and "..." not in shape:
        dimensions = {one + len(shape) if one < 0 else one for one in dimensions}
    return dimensions == set(range(min(0, *dimensions), max(-1, *dimensions) + 1)) - {-1}


def _sizes(host: Host) -> list[Block]:
    """Sizes and strides that a function reads, each once, with the type that keeps it."""
    rows = tuple(_size(host, one) for one in dict.fromkeys((*host.sizes, *host.strides)))
    return [Table(("Size or stride", "read from", "kept in"), rows)] if rows else []


def _size(host: Host, fact: SizeFact) -> tuple[Cell, ...]:
    at = line(host.file, fact.line)
    kept = (*code(fact.type), *statement(", 64 bits narrowed").text) if fact.narrowed and fact.type else ()
    if not kept and fact.type and fact.type != "auto":
        kept = code(fact.type)
    return (Cell(code(fact.name), at) if fact.name else cell("no name", at), Cell(code(fact.value)), Cell(kept))
