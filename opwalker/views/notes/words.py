"""Small words for notes: text with code in it, places, counts, lists.

In: plain text in which a backquoted part is code. Out: runs. A value of the source goes in by ``code`` alone, so that a
backquote of its own cannot break out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from opwalker.model.notes import Cell, Run, Statement, Text
from opwalker.model.walk import Span

_PIECE = re.compile(r"`([^`]*)`|\*\*([^*]+)\*\*")


def say(text: str) -> Text:
    """Runs of ``text``: between backquotes code, between double asterisks strong."""
    runs: list[Run] = []
    at = 0
    for found in _PIECE.finditer(text):
        if found.start() > at:
            runs.append(Run(text[at : found.start()]))
        runs.append(Run(found[1], "code") if found[1] is not None else Run(found[2], "strong"))
        at = found.end()
    if at < len(text):
        runs.append(Run(text[at:]))
    return tuple(run for run in runs if run.text)


def code(text: str) -> Text:
    """A piece of the source."""
    return (Run(" ".join(text.split()), "code"),)


def listed(items: Sequence[Text], last: str = "and") -> Text:
    """``a, b and c``."""
    out: list[Run] = []
    for number, item in enumerate(items):
        if number:
            out.append(Run(f" {last} " if number == len(items) - 1 else ", "))
        out.extend(item)
    return tuple(out)


def codes(texts: Iterable[str], last: str = "and") -> Text:
    """``a, b and c``, each as code."""
    return listed([code(text) for text in texts], last)


def statement(*parts: str | Text, at: Iterable[Span | None] = (), below: Iterable[Statement] = ()) -> Statement:
    """A statement of parts: plain text (see ``say``) or runs."""
    runs: list[Run] = []
    for part in parts:
        runs.extend(say(part) if isinstance(part, str) else part)
    return Statement(tuple(runs), tuple(dict.fromkeys(span for span in at if span)), tuple(below))


def cell(text: str | Text, at: Span | None = None) -> Cell:
    """A cell of plain text (see ``say``) or runs."""
    return Cell(say(text) if isinstance(text, str) else text, at)


def count(number: int, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def line(file: str, number: int) -> Span:
    """The place of one line."""
    return Span(file, number, number)
