"""Comes in: any result. Goes out: its JSON document as UTF-8 bytes, fields in the order in which they are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from opwalker.indexing import IndexReport
    from opwalker.model.walk import Walk


def to_json(result: object, *, indent: int | None = None) -> bytes:
    """One document. ``indent`` spaces a level make it readable for a person; None keeps it on one line."""
    special = _DOCUMENTS.get(type(result).__name__)
    document = special(result) if special else result
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
    for name in walk.__struct_fields__:
        if name == "op" and walk.op is None:
            document["entry"] = walk.entry
        elif name != "entry":
            document[name] = getattr(walk, name)
    return document


def _report_document(report: IndexReport) -> dict[str, object]:
    """The JSON document: ``files`` by language, ``seconds`` by stage, a problem with its file and place."""
    problems = [
        {"file": file, "line": one.line, "column": one.column, "kind": one.kind, "message": one.message}
        for file, one in report.problems
    ]
    return {
        "format": 1,
        "files": dict(report.files),
        "read": report.read,
        "changed": report.changed,
        "reused": report.reused,
        "removed": report.removed,
        "scanned": report.scanned,
        "seconds": {stage: round(seconds, 4) for stage, seconds in report.seconds},
        "problems": problems,
    }


#: Results whose keys differ from their fields, by the name of their class: importing the classes would cost time.
_DOCUMENTS = {"Walk": _walk_document, "IndexReport": _report_document}


def _without_lone_surrogates(value: object) -> object:
    """File names need not be UTF-8: the bytes that are not come out as replacement characters, never as an error."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_without_lone_surrogates(key): _without_lone_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_lone_surrogates(item) for item in value]
    return value
