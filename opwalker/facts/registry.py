"""Which functions read which language, and the digest of the code that they consist of.

In: nothing. Out: extractors by language, and rounds that read some files again once others are known. Functions are
named, not imported: a worker process imports those that it needs, and a warm start imports none.

An extractor ``f(source: SourceFile)`` gives a facts record whose fields all have defaults, one of them ``problems``.
Its facts depend on the text alone, not on the path: they are kept by content digest. A function ``names(facts)`` in the
same module, where there is one, gives ``(name, kind)`` pairs for the store's table of names.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from msgspec import Struct

from opwalker import resources
from opwalker.model.source import Problem

#: The kind under which problems stand in the store's table of names, so that they are listed without decoding facts.
PROBLEM = "problem"
#: Longer messages of problems are cut there.
MESSAGE_LENGTH = 500

_PACKAGE = Path(__file__).resolve().parents[1]


class Extractor(Struct, frozen=True):
    """One kind of facts. ``function`` and ``facts`` (the record) are spelt ``package.module:name``.

    ``sources`` are the files whose code makes the facts, as patterns ``folder/name*.py`` relative to the package or
    ``grammars/…``; facts made by other code are not used.
    """

    kind: str
    function: str
    facts: str
    sources: tuple[str, ...]


class Round(Struct, frozen=True):
    """A second reading of the files in ``language`` that matter, each for the names that matter in it.

    ``prepare`` names a function of ``{path: facts of the kind first}`` and of what was kept of an earlier state of the
    tree, as a function of a part's name; ``needed`` one of the same facts, of ``{path: facts by extractor}`` found so
    far and of what ``prepare`` gave, which gives ``{path: names}`` of the files to read, or to read again for more
    names. It is asked until it says nothing new; then ``keep``, a function of what ``prepare`` gave, gives what is to
    be kept as ``{part: bytes}``. ``sources`` are the files whose code these functions consist of, as in ``Extractor``.

    The extractor's function is called as ``f(source, names, known)``; ``known`` are the facts of the same text for
    fewer names, or None. Its facts have a field ``watched``, the names that they were read for. Facts for more names
    than needed must do no harm.
    """

    language: str
    first: str
    extractor: Extractor
    needed: str
    prepare: str
    keep: str
    sources: tuple[str, ...]


class Registry(Struct, frozen=True):
    """Extractors by language, and the rounds after them in order."""

    extractors: Mapping[str, tuple[Extractor, ...]]
    rounds: tuple[Round, ...] = ()

    def all(self) -> dict[str, Extractor]:
        """Every extractor by its kind."""
        found = {extractor.kind: extractor for row in self.extractors.values() for extractor in row}
        return found | {round_.extractor.kind: round_.extractor for round_ in self.rounds}


_CPP = Extractor(
    "cpp", "opwalker.facts.cpp_scan:scan", "opwalker.model.cpp:CppFacts", ("facts/cpp_*.py", "model/cpp.py")
)
_PYTHON_LIGHT = Extractor(
    "py-light",
    "opwalker.facts.python_light:light",
    "opwalker.model.python:PyLight",
    ("facts/python_*.py", "facts/build_words.py", "notation/python_*.py", "model/python.py"),
)
_PYTHON_FULL = Extractor(
    "py-full",
    "opwalker.facts.python_full:full",
    "opwalker.model.python:PyFacts",
    ("facts/python_*.py", "facts/build_words.py", "notation/python_*.py", "model/python.py"),
)

REGISTRY = Registry(
    extractors={"cuda": (_CPP,), "cpp": (_CPP,), "python": (_PYTHON_LIGHT,)},
    rounds=(
        Round(
            "python",
            "py-light",
            _PYTHON_FULL,
            needed="opwalker.link.python_scope:needed_in",
            prepare="opwalker.link.python_scope:Scope",
            keep="opwalker.link.python_scope:to_keep",
            sources=("link/python_*.py", "link/stamped.py", "notation/python_*.py", "model/python.py"),
        ),
    ),
)

#: What every extractor leans on besides its own sources.
_COMMON = ("model/source.py", "source/read.py", "facts/workers*.py")


@cache
def producer(extractor: Extractor) -> str:
    """The digest of the code that makes an extractor's facts: 16 hex digits. A pattern without a file is an error."""
    # The standard library's parser is part of the code, and so is how it differs between releases of Python.
    names = f"{extractor.kind} {extractor.function} {extractor.facts} {sys.version_info[:2]}"
    return _digest(names, (*_COMMON, *extractor.sources))


@cache
def round_producer(round_: Round) -> str:
    """The digest of the code that says what a round needs: what other code kept is not used."""
    return _digest(f"{round_.language} {round_.first} {producer(round_.extractor)}", round_.sources)


def producers(registry: Registry) -> dict[str, str]:
    """``{kind: producer digest}`` of every extractor."""
    return {kind: producer(extractor) for kind, extractor in registry.all().items()}


def _digest(names: str, patterns: tuple[str, ...]) -> str:
    whole = hashlib.blake2b(names.encode(), digest_size=8)
    for pattern in patterns:
        for name, content in _contents(pattern):
            whole.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()


@cache
def _contents(pattern: str) -> tuple[tuple[str, bytes], ...]:
    folder, _, name = pattern.rpartition("/")
    top, _, below = folder.partition("/")
    place = resources.folder(top) / below if top in resources.FOLDERS else _PACKAGE / folder
    found = sorted(path for path in place.iterdir() if fnmatchcase(path.name, name))
    if not found:
        raise LookupError(f"no file of the package is called {pattern}")
    return tuple((f"{folder}/{path.name}", path.read_bytes()) for path in found)


def problem_name(problem: Problem) -> str:
    """A problem as a name for the store."""
    message = problem.message[:MESSAGE_LENGTH].replace("\t", " ").replace("\n", " ")
    return f"{problem.kind}\t{problem.line}\t{problem.column}\t{message}"


def named_problem(name: str) -> Problem:
    """The problem that ``problem_name`` gave ``name`` for."""
    kind, line, column, message = name.split("\t", 3)
    return Problem(kind, message, int(line), int(column))
