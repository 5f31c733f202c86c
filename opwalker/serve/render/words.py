"""The small pieces that every text form is made of: places, conditions, builds, certainties, counts, gaps."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from opwalker.model.walk import Gap, HostRef, SourceInfo, Span
from opwalker.serve.render.page import JOINT, Row, Section, Spans
from opwalker.serve.render.page import Span as Piece


class Reading(Struct, frozen=True):
    """What the reader asked for, as far as it changes how a result is shown.

    ``build`` is the kind of build whose implementations come first. ``asked`` is the question in words, for an answer
    that is empty (``"of kind pybind11"``). ``instances`` lists each template instance below its count.
    """

    build: str = "cuda"
    asked: str = ""
    instances: bool = False


def place(file: str, line: int, end_line: int | None = None) -> Piece:
    """``file:line`` or ``file:line-end``; the file alone where no line is known (0)."""
    if not line:
        return (file, "place")
    if end_line is not None and end_line > line:
        return (f"{file}:{line}-{end_line}", "place")
    return (f"{file}:{line}", "place")


def at(span: Span | HostRef) -> Piece:
    """The place of a span."""
    return place(span.file, span.line, span.end_line)


def line_mark(line: int) -> Spans:
    """A line of a file that the step's title has named."""
    return ((f":{line}", "place"),) if line else ()


def named(source: SourceInfo) -> str:
    """``vllm 0.30.0``, or the folder's name with its revision."""
    known = source.version or (source.revision or "")[:12]
    return f"{source.name} {known}".strip()


def count(number: int, noun: str) -> str:
    """``1 op``, ``2 ops``; a noun in ``-y`` or ``-x`` is not needed anywhere."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def standing(builds: tuple[str, ...] | None, condition: str | None, reading: Reading) -> list[Piece]:
    """Which builds compile something, and under which preprocessor condition it stands."""
    words: list[Piece] = []
    if builds is not None:
        chosen = reading.build in builds
        words.append(("build " + ", ".join(builds) if builds else "in no build", "build" if chosen else "other-build"))
    return [*words, *under(condition)]


def both(conditions: Iterable[str]) -> str:
    """Conditions that all hold; one that is a choice itself gets brackets."""
    texts = list(conditions)
    if len(texts) > 1:
        texts = [f"({text})" if " or " in text else text for text in texts]
    return " and ".join(texts)


def under(condition: str | None) -> Spans:
    """The preprocessor condition that something stands under; empty where there is none."""
    return ((f"#if {condition}", "condition"),) if condition else ()


def certainty(value: str) -> Piece:
    """``proved``, ``matched`` or ``possible``, in its own colour."""
    return (value, value if value in ("proved", "matched", "possible") else "")


def listed(words: Iterable[Piece], between: str = " ·") -> Spans:
    """Pieces with a dot, or what else is asked for, between them; a line rather breaks between two pieces."""
    spans: list[Piece] = []
    for word in words:
        if spans:
            spans += [(between, "quiet"), (" ", JOINT)]
        spans.append(word)
    return tuple(spans)


def titled(*parts: Spans) -> Spans:
    """The parts of a title side by side; empty ones are left out."""
    spans: list[Piece] = []
    for part in parts:
        if spans and part:
            spans.append(("  ", JOINT))
        spans.extend(part)
    return tuple(spans)


def gaps_section(gaps: tuple[Gap, ...]) -> tuple[Section, ...]:
    """What could not be followed, one row a gap; nothing where there is none."""
    if not gaps:
        return ()
    rows = tuple(
        Row((((gap.kind, "gap"),), (at(gap.span),) if gap.span else (("no place", "quiet"),), ((gap.reason, ""),)))
        for gap in gaps
    )
    return (Section(((f"Gaps ({len(gaps)})", "heading"), ("  what could not be followed", "quiet")), rows=rows),)
