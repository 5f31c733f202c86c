"""Expanded text and where each piece of it came from.

``Expanded`` is what a parser reads; its offsets lead back to the file that the text was written in and to the macro
uses
that brought it here.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from opwalker.expand.macros import MacroChoice
from opwalker.expand.tokens import Token


@dataclass(frozen=True, slots=True)
class Expansion:
    """One macro use: which macro, where it is used (offset within the file of the token that names it), which
    definition held, and the expansion its name was written in (0: the span itself). ``applied_in`` is the expansion
    that
    its closing parenthesis was written in: a macro that is passed as an argument is named here and applied there."""

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

    def __init__(self, path: str, tokens: list[Token], expansions: list[Expansion], problems: list[str]) -> None:
        self.path = path
        self.tokens = tokens
        self.expansions = expansions
        self.problems = problems
        parts: list[str] = []
        starts: list[int] = []
        at = 0
        for token in tokens:
            if token.space:
                parts.append(" ")
                at += 1
            starts.append(at)
            parts.append(token.text)
            at += len(token.text)
        joined = "".join(parts)
        self.full = joined
        self.text = joined if joined.isascii() else joined.encode("ascii", "replace").decode("ascii")
        self._starts = starts

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
        base = self._lineage(self.tokens[first].expansion)
        for number in range(first, last + 1):
            lineage = self._lineage(self.tokens[number].expansion)
            common = 0
            while common < min(len(base), len(lineage)) and base[common] == lineage[common]:
                common += 1
            base = base[:common]
        depth = len(base)
        parts: list[str] = []
        folded = 0
        for number in range(first, last + 1):
            token = self.tokens[number]
            lineage = self._lineage(token.expansion)
            if len(lineage) > depth:
                if lineage[depth] == folded:
                    continue
                folded = lineage[depth]
                entry = self.expansions[folded - 1]
                piece = entry.name if entry.arguments is None else f"{entry.name}({', '.join(entry.arguments)})"
            else:
                folded = 0
                piece = token.text
            parts.append((" " if token.space and parts else "") + piece)
        return "".join(parts)

    def _lineage(self, expansion: int) -> list[int]:
        out: list[int] = []
        while expansion:
            out.append(expansion)
            expansion = self.expansions[expansion - 1].parent
        out.reverse()
        return out
