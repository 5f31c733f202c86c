"""One translation unit as clang reads it, as plain facts: calls and their targets, launches, definitions, macros.

In: a ``UnitRequest``. Out: ``ClangUnit``. Only what stands in the tree is kept, and only what host code does: bodies of
kernels and device functions are passed over. Templates are read as they are written and, beyond that, as the unit
instantiates them: there a call that depends on a parameter has its target. Runs in a worker (``facts.clang_workers``):
the library may crash, hang or grow. Nothing is compared here.
"""

from __future__ import annotations

import os
import time
from typing import Any

from opwalker.facts.clang_bodies import Bodies
from opwalker.facts.clang_kinds import CONTINUE, RECURSE, Kinds
from opwalker.facts.clang_library import Places, load, version
from opwalker.model.clang import (
    ClangFunction,
    ClangMacro,
    ClangMacroUse,
    ClangUnit,
    UnitRequest,
)
from opwalker.notation.regex import Regex

#: Errors that are shown, and the most whose places are kept.
_SHOWN_ERRORS = 3
_KEPT_ERRORS = 400

#: ``CXTranslationUnit_KeepGoing``: a header that is missing is no reason to stop.
_KEEP_GOING = 0x200

_MISSING = Regex(r"'([^']+)' file not found")


def read_unit(request: UnitRequest) -> ClangUnit:
    """The facts of one unit. Raises ``ClangMissing`` where the library is not there; what clang cannot read at all is
    said in ``unread``."""
    cindex = load()
    started = time.process_time()
    options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | _KEEP_GOING
    path = os.path.join(request.root, request.path)
    overlay = None
    own_lines = None
    if request.behind:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        own_lines = text.count("\n") + 1
        overlay = [(path, f"{text}\n{request.behind}\n")]
    try:
        unit = cindex.Index.create().parse(path, list(request.arguments), overlay, options)
    except cindex.TranslationUnitLoadError:
        return ClangUnit(request.path, clang=version(), unread="clang cannot read it with these flags")
    reader = _Reader(cindex, Places(request.root, request.outside))
    reader.read(unit.cursor)
    return reader.facts(request.path, unit.diagnostics, started, own_lines)


class _Reader:
    """One pass over a unit."""

    def __init__(self, cindex: Any, places: Places) -> None:
        self._cindex = cindex
        self._places = places
        self._kinds = Kinds(cindex)
        self._bodies = Bodies(cindex, places, self._kinds)
        self._functions: dict[tuple[str, int], ClangFunction] = {}
        self._macros: list[ClangMacro] = []
        self._macro_uses: dict[ClangMacroUse, None] = {}

    # -- walking over cursors ---------------------------------------------------------------------------------------

    def read(self, top: Any) -> None:
        """Reads all that stands in the tree, then the instances that it asks for."""
        self._bodies.visit(top, self._declaration)
        self._bodies.read_instances()

    def _declaration(self, cursor: Any, parent: Any) -> int:
        kind = cursor._kind_id
        kinds = self._kinds
        if kind == kinds.macro_use:
            self._macro_use(cursor)
            return CONTINUE
        file, line, here = self._bodies.place(cursor.location)
        if not here:
            return CONTINUE
        if kind == kinds.macro:
            self._macro(cursor, file, line)
            return CONTINUE
        if kind in kinds.scopes or kind in kinds.classes:
            return RECURSE
        if kind in kinds.functions:
            self._function(cursor, file, line)
            return CONTINUE
        # Anything else at this level may hold expressions: an initialiser that registers something.
        self._bodies.visit(cursor, self._bodies.inside)
        return CONTINUE

    def _function(self, cursor: Any, file: str, line: int) -> None:
        kinds = self._bodies.kinds_of_children(cursor)
        if self._kinds.body not in kinds:
            return
        start = self._places.of(cursor.extent.start)[1]
        end = self._places.of(cursor.extent.end)[1]
        made = ClangFunction(
            self._bodies.qualified(cursor), cursor.get_usr(), file, line, min(start, line), max(end, line)
        )
        self._functions[file, line] = made
        if not self._kinds.on_device(kinds):
            self._bodies.visit(cursor, self._bodies.inside)

    # -- macros -----------------------------------------------------------------------------------------------------

    def _macro(self, cursor: Any, file: str, line: int) -> None:
        end = self._places.of(cursor.extent.end)[1]
        words = dict.fromkeys(
            token.spelling for token in cursor.get_tokens() if token.kind.name in ("IDENTIFIER", "KEYWORD")
        )
        words.pop(cursor.spelling, None)
        self._macros.append(ClangMacro(cursor.spelling, file, line, end, tuple(words)))

    def _macro_use(self, cursor: Any) -> None:
        file, line, here = self._bodies.place(cursor.location)
        if not here:
            return
        definition = cursor.referenced
        place = self._bodies.place(definition.location)[:2] if definition is not None else ("", 0)
        self._macro_uses[ClangMacroUse(cursor.spelling, file, line, *place)] = None

    # -- together ---------------------------------------------------------------------------------------------------

    def facts(self, path: str, diagnostics: Any, started: float, own_lines: int | None) -> ClangUnit:
        """All that was read, with what clang had to complain about in the first ``own_lines`` of the unit (None: in
        all)."""
        placed = [
            (*self._bodies.place(d.location), d.spelling)
            for d in diagnostics
            if d.severity >= self._cindex.Diagnostic.Error
        ]
        placed = [one for one in placed if own_lines is None or one[0] != path or one[1] <= own_lines]
        missing = dict.fromkeys(found[1] for *_, text in placed if (found := _MISSING.search(text)))
        # What headers outside of the tree have against this clang is no concern of a reader of the tree.
        here = [(file, line, text) for file, line, in_tree, text in placed if in_tree]
        shown = [f"{file}:{line}: {text}" for file, line, text in here if not _MISSING.search(text)]
        return ClangUnit(
            path=path,
            functions=tuple(self._functions.values()),
            symbols=tuple(self._bodies.symbols),
            uses=tuple(self._bodies.uses),
            values=tuple(self._bodies.values),
            instances=tuple(self._bodies.instances),
            macro_uses=tuple(self._macro_uses),
            macros=tuple(self._macros),
            lambdas=tuple(self._bodies.lambdas),
            errors=len(here),
            first_errors=tuple(shown[:_SHOWN_ERRORS]),
            error_lines=tuple(dict.fromkeys((file, line) for file, line, _ in here))[:_KEPT_ERRORS],
            missing=tuple(missing),
            seconds=round(time.process_time() - started, 2),
            clang=version(),
            cut=self._bodies.cut,
        )
