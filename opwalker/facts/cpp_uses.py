"""Macro uses at namespace and class level: ``INSTANTIATE(x)`` with a block, a semicolon, or neither behind it.

In: the span of a declaration. Out: entries of ``MacroUses``, each entered once by its offset, and where the
declaration goes on behind the uses that stand before it.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.facts.cpp_names import KEYWORDS
from opwalker.facts.cpp_text import Blanked, Conditionals
from opwalker.model.cpp import Invocation
from opwalker.notation.regex import Regex

MACRO_USE = Regex(r"\s*([A-Za-z_]\w*)\s*(\()?")
_BARE_USE = Regex(r"\s*([A-Z_][A-Z0-9_]{2,})\s*\Z")
_BARE_NAME = Regex(r"[A-Z_][A-Z0-9_]{2,}")
_ATTRIBUTE_MACROS = Regex(
    r"\s*(?:__attribute__|__declspec|alignas|__align__|__launch_bounds__|static_assert|decltype|asm|__asm__)\b"
)
_GAP = Regex(r"[ \t]*(\n)?\s*")


class MacroUses:
    """Collects a file's macro uses outside of bodies."""

    def __init__(self, blanked: Blanked, conditionals: Conditionals) -> None:
        self._blanked = blanked
        self._conditionals = conditionals
        self._seen: set[int] = set()
        self.entries: list[Invocation] = []

    def forget(self) -> None:
        """Drop everything: the file is read again."""
        self._seen.clear()
        self.entries.clear()

    def loose(self, text: str, start: int, stop: int, scope: tuple[str, ...]) -> None:
        """Text before a closing brace or the end of the file: macro uses without a semicolon."""
        start = self.peel(text, start, stop, scope)
        use = MACRO_USE.match(text, start, stop)
        if use and use.group(2) and use.group(1) not in KEYWORDS:
            close = match_bracket(text, use.end() - 1, stop)
            if close > 0 and not text[close:stop].strip():
                self.enter_call(text, start, scope, stop)
            return
        bare = _BARE_USE.match(text, start, stop)
        if bare:
            self._enter(bare.group(1), None, scope, bare.start(1), bare.end(1), 0)

    def peel(self, text: str, start: int, stop: int, scope: tuple[str, ...]) -> int:
        """Take leading macro uses without semicolon off a declaration: ``INSTANTIATE(x)`` before ``void f()``."""
        while True:
            use = MACRO_USE.match(text, start, stop)
            if use is None or use.group(1) in KEYWORDS:
                return start
            if use.group(2):
                if _ATTRIBUTE_MACROS.match(text, start):
                    return start
                close = match_bracket(text, use.end() - 1, stop)
            else:
                if not _BARE_NAME.fullmatch(use.group(1)):
                    return start
                close = use.end(1)
            if close < 0:
                return start
            rest = _GAP.match(text, close, stop)
            if rest.end() >= stop:
                return start
            if not rest.group(1):
                # On one line, only the same macro twice is surely a use: `API(int) f(…)` is a function.
                again = MACRO_USE.match(text, rest.end(), stop)
                if not (again and use.group(2) and again.group(2) and again.group(1) == use.group(1)):
                    return start
            following = text[rest.end()]
            if not (following.isalpha() or following in "_["):
                return start
            arguments = self._arguments(text, use, close) if use.group(2) else None
            self._enter(use.group(1), arguments, scope, use.start(1), close, 0)
            start = close

    def _arguments(self, text: str, use: re.Match, close: int) -> tuple[str, ...]:
        code = self._blanked.code
        return tuple(" ".join(code[a:b].split()) for a, b in split_commas(text, use.end(), close - 1, angles=False))

    def enter_call(self, text: str, start: int, scope: tuple[str, ...], stop: int, brace: int = 0) -> Invocation | None:
        """Enter the ``NAME(…)`` at ``start``; ``brace`` is where its block opens. None when it is known already."""
        use = MACRO_USE.match(text, start, stop)
        close = match_bracket(text, use.end() - 1, stop)
        return self._enter(use.group(1), self._arguments(text, use, close), scope, use.start(1), close, brace)

    def _enter(self, name, arguments, scope, offset, end, brace) -> Invocation | None:
        if offset in self._seen:
            return None
        self._seen.add(offset)
        line = self._blanked.line
        last = line(max(end, brace) - 1)
        condition = self._conditionals.at(offset)
        entry = Invocation(name, arguments, scope, offset, end, line(offset), brace, brace, last, condition)
        self.entries.append(entry)
        return entry

    def close_body(self, entry: Invocation | None, brace: int, close: int) -> None:
        """Give the use that was entered last the block that was just measured."""
        if entry is not None and self.entries and self.entries[-1] is entry:
            end_line = self._blanked.line(close - 1)
            self.entries[-1] = replace(entry, body_start=brace, body_end=close, end_line=end_line)
