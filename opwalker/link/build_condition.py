"""``if(...)`` of CMake in three values.

In: the expanded arguments of a condition and a way to ask for variables, targets and files. Out: true, false or
undecided, with the text of what is left undecided. Parts that are decided drop out of that text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, Protocol

from opwalker.link.build_regex import MAX_TEXT, compile_regex
from opwalker.link.build_values import MARK, Argument, Value, is_unknown, variants
from opwalker.notation.regex import Regex


class Answer(NamedTuple):
    """``truth`` is None when undecided; ``text`` then is the condition as written, or ``negated`` what it denies."""

    truth: bool | None
    text: str
    negated: str | None = None


class Facts(Protocol):
    """What a condition may ask for."""

    def variable(self, name: str) -> Value | None:
        """The value, empty if it is unset, None if nothing in the files sets it."""

    def switch(self, name: str) -> bool | None:
        """The truth of a name that nothing sets, by itself as a condition; None if nothing is known of it."""

    def defined(self, name: str) -> bool | None:
        """Whether a variable is set, or one of the environment (``ENV{NAME}``)."""

    def exists(self, path: str) -> bool | None: ...

    def has_target(self, name: str) -> bool | None: ...

    def has_command(self, name: str) -> bool | None: ...

    def matched(self, groups: tuple[str, ...]) -> None:
        """Called with the groups of a MATCHES that holds."""


_TRUE = {"1", "ON", "YES", "TRUE", "Y"}
_FALSE = {"0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND", ""}
_IDENTIFIER = Regex(r"[A-Za-z_][\w.+/-]*\Z")
_NUMBER = Regex(r"[+-]?\d+(?:\.\d+)?\Z")


def constant_truth(text: str) -> bool | None:
    """The truth of a literal, None if it is not one of CMake's constants."""
    upper = text.upper()
    if upper in _TRUE:
        return True
    if upper in _FALSE or upper.endswith("-NOTFOUND"):
        return False
    if _NUMBER.match(text):
        return float(text) != 0
    return None


def value_truth(items: Value) -> bool | None:
    """The truth of a variable's value."""
    if not items:
        return False
    found = variants(items)
    if found is None:
        # A list of several elements is never one of the constants for false.
        certain = [item for item in items if not item.guard and not _may_be_nothing(item.text)]
        return True if len(certain) > 1 or any(constant_truth(i.text) is not False for i in certain) else None
    truths = {constant_truth(text) is not False for _, text in found}
    return truths.pop() if len(truths) == 1 else None


def _may_be_nothing(text: str) -> bool:
    """True for what may stand for no element at all: a reference, or a pattern over files that cannot be seen."""
    return is_unknown(text) or (MARK in text and "*" in text)


def evaluate(arguments: list[Argument], facts: Facts) -> Answer:
    """Evaluate the arguments of ``if``, ``elseif`` or ``while``. Faulty conditions are undecided."""
    reader = _Reader(arguments, facts)
    answer = reader.any_of()
    return answer if reader.done() else Answer(None, _written(arguments))


def _written(arguments: list[Argument]) -> str:
    return " ".join(f'"{a.raw}"' if a.quoted else a.raw for a in arguments)


def compare_versions(left: str, right: str) -> int:
    """-1, 0 or 1 for dotted numbers; anything behind the number of a component is left out."""
    a, b = _version(left), _version(right)
    width = max(len(a), len(b))
    a += [0] * (width - len(a))
    b += [0] * (width - len(b))
    return (a > b) - (a < b)


def _version(text: str) -> list[int]:
    numbers: list[int] = []
    for component in text.split("."):
        digits = re.match(r"\d+", component)
        if digits is None:
            break
        numbers.append(int(digits.group()[:18]))
        if digits.end() != len(component):
            break
    return numbers


def _numbers(operator: Callable[[float, float], bool]) -> Callable[[str, str], bool | None]:
    def compare(left: str, right: str) -> bool | None:
        if not (_NUMBER.match(left) and _NUMBER.match(right)):
            return False
        return operator(float(left), float(right))

    return compare


