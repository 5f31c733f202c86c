"""What the source itself says of who owns something: comments above the functions on a walk and in their classes.

In: the functions that a walk entered. Out: one ``PlaceFact`` a sentence, in the comment's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.expand.workbench import Workbench
from opwalker.model.owning import PlaceFact
from opwalker.model.reach import Reach
from opwalker.notation.regex import Regex

_OWNS = Regex(
    r"\b(?:(?:not|never|n't|to|must|should|will|both|can) own|owns|owned|ownership|owner of|borrow(?:s|ed)"
    r"|keeps? (?:it|them) alive|outlives?|responsible for (?:free|releas|delet)\w*"
    r"|must (?:be )?(?:freed?|released?|outlive))\b",
    re.IGNORECASE,
)
_COMMENT = Regex(r"/\*.*?\*/|(?://[^\n]*(?:\n[ \t]*(?=//)|))+", re.DOTALL)
_MOST = 6


def words_of(workbench: Workbench, reach: Reach) -> Iterator[PlaceFact]:
    """Sentences of comments that speak of owning, of classes and functions on the way."""
    index = workbench.index
    told: dict[PlaceFact, None] = {}
    seen: set[tuple[str, int, int]] = set()
    for path, function, _ in reach.functions:
        text = index.part(path, function.offset, function.body_end)
        facts = index.declared(path)
        spans = [(function.offset, function.body_end)]
        if function.scope and facts is not None:
            spans += [(c.body_start, c.body_end) for c in facts.classes if c.name == function.scope[-1]]
        for start, end in spans:
            if (path, start, end) in seen:
                continue
            seen.add((path, start, end))
            index.part(path, start, end)
            for found in _COMMENT.finditer(text, _above(text, start), max(start, end)):
                for sentence, at in _sentences(found[0]):
                    if _OWNS.search(sentence.partition(". ")[0]) and not re.search(r"[{};]|\w\(.*\)\s*;", sentence):
                        line = text.count("\n", 0, found.start()) + 1 + at
                        told[PlaceFact(sentence, path, line)] = None
    yield from list(told)[:_MOST]


def _above(text: str, start: int) -> int:
    """Where the comment directly above an offset begins."""
    begin = text.rfind("\n", 0, start) + 1
    while begin > 0:
        before = text.rfind("\n", 0, begin - 1) + 1
        if not re.match(r"\s*(?://|\*|/\*)", text[before:begin]):
            return begin
        begin = before
    return 0


def _sentences(comment: str) -> Iterator[tuple[str, int]]:
    """The sentences of a comment, each with the number of the line that it begins on."""
    lines = [re.sub(r"\A\s*(?:/\*+|\*+/?|//+!?<?)\s?|\s*\*+/\s*\Z", "", line).strip() for line in comment.split("\n")]
    held: list[str] = []
    first = 0
    for number, line in enumerate([*lines, ""]):
        if not line:
            yield from _split(" ".join(held), first) if held else ()
            held = []
            continue
        if not held:
            first = number
        held.append(line)


def _split(paragraph: str, first: int) -> Iterator[tuple[str, int]]:
    """Each sentence with the one behind it, which often says what follows from it."""
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", paragraph)
    for number, sentence in enumerate(sentences):
        yield " ".join(one.strip() for one in (sentence, *sentences[number + 1 : number + 2])), first
