"""CMake text to a tree of commands.

In: the text of a ``CMakeLists.txt`` or ``*.cmake`` file. Out: its commands, blocks nested, every argument with its
line, and a problem for each place that cannot be read. Nothing is evaluated here: variable references and escapes
stay as written.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from opwalker.model.build import BuildArgument, BuildCommand
from opwalker.model.source import Problem
from opwalker.notation.regex import Regex

#: Blocks: the command that opens one and the one that closes it.
_CLOSERS = {
    "if": "endif",
    "foreach": "endforeach",
    "while": "endwhile",
    "function": "endfunction",
    "macro": "endmacro",
    "block": "endblock",
}
_CLOSING = {closer: opener for opener, closer in _CLOSERS.items()}

#: Blocks nested deeper than this are read, but what stands in them is left out.
MAX_DEPTH = 60

#: A file with more faults than this is not read further.
MAX_PROBLEMS = 10

#: A command with more arguments than this is taken for one that does not end.
MAX_ARGUMENTS = 20_000

_BRACKET = r"\[(?P<{0}>=*)\[.*?\](?P={0})\]"
_SPACE = Regex(r"(?:\s+|#" + _BRACKET.format("c") + r"|#[^\n]*)+", re.DOTALL)
_NAME = Regex(r"[A-Za-z_][A-Za-z0-9_]*")
_ARGUMENT = Regex(
    _BRACKET.format("b")
    + r'|"(?P<quoted>(?:[^"\\]|\\.)*)"'
    + r'|(?P<bare>(?:[^\s()#"\\]|\\.)(?:[^\s()#"\\]|\\.|"(?:[^"\\\n]|\\.)*")*)'
    + r"|(?P<paren>[()])",
    re.DOTALL,
)
_NEXT_COMMAND = Regex(r"^[ \t]*[A-Za-z_][A-Za-z0-9_]*[ \t]*\(", re.MULTILINE)


def read_cmake(text: str) -> tuple[tuple[BuildCommand, ...], tuple[Problem, ...]]:
    """Read a CMake file. Faulty places are skipped up to the next line that starts a command."""
    problems: list[Problem] = []
    flat = _scan(text, problems)
    return _nest(flat, problems), tuple(problems)


class _Lines:
    """Offsets to 1-based lines."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def at(self, offset: int) -> int:
        return bisect_right(self._starts, offset)


def _scan(text: str, problems: list[Problem]) -> list[BuildCommand]:
    lines = _Lines(text)
    commands: list[BuildCommand] = []
    position = 1 if text.startswith("\ufeff") else 0
    while len(problems) < MAX_PROBLEMS:
        position = _skip_space(text, position)
        if position >= len(text):
            break
        name = _NAME.match(text, position)
        opened = _skip_space(text, name.end()) if name else position
        if name is None or not text.startswith("(", opened):
            line = lines.at(position)
            problems.append(Problem("bad-build-file", "expected a command and its arguments in parentheses", line))
            position = _recover(text, position + 1)
            continue
        line = lines.at(name.start())
        arguments, end = _arguments(text, opened + 1, lines)
        if end < 0:
            problems.append(Problem("bad-build-file", f"the arguments of {name.group()}( do not end", line))
            position = _recover(text, opened + 1)
            continue
        commands.append(BuildCommand(name.group().lower(), tuple(arguments), line))
        position = end
    return commands


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _recover(text: str, position: int) -> int:
    match = _NEXT_COMMAND.search(text, position)
    # The search may start in the middle of the faulty line: "^" only holds at a true line start.
    return match.start() if match else len(text)


def _arguments(text: str, position: int, lines: _Lines) -> tuple[list[BuildArgument], int]:
    """The arguments from behind the opening parenthesis, and the offset behind the closing one, or -1."""
    arguments: list[BuildArgument] = []
    depth = 1
    while len(arguments) < MAX_ARGUMENTS:
        position = _skip_space(text, position)
        match = _ARGUMENT.match(text, position)
        if match is None:
            return arguments, -1
        position = match.end()
        kind = match.lastgroup
        line = lines.at(match.start())
        if kind == "paren":
            depth += 1 if match.group() == "(" else -1
            if depth == 0:
                return arguments, position
            arguments.append(BuildArgument(match.group(), "bare", line))
        elif kind == "quoted":
            arguments.append(BuildArgument(match.group("quoted"), "quoted", line))
        elif kind == "bare":
            arguments.append(BuildArgument(match.group("bare"), "bare", line))
        else:
            width = len(match.group("b")) + 2
            body = match.group()[width:-width]
            arguments.append(BuildArgument(body.removeprefix("\n"), "bracket", line))
    return arguments, -1


class _Open:
    """A block that is not closed yet; ``parts`` are its own command and the ``elseif``/``else`` after it."""

    def __init__(self, command: BuildCommand | None) -> None:
        self.opener = command.name if command else ""
        self.line = command.line if command else 0
        self.parts: list[tuple[BuildCommand | None, list[BuildCommand]]] = [(command, [])]

    @property
    def body(self) -> list[BuildCommand]:
        return self.parts[-1][1]

    def finished(self) -> list[BuildCommand]:
        return [BuildCommand(c.name, c.arguments, c.line, tuple(body)) for c, body in self.parts if c is not None]


def _nest(flat: list[BuildCommand], problems: list[Problem]) -> tuple[BuildCommand, ...]:
    stack = [_Open(None)]
    for command in flat:
        name = command.name
        if name in _CLOSERS:
            stack.append(_Open(command))
        elif name in ("elseif", "else") and stack[-1].opener == "if":
            stack[-1].parts.append((command, []))
        elif name in _CLOSING and stack[-1].opener == _CLOSING[name]:
            _close(stack, problems)
        elif name in _CLOSING or name in ("elseif", "else"):
            opener = _CLOSING.get(name, "if")
            problems.append(Problem("bad-build-file", f"{name} without {opener}", command.line))
            while name in _CLOSING and any(block.opener == opener for block in stack):
                closed = stack[-1].opener
                _close(stack, problems)
                if closed == opener:
                    break
        else:
            stack[-1].body.append(command)
    while len(stack) > 1:
        problems.append(Problem("bad-build-file", f"{stack[-1].opener} is never closed", stack[-1].line))
        _close(stack, problems)
    return tuple(stack[0].body)


def _close(stack: list[_Open], problems: list[Problem]) -> None:
    block = stack.pop()
    if len(stack) == MAX_DEPTH:
        problems.append(Problem("too-deep", f"{block.opener} is nested deeper than {MAX_DEPTH} blocks", block.line))
    if len(stack) < MAX_DEPTH:
        stack[-1].body.extend(block.finished())
