"""Small trees of Python files held in memory: read in rounds and joined, without a disk or a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opwalker.facts.python_full import full
from opwalker.facts.python_light import light
from opwalker.link.python_ops import python_ops
from opwalker.link.python_scope import Scope
from opwalker.link.stamped import HeldFacts
from opwalker.model.python import PyFacts, PyLight
from opwalker.model.source import SourceFile
from opwalker.model.walk import Op

#: No tree of a test needs more rounds; one that does has no end.
MOST_ROUNDS = 12


def source(text: str, path: str = "m.py") -> SourceFile:
    """A file's text as the source stage hands it on."""
    return SourceFile(path, text, "python", "digest")


def facts(text: str, watch: Iterable[str] = ()) -> PyFacts:
    """The full facts of one text."""
    return full(source(text), watch)


class Tree:
    """A tree of files, read as far as it matters. ``rounds`` are the files that each round asked for."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.light: dict[str, PyLight] = {path: light(source(text, path)) for path, text in files.items()}
        self.full: dict[str, PyFacts] = {}
        self.rounds: list[dict[str, frozenset[str]]] = []
        held = HeldFacts(self.light)
        scope = Scope(held)
        while wanted := scope.needed(HeldFacts(self.full)):
            self.rounds.append(wanted)
            assert len(self.rounds) <= MOST_ROUNDS
            for path, names in wanted.items():
                self.full[path] = full(source(files[path], path), names, self.full.get(path))
        self.ops = python_ops(held, HeldFacts(self.full))

    def callers(self, name: str) -> list[tuple[int, str, int, str | None, str | None]]:
        """``(depth, file, line, function, callee)`` of every call of an op."""
        found = self.ops.callers(*name.split("::"))
        return [(one.depth, one.file, one.line, one.function, one.callee) for one in found]

    def op(self, name: str) -> Op:
        """What Python registers of an op."""
        return next(op for op in self.ops.registrations.ops if op.name == name)

    def reasons(self) -> list[tuple[str, int, str]]:
        """``(kind, line, reason)`` of every gap."""
        gaps = self.ops.registrations.gaps
        return [(gap.kind, gap.span.line if gap.span else 0, gap.reason) for gap in gaps]
