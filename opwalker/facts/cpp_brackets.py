"""Brackets, commas and words of C++ text: the small searches that every reader of declarations needs.

In: text with comments and strings blanked. Out: offsets. Nothing here knows a declaration.
"""

from __future__ import annotations

from opwalker.notation.regex import Regex


def last_word(text: str, end: int | None = None, start: int = 0) -> tuple[int, int]:
    """The span of the identifier that ``text[start:end]`` ends with, blanks skipped; ``(-1, -1)`` when it ends
    otherwise.

    Written as a loop: a search for ``\\w+\\s*\\Z`` is quadratic on the long blanks that comments leave.
    """
    stop = len(text) if end is None else end
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    at = stop
    while at > start and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at -= 1
    if at == stop or text[at].isdigit():
        return -1, -1
    return at, stop


# Operators come first, so that their angles open and close nothing; a launch's `<<<` still nests.
_ANGLES = Regex(r"<<<|<<|<=|->|>=|[<>()\[\]{};]")
_OPERATORS = frozenset(("<<", "<=", "->", ">="))


def match_angle(text: str, start: int) -> int:
    """The offset behind the ``>`` that closes the ``<`` at ``start``; -1 when it is none. Parentheses are skipped."""
    depth = 0
    at = start
    while (match := _ANGLES.search(text, at)) is not None:
        token = match.group()
        at = match.end()
        if token == ">":
            depth -= 1
            if depth == 0:
                return at
        elif token == "<" or token == "<<<":
            depth += len(token)
        elif token in _OPERATORS:
            if depth == 0:
                return -1
        elif token in "([{":
            at = match_bracket(text, at - 1)
            if at < 0:
                return -1
        else:
            return -1
    return -1


def angle_pairs(text: str, start: int) -> dict[int, int]:
    """What ``match_angle`` says of the ``<`` at ``start``, and of every one between it and its ``>`` that stands in no
    other brackets, in one search; empty where it is none."""
    opened: list[int] = []
    pairs: dict[int, int] = {}
    at = start
    while (match := _ANGLES.search(text, at)) is not None:
        token = match.group()
        at = match.end()
        if token == ">":
            if not opened:
                return {}
            pairs[opened.pop()] = at
            if not opened:
                pairs.pop(-1, None)
                return pairs
        elif token == "<" or token == "<<<":
            opened += [match.start()] if token == "<" else [match.start(), -1, -1]
        elif token in _OPERATORS:
            if not opened:
                return {}
        elif token in "([{":
            at = match_bracket(text, at - 1)
            if at < 0:
                return {}
        else:
            return {}
    return {}


def without_angles(text: str, *, blanked: bool = False) -> str:
    """A text without what stands in angle brackets, and without these; ``blanked`` leaves as many spaces."""
    out = text
    while True:
        at = out.find("<")
        close = match_angle(out, at) if at >= 0 else -1
        if close < 0:
            return out
        out = out[:at] + " " * (close - at if blanked else 0) + out[close:]


_BRACKETS = Regex(r"[()\[\]{}]")


def match_bracket(text: str, start: int, end: int | None = None) -> int:
    """The offset behind the bracket that closes the one at ``start``; -1 when it stays open."""
    depth = 0
    for match in _BRACKETS.finditer(text, start, len(text) if end is None else end):
        if match.group() in "([{":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return match.end()
    return -1


_SPLIT = Regex(r"[()\[\]{}<>,]")


def split_commas(text: str, start: int = 0, end: int | None = None, angles: bool = True) -> list[tuple[int, int]]:
    """Spans of the parts between top-level commas of ``text[start:end]``; ``<`` nests only where it can close."""
    stop = len(text) if end is None else end
    parts: list[tuple[int, int]] = []
    depth = 0
    begin = at = start
    while True:
        match = _SPLIT.search(text, at, stop)
        if match is None:
            break
        char = match.group()
        at = match.end()
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == ",":
            if depth == 0:
                parts.append((begin, match.start()))
                begin = at
        elif char == "<" and angles and depth == 0 and last_word(text, at - 1, start)[0] >= 0:
            close = match_angle(text[:stop], at - 1)
            if close > 0:
                at = close
    if text[begin:stop].strip() or parts:
        parts.append((begin, stop))
    return parts


_SPACES = Regex(r"\s*")


def skip_blanks(text: str, start: int, stop: int) -> int:
    """Behind leading blanks: comments leave long ones, and every later step would cross them again."""
    return _SPACES.match(text, start, stop).end()


def flat(text: str) -> str:
    """The text with everything inside angle brackets, parentheses and braces blanked, so that offsets stay true."""
    out = list(text)
    at = 0
    while at < len(text):
        char = text[at]
        close = -1
        if char in "([{":
            close = match_bracket(text, at)
        elif char == "<":
            close = match_angle(text, at)
        if close > 0:
            for i in range(at + 1, close - 1):
                out[i] = " "
            at = close
        else:
            at += 1
    return "".join(out)
