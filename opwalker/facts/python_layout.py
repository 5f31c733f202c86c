"""Where the definitions of a Python text begin and end, found without parsing it, and a shorter text to parse.

In: a file's text. Out: the heads of its definitions, what surrounds a place, and a *skeleton*: the same text, line for
line, in which functions of no interest have lost their bodies. Parsing the skeleton costs a fraction of parsing the
file.

Indentation decides, as it does for Python. Lines inside brackets that hang below the indentation of their statement are
not foreseen: such a skeleton does not parse, and the reader then takes the whole file instead.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from opwalker.notation.regex import Regex

_TRIPLE = {
    '"""': Regex(r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""|\Z)', re.DOTALL),
    "'''": Regex(r"'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'''|\Z)", re.DOTALL),
}
#: What may stand on a line before a triple quote and hide it: strings and comments.
_HIDING = Regex(
    r"""(?!\"{3}|'{3})(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?)|\#[^\n]*""", re.DOTALL
)
_HIDING_FIRST = re.compile(r"""["'#]""")
#: Asked for fewer lines than this, counting is quicker than a table of all line ends.
_FEW_LINES = 60
_LINE_END = Regex(r"\n")
_NAME = Regex(r"[ \t]*(\w+)")
#: What counts on the way to the colon that ends the head of a definition.
_HEAD_TOKEN = Regex(r"""[()\[\]{}:]|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?|\#[^\n]*""", re.DOTALL)


class Head(NamedTuple):
    """The head of a definition: ``start`` is the start of its line, ``indent`` counts the blanks before it."""

    start: int
    indent: int
    is_class: bool
    name: str


@lru_cache(maxsize=256)
def _statement_at_most(indent: int) -> re.Pattern[str]:
    """The start of a line that begins a statement and is indented by at most ``indent``."""
    return re.compile(rf"\n[ \t]{{0,{indent}}}(?=[^\s#)\]}}])")


