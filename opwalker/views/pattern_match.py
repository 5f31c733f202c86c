"""The queries of patterns, run on one function or on what one file declares.

In: patterns, and a routine, or a file's facts with its text. Out: ``Found`` values: pattern, lines, text, captures.
Which ops reach a place is not asked here.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from opwalker.link.traced import Declared
from opwalker.model.assembly import Instruction
from opwalker.model.cpp import CppFacts
from opwalker.model.patterns import Clause, Condition, Demand, Pattern
from opwalker.model.statements import Routine, Statement
from opwalker.notation.asm_statement import parse_asm
from opwalker.notation.pattern_query import INSIDE, REFERENCE
from opwalker.notation.ptx import decode
from opwalker.notation.regex import Regex, compiled

#: The most characters of a hit's text that an answer repeats.
SHOWN = 200
#: A regular expression that is words alone: one of them must stand in the text.
_WORDS = Regex(r"\w+(?:\|\w+)*")


class Found(Struct, frozen=True):
    """A pattern at a place. ``names`` is what a function says to use it: a macro's, a type's, a variable's name."""

    id: str
    line: int
    end_line: int
    text: str
    captures: tuple[tuple[str, str], ...]
    names: str | None = None


class _Item(Struct, frozen=True):
    """A thing that a demand looks at: its fields are worked out when asked for."""

    line: int
    end_line: int
    text: str
    field: Callable[[str], str]
    name: str | None = None


