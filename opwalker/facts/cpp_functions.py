"""A function's head as an entry of the facts: parameters with places, flags, lines.

In: a parsed head and the file it stands in. Out: ``Function``.
"""

from __future__ import annotations

from opwalker.facts.cpp_heads import FunctionHead, parse_parameters
from opwalker.facts.cpp_text import Blanked
from opwalker.model.cpp import Function, Parameter


def function_entry(
    blanked: Blanked,
    text: str,
    start: int,
    parsed: FunctionHead,
    scope: tuple[str, ...],
    member: bool,
    body: tuple[int, int],
    condition: int,
    c_linkage: bool = False,
) -> Function:
    """The entry for a head that begins at ``start`` of ``text``, the selected branches of a file's blanked text."""
    offset = start + parsed.name_offset
    line = blanked.line
    head = text[start : start + parsed.parameters_end]
    found = parse_parameters(head, parsed.parameters_start, parsed.parameters_end, _with_strings(blanked, head, start))
    parameters = tuple(Parameter(kind, name, default, start + a, start + b) for kind, name, default, a, b in found)
    flags = [*parsed.flags, *(("member",) if member else ())]
    if (c_linkage and not member) or 'extern "C"' in blanked.code[start:offset]:
        flags.append("extern_c")
    return Function(
        parsed.name,
        (*scope, *parsed.qualifiers),
        parsed.return_type,
        parameters,
        tuple(dict.fromkeys(flags)),
        parsed.template,
        parsed.specialisation,
        parsed.attributes,
        offset,
        line(offset),
        line(start + parsed.start_offset),
        *body,
        line(start + parsed.parameters_end),
        condition,
        1 if member else 0,
        parsed.requires,
        parsed.owner,
    )


def with_body(entry: Function, start: int, end: int, end_line: int) -> Function:
    """A function with the body that was just measured."""
    return Function(  # written out: `replace` would cost a twentieth of a scan
        entry.name,
        entry.scope,
        entry.return_type,
        entry.parameters,
        entry.flags,
        entry.template,
        entry.specialisation,
        entry.attributes,
        entry.offset,
        entry.line,
        entry.start_line,
        start,
        end,
        end_line,
        entry.condition,
        entry.class_depth,
        entry.requires,
        entry.owner,
    )


def placed_parameters(text: str, span: tuple[int, int], start: int, end: int) -> tuple[Parameter, ...]:
    """The parameters in a ``span`` of a text that macros made: each stands at ``[start, end)`` of the file, which has
    no place of its own for it."""
    found = parse_parameters(text, *span)
    return tuple(Parameter(kind, name, default, start, end) for kind, name, default, _, _ in found)


def _with_strings(blanked: Blanked, piece: str, start: int) -> str:
    """The head's text with strings in default arguments kept, but branches that are not selected still blank."""
    if '"' not in piece:
        return piece
    code = blanked.code[start : start + len(piece)]
    out = []
    inside = False
    for shown, full in zip(piece, code, strict=True):
        out.append(full if inside or shown == '"' else shown)
        if shown == '"':
            inside = not inside
    return "".join(out)