class Layout:
    """The layout of one text. Everything beyond the two scans of the constructor is found when asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._string_starts: list[int] = []
        self._string_ends: list[int] = []
        if '"""' in text or "'''" in text:
            self._find_strings()
        self.heads = self._find_heads()
        self._head_starts = [head.start for head in self.heads]
        self._ends: dict[int, int] = {}
        self._colons: dict[int, int] = {}
        self._lines: list[int] | None = None
        self._asked = 0
        self._line_tokens: tuple[int, list[tuple[int, int]]] = (-1, [])

    def _find_strings(self) -> None:
        """Fill in the spans of triple-quoted strings, which may hold anything at the start of a line."""
        text, reach = self.text, 0
        places = {quotes: text.find(quotes) for quotes in _TRIPLE}
        while True:
            found = [(at, quotes) for quotes, at in places.items() if at >= 0]
            if not found:
                return
            at, quotes = min(found)
            end = at + 1
            if self._begins(max(text.rfind("\n", 0, at) + 1, reach), at):
                match = _TRIPLE[quotes].match(text, at)
                end = match.end() if match is not None else at + 3
                self._string_starts.append(at)
                self._string_ends.append(end)
                reach = end
            for each, place in places.items():
                if 0 <= place < end:
                    places[each] = text.find(each, end)

    def _begins(self, line: int, place: int) -> bool:
        """Whether quotes at ``place`` begin a string: no string or comment from ``line`` on reaches over them."""
        at, line_end = line, self._line_end(place)
        while (first := _HIDING_FIRST.search(self.text, at, place)) is not None:
            hiding = _HIDING.match(self.text, first.start(), line_end)
            at = first.end() if hiding is None else hiding.end()
            if at > place:
                return False
        return True

    def _line_end(self, place: int) -> int:
        end = self.text.find("\n", place)
        return end if end >= 0 else len(self.text)

    def in_string(self, place: int) -> bool:
        """Whether ``place`` lies inside a triple-quoted string."""
        at = bisect_right(self._string_starts, place) - 1
        return at >= 0 and self._string_starts[at] < place < self._string_ends[at]

    def line_of(self, place: int) -> int:
        """The 1-based line of a place."""
        if self._lines is None:
            self._asked += 1
            if self._asked < _FEW_LINES:
                return self.text.count("\n", 0, place) + 1
            self._lines = [found.start() for found in _LINE_END.finditer(self.text)]
        return bisect_left(self._lines, place) + 1

    def token_at(self, place: int) -> tuple[int, int] | None:
        """The span of the string or comment that ``place`` lies in, None where it is code."""
        at = bisect_right(self._string_starts, place) - 1
        reach = self._string_ends[at] if at >= 0 else 0
        if place < reach:
            return self._string_starts[at], reach
        line = max(self.text.rfind("\n", 0, place) + 1, reach)
        if self._line_tokens[0] != line:
            tokens = [token.span() for token in _HIDING.finditer(self.text, line, self._line_end(place))]
            self._line_tokens = (line, tokens)
        spans = self._line_tokens[1]
        at = bisect_right(spans, (place, len(self.text))) - 1
        return spans[at] if at >= 0 and place < spans[at][1] else None

    def _find_heads(self) -> list[Head]:
        text, found = self.text, []
        for keyword, is_class in (("def ", False), ("class ", True)):
            at = text.find(keyword)
            while at >= 0:
                after = at + len(keyword)
                line = text.rfind("\n", 0, at) + 1
                before = text[line:at]
                blanks = before.lstrip(" \t")
                if (not blanks or blanks.rstrip() == "async") and not self.in_string(at):
                    name = _NAME.match(text, after)
                    if name is not None:
                        found.append(Head(line, len(before) - len(blanks), is_class, name.group(1)))
                at = text.find(keyword, after)
        found.sort()
        return found

    def end_of(self, head: Head) -> int:
        """Where the definition ends: the start of the next statement that is indented no deeper."""
        end = self._ends.get(head.start)
        if end is not None:
            return end
        pattern = _statement_at_most(head.indent)
        place = head.start
        while True:
            found = pattern.search(self.text, place)
            if found is None:
                end = len(self.text)
                break
            if not self.in_string(found.end()):
                end = found.start() + 1
                break
            place = self._string_ends[bisect_right(self._string_starts, found.end()) - 1]
        self._ends[head.start] = end
        return end

    def signature_end(self, head: Head) -> int:
        """The place of the colon that ends the head of a definition, -1 where there is none."""
        known = self._colons.get(head.start)
        if known is None:
            known, depth = -1, 0
            for token in _HEAD_TOKEN.finditer(self.text, head.start + head.indent, self.end_of(head)):
                sign = token.group()
                if sign in "([{":
                    depth += 1
                elif sign in ")]}":
                    depth -= 1
                elif sign == ":" and depth <= 0:
                    known = token.start()
                    break
            self._colons[head.start] = known
        return known

    def around(self, place: int) -> list[Head]:
        """The definitions around ``place``, innermost first."""
        found: list[Head] = []
        limit = len(self.text)
        for at in range(bisect_right(self._head_starts, place) - 1, -1, -1):
            head = self.heads[at]
            if head.indent < limit:
                limit = head.indent
                if self.end_of(head) > place:
                    found.append(head)
                if not limit:
                    break
        return found

    def named(self, name: str) -> list[Head]:
        """The definitions of that name, in order."""
        return [head for head in self.heads if head.name == name]

    def decorated(self, place: int) -> Head | None:
        """The function whose decorators ``place`` may stand in: the next head, where nothing else lies between."""
        at = bisect_right(self._head_starts, place)
        if at >= len(self.heads):
            return None
        head = self.heads[at]
        line = self.text.rfind("\n", 0, place) + 1
        decorator = self.text.rfind("@", 0, place + 1)
        sign = self.text.rfind("\n", 0, decorator) + 1 if decorator >= 0 else line
        if decorator < 0 or self.text[sign:decorator].strip(" \t") or decorator - sign != head.indent:
            return None
        between = self.text[line : head.start]
        rows = [row for row in between.split("\n")[1:] if row.strip()]
        own = [row.lstrip() for row in rows if len(row) - len(row.lstrip(" \t")) <= head.indent]
        return head if all(row[0] in "@)]}#" for row in own) else None

    def outermost(self) -> list[Head]:
        """The functions that stand in no other function, in order."""
        found, reach = [], 0
        for head in self.heads:
            if head.start >= reach and not head.is_class:
                found.append(head)
                reach = self.end_of(head)
        return found

    def skeleton(self, keep: Callable[[Head], bool], sign: Callable[[Head], bool]) -> str:
        """The text, line for line, with an empty body for every outermost function that is not kept.

        Where ``sign`` holds, the signature stays as it is.
        """
        text, parts, place = self.text, [], 0
        for head in self.outermost():
            if keep(head):
                continue
            end = self.end_of(head)
            colon = self.signature_end(head) if sign(head) else -1
            if colon >= 0:
                parts.append(f"{text[place : colon + 1]} pass")
                lines = text.count("\n", colon + 1, end)
            else:
                parts.append(f"{text[place : head.start + head.indent]}def {head.name}(): pass")
                lines = text.count("\n", head.start, end)
            parts.append("\n" * lines)
            place = end
        parts.append(text[place:])
        return "".join(parts)
