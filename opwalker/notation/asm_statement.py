"""A GNU ``asm`` statement taken apart: template, operands, clobbers.

In: the statement's text, macros expanded (``asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")``). Out:
``AsmStatement``. What the template's instructions mean is not decided here (``ptx``).
"""

from __future__ import annotations

import re

from msgspec import Struct

from opwalker.notation.regex import Regex

_STRING = Regex(r'(?:u8|[uUL])?R"([^()\\\s]{0,16})\(([\s\S]*?)\)\1"|(?:u8|[uUL])?"((?:[^"\\]|\\[\s\S])*)"')
_ESCAPE = Regex(r"\\(?:([ntrfv])|(\n)|(.))")
_SPECIAL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_OPERAND = Regex(r"(?:\[\s*(\w+)\s*\]\s*)?\"([^\"]*)\"\s*\(")


class AsmOperand(Struct, frozen=True):
    """An operand: its symbolic name or None, its constraint (``"=r"``), and the expression in parentheses."""

    name: str | None
    constraint: str
    expression: str


class AsmStatement(Struct, frozen=True):
    """The parts of a statement. ``operands`` are outputs and inputs in the order in which ``%0``, ``%1``, … count them;
    the first ``outputs`` of them are outputs."""

    template: str
    operands: tuple[AsmOperand, ...] = ()
    outputs: int = 0
    clobbers: tuple[str, ...] = ()

    def operand(self, reference: str) -> AsmOperand | None:
        """The operand that ``%1`` or ``%[name]`` means; None for anything else."""
        number = re.fullmatch(r"%[a-zA-Z]?(\d+)", reference)
        if number is not None:
            index = int(number.group(1))
            return self.operands[index] if index < len(self.operands) else None
        named = re.fullmatch(r"%\[(\w+)\]", reference)
        return next((o for o in self.operands if named and o.name == named.group(1)), None)


def parse_asm(text: str) -> AsmStatement | None:
    """The parts of an ``asm`` statement; None where the text has no template in parentheses."""
    opened = text.find("(")
    if opened < 0:
        return None
    sections = _sections(text[opened + 1 :])
    template = "".join(_plain(match) for match in _STRING.finditer(sections[0]))
    if not template and '"' not in sections[0]:
        return None
    outputs = _operands(sections[1]) if len(sections) > 1 else ()
    inputs = _operands(sections[2]) if len(sections) > 2 else ()
    clobbers = tuple(match.group(3) or "" for match in _STRING.finditer(sections[3])) if len(sections) > 3 else ()
    return AsmStatement(template, (*outputs, *inputs), len(outputs), clobbers)


def _plain(match: re.Match[str]) -> str:
    if match.group(2) is not None:
        return match.group(2)
    return _ESCAPE.sub(lambda m: _SPECIAL[m[1]] if m[1] else "" if m[2] else m[3], match.group(3))


def _sections(text: str) -> list[str]:
    """The text up to the closing parenthesis, cut at the colons that separate its parts (``::`` is two of them)."""
    out: list[str] = []
    depth = start = at = 0
    while at < len(text):
        string = _STRING.match(text, at)
        if string is not None:
            at = string.end()
            continue
        char = text[at]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif char == ":" and depth == 0:
            out.append(text[start:at])
            start = at + 1
        at += 1
    out.append(text[start:at])
    return out


def _operands(text: str) -> tuple[AsmOperand, ...]:
    out: list[AsmOperand] = []
    at = 0
    while True:
        match = _OPERAND.search(text, at)
        if match is None:
            return tuple(out)
        depth, at = 1, match.end()
        while at < len(text) and depth:
            string = _STRING.match(text, at)
            if string is not None:
                at = string.end()
                continue
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        expression = " ".join(text[match.end() : at - 1].split())
        out.append(AsmOperand(match.group(1), match.group(2), expression))
