"""Names with template arguments that a text mentions without calling them: ``return f<3>;``, ``&g<float>``.

In: a text. Out: names, places and the spans of their arguments. Whether a name is a function's is not looked at.
"""

from __future__ import annotations

from opwalker.facts.cpp_brackets import angle_pairs, match_bracket, split_commas
from opwalker.model.body import Span2
from opwalker.notation.regex import Regex

_WITH_ARGUMENTS = Regex(r"(?<![\w.>:])(?:::)?[A-Za-z_]\w*(?:\s*::\s*(?:template\s+)?[A-Za-z_]\w*)*\s*<(?![<=])")
#: What looks at the type of an expression alone: a function that is named there is not compiled for it.
_UNEVALUATED = Regex(r"\b(?:decltype|sizeof|alignof|noexcept)\s*\(")
_ENDS = Regex(r"\s*(?:[,;)}\]?]|:(?!:)|==|!=|&&|\|\||\.\.\.|\Z)")


def mentions(text: str) -> list[tuple[str, int, tuple[Span2, ...]]]:
    """The names with template arguments in a text that are neither called nor qualify another name, but where their
    type alone is asked for: ``(name, offset, spans of the arguments)``."""
    out: list[tuple[str, int, tuple[Span2, ...]]] = []
    closes: dict[int, int] = {}
    for match in _WITH_ARGUMENTS.finditer(text):
        if match.end() - 1 not in closes:
            closes.update(angle_pairs(text, match.end() - 1))
        close = closes.get(match.end() - 1, -1)
        if close > 0 and _ENDS.match(text, close):
            name = "".join(match.group()[:-1].replace("template ", "").split())
            out.append((name, match.start(), tuple(split_commas(text, match.end(), close - 1))))
    apart = unevaluated(text) if out else []
    return [one for one in out if not any(start < one[1] < end for start, end in apart)]


def unevaluated(text: str) -> list[Span2]:
    """Where the type of an expression alone is asked for."""
    return [(m.start(), match_bracket(text, m.end() - 1)) for m in _UNEVALUATED.finditer(text)]