_COMPARISONS: dict[str, Callable[[str, str], bool | None]] = {
    "STREQUAL": lambda a, b: a == b,
    "STRLESS": lambda a, b: a < b,
    "STRGREATER": lambda a, b: a > b,
    "STRLESS_EQUAL": lambda a, b: a <= b,
    "STRGREATER_EQUAL": lambda a, b: a >= b,
    "PATH_EQUAL": lambda a, b: a.rstrip("/") == b.rstrip("/"),
    "EQUAL": _numbers(lambda a, b: a == b),
    "LESS": _numbers(lambda a, b: a < b),
    "GREATER": _numbers(lambda a, b: a > b),
    "LESS_EQUAL": _numbers(lambda a, b: a <= b),
    "GREATER_EQUAL": _numbers(lambda a, b: a >= b),
    "VERSION_EQUAL": lambda a, b: compare_versions(a, b) == 0,
    "VERSION_LESS": lambda a, b: compare_versions(a, b) < 0,
    "VERSION_GREATER": lambda a, b: compare_versions(a, b) > 0,
    "VERSION_LESS_EQUAL": lambda a, b: compare_versions(a, b) <= 0,
    "VERSION_GREATER_EQUAL": lambda a, b: compare_versions(a, b) >= 0,
}
_BINARY = {*_COMPARISONS, "MATCHES", "IN_LIST", "IS_NEWER_THAN"}
_UNARY = {"EXISTS", "DEFINED", "TARGET", "COMMAND", "POLICY", "TEST", "IS_DIRECTORY", "IS_ABSOLUTE", "IS_SYMLINK"}
_WORDS = {*_BINARY, *_UNARY, "AND", "OR", "NOT"}


def _is_outside_name(text: str) -> bool:
    """True for a bare word on the left that reads like a variable which something outside the files sets."""
    return _IDENTIFIER.match(text) is not None and text != text.lower()


