"""C++ text made safe to scan: comments, strings and directives blanked at equal length; directives and branches read.

In: a file's text. Out: ``Blanked`` (three texts of equal length, so that offsets stay true), the directives in order,
and the conditional branches. No declaration is understood here.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from msgspec import Struct

from opwalker.notation.regex import Regex

#: Comments, strings and characters. Every alternative begins with a character of its own: the engine then skips from
#: one such character to the next.
LEXEME = Regex(
    r"""//[^\n\\]*(?:\\(?:\r?\n|.)?[^\n\\]*)*        # line comment, with continuation
      | /\*[\s\S]*?(?:\*/|\Z)                      # block comment
      | R"([^()\\\s]{0,16})\([\s\S]*?\)\1"          # raw string
      | "[^"\\\n]*(?:\\(?:\r?\n|[\s\S])[^"\\\n]*)*(?:"|(?=\n)|\Z)      # string
      | '(?<![0-9a-fA-F]')[^'\\\n]*(?:\\[\s\S][^'\\\n]*)*'    # character, not a digit separator
    """,
    re.VERBOSE,
)
_DIRECTIVE = Regex(r"^[ \t]*(?:\#|%:)[ \t]*(\w*)((?:[^\n\\]|\\\r?\n|\\)*)", re.MULTILINE)
_REST = Regex(r"(?:[^\n\\]|\\\r?\n|\\)*")
_NOT_NEWLINE = Regex(r"[^\n]")
_CONTINUATION = Regex(r"\\(\r?\n)")
_DEFINED = Regex(r"\w+")


def _blank(text: str) -> str:
    """Blanks of the same length; line ends stay."""
    if "\n" not in text:
        return " " * len(text)
    return _NOT_NEWLINE.sub(" ", text)


class Directive(Struct, frozen=True):
    """A preprocessor line. ``body`` starts at ``body_offset``; continuations in it are blanked."""

    name: str
    body: str
    offset: int
    body_offset: int
    end: int


class Branch(Struct, frozen=True):
    """One branch of a conditional: its text is ``[start, end)``; ``condition`` indexes the table of conditions."""

    start: int
    end: int
    condition: int


class Group(Struct, frozen=True):
    """An ``#if … #endif``: its branches, and whether an ``#else`` makes them exhaustive."""

    start: int
    end: int
    branches: tuple[Branch, ...]


class Blanked(Struct, frozen=True):
    """``code``: comments blanked. ``plain``: strings' and characters' contents and directives blanked as well.

    ``made`` are ``(offset, line)`` of text behind the end of the file that macros made: each lies on one line.
    """

    text: str
    code: str
    plain: str
    directives: tuple[Directive, ...]
    line_starts: tuple[int, ...]
    made: tuple[tuple[int, int], ...] = ()

    def line(self, offset: int) -> int:
        """The 1-based line of an offset."""
        if self.made and offset >= self.made[0][0]:
            return self.made[bisect_right(self.made, (offset, 1 << 60)) - 1][1]
        return bisect_right(self.line_starts, offset)


def line_starts(text: str) -> tuple[int, ...]:
    """The offset of each line's first character."""
    starts = [0]
    find = text.find
    at = find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = find("\n", at + 1)
    return tuple(starts)


def blank(text: str) -> Blanked:
    """Blank comments, strings and directives of a file's text."""
    code_parts: list[str] = []
    plain_parts: list[str] = []
    long: list[tuple[int, int]] = []  # comments and strings over several lines: a directive does not end in one
    at = 0
    for match in LEXEME.finditer(text):
        start, end = match.span()
        between = text[at:start]
        piece = match.group()
        if "\n" in piece:
            long.append((start, end))
        code_parts.append(between)
        plain_parts.append(between)
        if piece[0] == "/":
            gap = _blank(piece)
            code_parts.append(gap)
            plain_parts.append(gap)
        else:
            code_parts.append(piece)
            # The quotes stay, so that an argument that is a string is still seen as something.
            plain_parts.append('"' + _blank(piece[1:-1]) + '"' if len(piece) > 1 else piece)
        at = end
    code_parts.append(text[at:])
    plain_parts.append(text[at:])
    code = "".join(code_parts)
    plain = "".join(plain_parts)
    directives = []
    if "#" in plain or "%:" in plain:
        pieces: list[str] = []
        at = 0
        while (match := _DIRECTIVE.search(plain, at)) is not None:
            start, end = match.span()
            end = _behind_long(plain, long, start, end)
            body_start = match.start(2)
            body = code[body_start:end]
            if "\\" in body:
                body = _CONTINUATION.sub(r" \1", body)
            directives.append(Directive(match.group(1), body, start, body_start, end))
            pieces.append(plain[at:start])
            pieces.append(_blank(plain[start:end]))
            at = end
        pieces.append(plain[at:])
        plain = "".join(pieces)
    if "\\" in plain:
        # Outside of directives, a line that goes on is one with the next.
        plain = _CONTINUATION.sub(r" \1", plain)
    return Blanked(text, code, plain, tuple(directives), line_starts(text))


