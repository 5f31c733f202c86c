"""Which lines of a C++ file stay together, whatever comes or goes between them that says nothing.

In: a file's text. Out: ``Lines``. Blank lines that separate code from code say nothing, nor does one more where there
is one; nor do comments and blank lines before a directive among the directives that a file begins with. Comments
anywhere else may say what something is: they count as code does.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from opwalker.facts.cpp_text import LEXEME, line_starts
from opwalker.notation.regex import Regex

_GOES_ON = Regex(r"\\[ \t\r]*\n")
#: What makes a line more than code: a blank line beside it may separate what a comment belongs to.
_COMMENT_MARKS = ("//", "/*", "*/")


class Lines(Struct, frozen=True):
    """``digest``: of the lines that count. ``stretches``: ``(number among the lines that count, line)`` of the first
    line of every stretch of them, in order; ``counted`` how many there are."""

    digest: str
    stretches: tuple[tuple[int, int], ...]
    counted: int

    def number(self, line: int) -> int | None:
        """The number among the lines that count; None for a line that says nothing."""
        at = bisect_right(self.stretches, line, key=lambda stretch: stretch[1]) - 1
        if at < 0:
            return None
        first, start = self.stretches[at]
        end = self.stretches[at + 1][0] if at + 1 < len(self.stretches) else self.counted
        return first + line - start if first + line - start < end else None

    def line(self, number: int) -> int:
        """The line of a number."""
        first, start = self.stretches[bisect_right(self.stretches, number, key=lambda stretch: stretch[0]) - 1]
        return start + number - first


def read_lines(text: str, left_out: Iterable[tuple[int, int]] = ()) -> Lines:
    """The lines of a file that count, up to its last one of code. Of the lines in ``left_out``, first and last of each
    stretch, none does: they are as blank ones that separate code."""
    read = _Reader(text, left_out)
    kept = [*read.head(), *read.body()]
    digest = hashlib.blake2b(digest_size=16)
    digest.update("\n".join(read.lines[at] for at in kept).encode("utf-8", "surrogateescape"))
    stretches = [(n, at + 1) for n, at in enumerate(kept) if not n or kept[n - 1] != at - 1]
    return Lines(digest.hexdigest(), tuple(stretches), len(kept))


class _Reader:
    """The lines of a text, by number from 0. ``_held`` are those that begin within a comment, a string or a line that
    goes on: they are what they are part of."""

    def __init__(self, text: str, left_out: Iterable[tuple[int, int]]) -> None:
        self.lines = text.split("\n")
        self._held = set(held_lines(text))
        for first, last in left_out:
            self.lines[first - 1 : last] = [""] * (last - first + 1)
            self._held.difference_update(range(first - 1, last))
        self._end = len(self.lines)
        while self._end and self._silent(self._end - 1):
            self._end -= 1
        self._start = 0

    def head(self) -> Iterator[int]:
        """Those that count of the directives that the file begins with, and of comments over lines before them: all but
        what is silent before each."""
        comments: list[int] = []
        for at in range(self._end):
            if self._directive(at):
                yield from comments
                yield at
                comments.clear()
                self._start = at + 1
            elif self._comment(at, bool(comments) and comments[-1] == at - 1):
                comments.append(at)
            elif not self._silent(at):
                break

    def body(self) -> Iterator[int]:
        """Those that count of what follows: of blank lines the first, and none between lines of code."""
        last = self._start - 1
        for at in range(self._start, self._end):
            if not self._blank(at):
                if at - last > 1 and not (last >= 0 and self._plain(last) and self._plain(at)):
                    yield last + 1
                yield at
                last = at

    def _blank(self, at: int) -> bool:
        line = self.lines[at]
        return (not line or line.isspace()) and at not in self._held

    def _silent(self, at: int) -> bool:
        """Whether a line is blank, or one comment alone."""
        if at in self._held or at + 1 in self._held:
            return False
        line = self.lines[at].strip()
        return not line or line.startswith("//")

    def _comment(self, at: int, within: bool) -> bool:
        """Whether a line holds a comment in ``/* */``, or part of one, and nothing else; ``within`` says that the line
        before does."""
        line = self.lines[at].strip()
        begins = line.startswith("/*") if at not in self._held else within
        return begins and ("*/" not in line or line.find("*/") == len(line) - 2)

    def _directive(self, at: int) -> bool:
        return at not in self._held and at + 1 not in self._held and self.lines[at].lstrip().startswith("#")

    def _plain(self, at: int) -> bool:
        """Whether a line is code and nothing else."""
        line = self.lines[at]
        return at not in self._held and at + 1 not in self._held and not any(mark in line for mark in _COMMENT_MARKS)


@lru_cache(maxsize=8)
def held_lines(text: str) -> frozenset[int]:
    """Lines, by number from 0, that begin within a comment, a string or a line that goes on. One text is read several
    times with other lines left out."""
    starts = line_starts(text)
    held: set[int] = set()
    for match in LEXEME.finditer(text):
        start, end = match.span()
        if text.find("\n", start, end) >= 0:
            held.update(range(bisect_right(starts, start), bisect_right(starts, end - 1)))
    held.update(bisect_right(starts, match.start()) for match in _GOES_ON.finditer(text))
    return frozenset(held)
