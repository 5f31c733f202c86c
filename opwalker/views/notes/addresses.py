"""How a kernel addresses documented tensors, in a note: whether its index is that of the documented shape.

In: the layout facts of a kernel. Out: a statement a tensor and verdict, each access below.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from opwalker.model.layout import IndexName, LayoutFact, UntoldFact
from opwalker.model.notes import Statement, Text
from opwalker.notation.regex import Regex
from opwalker.views.notes.words import code, line, listed, marked, say, statement

_VERDICTS = {
    "equal": " is addressed as its documented shape ",
    "equal_with_strides": " is addressed as its documented shape, with strides that the host passes: ",
    "differs": " is **not** addressed as its documented shape ",
    "undocumented": " has no documented shape; how it is addressed:",
    "not_decided": ": not decided whether it is addressed as its documented shape ",
}

#: What is said in brackets behind a condition that is an expression.
_ASIDE = Regex(r"( \((?:the host |checked at ).*\)\Z)")
_ACCESS = {"read": "read", "write": "written", "passed on": "its address passed on"}


def address_statements(facts: Iterable[LayoutFact]) -> Iterator[Statement]:
    """Accesses of one tensor with one verdict stand under one statement."""
    groups: dict[tuple[str, str, str, str], list[LayoutFact]] = {}
    for fact in facts:
        groups.setdefault((fact.parameter, fact.documented, fact.verdict, fact.reason or ""), []).append(fact)
    for (parameter, documented, verdict, reason), found in groups.items():
        # What every access takes is asked of the tensor; else each access says what it takes itself.
        common = [text for text in found[0].requires if all(text in fact.requires for fact in found)]
        below = [_access(fact, common) for fact in found]
        names = _names(parameter, documented)
        below += [statement("This holds where ", marked(text, names), ".") for text in common]
        why = (": ", marked(reason, [parameter])) if reason else ()
        at = [fact.documented_at for fact in found[:1]]
        shape = (code(documented), *why, ".") if documented else ()
        said: Sequence[str | Text] = (_VERDICTS[verdict], *shape)
        if not documented and why:
            said = (" has no documented shape, and an index of it is not worked out", *why, ".")
        yield statement(code(parameter), *said, at=at, below=below)


def untold_statement(untold: Iterable[UntoldFact]) -> Iterator[Statement]:
    """That not every access of a kernel is described."""
    names = [one for one in untold if one.parameter]
    below = [
        statement(code(one.parameter), f": {one.ways} more {'way' if one.ways == 1 else 'ways'} of access.")
        if one.ways
        else statement(code(one.parameter), ": none is described.")
        for one in names
    ]
    if any(not one.parameter for one in untold):
        below.append(statement("Further accesses were not looked at."))
    if below:
        yield statement("Accesses that are not described:", below=below)


def name_statements(facts: Iterable[LayoutFact], told: Collection[str] = ()) -> Iterator[Statement]:
    """What the names in the indexes of one kernel hold, each once, but for those that are ``told`` already; of two
    things of one name neither is told."""
    held: dict[str, IndexName] = {}
    other: set[str] = set()
    for one in (name for fact in facts for name in fact.names):
        if held.setdefault(one.name, one) != one:
            other.add(one.name)
    for one in held.values():
        if one.name in other or one.name in told:
            continue
        parts: list[str | Text] = [code(one.name), " is "]
        parts += [code(one.value)] if one.value else []
        for number, (under, value) in enumerate(one.cases):
            parts += [", " if number else "", code(value), " where ", code(under)]
        yield statement(*parts, ".")


def _names(parameter: str, documented: str) -> list[str]:
    return [parameter, *re.findall(r"[A-Za-z_]\w*", documented)]


def _given(text: str, fact: LayoutFact) -> Text:
    """A condition in words, or one that is an expression as it is."""
    if re.search(r"[=<>%]", text) and " is " not in text:
        parts = _ASIDE.split(text, 1)
        return (*code(parts[0]), *say("".join(parts[1:])))
    return marked(text, _names(fact.parameter, fact.documented))


def _access(fact: LayoutFact, common: Sequence[str]) -> Statement:
    """One access: how, where the index is, dimension by dimension, what that takes for granted, and what it alone
    requires."""
    how = " and ".join(_ACCESS.get(word, word) for word in fact.access.split(", "))
    inside = (" in ", code(fact.through)) if fact.through else ()
    inside += (", under tests of its own",) if fact.tests_more else ()
    where = (", where ", code(fact.under)) if fact.under else ()
    width = (", ", _width(fact.width), " at a time") if fact.width else ()
    computed = (", at ", code(fact.computed)) if fact.computed else ()
    below = [*_coordinates(fact)]
    below += [statement("Given that ", _given(text, fact), ".") for text in dict.fromkeys(fact.given)]
    own = [text for text in fact.requires if text not in common]
    names = _names(fact.parameter, fact.documented)
    below += [statement("For this access it holds where ", marked(text, names), ".") for text in own]
    return statement(
        f"{how[0].upper()}{how[1:]}", *inside, *where, *computed, *width, ".",
        at=[line(fact.file, number) for number in (fact.line, *fact.also_at)], below=below,
    )  # fmt: skip


def _width(text: str) -> Text:
    """``4 elements``, ``lanes elements``: what is no number is code."""
    counted = [one.removesuffix(" elements").removesuffix(" element") for one in text.split(" or ")]
    if len(counted) > 1 or counted[0].isdigit():
        return marked(text)
    return (*code(counted[0]), *say(" elements"))


def _coordinates(fact: LayoutFact) -> Sequence[Statement]:
    parts = [part for part in fact.coordinates if part.value != "0"]
    if not parts:
        return ()
    return [
        statement("That is ", listed([(*code(p.value), *statement(" along ").text, *code(p.dim)) for p in parts]), ".")
    ]
