"""Compile-time constants, as far as telling apart the branches of ``if constexpr`` needs them.

In: expression texts and what a frame knows of its template parameters. Out: a normal form of the value (``true``,
``8``, an enumerator's name) or None, and the truth of a condition in three values. What is not plain is unknown.
"""

from __future__ import annotations

import re

from opwalker.expand.bodies import Body
from opwalker.expand.frames import Frame
from opwalker.facts.cpp_brackets import match_bracket
from opwalker.link.index import Index
from opwalker.model.body import Block, LocalFact

_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)(?:[uUlL]*)\Z")
_NAME = re.compile(r"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*\Z")
_CAST = re.compile(r"(?:static_cast\s*<[^<>]*>\s*)?\((.*)\)\Z", re.DOTALL)
_COMPARISON = re.compile(r"(?<![<>=!])(==|!=|<=|>=|<|>)(?![<>=])")
_MAX_DEPTH = 8


class Constants:
    """Reads constants in the bodies of one tree."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def value(self, text: str, body: Body, frame: Frame, offset: int, depth: int = 0) -> str | None:
        """The normal form of a constant expression; None when it is not plainly one."""
        text = text.strip()
        if depth > _MAX_DEPTH or not text:
            return None
        number = _NUMBER.match(text)
        if number:
            return str(int(number.group(1), 0))
        if text in ("true", "false"):
            return text
        cast = _CAST.match(text)
        if cast and match_bracket(text, text.index("(")) == len(text):
            return self.value(cast.group(1), body, frame, offset, depth + 1)
        if not _NAME.match(text):
            return None
        simple = text.rsplit("::", 1)[-1]
        if "::" not in text:
            if simple in frame.values:
                return frame.values[simple]
            local = self._local(simple, body, offset)
            if local is not None:
                if local.value is None or not re.search(r"\bconst(?:expr)?\b", local.type):
                    return None
                return self.value(body.text(local.value).strip("{}() "), body, frame, local.start, depth + 1)
            if frame.candidate is not None and simple in frame.parameter_names:
                return None
        return simple if simple in self._index.names_of_kind("enumerator") else None

    @staticmethod
    def _local(name: str, body: Body, offset: int) -> LocalFact | None:
        """The declaration of a local that is visible at an offset: the last one before it in an enclosing block."""
        best = None
        for local in body.locals.get(name, ()):
            if local.start < offset and (local.block < 0 or _holds(body.facts.blocks[local.block], offset)):
                best = local
        return best

    def truth(self, text: str, body: Body, frame: Frame, offset: int) -> bool | None:
        """Whether a condition holds; None when that depends on something unknown."""
        text = text.strip()
        while text.startswith("(") and match_bracket(text, 0) == len(text):
            text = text[1:-1].strip()
        for operator, absorbing in (("||", True), ("&&", False)):
            parts = _split(text, operator)
            if len(parts) > 1:
                found = [self.truth(part, body, frame, offset) for part in parts]
                if absorbing in found:
                    return absorbing
                return None if None in found else not absorbing
        if text.startswith("!") and not text.startswith("!="):
            inner = self.truth(text[1:], body, frame, offset)
            return None if inner is None else not inner
        compared = _COMPARISON.search(text)
        if compared and "<" not in text[: compared.start()].replace("<<", ""):
            left = self.value(text[: compared.start()], body, frame, offset)
            right = self.value(text[compared.end() :], body, frame, offset)
            return None if left is None or right is None else _compare(left, compared.group(1), right)
        value = self.value(text, body, frame, offset)
        return {"true": True, "false": False, "0": False}.get(value, None if value is None else value.isdigit() or None)

    def dead_spans(self, body: Body, frame: Frame) -> list[tuple[int, int]]:
        """Branches of ``if constexpr`` that this frame's constants rule out."""
        out = []
        for block in body.facts.blocks:
            if block.condition is None or not block.kind.endswith("constexpr"):
                continue
            holds = self.truth(body.text(block.condition), body, frame, block.condition[0])
            if holds is not None and holds == block.kind.startswith("else"):
                out.append((block.start, block.end))
        return out


def _holds(block: Block, offset: int) -> bool:
    return block.start <= offset < block.end


def _compare(left: str, operator: str, right: str) -> bool | None:
    if operator in ("==", "!="):
        if left.isdigit() != right.isdigit():
            return None  # an enumerator against a number: its value is not known here
        return (left == right) == (operator == "==")
    if not (left.isdigit() and right.isdigit()):
        return None
    a, b = int(left), int(right)
    return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[operator]


def _split(text: str, operator: str) -> list[str]:
    """The operands of a top-level operator."""
    parts: list[str] = []
    depth = 0
    begin = at = 0
    while at < len(text):
        char = text[at]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith(operator, at):
            parts.append(text[begin:at])
            at += len(operator)
            begin = at
            continue
        at += 1
    parts.append(text[begin:])
    return parts
