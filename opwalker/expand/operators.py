"""An expression's text taken apart where its last step is: a bracket, a member, the weakest operator.

In: the text of an expression. Out: offsets and pieces. What they mean is not known here.
"""

from __future__ import annotations

import re

from opwalker.facts.cpp_brackets import match_angle, match_bracket
from opwalker.notation.short_texts import kept_if_short


@kept_if_short
def opening(text: str) -> int:
    """Where the bracket that closes at the end of a text opens; 0 where none does."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] in ")]}":
            depth += 1
        elif text[at] in "([{":
            depth -= 1
            if depth == 0:
                return at
    return 0


@kept_if_short
def last_member(text: str) -> tuple[str | None, str, str]:
    """``a.b->c<x>`` as ``("a.b", "->", "c<x>")``; ``(None, "", text)`` where no member is named outside brackets."""
    depth = angles = 0
    for at in range(len(text) - 1, 0, -1):
        char = text[at]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            depth -= 1
        elif depth:
            continue
        elif char == ">" and text[at - 1] == "-":
            if not angles:
                return text[: at - 1], "->", text[at + 1 :].strip()
        elif char == ">":
            angles += 1
        elif char == "<":
            angles -= 1
        elif char == "." and not angles and not _is_point(text, at):
            return text[:at], ".", text[at + 1 :].strip()
    return None, "", text


def _is_point(text: str, at: int) -> bool:
    """Whether a dot stands in a number: `x1.y` names a member of `x1`."""
    begin = at
    while begin and (text[begin - 1].isalnum() or text[begin - 1] in "_'"):
        begin -= 1
    return text[begin:at][:1].isdigit() or (begin == at and text[at + 1 : at + 2].isdigit())


_STRENGTH = (
    ("?",),
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)


@kept_if_short
def top_operator(text: str) -> tuple[str, str, str] | None:
    """The weakest binary operator outside of brackets, with what stands left and right of it; None for none. For
    ``?:`` the right side holds both operands, a NUL between them."""
    found: dict[str, tuple[int, int]] = {}
    at = 0
    question = colon = -1
    while at < len(text):
        char = text[at]
        if char in "([{":
            close = match_bracket(text, at)
            at = close if close > 0 else at + 1
            continue
        if char in "\"'":
            close = text.find(char, at + 1)
            at = close + 1 if close > 0 else at + 1
            continue
        if char == "<":
            close = match_angle(text, at)
            if close > 0 and text[close : close + 1] in ("", "(", "{", ":", ".", ")", ",", ">", " ", "*", "&", ";"):
                at = close
                continue
        if char == "?" and question < 0:
            question = at
        elif char == ":" and question >= 0 and colon < 0 and text[at : at + 2] != "::" and text[at - 1] != ":":
            colon = at
        else:
            two = text[at : at + 2]
            operator = (
                two if two in ("||", "&&", "==", "!=", "<=", ">=", "<<", ">>") else char if char in "+-*/%<>&|^" else ""
            )
            if operator and two not in ("->", "++", "--"):
                before = text[:at].rstrip()
                if before and (before[-1].isalnum() or before[-1] in "_)]}\"'"):
                    if not (operator in "+-" and re.search(r"\d[eE]\Z", before)):
                        found[operator] = (at, at + len(operator))
                at += len(operator)
                continue
            if two in ("->", "++", "--"):
                at += 2
                continue
        at += 1
    if question >= 0 and colon > 0:
        return text[:question], "?", f"{text[question + 1 : colon]}\0{text[colon + 1 :]}"
    for group in _STRENGTH:
        held = [(found[o], o) for o in group if o in found]
        if held:
            (start, end), operator = max(held)
            return text[:start], operator, text[end:]
    return None
