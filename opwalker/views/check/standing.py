"""What the changed lines of a file that lie in no function hold: what findings can stand on there, and who names it.

In: a tree, a file, changed lines. Out: the functions whose comments or heads they are, the names that are declared on
them, and whether they hold anything of which that is not known. A finding stands on such a line because a function
names what is declared there: a macro, a class, a member, a variable, an alias, a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from opwalker.model.cpp import CppFacts
from opwalker.model.statements import Routine
from opwalker.notation.regex import Regex

if TYPE_CHECKING:
    from opwalker.views.check.tree import Tree

_WORD = Regex(r"[A-Za-z_]\w*")
#: How long the head of a function is before its name.
_HEAD = 8
#: What a comment says that excuses a finding on the next line.
_EXCUSE = "opwalker:"
_BLANK = Regex(r"\s*\Z")
_COMMENT = Regex(r"\s*(?://|/\*|\*)")
#: Lines on which nothing is declared: directives, brackets, the heads of namespaces.
_EMPTY = Regex(
    r'\s*(?:#\s*(?!define\b)|(?:(?:inline\s+)?namespace\b[^;={]*|extern\s+"C(?:\+\+)?"\s*)?[{}();,\s]*(?://.*)?\Z)'
)


class Standing(Struct, frozen=True):
    """``routines`` are those whose comments or heads were changed; ``names`` are declared on changed lines, ``types``
    are those of classes, aliases and members among them. ``wide``: there is more, and every function that reads the
    file may name it. ``comment``: a comment was changed that stands above something else than a directive, or code."""

    routines: tuple[Routine, ...]
    names: frozenset[str]
    types: frozenset[str]
    wide: bool
    comment: bool


def standing(tree: Tree, file: str, inside: Sequence[Routine], ranges: Iterable[tuple[int, int]]) -> Standing:
    """What stands on the changed lines of a file besides its functions, which are ``inside``."""
    lines = tree.text(file).split("\n")
    covered = {at for one in inside for at in range(one.line, one.end_line + 1)}
    routines: list[Routine] = []
    code: list[int] = []
    comment = wide = False
    for first, last in ranges:
        for at in range(first, min(last, len(lines)) + 1):
            if at in covered or _BLANK.match(lines[at - 1]):
                continue
            if not _COMMENT.match(lines[at - 1]):
                comment = True
                if not _EMPTY.match(lines[at - 1]):
                    code.append(at)
            elif _EXCUSE in lines[at - 1]:
                wide = comment = True
            else:
                start = next((n for n in range(at + 1, len(lines) + 1) if not _is_apart(lines[n - 1])), len(lines) + 1)
                head = [one for one in inside if start <= one.line <= start + _HEAD]
                routines += head[:1]
                comment |= not head and start <= len(lines) and not lines[start - 1].lstrip().startswith("#")
    names: set[str] = set()
    types: set[str] = set()
    if code and not wide:
        held = list(_declared(tree, file))
        for at in code:
            there = [one for one in held if one.first <= at <= one.last]
            heads = [one for one in inside if any(found.head == one.line for found in there)]
            wide |= not there
            routines += heads
            names.update(name for one in there for name in one.names)
            types.update(name for one in there if one.types for name in one.names)
    return Standing(tuple(routines), frozenset(names - {""}), frozenset(types - {""}), wide, comment)


def _is_apart(line: str) -> bool:
    return bool(_BLANK.match(line) or _COMMENT.match(line))


class _Declared(Struct, frozen=True):
    """Lines on which names are declared; ``head`` is the line of a function's name whose head they are."""

    first: int
    last: int
    names: tuple[str, ...]
    types: bool = False
    head: int | None = None


def _declared(tree: Tree, file: str) -> Iterator[_Declared]:
    facts = tree.facts(file)
    if facts is None:
        return
    line, code = tree.lines(file)
    for macro in facts.macros:
        yield _Declared(macro.line, macro.end_line, (macro.name,))
    for function in facts.functions:
        head = function.line if function.body_end else None
        last = line(function.body_start) if function.body_end else max(function.line, function.end_line)
        yield _Declared(min(function.start_line, function.line), last, (function.name,), head=head)
    for one in facts.classes:
        yield _Declared(one.line, line(one.body_start), (one.name,), types=True)
        # What else lies in a class, a member or a function of it names.
        yield _Declared(one.line, one.end_line, ())
        yield from (_Declared(at, at, (name,), types=True) for name, _, at in tree.fields(file, one))
    yield from _short(facts, line, code)


def _short(facts: CppFacts, line: Callable[[int], int], code: str) -> Iterator[_Declared]:
    """Declarations that end with a semicolon."""
    for one in (*facts.enums, *facts.aliases, *facts.variables):
        end = code.find(";", one.offset)
        members = tuple(name for name, _ in getattr(one, "members", ()))
        yield _Declared(one.line, line(end) if end >= 0 else one.line, (one.name, *members), types=True)


def naming_any(tree: Tree, named: Mapping[str, Standing]) -> Iterator[Routine]:
    """The functions that name anything of what is declared on some lines, by file, and perhaps others."""
    if not named:
        return
    makers = _makers(tree) if any(one.types for one in named.values()) else {}
    for path in tree.including(named):
        read = tree.included(path)
        held = [found for file, found in named.items() if file in read]
        names = {name for one in held for name in one.names}
        yield from tree.mentioning(path, names | _made_of({name for one in held for name in one.types}, makers))


def _made_of(names: set[str], makers: Mapping[str, set[str]]) -> set[str]:
    """The classes and aliases that are made of types of some names, or of such ones; these among them."""
    out, pending = set(names), set(names)
    while pending:
        pending = {other for name in pending for other in makers.get(name, ())} - out
        out |= pending
    return out


def _makers(tree: Tree) -> dict[str, set[str]]:
    """The classes and aliases in whose declarations a name stands, by name."""
    out: dict[str, set[str]] = {}
    for path in sorted(tree.compiled):
        facts = tree.facts(path)
        if facts is None:
            continue
        held = [(one.name, one.target) for one in facts.aliases]
        text = tree.text(path) if facts.classes else ""
        held += [(one.name, " ".join((*one.bases, text[one.body_start : one.body_end]))) for one in facts.classes]
        for name, said in held:
            for word in set(_WORD.findall(said)):
                out.setdefault(word, set()).add(name)
    return out