def _behind_long(plain: str, long: list[tuple[int, int]], start: int, end: int) -> int:
    """Where a directive ends that seems to end at ``end``, were it not for a comment or raw string over lines."""
    number = bisect_right(long, (start, 0))
    while number < len(long) and long[number][0] < end:
        if long[number][1] > end:
            end = _REST.match(plain, long[number][1]).end()
        number += 1
    return end


#: Terms of one condition that are kept, and the term for those beyond: one that nothing decides.
MAX_TERMS = 128
DEEPER = "…"


class Conditionals:
    """The conditional structure of a file: which condition holds at an offset, and the groups of branches."""

    def __init__(self, blanked: Blanked) -> None:
        self.conditions: list[tuple[str, ...]] = [()]
        self._ids: dict[tuple[str, ...], int] = {(): 0}
        self.groups: list[Group] = []
        self.problems: list[tuple[str, int]] = []
        #: Where the groups start whose branches are read one at a time.
        self.apart: frozenset[int] = frozenset()
        #: Whether anything stands under more conditions than are kept.
        self.deep = False
        #: Whether a unit reads the file one time only, however often it includes it.
        self.once = False
        self._changes: list[int] = [0]
        self._change_ids: list[int] = [0]
        self._read(blanked)

    def _id(self, terms: tuple[str, ...]) -> int:
        found = self._ids.get(terms)
        if found is None:
            found = self._ids[terms] = len(self.conditions)
            self.conditions.append(terms)
        return found

    def _cut(self, terms: tuple[str, ...]) -> tuple[str, ...]:
        """The terms as they are kept: beyond a number that nobody writes, one that stands for all others."""
        if len(terms) <= MAX_TERMS:
            return terms
        self.deep = True
        return (*terms[:MAX_TERMS], DEEPER)

    def at(self, offset: int) -> int:
        """The id of the condition that an offset stands under."""
        return self._change_ids[bisect_right(self._changes, offset) - 1]

    def of_selected(self, text: str, first: int, start: int, end: int) -> int:
        """The id of the condition that a declaration stands under which is read from ``text``, a selection of branches:
        that of its name (``start``), and those of the branches in ``[first, end)`` that are read apart from others."""
        number = bisect_left(self.groups, first, key=lambda group: group.start)
        while number and first < self.groups[number - 1].end <= start:
            number -= 1  # the declaration begins within a branch
        terms = self.conditions[self.at(start)]
        outer = terms
        hidden: list[tuple[int, int]] = []  # branches that are not shown: what they hold says nothing
        while number < len(self.groups) and self.groups[number].start < end:
            group = self.groups[number]
            number += 1
            if group.start not in self.apart or any(at <= group.start < stop for at, stop in hidden):
                continue
            shown = [b for b in group.branches if not text[b.start : b.end].isspace()]
            hidden += [(b.start, b.end) for b in group.branches if b not in shown]
            if shown:
                own = self.conditions[shown[0].condition]
            else:
                own = self.conditions[group.branches[-1].condition]
                own = (*own[:-1], negated(own[-1])) if own else ()
            if own[: len(outer)] == outer:
                terms = (*terms, *own[len(outer) :])
        return self._id(self._cut(tuple(dict.fromkeys(terms)))) if terms != outer else self.at(start)

    def common(self, one: int, other: int) -> int:
        """The id of the condition that two have in common, outermost terms first."""
        first, second = self.conditions[one], self.conditions[other]
        count = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
        return self._id(first[:count] if count is not None else min(first, second, key=len))

    def _mark(self, offset: int, condition: int) -> None:
        self._changes.append(offset)
        self._change_ids.append(condition)

    def _read(self, blanked: Blanked) -> None:
        guard = _include_guard(blanked)
        self.once = guard >= 0 or any(d.name == "pragma" and d.body.split() == ["once"] for d in blanked.directives)
        # Each open group: outer terms, terms negated so far, current term, start, branch start, finished branches.
        stack: list[list] = []
        outer: tuple[str, ...] = ()
        for number, directive in enumerate(blanked.directives):
            name = directive.name
            if name in ("if", "ifdef", "ifndef"):
                term = _term(name, directive.body)
                silent = number == guard
                stack.append([outer, [], term, directive.offset, directive.end, [], silent])
                outer = outer if silent else self._cut((*outer, term))
                self._mark(directive.offset, self._id(outer))
            elif name in ("elif", "else", "elifdef", "elifndef"):
                if not stack:
                    self.problems.append((f"#{name} without #if", directive.offset))
                    continue
                top = stack[-1]
                top[5].append(Branch(top[4], directive.offset, self._id(outer)))
                if top[2] is not None and len(top[1]) <= MAX_TERMS:
                    top[1].append(negated(top[2]))
                term = None if name == "else" else _term(name[2:] or "if", directive.body)
                top[2] = term
                outer = self._cut((*top[0], *top[1], *((term,) if term else ())))
                top[4] = directive.end
                self._mark(directive.offset, self._id(outer))
            elif name == "endif":
                if not stack:
                    self.problems.append(("#endif without #if", directive.offset))
                    continue
                top = stack.pop()
                top[5].append(Branch(top[4], directive.offset, self._id(outer)))
                if not top[6]:
                    self.groups.append(Group(top[3], directive.end, tuple(top[5])))
                outer = top[0]
                self._mark(directive.end, self._id(outer))
        end = len(blanked.text)
        for top in reversed(stack):
            self.problems.append(("#if without #endif", top[3]))
            top[5].append(Branch(top[4], end, self._id(outer)))
            if not top[6]:
                self.groups.append(Group(top[3], end, tuple(top[5])))
            outer = top[0]
        self.groups.sort(key=lambda group: (group.start, -group.end))

    def leaves_open(self, group: Group, text: str) -> bool:
        """Whether what ``#if 0`` leaves out of a text ends in the middle of something, as prose does: it begins no
        declaration that stands behind it."""
        return any(
            self.conditions[branch.condition][-1:] == ("0",)
            and not text[branch.start : branch.end].rstrip().endswith((";", "}"))
            and not text[branch.start : branch.end].isspace()
            for branch in group.branches
        )

    def branches(self) -> tuple[tuple[int, int, int], ...]:
        """Every branch as ``(start, end, condition)``, parents before their children."""
        return tuple((b.start, b.end, b.condition) for group in self.groups for b in group.branches)


