"""Calls that bind functions to names: ``m.def("op(Tensor x) -> Tensor", &op)`` and its kin, as written.

In: a file's blanked text and its functions and macro blocks. Out: ``BindingSite`` per body that holds such calls.
Which block is a registration, and of what, is decided when files are joined: here any ``.def``-like call counts.
"""

from __future__ import annotations

import re

from opwalker.facts.cpp_brackets import match_angle, match_bracket, split_commas
from opwalker.facts.cpp_text import Blanked, Conditionals, blank
from opwalker.model.cpp import BindingCall, BindingSite, Function, Invocation
from opwalker.notation.regex import Regex

_CALL = Regex(
    r"(\.|->)\s*(?:template\s+)?(def\w*|impl\w*|_impl|op|value|attr|export_values|fallback|class_|func|init|set_python_module)"
    r"\s*(<|\()"
)
_CLASS = Regex(
    r"\b(?:[A-Za-z_]\w*::)*(class_|enum_|ObjectDef|GlobalDef|RegisterOperators(?=\s+\w+\s*[({]|\s*[<({]))"
    r"(?:(?<=Operators)\s+\w+)?\s*(?=[<({])"
)
_STATEMENT = Regex(r"(?:^|[;{}])\s*((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)\s*(?:<[^;(){}]*>)?\s*\(")
_HANDLE = Regex(r"(?:[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:\s*<[^<>;]*>)?(?:\s*\([^()]*\))?)\s*\Z")
_KEYWORDS = frozenset("if for while switch return sizeof catch else do".split())


def read_bindings(
    blanked: Blanked,
    conditionals: Conditionals,
    functions: tuple[Function, ...],
    invocations: tuple[Invocation, ...],
) -> tuple[BindingSite, ...]:
    """Every body with binding calls. Blocks of macros always count: their statements may be macros that bind."""
    sites: list[BindingSite] = []
    for number, block in enumerate(invocations):
        if block.body_end:
            calls = _calls(blanked, conditionals, block.body_start, block.body_end)
            uses = _uses(blanked, conditionals, block.body_start, block.body_end)
            if calls or uses:
                sites.append(BindingSite(number, -1, calls, uses))
    sites += _loose_registrations(blanked, conditionals, functions)
    if ".def" not in blanked.plain and ".impl" not in blanked.plain and "->def" not in blanked.plain:
        return tuple(sites)
    for number, function in enumerate(functions):
        if not function.body_end:
            continue
        calls = _calls(blanked, conditionals, function.body_start, function.body_end)
        if calls:
            uses = _uses(blanked, conditionals, function.body_start, function.body_end)
            sites.append(BindingSite(-1, number, calls, uses))
    return tuple(sites)


_LOOSE = Regex(r"\bRegisterOperators\s*(?:\w+\s*)?[({]")


def _loose_registrations(
    blanked: Blanked,
    conditionals: Conditionals,
    functions: tuple[Function, ...],
) -> list[BindingSite]:
    """``static auto r = torch::RegisterOperators().op(…).op(…);`` at namespace level: a site of its own."""
    out: list[BindingSite] = []
    at = 0
    while (match := _LOOSE.search(blanked.plain, at)) is not None:
        at = match.end()
        if any(f.body_start < match.start() < f.body_end for f in functions):
            continue
        end = _statement_end(blanked.plain, match.end() - 1)
        calls = _calls(blanked, conditionals, match.start(), end)
        if calls:
            out.append(BindingSite(-1, -1, calls, ()))
        at = end
    return out


def _statement_end(plain: str, at: int) -> int:
    """The semicolon that ends a statement; those inside brackets, such as a lambda's, do not."""
    while (found := re.compile(r"[;({\[]").search(plain, at)) is not None:
        if found.group() == ";":
            return found.start()
        close = match_bracket(plain, found.start())
        at = close if close > 0 else found.end()
    return len(plain)


def calls_in(text: str) -> tuple[BindingCall, ...]:
    """The binding calls of a text that is no file, such as what a macro expanded to."""
    blanked = blank(text)
    return _calls(blanked, Conditionals(blanked), 0, len(text))


def _calls(blanked: Blanked, conditionals: Conditionals, start: int, end: int) -> tuple[BindingCall, ...]:
    plain, code = blanked.plain, blanked.code
    out: list[BindingCall] = []
    ends: dict[int, int] = {}  # where a call's text ends -> its index, to see chains
    spans: list[tuple[int, int]] = []
    starts = sorted(
        [(m.start(), m, "call") for m in _CALL.finditer(plain, start, end)]
        + [(m.start(), m, "class") for m in _CLASS.finditer(plain, start, end)],
        key=lambda item: item[0],
    )
    for at, match, kind in starts:
        name_end = match.end(2) if kind == "call" else match.end()
        opened = re.compile(r"\s*").match(plain, name_end).end()
        template = None
        if plain[opened] == "<":
            close = match_angle(plain, opened)
            if close < 0:
                continue
            template = " ".join(code[opened + 1 : close - 1].split())
            opened = re.compile(r"\s*(?:\w+\s*)?").match(plain, close).end()
        if opened >= end or plain[opened] not in "({":
            continue
        if any(a < at < b for a, b in spans):
            continue  # a call inside another's arguments, such as a lambda's body
        close = match_bracket(plain, opened, end)
        if close < 0:
            continue
        pieces = [
            (a + len(code[a:b]) - len(code[a:b].lstrip()), b) for a, b in split_commas(plain, opened + 1, close - 1)
        ]
        arguments = tuple(" ".join(code[a:b].split()) if '"' not in code[a:b] else code[a:b].strip() for a, b in pieces)
        tight = at
        while tight > start and plain[tight - 1].isspace():
            tight -= 1
        previous = ends.get(tight, -1)
        receiver = ""
        if kind == "call" and previous < 0:
            handle = _HANDLE.search(plain, max(start, tight - 120), tight)
            receiver = " ".join(handle.group().split()) if handle else ""
        if kind == "call":
            name = match.group(2)
        else:
            name = match.group(1)
            receiver = ""
        offset = match.start(2) if kind == "call" else match.start(1)
        if kind == "call" and receiver:
            offset = handle.start()
        ends[close] = len(out)
        spans.append((opened, close))
        out.append(
            BindingCall(
                receiver,
                name,
                template,
                arguments,
                offset,
                blanked.line(pieces[0][0] if pieces else offset),
                previous,
                conditionals.at(match.start()),
                tuple(a for a, _ in pieces),
            )
        )
    if not any(call.method.startswith(("def", "impl", "class_", "op", "enum_", "Register")) for call in out):
        return ()
    return tuple(out)


def _uses(
    blanked: Blanked, conditionals: Conditionals, start: int, end: int
) -> tuple[tuple[str, tuple[str, ...], int, int], ...]:
    """Statements ``NAME(arguments)`` of a body: macros that bind, or calls that pass the handle on."""
    plain, code = blanked.plain, blanked.code
    out = []
    at = start
    while True:
        match = _STATEMENT.search(plain, at, end)
        if match is None:
            return tuple(out)
        close = match_bracket(plain, match.end() - 1, end)
        if close < 0:
            return tuple(out)
        at = match.end()
        name = match.group(1)
        if name in _KEYWORDS:
            continue
        arguments = tuple(
            " ".join(code[a:b].split()) for a, b in split_commas(plain, match.end(), close - 1, angles=False)
        )
        out.append((name, arguments, match.start(1), conditionals.at(match.start(1))))
        at = close
