"""A rule's page as its test: the fences below *Flagged* and *Clean*, written to files and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from opwalker import pipeline
from opwalker.model.check import CheckOptions, Finding

_FENCE = re.compile(r"^```(\w+)(?:[ \t]+(\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^\*(\w[\w ]*?)\.?\*", re.MULTILINE)
_SUFFIX = {"cuda": ".cu", "cpp": ".cpp", "python": ".py"}
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
#: Examples that a rule's page has no room for: what each of its conditions is there for.
FOLDER = Path(__file__).parent / "examples"
_MARK = re.compile(r"(?://|#|/\*)\s*flagged(?:\s+(\d+))?\b(?::\s*([^*\n]+?)\s*(?:\*/|$))?")


@dataclass(frozen=True)
class Example:
    """The files of one section, and the lines that are marked: ``(file, line) -> how many findings``. ``said`` is what
    a mark says of them: a part of ``severity: message; line: related message; … .`` of one."""

    files: dict[str, str]
    marked: dict[tuple[str, int], int]
    said: dict[tuple[str, int], str] = field(default_factory=dict)

    def differences(self, found: Iterable[Finding]) -> list[str]:
        """Where findings are not those that are marked, in words; empty where they are."""
        held: dict[tuple[str, int], list[str]] = {}
        for one in found:
            told = (f"{one.severity}: {one.message}", *(f"{step.line}: {step.message}" for step in one.related))
            held.setdefault((one.file, one.line), []).append("; ".join(told) + ".")
        out = [
            f"{file}:{line}: {self.marked.get((file, line), 0)} marked, found {held.get((file, line), [])}"
            for file, line in sorted(held.keys() | self.marked.keys())
            if len(held.get((file, line), ())) != self.marked.get((file, line), 0)
        ]
        out += [
            f"{place[0]}:{place[1]}: `{text}` is in none of {held[place]}"
            for place, text in self.said.items()
            if place in held and not any(text in one for one in held[place])
        ]
        return out


def sections(page: str) -> dict[str, str]:
    """The page's text by section, ``Why`` to ``Use instead``."""
    found = list(_SECTION.finditer(page))
    ends = [one.start() for one in found[1:]] + [len(page)]
    return {one[1]: page[one.end() : end] for one, end in zip(found, ends, strict=True)}


def example(text: str) -> Example:
    """The fences of a section. One without a file name is ``a.cu`` (``.cpp``, ``.py``), a second one ``b.cu``."""
    files: dict[str, str] = {}
    marked: dict[tuple[str, int], int] = {}
    said: dict[tuple[str, int], str] = {}
    for number, (language, name, body) in enumerate(_FENCE.findall(text)):
        path = name or f"{'abcdefgh'[number]}{_SUFFIX[language]}"
        files[path] = body
        for line, content in enumerate(body.splitlines(), start=1):
            mark = _MARK.search(content)
            if mark:
                marked[path, line] = int(mark[1] or 1)
                if mark[2]:
                    said[path, line] = mark[2]
    return Example(files, marked, said)


def more_examples(rule: str) -> dict[str, Example]:
    """The examples of a rule beside those of its page, by what each shows: ``examples/<rule>.md``, one a heading."""
    path = FOLDER / f"{rule}.md"
    if not path.is_file():
        return {}
    _, *parts = _HEADING.split(path.read_text(encoding="utf-8"))
    return {title: example(text) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def findings(files: dict[str, str], rule: str, folder: Path, cache: Path) -> tuple[Finding, ...]:
    """What one rule finds in some files."""
    write_files(files, folder)
    options = pipeline.Options(source=str(folder), cache=cache, jobs=1)
    return pipeline.check(options, CheckOptions(select=(rule,)))[0].findings


def write_files(files: dict[str, str], folder: Path) -> None:
    """Files by path, written below a folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
