"""Comes in: any result. Goes out: its JSON document as UTF-8 bytes, fields in the order in which they are declared."""

from __future__ import annotations

import dataclasses

import msgspec

from opwalker.model.walk import Walk


def to_json(result: object, *, indent: int | None = None) -> bytes:
    """One document. ``indent`` spaces a level make it readable for a person; None keeps it on one line."""
    document = _walk_document(result) if isinstance(result, Walk) else result
    try:
        text = msgspec.json.encode(document)
    except UnicodeEncodeError:
        text = msgspec.json.encode(_without_lone_surrogates(msgspec.to_builtins(document)))
    if indent is not None:
        text = msgspec.json.format(text, indent=indent)
    return text + b"\n"


def _walk_document(walk: Walk) -> dict[str, object]:
    """A walk has either ``op`` or, where what is walked is no op, ``entry`` in its place."""
    document: dict[str, object] = {}
    for field in dataclasses.fields(walk):
        if field.name == "op" and walk.op is None:
            document["entry"] = walk.entry
        elif field.name != "entry":
            document[field.name] = getattr(walk, field.name)
    return document


def _without_lone_surrogates(value: object) -> object:
    """File names need not be UTF-8: the bytes that are not come out as replacement characters, never as an error."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_without_lone_surrogates(key): _without_lone_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_lone_surrogates(item) for item in value]
    return value