class Matcher:
    """The queries of some patterns."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._inside: list[tuple[Pattern, Clause]] = []
        self._outside: dict[str, list[tuple[Pattern, Clause]]] = {}
        for pattern in patterns:
            for clause in pattern.query:
                subject = clause.demands[0].subject
                inside = subject in INSIDE or subject == "function"
                (self._inside if inside else self._outside.setdefault(subject, [])).append((pattern, clause))
        self._known: dict[tuple[Condition, str], tuple[tuple[str, str], ...] | None] = {}

    def routine(self, routine: Routine) -> list[Found]:
        """What is found in a function."""
        items = _Items(routine)
        found: dict[tuple[str, int], Found] = {}
        for pattern, clause in self._inside:
            for one, captures in self._clause(clause, items):
                hit = Found(pattern.id, one.line, one.end_line, one.text[:SHOWN], captures)
                found.setdefault((pattern.id, one.line), hit)
        return list(found.values())

    def _clause(self, clause: Clause, items: _Items) -> Iterator[tuple[_Item, tuple[tuple[str, str], ...]]]:
        find, *others = clause.demands
        hits = [(one, got) for one in items.of(find.subject) if (got := self._holds(find, one)) is not None]
        if not hits:
            return
        more: tuple[tuple[str, str], ...] = ()
        for demand in others:
            if not _refers(demand):
                got = self._beside(demand, items)
                if got is None:
                    return
                more += got
        named = [demand for demand in others if _refers(demand)]
        for one, captures in hits:
            inner = [self._beside(_filled(demand, dict(captures)), items) for demand in named]
            if None not in inner:
                yield one, tuple(dict((*more, *(pair for got in inner for pair in got or ()), *captures)).items())

    def _beside(self, demand: Demand, items: _Items) -> tuple[tuple[str, str], ...] | None:
        """The captures of a demand on the function around a hit; None where it does not hold."""
        subject = "function" if demand.role == "in" else demand.subject
        first = next((got for one in items.of(subject) if (got := self._holds(demand, one)) is not None), None)
        if (first is None) != (demand.role == "without"):
            return None
        return first or ()

    def _holds(self, demand: Demand, one: _Item) -> tuple[tuple[str, str], ...] | None:
        """The captures of a demand on an item; None where it does not hold."""
        captures: tuple[tuple[str, str], ...] = ()
        for condition in demand.conditions:
            got = self._asked(condition, one.field(condition.field))
            if got is None:
                return None
            captures += got
        return captures

    def _asked(self, condition: Condition, value: str) -> tuple[tuple[str, str], ...] | None:
        key = (condition, value)
        if key not in self._known:
            if len(value) > SHOWN:
                return _answer(condition, value)
            self._known[key] = _answer(condition, value)
        return self._known[key]

    def declared(self, facts: CppFacts | Declared, code: str) -> list[Found]:
        """What is found among the macros, classes and variables of a file; ``code`` is its text without comments."""
        found: dict[tuple[str, int], Found] = {}
        for subject, asked in self._outside.items():
            for one in _declared(subject, facts, code):
                self._outer(asked, one, found)
        return list(found.values())

    def python(self, text: str) -> list[Found]:
        """What is found in the lines of a Python file, comments and strings of several lines left out."""
        asked = self._outside.get("python", [])
        found: dict[tuple[str, int], Found] = {}
        if any(self._may(clause, text) for _, clause in asked):
            for number, content in _python_lines(text):
                one = _Item(number, number, " ".join(content.split()), lambda _, content=content: content)
                self._outer(asked, one, found)
        return list(found.values())

    @property
    def reads_python(self) -> bool:
        """Whether a query asks for lines of Python."""
        return "python" in self._outside

    @staticmethod
    def _may(clause: Clause, text: str) -> bool:
        """Whether a text has a line that holds: words are looked for first, which costs little."""
        for one in clause.demands[0].conditions:
            if one.operator == "~" and _WORDS.fullmatch(one.value):
                if not any(word in text for word in one.value.split("|")):
                    return False
            elif one.operator == "~" and re.search(one.value, text, re.MULTILINE) is None:
                return False
        return True

    def _outer(self, asked: list[tuple[Pattern, Clause]], one: _Item, found: dict[tuple[str, int], Found]) -> None:
        for pattern, clause in asked:
            captures = self._holds(clause.demands[0], one)
            if captures is not None:
                captured = tuple(dict(captures).items())
                hit = Found(pattern.id, one.line, one.end_line, one.text[:SHOWN], captured, one.name)
                found.setdefault((pattern.id, one.line), hit)


@cache
def _refers(demand: Demand) -> bool:
    """Whether a demand names what the ``find`` line captured."""
    return any(REFERENCE.search(one.value) for one in demand.conditions)


def _filled(demand: Demand, captures: Mapping[str, str]) -> Demand:
    """A demand with the captured text in the place of its names; what captured nothing is nowhere."""
    return replace(
        demand,
        conditions=tuple(
            replace(one, value=REFERENCE.sub(lambda name: _literal(captures.get(name[1])), one.value))
            for one in demand.conditions
        ),
    )


def _literal(captured: str | None) -> str:
    return "(?!)" if captured is None else re.escape(captured)


def _answer(condition: Condition, value: str) -> tuple[tuple[str, str], ...] | None:
    if condition.operator in ("=", "!="):
        return () if (value == condition.value) == (condition.operator == "=") else None
    match = compiled(condition.value).search(value)
    if condition.operator == "!~":
        return () if match is None else None
    if match is None:
        return None
    return tuple((name, text.strip()) for name, text in match.groupdict().items() if text is not None)


class _Items:
    """The things of one function, by subject."""

    def __init__(self, routine: Routine) -> None:
        self._routine = routine
        self._made: dict[str, list[_Item]] = {}
        self._statements: list[tuple[Statement, str]] | None = None

    def of(self, subject: str) -> list[_Item]:
        """The items of a subject, in source order."""
        if subject not in self._made:
            self._made[subject] = list(self._read(subject))
        return self._made[subject]

    def _read(self, subject: str) -> Iterator[_Item]:
        if subject == "function":
            yield _function(self._routine)
            return
        if self._statements is None:
            self._statements = list(_within(self._routine.statements, ""))
        for statement, within in self._statements:
            yield from _PARTS[subject](statement, within)


def _within(statements: Iterable[Statement], around: str) -> Iterator[tuple[Statement, str]]:
    """Statements with the kinds of those around them, outermost first; a lambda is one of the kinds."""
    for one in statements:
        yield one, around
        inner = f"{around} > {one.kind}" if around else one.kind
        yield from _within((*one.head, *one.body, *one.orelse), inner)
        for each in one.lambdas:
            yield from _within(each.body, f"{around} > lambda" if around else "lambda")


def _function(routine: Routine) -> _Item:
    parameters = ", ".join(f"{one.type} {one.name}".strip() for one in routine.parameters)
    fields = {
        "name": routine.name, "returns": routine.returns, "flags": " ".join(routine.flags), "parameters": parameters,
        "template": routine.template or "", "attributes": " ".join(routine.attributes),
    }  # fmt: skip
    text = f"{routine.returns} {routine.name}({parameters})".strip()
    return _Item(routine.line, routine.end_line, text, fields.__getitem__)


def _item(part, statement: Statement, within: str, line: int, text: str) -> _Item:
    def field(name: str) -> str:
        if name == "within":
            return within
        value = getattr(part, name)
        if name == "macro":
            return value.name if value is not None else ""
        if name == "template" and value is not None:
            return f"<{', '.join(value)}>"
        return ", ".join(value) if isinstance(value, tuple) else value or ""

    plain = statement.kind in ("expression", "declaration", "return", "asm") and not statement.lambdas
    return _Item(line, max(line, statement.end_line) if plain else line, text, field)


def _statements(one: Statement, within: str) -> Iterator[_Item]:
    shown = f"{one.kind} ({one.text})" if one.kind in ("if", "if constexpr", "while", "switch") else one.text
    yield _item(one, one, within, one.line, shown or one.kind)


def _calls(one: Statement, within: str) -> Iterator[_Item]:
    for call in one.calls:
        yield _item(call, one, within, call.line, call.text)


def _launches(one: Statement, within: str) -> Iterator[_Item]:
    for launch in one.launches:
        text = f"{launch.kernel}<<<{', '.join(launch.configuration)}>>>({', '.join(launch.arguments)})"
        yield _item(launch, one, within, launch.line, text)


def _assigns(one: Statement, within: str) -> Iterator[_Item]:
    for assign in one.assigns:
        yield _item(assign, one, within, assign.line, f"{assign.target} {assign.operator} {assign.value}".strip())


def _declares(one: Statement, within: str) -> Iterator[_Item]:
    for declare in one.declares:
        text = one.text if len(one.declares) == 1 and one.text else f"{declare.type} {declare.name}"
        yield _item(declare, one, within, declare.line, text)


def _instructions(one: Statement, within: str) -> Iterator[_Item]:
    if one.kind != "asm":
        return
    read = parse_asm(one.text)
    for instruction in decode(read.template) if read is not None else ():
        yield _item(_Written(instruction, one), one, within, one.line, instruction.text)


class _Written:
    """An instruction with the macro that wrote its statement."""

    def __init__(self, instruction: Instruction, statement: Statement) -> None:
        self._instruction = instruction
        self.macro = statement.macro

    def __getattr__(self, name: str):
        return getattr(self._instruction, name)


_PARTS: dict[str, Callable[[Statement, str], Iterator[_Item]]] = {
    "statement": _statements,
    "call": _calls,
    "launch": _launches,
    "assign": _assigns,
    "declare": _declares,
    "instruction": _instructions,
}


def _declared(subject: str, facts: CppFacts | Declared, code: str) -> Iterator[_Item]:
    if subject == "macro":
        for macro in facts.macros:
            if macro.body is not None:
                parameters = f"({', '.join(macro.parameters)})" if macro.parameters is not None else ""
                body = " ".join(macro.body.split())
                fields = {"name": macro.name, "parameters": parameters, "body": body}
                text = f"#define {macro.name}{parameters} {body}".strip()
                yield _Item(macro.line, macro.end_line, text, fields.__getitem__, macro.name)
    elif subject == "class":
        for one in facts.classes:
            whole = code[one.offset : one.body_start].rstrip(" \n{")
            # A template's parameters stand before the word that the class begins with.
            word = compiled(rf"\b{one.kind}\b[^<>{{}};]*?\b{re.escape(one.name)}\b").search(whole)
            head, line = " ".join(whole.split()), one.line + (whole.count("\n", 0, word.start()) if word else 0)
            members = _flat(code[one.body_start : one.body_end])
            fields = {"name": one.name, "kind": one.kind, "head": head, "members": members}
            text = f"{head} {{ {members}"
            yield _Item(line, one.end_line, text, fields.__getitem__, one.name)
    elif subject == "variable":
        for one in facts.variables:
            fields = {"name": one.name, "type": one.type, "value": one.value or ""}
            text = f"{one.type} {one.name}" + (f" = {one.value}" if one.value else "")
            yield _Item(one.line, one.line, " ".join(text.split()), fields.__getitem__, one.name)


def _flat(body: str) -> str:
    """A class's body without what stands in braces inside it: data members and heads of methods."""
    body = body.strip()
    if body.startswith("{"):
        body = body[1:]
    before = None
    while before != body:
        before, body = body, re.sub(r"\{[^{}]*\}", ";", body)
    return " ".join(body.split())


def _python_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a Python text that hold code, comments and strings of several lines left out; none of a text that
    is no Python."""
    lines = text.splitlines()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            (top, left), (bottom, right) = token.start, token.end
            if token.type == tokenize.COMMENT:
                lines[top - 1] = lines[top - 1][:left]
            elif token.type == tokenize.STRING and bottom > top:
                lines[top - 1] = lines[top - 1][:left]
                lines[bottom - 1] = " " * right + lines[bottom - 1][right:]
                for number in range(top, bottom - 1):
                    lines[number] = ""
    except (tokenize.TokenError, SyntaxError):
        return
    yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
