"""Where the patterns of the catalogue are in a source, and which of them a walk passes.

In: a session, pages, and what was asked; or places that a walk passes. Out: ``PatternHit`` and ``PatternRef`` values.
Every function, macro, class and variable that the build reads is looked at once; the whole answer is kept until a file
or a page changes, and narrowed by what was asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from opwalker.expand.files import Files
from opwalker.expand.routines import RoutineReader
from opwalker.expand.workbench import Workbench
from opwalker.model.check import Settings
from opwalker.model.patterns import Pattern, PatternHit, PatternQuestion, PatternSearch
from opwalker.model.statements import Routine
from opwalker.model.walk import PatternRef
from opwalker.notation.regex import Regex
from opwalker.views.named_paths import lies_below, named_paths
from opwalker.views.passed import Place
from opwalker.views.pattern_match import Found, Matcher
from opwalker.views.pattern_pages import Page, chosen_pages, load_pages

if TYPE_CHECKING:
    from opwalker.views.check.tree import Tree

_WORD = Regex(r"[A-Za-z_]\w*")


def search(session, pages: Sequence[Page], question: PatternQuestion, op: str | None) -> PatternSearch:
    """The hits of a source that fit a question; ``op`` is the full name of the op it asks for."""
    asked, paths = chosen_pages(pages, question), named_paths(session.root.path, session.known, question.paths)
    state = hashlib.blake2b("\0".join(text for _, text in pages).encode("utf-8"), digest_size=12).hexdigest()
    patterns = [pattern for pattern, _ in pages]
    found = session.kept(f"patterns:{state}", tuple[PatternHit, ...], lambda: everything(session, patterns))
    ids = {pattern.id for pattern in asked}
    hits = tuple(
        one
        for one in found
        if one.id in ids and lies_below(one.file, paths) and (op is None or op in one.ops)
        and (question.text is None or question.text.lower() in one.text.lower())
    )  # fmt: skip
    return PatternSearch(source=session.source, hits=hits, searched=tuple(pattern.id for pattern in asked))


def everything(session, patterns: Sequence[Pattern]) -> tuple[PatternHit, ...]:
    """Every hit of every pattern, by pattern and place."""
    from opwalker.views.check.check import tree_of  # a walk passes patterns without what checks need

    matcher, tree = Matcher(patterns), tree_of(session, Settings())
    titles = {pattern.id: pattern.title for pattern in patterns}
    hits: dict[tuple[str, str, int], PatternHit] = {}

    def take(file: str, found: Iterable[Found], ops) -> None:
        for one in found:
            hit = PatternHit(
                one.id, titles[one.id], file, one.line, one.end_line, one.text, dict(one.captures), tuple(ops(one))
            )
            hits.setdefault((one.id, file, one.line), hit)

    for routine in tree.routines:
        take(routine.file, matcher.routine(routine), lambda _, routine=routine: tree.ops_of(routine))
    uses = _Uses(tree)
    for path in sorted(session.workbench.index.paths):
        take(path, _declared(session.workbench, matcher, path), lambda one, path=path: uses.ops(one.names, path))
    if matcher.reads_python:
        for path in tree.files("python"):
            take(path, matcher.python(session.text(path)), lambda _: ())
    order = {pattern.id: number for number, pattern in enumerate(patterns)}
    return tuple(sorted(hits.values(), key=lambda hit: (order[hit.id], hit.file, hit.line)))


def _declared(bench: Workbench, matcher: Matcher, path: str) -> list[Found]:
    facts = bench.index.declared(path)
    if facts is None:
        return []
    for made in facts.classes:
        bench.files.part(path, made.body_start, made.body_end)
    return matcher.declared(facts, bench.files.part(path).blanked.code)


class _Uses:
    """Which ops' functions name a macro, a type or a variable, in their own text or through macros that they name."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    @cached_property
    def _macros(self) -> dict[str, frozenset[str]]:
        """Names in the bodies of macros."""
        out: dict[str, set[str]] = {}
        for file in self._tree.files("cuda", "cpp"):
            for macro in self._tree.macros(file):
                if macro.body:
                    out.setdefault(macro.name, set()).update(_WORD.findall(macro.body))
        return {name: frozenset(words) for name, words in out.items()}

    @cached_property
    def _users(self) -> dict[str, list[Routine]]:
        """The functions on an op's path, by the names that they write."""
        out: dict[str, list[Routine]] = {}
        lines: dict[str, list[str]] = {}
        for routine in self._tree.routines:
            if not self._tree.ops_of(routine):
                continue
            if routine.file not in lines:
                lines[routine.file] = self._tree.text(routine.file).splitlines()
            text = "\n".join(lines[routine.file][routine.line - 1 : routine.end_line])
            for name in written(text, self._macros):
                out.setdefault(name, []).append(routine)
        return out

    def ops(self, name: str | None, file: str) -> Sequence[str]:
        """The ops whose path enters a function that names what a file declares, and includes the file."""
        users = self._users.get(name, ()) if name else ()
        return sorted({
            op
            for routine in users
            if file in self._tree.included(routine.file)
            for op in self._tree.ops_of(routine)
        })  # fmt: skip


def written(text: str, macros: dict[str, frozenset[str]]) -> set[str]:
    """The names in a text and in the macros that it names, however deep."""
    names, pending = set(), set(_WORD.findall(text))
    while pending:
        names |= pending
        pending = {word for name in pending for word in macros.get(name, ())} - names
    return names


def of_places(
    session, bench: Workbench, functions: Iterable[Place], definitions: Iterable[Place]
) -> tuple[PatternRef, ...]:
    """The patterns in some functions, and of the macros and structures at ``definitions`` and of those that they
    use."""
    unit = bench.unit()
    reader = RoutineReader(bench.files, unit.macros, unit.device_macros)
    matcher = Matcher(session.kept("pattern pages", tuple[Pattern, ...], _own_patterns, state="of this program"))
    out: dict[PatternRef, None] = {}
    defined = dict.fromkeys((one.file, one.line) for one in definitions)
    for place in functions:
        for function in bench.index.functions_at(place.file, place.line):
            routine = reader.read(place.file, function, place.file)
            defined.update(dict.fromkeys(_used(bench.files, routine)))
            for one in matcher.routine(routine):
                out[PatternRef(one.id, place.file, one.line)] = None
    for file in dict.fromkeys(file for file, _ in defined):
        for one in _declared(bench, matcher, file):
            if any(other == file and one.line <= line <= one.end_line for other, line in defined):
                out[PatternRef(one.id, file, one.line)] = None
    return tuple(sorted(out, key=lambda ref: (ref.id, ref.file, ref.line)))


def _own_patterns() -> tuple[Pattern, ...]:
    """The patterns of this program's own pages."""
    return tuple(pattern for pattern, _ in load_pages(None))


def _used(files: Files, routine: Routine) -> Iterator[tuple[str, int]]:
    """Where the macros that wrote a function's calls and launches are defined."""
    for statement in routine.walk():
        for part in (statement, *statement.calls, *statement.launches):
            if part.macro is not None and not part.macro.known:
                yield files.place(part.macro)
