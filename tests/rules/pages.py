"""A rule's page as its test: the fences below *Flagged* and *Clean*, written to files and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from opwalker import pipeline

_FENCE = re.compile(r"^```(\w+)(?:[ \t]+(\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^\*(\w[\w ]*?)\.?\*", re.MULTILINE)
_SUFFIX = {"cuda": ".cu", "cpp": ".cpp", "python": ".py"}
_MARK = re.compile(r"(?://|#|/\*)\s*flagged(?:\s+(\d+))?\b")


@dataclass(frozen=True)
class Example:
    """The files of one section, and the lines that are marked: ``(file, line) -> how many findings``."""

    files: dict[str, str]
    marked: dict[tuple[str, int], int]


def sections(page: str) -> dict[str, str]:
    """The page's text by section, ``Why`` to ``Use instead``."""
    found = list(_SECTION.finditer(page))
    ends = [one.start() for one in found[1:]] + [len(page)]
    return {one[1]: page[one.end() : end] for one, end in zip(found, ends, strict=True)}


def example(text: str) -> Example:
    """The fences of a section. One without a file name is ``a.cu`` (``.cpp``, ``.py``), a second one ``b.cu``."""
    files: dict[str, str] = {}
    marked: dict[tuple[str, int], int] = {}
    for number, (language, name, body) in enumerate(_FENCE.findall(text)):
        path = name or f"{'abcdefgh'[number]}{_SUFFIX[language]}"
        files[path] = body
        for line, content in enumerate(body.splitlines(), start=1):
            mark = _MARK.search(content)
            if mark:
                marked[path, line] = int(mark[1] or 1)
    return Example(files, marked)


def findings(files: dict[str, str], rule: str, folder: Path, cache: Path) -> dict[tuple[str, int], int]:
    """What one rule finds in some files: ``(file, line) -> how many``."""
    from opwalker.model.check import CheckOptions

    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    options = pipeline.Options(source=str(folder), cache=cache, jobs=1)
    out: dict[tuple[str, int], int] = {}
    for one in pipeline.check(options, CheckOptions(select=(rule,)))[0].findings:
        out[one.file, one.line] = out.get((one.file, one.line), 0) + 1
    return out
