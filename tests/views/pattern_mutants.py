"""Pages of the catalogue with one condition of the query turned or left out: which of them no example tells from the
right one.

``python -m tests.views.pattern_mutants [PATTERN …]`` prints them, and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from opwalker import pipeline
from opwalker.asking import asked
from opwalker.model.patterns import Clause, Condition, Demand, Pattern, PatternExample
from opwalker.notation.pattern_query import print_query
from opwalker.views.pattern_pages import load_pages
from opwalker.views.patterns import everything

#: What takes a name and keeps nothing out.
_ANY = re.compile(r"\^\(\?P<\w+>(?:\.\*|\\w\+|\[\\w:\]\+)\)\$")
#: Words that a line of Python is looked for by, before the expression that says what it is.
_WORDS = re.compile(r"\w+(?:\|\w+)*")
_TURNED = {"~": "!~", "!~": "~", "=": "!=", "!=": "=", "with": "without", "without": "with"}


def mutants(query: Sequence[Clause]) -> Iterator[tuple[Clause, ...]]:
    """The queries that differ in one place: a condition turned or left out, a demand turned or left out, a clause left
    out."""
    for number, clause in enumerate(query):
        before, after = tuple(query[:number]), tuple(query[number + 1 :])
        if before or after:
            yield before + after
        for demands in _changed(clause.demands):
            yield (*before, Clause(demands), *after)


def _changed(demands: Sequence[Demand]) -> Iterator[tuple[Demand, ...]]:
    for number, demand in enumerate(demands):
        before, after = tuple(demands[:number]), tuple(demands[number + 1 :])
        if demand.role != "find":
            yield before + after
        if demand.role in _TURNED:
            yield (*before, replace(demand, role=_TURNED[demand.role]), *after)
        for conditions in _otherwise(demand):
            yield (*before, replace(demand, conditions=conditions), *after)


def _otherwise(demand: Demand) -> Iterator[tuple[Condition, ...]]:
    for number, one in enumerate(demand.conditions):
        before, after = demand.conditions[:number], demand.conditions[number + 1 :]
        yield (*before, replace(one, operator=_TURNED[one.operator]), *after)
        quick = demand.subject == "python" and _WORDS.fullmatch(one.value)
        if (before or after) and not quick and not _ANY.fullmatch(one.value):
            yield before + after


def survivors(pattern: Pattern, folder: Path, cache: Path) -> tuple[int, list[str]]:
    """How many mutants a page has, and the queries of those that find what the page marks and nothing else."""
    turned = {str(number): replace(pattern, id=str(number), query=query)
              for number, query in enumerate(mutants(pattern.query))}  # fmt: skip
    alive = set(turned)
    for name, examples in (("matches", pattern.matches), ("misses", pattern.misses)):
        wanted = {(one.name, line) for one in examples for line in one.marked if name == "matches"}
        found = _found([pattern, *turned.values()], examples, folder / name, cache)
        if found[pattern.id] != wanted:
            raise ValueError(f"{pattern.id} is wrong on its own examples")
        alive -= {number for number in alive if found[number] != wanted}
    return len(turned), [print_query(turned[number].query) for number in sorted(alive, key=int)]


def _found(
    patterns: Sequence[Pattern], examples: Sequence[PatternExample], folder: Path, cache: Path
) -> dict[str, set[tuple[str, int]]]:
    """The places of every pattern in some files."""
    folder.mkdir(parents=True)
    for one in examples:
        (folder / one.name).write_text(one.text, encoding="utf-8")
    options = pipeline.Options(source=str(folder), cache=cache, jobs=1)
    found: dict[str, set[tuple[str, int]]] = {pattern.id: set() for pattern in patterns}
    for hit in asked(options, None, None, lambda session: everything(session, list(patterns))):
        found[hit.id].add((hit.file, hit.line))
    return found


def main(names: Sequence[str]) -> int:
    """Print what no example notices."""
    left = 0
    with tempfile.TemporaryDirectory() as held:
        for pattern, _ in load_pages(None):
            if names and pattern.id not in names:
                continue
            total, alive = survivors(pattern, Path(held) / pattern.id, Path(held) / "cache")
            left += len(alive)
            print(f"{pattern.id}: {total - len(alive)} of {total} noticed", flush=True)
            for query in alive:
                print("    " + query.replace("\n", "\n    ") + "\n", flush=True)
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
