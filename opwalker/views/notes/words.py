"""Small words for notes: text with code in it, places, counts, lists.

In: plain text in which a backquoted part is code. Out: runs. A value of the source goes in by ``code`` alone, so that a
backquote of its own cannot break out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from opwalker.model.held import HeldFact
from opwalker.model.notes import Cell, Run, Statement, Text
from opwalker.model.walk import Span
from opwalker.notation.outermost import outermost
from opwalker.notation.regex import Regex

_CALL = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_WORD = r"[A-Za-z_]\w*(?:(?:::|\.|->)~?\w+)*"
#: What reads as a piece of the source within a sentence: qualified, with an underscore or a call; and what it is
#: compared or combined with.
_NAME = (
    rf"!?(?:[A-Za-z_]\w*(?:(?:::|\.|->)~?\w+)+|\w*_\w*|[A-Za-z_]\w*(?=\())(?:{_CALL}|\[\w*\]|(?:\.|->)[A-Za-z_]\w*)*"
    rf"(?:\s(?:==|!=|<=|>=|<|>|%|\*|/|\+|&&|\|\|)\s(?:!?{_WORD}|\d+|{_CALL})(?:{_CALL})?)*"
)
#: Words of our own sentences: a parameter of such a name is not marked in them.
_OWN = frozenset(
    "a all an and any are as at block by each for from given has if in is last least less more most must no not of on"
    " one or other same stride than that the then thread to type where with".split()
)
_ARTICLES = frozenset(("a", "on", "at", "by", "in", "of"))
#: Words of conditions: what ``notation/check_words.py`` writes around names of the source.
_WORDS = _OWN | frozenset(
    "aligned also anything be BFloat16 Bool both branches but Byte bytes called Char contiguous counted CPU"
    " defined definition device different differs dimension dimensions divisible does Double element elements else"
    " empty equal equally equals even exactly false fewer first fits Float Float8 floating gives GPU greater Half"
    " have Int it its kind leads Long many memory neither never none nor not null number odd otherwise part point"
    " positive power rest second shape shapes Short side size sizes strided there true types UInt16 UInt32 UInt64"
    " undefined up when where while with".split()
)
_CAST = rf"(?:static|reinterpret|const)_cast<[^<>]*>{_CALL}(?:(?:\.|->)\w+{_CALL})*"
_CONVERTED = rf"\((?:float|double|int|bool|long|size_t|u?int\d+_t)\){_WORD}(?:{_CALL})?"
_TEMPLATE = rf"!?{_WORD}<(?:[^<>]|<[^<>]*>)*>(?:::\w+|{_CALL})*"
_PIECE = Regex(r"`([^`]*)`|\*\*([^*]+)\*\*")


def held_statements(facts: Iterable[HeldFact], file: str, names: Sequence[str] = ()) -> list[Statement]:
    """What locals hold, each a statement with its place."""
    return [_held(fact, file, names) for fact in facts]


def _held(fact: HeldFact, file: str, names: Sequence[str]) -> Statement:
    at = [line(file, fact.line)] if fact.line else []
    return statement(code(fact.name), " is ", held_value(fact, names), ".", at=at)


def held_value(fact: HeldFact, names: Sequence[str] = ()) -> Text:
    """What a local holds; of several cases, the first one that holds counts."""
    if fact.filled:
        return statement("what ", code(fact.value), " writes to it").text
    if not fact.cases:
        return code(fact.value)
    parts: list[str | Text] = []
    for case in fact.cases:
        parts += [", else " if parts else "", code(case.value), " where ", condition(both(case.under), names)]
    return statement(*parts).text


def say(text: str) -> Text:
    """Runs of ``text``: between backquotes code, between double asterisks strong."""
    runs: list[Run] = []
    at = 0
    for found in _PIECE.finditer(text):
        if found.start() > at:
            runs.append(Run(text[at : found.start()]))
        runs.append(Run(found[1], "code") if found[1] is not None else Run(found[2], "strong"))
        at = found.end()
    if at < len(text):
        runs.append(Run(text[at:]))
    return tuple(run for run in runs if run.text)


def code(text: str) -> Text:
    """A piece of the source, on one line: no blank is left where a line was broken behind a bracket."""
    return (Run(" ".join(text.split()).replace("( ", "("), "code"),)


def marked(text: str, names: Iterable[str | None] = ()) -> Text:
    """A sentence of the walk with what it takes from the source as code: ``names``, and what cannot be a word."""
    pattern = _pattern(frozenset(name for name in names if name and name in text and not name.isdigit()))
    runs: list[Run] = []
    at = 0
    for found in pattern.finditer(text):
        runs += [Run(text[at : found.start()]), Run(found[0].strip("`"), "code")]
        at = found.end()
    return tuple(run for run in (*runs, Run(text[at:])) if run.text)


@functools.lru_cache(maxsize=1024)
def _pattern(taken: frozenset[str]) -> re.Pattern[str]:
    """What is code in a sentence that uses some names."""
    own = "|".join(map(re.escape, sorted(taken - _OWN, key=lambda one: (-len(one), one))))
    known = rf"!?(?<![\w.>:])(?:{own})(?![\w(:])(?:(?:\.|->)[A-Za-z_]\w*(?:{_CALL})?)*|" if own else ""
    # A name that is also a word of ours stands where none of ours could: ``dimension 1 of a is``.
    alone = [rf"(?<=\b(?:of|by|on) ){name}(?=,|\.|$| is | and | equals )" for name in sorted(taken & _ARTICLES)]
    alone += [rf"(?<![\w`]){name}(?= (?:is|has|does|equals|differs|requires) )" for name in sorted(taken & _ARTICLES)]
    one = rf"(?:{known}{_NAME})"
    joined = rf"(?:\((?:[^()]|{_CALL})*\)\s[*/+%-]\s)?{one}(?:\s(?:\*|/|\+|%|<<|-)\s(?:{one}|\d+\b))*"
    return re.compile("|".join([r"`[^`]*`", r'"[^"]*"', _CAST, _CONVERTED, _TEMPLATE, *alone, joined]))


def condition(text: str, names: Iterable[str | None] = ()) -> Text:
    """A condition in words: all of it that is no word of such a sentence is taken from the source."""
    return marked(text, [*names, *(word for word in re.findall(r"[A-Za-z_]\w*", text) if word not in _WORDS)])


def message(text: str) -> Text:
    """What is said where a check fails, as one text: ``"a ", n, " b"`` is ``"a {n} b"``."""
    out: list[str] = []
    for piece in (part for one in outermost(text, ",") for part in _joined(one)):
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', piece)
        if strings and not re.sub(r'"(?:[^"\\]|\\.)*"|\s', "", piece):
            out.append("".join(strings))
        else:
            made = re.fullmatch(r"(?:std::)?(?:to_string|string)\((.*)\)", piece.strip(), re.DOTALL)
            out.append(f"{{{made[1] if made else piece.strip()}}}")
    return code(f'"{"".join(out)}"')


def _joined(text: str) -> list[str]:
    """The texts of ``"a" + b``; a sum of numbers is one piece."""
    parts = list(outermost(text, "+"))
    return parts if any(one.strip().startswith('"') for one in parts) else [text]


def sentence(*parts: str | Text) -> Text:
    """The parts with a capital letter at the start, unless a name of the source stands there, and a full stop."""
    runs = list(statement(*parts, ".").text)
    if runs[0].style == "" and not runs[0].text.startswith("#"):
        runs[0] = Run(runs[0].text[0].upper() + runs[0].text[1:])
    return tuple(runs)


def both(conditions: Iterable[str]) -> str:
    """Conditions that all hold; one that is a choice itself gets brackets."""
    texts = [_if_then(text) for text in conditions]
    return " and ".join(f"({text})" if " or " in text and len(texts) > 1 else text for text in texts)


def _if_then(text: str) -> str:
    """``where a is given, b is 1`` as a condition of its own."""
    found = re.match(r"where (.*?), (.*)", text)
    return f"(if {found[1]}, then {found[2]})" if found else text


def some(texts: Sequence[str], limit: int = 8, last: str = "and") -> Text:
    """The first of ``texts`` as code, and how many more there are."""
    if len(texts) <= limit + 1:
        return codes(texts, last)
    return (*codes(texts[:limit], ","), Run(f" and {len(texts) - limit:,} more"))


def listed(items: Sequence[Text], last: str = "and") -> Text:
    """``a, b and c``."""
    out: list[Run] = []
    for number, item in enumerate(items):
        if number:
            out.append(Run(f" {last} " if number == len(items) - 1 and last != "," else ", "))
        out.extend(item)
    return tuple(out)


def codes(texts: Iterable[str], last: str = "and") -> Text:
    """``a, b and c``, each as code."""
    return listed([code(text) for text in texts], last)


def statement(*parts: str | Text, at: Iterable[Span | None] = (), below: Iterable[Statement] = ()) -> Statement:
    """A statement of parts: plain text (see ``say``) or runs."""
    runs: list[Run] = []
    for part in parts:
        runs.extend(say(part) if isinstance(part, str) else part)
    return Statement(tuple(runs), tuple(dict.fromkeys(span for span in at if span)), tuple(below))


def an(word: str) -> str:
    """``A`` or ``An``, as it stands before a word at the start of a sentence."""
    return "An" if word[:1].lower() in "aeio" else "A"


def of_kind(kind: str) -> str:
    """A kind of resource with its article; of memory there is no number."""
    return kind if kind.endswith("memory") else f"{an(kind).lower()} {kind}"


def cell(text: str | Text, at: Span | None = None) -> Cell:
    """A cell of plain text (see ``say``) or runs."""
    return Cell(say(text) if isinstance(text, str) else text, at)


def count(number: int, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def line(file: str, number: int) -> Span:
    """The place of one line."""
    return Span(file, number, number)
