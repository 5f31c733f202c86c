"""Expanded text and where each piece of it came from.

``Expanded`` is what a parser reads; its offsets lead back to the file that the text was written in and to the macro
uses that brought it here.
"""

from __future__ import annotations

from bisect import bisect_right

from msgspec import Struct

from opwalker.expand.macros import MacroChoice
from opwalker.expand.tokens import Token

#: Ends of two tokens that would be cut otherwise if they stood side by side.
#: Words that make a literal of another kind of what follows them at once.
_PREFIXES = frozenset(("L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"))
_MERGING = frozenset("++ -- << >> && || :: ## -> <= >= == != += -= *= /= %= &= |= ^= <: <% :> %> %: // /* ..".split())


class Expansion(Struct, frozen=True):
    """One macro use: which macro, where it is used (offset within the file of the token that names it), which
    definition held, and the expansion its name was written in (0: the span itself). ``applied_in`` is the expansion
    that its closing parenthesis was written in: a macro that is passed as an argument is named here and applied
    there."""

    id: int
    name: str
    use_pos: int
    parent: int
    definition: MacroChoice
    arguments: tuple[str, ...] | None
    outermost_pos: int
    applied_in: int = 0


class Expanded:
    """The expanded text of a span. ``text`` is ASCII (other characters become ``?``), so that a parser's byte offsets
    are its character offsets."""

    def __init__(
        self, path: str, tokens: list[Token], expansions: list[Expansion], problems: list[str], folded: bool = False
    ) -> None:
        #: Whether macros stay as they are used since there is too much of what they make.
        self.folded = folded or bool(problems)
        self.path = path
        self.tokens = tokens
        self.expansions = expansions
        self.problems = problems
        parts: list[str] = []
        starts: list[int] = []
        at = 0
        before: Token | None = None
        for token in tokens:
            # Tokens that were written side by side are known not to be one.
            if token.space or (
                before is not None
                and (before.pos + len(before.text) != token.pos or before.expansion != token.expansion)
                and _merges(before.text, token)
            ):
                parts.append(" ")
                at += 1
            before = token
            starts.append(at)
            parts.append(token.text)
            at += len(token.text)
        joined = "".join(parts)
        self.full = joined
        self.text = joined if joined.isascii() else joined.encode("ascii", "replace").decode("ascii")
        self._starts = starts
        self._first: dict[int, int] | None = None

    def token_at(self, offset: int) -> int:
        """The index of the token at an offset of the text."""
        return max(0, bisect_right(self._starts, offset) - 1)

    def origin(self, offset: int) -> tuple[str, int, int]:
        """``(path, position, expansion)`` of where the text at ``offset`` was written."""
        if not self.tokens:
            return self.path, 0, 0
        token = self.tokens[self.token_at(offset)]
        if token.expansion == 0:
            return self.path, token.pos, 0
        return self.expansions[token.expansion - 1].definition.path, token.pos, token.expansion

    def chain(self, expansion: int) -> tuple[Expansion, ...]:
        """The expansions that hold a token, outermost first."""
        out: list[Expansion] = []
        while expansion:
            entry = self.expansions[expansion - 1]
            out.append(entry)
            expansion = entry.parent
        return tuple(reversed(out))

    def offset_of(self, expansion: int) -> int:
        """Where the text that a macro use makes begins; 0 where it makes none."""
        if self._first is None:
            self._first = {}
            for number, token in enumerate(self.tokens):
                for entry in self.chain(token.expansion):
                    self._first.setdefault(entry.id, self._starts[number])
        return self._first.get(expansion, 0)

    def open_uses(self, start: int, end: int) -> list[Expansion]:
        """The macro uses that make text within a span and whose definition is not sure, innermost first."""
        if not any(entry.definition.alternatives for entry in self.expansions):
            return []
        found: dict[int, Expansion] = {}
        for number in range(self.token_at(start), self.token_at(max(start, end - 1)) + 1):
            for entry in reversed(self.chain(self.tokens[number].expansion)):
                if entry.definition.alternatives:
                    found.setdefault(entry.id, entry)
        return list(found.values())

    def extent(self, expansion: int) -> tuple[int, int]:
        """The text that a macro use makes, ``(start, end)``; nothing where it makes none."""
        held = [n for n, token in enumerate(self.tokens) if any(e.id == expansion for e in self.chain(token.expansion))]
        return (self._starts[held[0]], self._starts[held[-1]] + len(self.tokens[held[-1]].text)) if held else (0, 0)

    def use_position(self, offset: int) -> int:
        """Where in the span's own file the text at ``offset`` is used: its own place, or that of the outermost
        macro."""
        if not self.tokens:
            return 0
        token = self.tokens[self.token_at(offset)]
        return token.pos if token.expansion == 0 else self.expansions[token.expansion - 1].outermost_pos

    def written(self, start: int, end: int) -> str:
        """The text between two offsets as a reader knows it: macros that were expanded within it are folded back."""
        if start >= end or not self.tokens:
            return ""
        first, last = self.token_at(start), self.token_at(end - 1)
        base = self._places(first)
        before = self.tokens[first].via
        for number in range(first + 1, last + 1):
            if not base:
                break
            if self.tokens[number].via is not before:
                before = self.tokens[number].via
                base = base[: _common(base, self._places(number))]
        # What is all that a macro makes is known by the macro's use.
        while base and not self._within(first - 1, base) and not self._within(last + 1, base):
            base.pop()
        depth = len(base)
        parts: list[str] = []
        folded: tuple | None = None
        for number in range(first, last + 1):
            token = self.tokens[number]
            if token.via is None:
                # At depth 0 nothing is in any place, and nothing else needs a look.
                parts.append((" " if token.space and parts else "") + token.text)
                folded = None
                continue
            places = self._places(number)
            if len(places) > depth:
                if places[depth] is folded:
                    continue
                folded = places[depth]
                entry = self.expansions[folded[0] - 1]
                piece = entry.name if entry.arguments is None else f"{entry.name}({', '.join(entry.arguments)})"
            else:
                folded = None
                piece = token.text
            parts.append((" " if token.space and parts else "") + piece)
        return "".join(parts)

    def _places(self, number: int) -> list[tuple]:
        """The uses of macros whose results hold a token, outermost first."""
        out: list[tuple] = []
        via = self.tokens[number].via
        while via is not None:
            out.append(via)
            via = via[1]
        out.reverse()
        return out

    def _within(self, number: int, base: list[tuple]) -> bool:
        if not 0 <= number < len(self.tokens):
            return False
        return _common(base, self._places(number)) == len(base)


def _common(first: list[tuple], second: list[tuple]) -> int:
    """How many places two tokens share. Places are told apart by identity: one use may have results in several."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one is not other:
            break
        count += 1
    return count


def _merges(left: str, right: Token) -> bool:
    """Whether two tokens that came together by expansion would be cut otherwise if they stood side by side."""
    last, first = left[-1], right.text[0]
    if right.word or first.isdigit():
        return last.isalnum() or last in "_$\"'" or (last == "." and first.isdigit())
    if first in "\"'":
        return left in _PREFIXES
    return last + first in _MERGING
