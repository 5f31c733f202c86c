"""Functions whose parameters stand under conditions of their own (``void f(int a, #if WIDE … #endif int b)``).

In: the readings of a function that the facts hold, each for one choice of all branches in its head. Out: where the
build chooses another mixture than any of them, one function with the parameters that the build reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from msgspec.structs import replace

from opwalker.expand.files import Files
from opwalker.expand.macros import MacroTable
from opwalker.expand.preprocess import Preprocessor
from opwalker.facts.cpp_functions import placed_parameters
from opwalker.facts.cpp_heads import parse_function
from opwalker.model.cpp import CppFacts, Function


class Settled:
    """Settles readings for one build's macros."""

    def __init__(self, files: Files, macros: MacroTable, preprocessor: Preprocessor) -> None:
        self._files = files
        self._macros = macros
        self._preprocessor = preprocessor

    def functions(self, path: str, facts: CppFacts) -> tuple[Function, ...]:
        """The functions of a file, with those of which no reading is the build's."""
        if len({function.offset for function in facts.functions}) == len(facts.functions):
            return facts.functions
        readings: dict[int, list[Function]] = {}
        for function in facts.functions:
            readings.setdefault(function.offset, []).append(function)
        out: dict[int, Function] = {}
        for offset, same in readings.items():
            if len(same) > 1 and (settled := self._settled(path, facts, same)) is not None:
                out[offset] = settled
        if not out:
            return facts.functions
        kept = (f for f in facts.functions if f.offset not in out or f is readings[f.offset][0])
        return tuple(out.get(f.offset, f) for f in kept)

    def _settled(self, path: str, facts: CppFacts, same: list[Function]) -> Function | None:
        terms = [facts.conditions[f.condition] for f in same]
        if len({f.body_start for f in same}) > 1 or any(map(self._holds, repeat(path), terms, same)):
            return None
        outer = _common(terms)
        if outer not in facts.conditions or not self._holds(path, outer, same[0]):
            return None
        like = self._like(path, same)
        if like is None:
            return None
        placed = [p for f in same for p in f.parameters]
        if not placed:
            return None
        start, end = min(p.offset for p in placed), max(p.end for p in placed)
        text = self._preprocessor.span(path, start, end, path).full
        parameters = placed_parameters(text, (0, len(text)), end, end)
        return replace(like, parameters=parameters, condition=facts.conditions.index(outer))

    def _like(self, path: str, same: list[Function]) -> Function | None:
        """The reading with what the build reads before the name: a kernel, or none, with its template head. None where
        that is not read as a head."""
        if len({("global" in function.flags, function.template) for function in same}) == 1:
            return same[0]
        # The head begins behind what stands before it, in any branch.
        plain = self._files.view(path).blanked.plain
        start = 1 + max(plain.rfind(end, 0, same[0].offset) for end in ";{}")
        text = self._preprocessor.span(path, start, same[0].offset, path).full
        like = next((f for f in same if ("global" in f.flags) is ("__global__" in text)), same[0])
        if len({function.template for function in same}) == 1:
            return like
        head = parse_function(f"{text} {like.name}()", None)
        return replace(like, template=head.template) if head is not None else None

    def _holds(self, path: str, terms: tuple[str, ...], function: Function) -> bool:
        return self._macros.truth(path, terms, function.offset, path) is not False


def _common(terms: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """What several conditions begin with: that of the declaration, before those of the branches in its head."""
    out: list[str] = []
    for those in zip(*terms, strict=False):
        if len(set(those)) > 1:
            break
        out.append(those[0])
    return tuple(out)
