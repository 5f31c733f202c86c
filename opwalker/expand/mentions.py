"""Names with template arguments that a text mentions without calling them: ``return f<3>;``, ``&g<float>``.

In: a text. Out: names, places and the spans of their arguments. Whether a name is a function's is not looked at.
"""

from __future__ import annotations

import re

from opwalker.facts.cpp_brackets import angle_pairs, match_angle, match_bracket, split_commas
from opwalker.model.body import Span2
from opwalker.notation.regex import Regex

NAME = Regex(r"(?<![\w.>])(?:::)?[A-Za-z_]\w*(?:\s*::\s*(?:template\s+)?[A-Za-z_]\w*)*")
_SCOPED = Regex(r"(?:\s*::\s*(?:template\s+)?[A-Za-z_]\w*)+")
_WITH_ARGUMENTS = Regex(r"(?<![\w.>:])(?:::)?[A-Za-z_]\w*(?:\s*::\s*(?:template\s+)?[A-Za-z_]\w*)*\s*<(?![<=])")
#: What looks at the type of an expression alone: a function that is named there is not compiled for it.
_UNEVALUATED = Regex(r"\b(?:decltype|sizeof|alignof|noexcept)\s*\(")
_ENDS = Regex(r"\s*(?:[,;)}\]?]|:(?!:)|==|!=|&&|\|\||\.\.\.|\Z)")
_ALONE = Regex(r"[\s=({&]*((?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)[\s})]*")
_LAUNCHED = Regex(r"\s*<<<")


def mentions(text: str, launched: bool = False) -> list[tuple[str, int, tuple[Span2, ...]]]:
    """The names with template arguments in a text that are neither called nor qualify another name, but where their
    type alone is asked for: ``(name, offset, spans of the arguments)``; those that are ``launched`` instead."""
    ends = _LAUNCHED if launched else _ENDS
    out: list[tuple[str, int, tuple[Span2, ...]]] = []
    closes: dict[int, int] = {}
    for match in _WITH_ARGUMENTS.finditer(text):
        if match.end() - 1 not in closes:
            closes.update(angle_pairs(text, match.end() - 1))
        close = closes.get(match.end() - 1, -1)
        if close > 0 and ends.match(text, close):
            name = "".join(match.group()[:-1].replace("template ", "").split())
            out.append((name, match.start(), tuple(split_commas(text, match.end(), close - 1))))
    apart = unevaluated(text) if out else []
    return [one for one in out if not any(start < one[1] < end for start, end in apart)]


def name_alone(text: str, span: Span2) -> re.Match[str] | None:
    """The name (group 1) that a span of a text is no more than, or takes the address of."""
    return _ALONE.fullmatch(text, *span)


def unevaluated(text: str) -> list[Span2]:
    """Where the type of an expression alone is asked for."""
    return [(m.start(), match_bracket(text, m.end() - 1)) for m in _UNEVALUATED.finditer(text)]


def whole_name(text: str, match: re.Match[str], end: int) -> tuple[str, int]:
    """A name with the template arguments of its scopes (``S<3>::pick``), and where it ends."""
    name, at = "".join(match.group().split()), match.end()
    while at < end and text[at] == "<" and not text.startswith("<<<", at):
        close = match_angle(text[:end], at)
        following = _SCOPED.match(text, close, end) if close > 0 else None
        if following is None:
            break
        name += "".join(text[at : following.end()].split())
        at = following.end()
    return name, at


def written_arguments(text: str, at: int) -> tuple[str, ...]:
    """The template arguments that stand at an offset of a text."""
    if not text.startswith("<", at):
        return ()
    close = match_angle(text, at)
    return tuple(" ".join(text[a:b].split()) for a, b in split_commas(text, at + 1, close - 1)) if close > 0 else ()
