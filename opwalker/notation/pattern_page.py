"""A page of the pattern catalogue, read and printed.

In: Markdown with a front block (``id``, ``title``, ``tags``, ``next``) and the six sections of ``SECTIONS``. Out: a
``Pattern``; ``PageError`` says in one line what a page lacks. The page that is shown, the query that runs and the
examples that prove it are one text.
"""

from __future__ import annotations

import re

from opwalker.model.patterns import Pattern, PatternExample
from opwalker.notation.pattern_query import QueryError, parse_query, print_query
from opwalker.notation.regex import Regex

SECTIONS = (
    "What it is", "What problem it solves", "What to look at next", "Query", "Matches", "Does not match",
)  # fmt: skip
#: What marks a line of an example, by section.
MARKS = {"Matches": "hit", "Does not match": "ok"}
SUFFIXES = {"cuda": ".cu", "cpp": ".cpp", "python": ".py"}
_FRONT = Regex(r"---\n(.*?)\n---\n", re.DOTALL)
_FENCE = Regex(r"^```(\w*)(?:[ \t]+(\S+))?\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_ID = Regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class PageError(ValueError):
    """What is wrong with a page, at a line from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parse_page(text: str) -> Pattern:
    """The pattern of a page. Raises PageError."""
    front = _FRONT.match(text)
    if front is None:
        raise PageError(1, "the page does not begin with a front block between two lines '---'")
    fields = _fields(front[1])
    sections = _sections(text, front.end())
    at, query = sections["Query"]
    fence = _FENCE.search(query)
    if fence is None:
        raise PageError(at, "'Query' has no fence")
    try:
        clauses = parse_query(fence[3])
    except QueryError as error:
        inside = at + query[: fence.start(3)].count("\n") + error.number - 1
        raise PageError(inside, str(error)) from error
    for name in SECTIONS[:3]:
        if not sections[name][1].strip():
            raise PageError(sections[name][0], f"{name!r} says nothing")
    return Pattern(
        id=fields["id"],
        title=fields["title"],
        tags=_listed(fields["tags"]),
        next=_listed(fields.get("next", "")),
        what=sections["What it is"][1].strip(),
        problem=sections["What problem it solves"][1].strip(),
        look=sections["What to look at next"][1].strip(),
        query=clauses,
        matches=_examples(sections["Matches"], "Matches"),
        misses=_examples(sections["Does not match"], "Does not match"),
    )


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=2):
        name, colon, value = line.partition(":")
        if not colon or name not in ("id", "title", "tags", "next"):
            raise PageError(number, f"the front block holds id, title, tags and next, not {line!r}")
        fields[name] = value.strip()
    for name in ("id", "title", "tags"):
        if not fields.get(name):
            raise PageError(1, f"the front block has no {name}")
    if not _ID.fullmatch(fields["id"]):
        raise PageError(1, f"the id {fields['id']!r} is not of small letters and digits joined by hyphens")
    return fields


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _sections(text: str, start: int) -> dict[str, tuple[int, str]]:
    """Each section's first line and text."""
    fenced = [found.span() for found in _FENCE.finditer(text)]
    heads = [
        found
        for found in re.finditer(r"^## (.+?)[ \t]*\n", text[start:] + "\n", re.MULTILINE)
        if not any(a <= found.start() + start < b for a, b in fenced)
    ]
    names = [found[1] for found in heads]
    for name in SECTIONS:
        if name not in names:
            raise PageError(1, f"the section {name!r} is missing")
    if tuple(names) != SECTIONS:
        raise PageError(1, f"the sections are {', '.join(SECTIONS)}, in this order; here: {', '.join(names)}")
    ends = [found.start() for found in heads[1:]] + [len(text) - start]
    return {
        found[1]: (text.count("\n", 0, start + found.end()) + 1, text[start + found.end() : start + end])
        for found, end in zip(heads, ends, strict=True)
    }


def _examples(section: tuple[int, str], name: str) -> tuple[PatternExample, ...]:
    at, text = section
    # In a macro of several lines the mark stands before the backslash.
    mark = re.compile(rf"(?:(?://|#)\s*{MARKS[name]}|/\*\s*{MARKS[name]}\s*\*/\s*\\?)\s*$")
    out = []
    for number, (language, file, body) in enumerate(_FENCE.findall(text)):
        if language not in SUFFIXES:
            raise PageError(at, f"an example of {name!r} is {language or 'in no language'}, not cuda, cpp or python")
        lines = body.splitlines()
        marked = tuple(line for line, content in enumerate(lines, start=1) if mark.search(content))
        out.append(PatternExample(file or f"{'abcdefgh'[number % 8]}{SUFFIXES[language]}", language, body, marked))
    if not any(one.marked for one in out):
        raise PageError(at, f"{name!r} has no example with a line marked {MARKS[name]!r}")
    return tuple(out)


def print_page(pattern: Pattern) -> str:
    """The text of a page: ``parse_page`` of it gives the pattern back."""
    front = [f"id: {pattern.id}", f"title: {pattern.title}", f"tags: {', '.join(pattern.tags)}"]
    if pattern.next:
        front.append(f"next: {', '.join(pattern.next)}")
    bodies = (
        pattern.what, pattern.problem, pattern.look, f"```query\n{print_query(pattern.query)}\n```",
        _fences(pattern.matches), _fences(pattern.misses),
    )  # fmt: skip
    sections = (f"## {name}\n\n{body}\n" for name, body in zip(SECTIONS, bodies, strict=True))
    return "\n".join(("---\n" + "\n".join(front) + "\n---\n", *sections))


def _fences(examples: tuple[PatternExample, ...]) -> str:
    out = []
    for number, one in enumerate(examples):
        usual = f"{'abcdefgh'[number % 8]}{SUFFIXES[one.language]}"
        out.append(f"```{one.language}{'' if one.name == usual else ' ' + one.name}\n{one.text}```")
    return "\n\n".join(out)