def _term(name: str, body: str) -> str:
    """A directive's condition in one spelling: ``defined(X)``, ``!defined(X)``, or the expression."""
    text = " ".join(body.split())
    if name in ("ifdef", "def", "ifndef", "ndef"):
        word = _DEFINED.match(text)
        text = f"defined({word.group() if word else text})"
        return "!" + text if "n" in name[:3] else text
    return text


def negated(term: str) -> str:
    """The term of the branches behind one that stands under ``term``."""
    if re.fullmatch(r"defined\(\w+\)", term):
        return "!" + term
    if re.fullmatch(r"!defined\(\w+\)", term):
        return term[1:]
    return f"!({term})"


def _include_guard(blanked: Blanked) -> int:
    """The index of the ``#ifndef`` that only guards against double inclusion, or -1."""
    directives = blanked.directives
    first = next((i for i, d in enumerate(directives) if d.name not in ("pragma", "include")), None)
    if first is None or first + 1 >= len(directives):
        return -1
    opening, defining = directives[first], directives[first + 1]
    if opening.name not in ("ifndef", "if") or defining.name != "define":
        return -1
    term = _term(opening.name, opening.body)
    word = _DEFINED.match(defining.body.strip())
    if word is None or term.replace(" ", "") not in (f"!defined({word.group()})", f"!defined{word.group()}"):
        return -1
    # A guard closes with the file's last conditional, and nothing but blanks stands outside it. What it guards is more
    # than the definition of a default.
    valued = defining.body.strip()[word.end() :].strip() not in ("", "1")
    depth = 0
    for number, directive in enumerate(directives[first:], first):
        if directive.name in ("if", "ifdef", "ifndef"):
            depth += 1
        elif directive.name in ("else", "elif") and depth == 1:
            return -1
        elif directive.name == "endif":
            depth -= 1
            if depth == 0:
                ends = all(d.name == "pragma" for d in directives[number + 1 :])
                ends = ends and not blanked.plain[directive.end :].strip()
                holds = bool(blanked.plain[defining.end : directive.offset].strip())
                default = not holds and (valued or number == first + 2)
                return first if ends and not default else -1
    return -1
