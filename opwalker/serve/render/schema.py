"""A schema's text with the arguments that are written made to stand out. The text itself is never changed."""

from __future__ import annotations

from opwalker.model.walk import Argument
from opwalker.notation.schema_types import is_by_value
from opwalker.serve.render.page import JOINT, Spans
from opwalker.serve.render.page import Span as Piece
from opwalker.serve.render.words import listed


def schema_spans(schema: str, arguments: tuple[Argument, ...]) -> Spans:
    """The text as it is, in spans: the name first, then an argument each, the written ones styled ``mutated``.

    Where the text does not divide into as many arguments as the op has (a schema that could not be parsed), it comes
    back whole and unstyled.
    """
    opened = schema.find("(")
    parts = _parts(schema, opened)
    if parts is None or sum(part.strip() not in ("", "*") for part in parts) != len(arguments):
        return ((schema, ""),)
    spans: list[Piece] = [(schema[: opened + 1], "name")]
    remaining = iter(arguments)
    for number, part in enumerate(parts):
        if number:
            spans.append((",", ""))
        bare = part.lstrip()
        spans.append((part[: len(part) - len(bare)], JOINT if number else ""))
        argument = next(remaining) if bare.strip() not in ("", "*") else None
        spans.append((bare, "mutated" if argument and argument.mutated else ""))
    closed, arrow, returns = schema[opened + 1 + len(",".join(parts)) :].partition(" ->")
    return (*spans, (closed, ""), (arrow[:1], JOINT), (arrow[1:] + returns, ""))


def _parts(schema: str, opened: int) -> list[str] | None:
    """The text between the brackets that ``opened`` starts, cut at its outer commas; None where they do not close."""
    if opened < 0:
        return None
    depth, start, quote = 0, opened + 1, ""
    parts: list[str] = []
    for at in range(opened, len(schema)):
        char = schema[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
            if not depth:
                return [*parts, schema[start:at]]
        elif char == "," and depth == 1:
            parts.append(schema[start:at])
            start = at + 1
    return None


def written(arguments: tuple[Argument, ...]) -> Spans:
    """``writes key_cache!, value_cache!``; empty where the schema says that nothing is written. What is passed by value
    is not, whatever the schema marks."""
    names = [
        (argument.name + "!", "mutated")
        for argument in arguments
        if argument.mutated and not is_by_value(argument.type)
    ]
    return (("writes  ", "label"), *listed(names, ",")) if names else ()