class _Reader:
    """Recursive descent over the arguments of one condition."""

    def __init__(self, arguments: list[Argument], facts: Facts) -> None:
        self._arguments = arguments
        self._facts = facts
        self._position = 0
        self._depth = 0

    def done(self) -> bool:
        return self._position >= len(self._arguments)

    def _word(self, offset: int = 0) -> str:
        """The keyword at this place, or ""; a quoted argument is never one."""
        index = self._position + offset
        if index >= len(self._arguments):
            return ""
        argument = self._arguments[index]
        return argument.raw if not argument.quoted and (argument.raw in _WORDS or argument.raw in "()") else ""

    def any_of(self) -> Answer:
        return self._chain("OR", self._all_of, decisive=True)

    def _all_of(self) -> Answer:
        return self._chain("AND", self._negation, decisive=False)

    def _chain(self, word: str, operand: Callable[[], Answer], decisive: bool) -> Answer:
        answers = [operand()]
        while self._word() == word:
            self._position += 1
            answers.append(operand())
        if any(answer.truth is decisive for answer in answers):
            return Answer(decisive, "")
        undecided = [answer for answer in answers if answer.truth is None]
        if not undecided:
            return Answer(not decisive, "")
        if len(undecided) == 1:
            return undecided[0]
        open_texts = [answer.text for answer in undecided]
        if word == "AND":
            open_texts = [f"({text})" if " OR " in text else text for text in open_texts]
        return Answer(None, f" {word} ".join(open_texts))

    def _negation(self) -> Answer:
        if self._word() != "NOT":
            return self._test()
        self._position += 1
        self._depth += 1
        inner = self._negation() if self._depth < 50 else Answer(None, "")
        self._depth -= 1
        if inner.truth is not None:
            return Answer(not inner.truth, "")
        if inner.negated is not None:
            return Answer(None, inner.negated)
        compound = " AND " in inner.text or " OR " in inner.text
        return Answer(None, f"NOT ({inner.text})" if compound else f"NOT {inner.text}", inner.text)

    def _test(self) -> Answer:
        word = self._word()
        if word == "(":
            return self._parenthesis()
        if word in _UNARY and self._position + 1 < len(self._arguments):
            operand = self._arguments[self._position + 1]
            self._position += 2
            truth = self._unary(word, operand)
            return Answer(truth, "" if truth is not None else f"{word} {_written([operand])}")
        if self.done():
            return Answer(None, "")
        left = self._arguments[self._position]
        operator = self._word(1)
        if operator in _BINARY and self._position + 2 < len(self._arguments):
            right = self._arguments[self._position + 2]
            self._position += 3
            truth = self._binary(operator, left, right)
            return Answer(truth, "" if truth is not None else f"{_written([left])} {operator} {_written([right])}")
        self._position += 1
        truth = self._single(left)
        return Answer(truth, "" if truth is not None else self._name(left))

    def _parenthesis(self) -> Answer:
        self._position += 1
        self._depth += 1
        answer = self.any_of() if self._depth < 50 else Answer(None, "")
        self._depth -= 1
        if self._word() == ")":
            self._position += 1
        return answer

    @staticmethod
    def _name(argument: Argument) -> str:
        return argument.raw if not argument.quoted else f'"{argument.raw}"'

    def _single(self, argument: Argument) -> bool | None:
        found = variants(argument.items)
        if found is None:
            return None
        truths = {self._text_truth(text, argument) for _, text in found}
        return truths.pop() if len(truths) == 1 else None

    def _text_truth(self, text: str, argument: Argument) -> bool | None:
        constant = constant_truth(text)
        if constant is not None:
            return constant
        if argument.quoted:
            return False
        value = self._facts.variable(text)
        if value is None:
            return self._facts.switch(text) if text == argument.raw else None
        return value_truth(value)

    def _unary(self, word: str, operand: Argument) -> bool | None:
        found = variants(operand.items)
        if found is None or len(found) != 1:
            return None
        text = found[0][1]
        if word == "DEFINED":
            if text.startswith("ENV{"):
                return self._facts.defined(text)
            return self._facts.defined(text.removeprefix("CACHE{").rstrip("}"))
        if word == "EXISTS" or word == "IS_DIRECTORY":
            return self._facts.exists(text)
        if word == "IS_ABSOLUTE":
            return text.startswith("/")
        if word == "TARGET":
            return self._facts.has_target(text)
        if word == "COMMAND":
            return self._facts.has_command(text)
        return True if word == "POLICY" else None

    def _binary(self, operator: str, left: Argument, right: Argument) -> bool | None:
        if operator == "IN_LIST":
            return self._in_list(left, right)
        lefts = self._operand(left, leftmost=True)
        rights = self._operand(right, leftmost=False)
        if lefts is None or rights is None:
            return None
        truths = {self._compare(operator, a, b) for a in lefts for b in rights}
        return truths.pop() if len(truths) == 1 else None

    def _compare(self, operator: str, left: str, right: str) -> bool | None:
        if operator == "MATCHES":
            regex = compile_regex(right)
            if regex is None or len(left) > MAX_TEXT:
                return None
            match = regex.search(left)
            if match:
                self._facts.matched((match.group(), *(group or "" for group in match.groups())))
            return match is not None
        compare = _COMPARISONS.get(operator)
        return compare(left, right) if compare else None

    def _operand(self, argument: Argument, leftmost: bool) -> list[str] | None:
        """The texts that an operand may stand for: of the variable it names, if there is one."""
        found = variants(argument.items)
        if found is None:
            return None
        texts: list[str] = []
        for _, text in found:
            value = None if argument.quoted or not _IDENTIFIER.match(text) else self._facts.variable(text)
            if value is not None:
                named = variants(value)
                if named is None:
                    return None
                texts.extend(string for _, string in named)
            elif leftmost and text == argument.raw and not argument.quoted and _is_outside_name(text):
                return None
            else:
                texts.append(text)
        return texts

    def _in_list(self, left: Argument, right: Argument) -> bool | None:
        lefts = self._operand(left, leftmost=True)
        found = variants(right.items)
        if lefts is None or len(lefts) != 1 or found is None or len(found) != 1:
            return None
        value = self._facts.variable(found[0][1])
        if value is None:
            return None
        if any(item.text == lefts[0] and not item.guard for item in value):
            return True
        if any(is_unknown(item.text) or item.text == lefts[0] for item in value):
            return None
        return False
