"""One translation unit as clang reads it, as plain facts: calls and their targets, launches, definitions, macros.

In: a ``UnitRequest``. Out: ``ClangUnit``. Only what stands in the tree is kept, and only what host code does: bodies of
kernels and device functions are passed over. Templates are read as they are written and, beyond that, as the unit
instantiates them: there a call that depends on a parameter has its target. Runs in a worker (``facts.clang_workers``):
the library may crash, hang or grow. Nothing is compared here.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from typing import Any

from opwalker.facts.clang_kinds import Kinds
from opwalker.facts.clang_library import Places, load, version
from opwalker.model.clang import (
    ClangFunction,
    ClangMacro,
    ClangMacroUse,
    ClangSymbol,
    ClangUnit,
    ClangUse,
    ClangValue,
    UnitRequest,
)

#: Instances of templates that are looked into, of one template and in all; beyond, the unit is marked as cut.
MOST_OF_ONE = 200
MOST_INSTANCES = 6000

#: Candidates of one call that are kept.
_MOST_CANDIDATES = 64

#: What clang calls to hand a launch its configuration: which one depends on the version of CUDA.
_CONFIGURATIONS = ("cudaConfigureCall", "__cudaPushCallConfiguration", "__hipPushCallConfiguration")

#: Errors that are shown, and the most whose places are kept.
_SHOWN_ERRORS = 3
_KEPT_ERRORS = 400

#: ``CXTranslationUnit_KeepGoing``: a header that is missing is no reason to stop.
_KEEP_GOING = 0x200

_MISSING = re.compile(r"'([^']+)' file not found")
_BREAK, _CONTINUE, _RECURSE = 0, 1, 2


def read_unit(request: UnitRequest) -> ClangUnit:
    """The facts of one unit. Raises ``ClangMissing`` where the library is not there; what clang cannot read at all is
    said in ``unread``."""
    cindex = load()
    started = time.perf_counter()
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
        self._library = cindex.conf.lib
        self._callback = cindex.callbacks["cursor_visit"]
        self._by_usr: dict[str, int] = {}
        self._symbols: dict[ClangSymbol, int] = {}
        self._symbol_list: list[ClangSymbol] = []
        self._functions: dict[tuple[str, int], ClangFunction] = {}
        self._uses: dict[ClangUse, None] = {}
        self._macros: list[ClangMacro] = []
        self._macro_uses: dict[ClangMacroUse, None] = {}
        self._values: dict[ClangValue, None] = {}
        self._lambdas: dict[tuple[str, int], None] = {}
        self._pending: list[Any] = []
        self._instances: dict[int, int] = {}
        self._instance_count = 0
        self._cut = False

    # -- walking over cursors ---------------------------------------------------------------------------------------

    def _visit(self, cursor: Any, step: Any) -> None:
        """Calls ``step(child, parent)`` for the children of a cursor; it answers whether to go on below each."""
        unit = cursor._tu

        def visitor(child: Any, parent: Any, _: Any) -> int:
            child._tu = unit
            return step(child, parent)

        self._library.clang_visitChildren(cursor, self._callback(visitor), None)

    def read(self, top: Any) -> None:
        """Reads all that stands in the tree, then the instances that it asks for."""
        self._visit(top, self._declaration)
        while self._pending:
            self._visit(self._pending.pop(), self._inside)

    def _declaration(self, cursor: Any, parent: Any) -> int:
        kind = cursor._kind_id
        kinds = self._kinds
        if kind == kinds.macro_use:
            self._macro_use(cursor)
            return _CONTINUE
        file, line, here = self._place(cursor.location)
        if not here:
            return _CONTINUE
        if kind == kinds.macro:
            self._macro(cursor, file, line)
            return _CONTINUE
        if kind in kinds.scopes or kind in kinds.classes:
            return _RECURSE
        if kind in kinds.functions:
            self._function(cursor, file, line)
            return _CONTINUE
        # Anything else at this level may hold expressions: an initialiser that registers something.
        self._visit(cursor, self._inside)
        return _CONTINUE

    def _function(self, cursor: Any, file: str, line: int) -> None:
        attributes: set[int] = set()
        has_body = [False]

        def look(child: Any, _: Any) -> int:
            attributes.add(child._kind_id)
            if child._kind_id == self._kinds.body:
                has_body[0] = True
            return _CONTINUE

        self._visit(cursor, look)
        if not has_body[0]:
            return
        start = self._places.of(cursor.extent.start)[1]
        end = self._places.of(cursor.extent.end)[1]
        made = ClangFunction(self._qualified(cursor), cursor.get_usr(), file, line, min(start, line), max(end, line))
        self._functions[file, line] = made
        on_device = self._kinds.global_ in attributes or (
            self._kinds.device in attributes and self._kinds.host not in attributes
        )
        if not on_device:
            self._visit(cursor, self._inside)

    def _qualified(self, cursor: Any) -> str:
        parts = [cursor.spelling]
        above = cursor.semantic_parent
        while above is not None and above._kind_id in self._kinds.named_scopes:
            parts.append(above.spelling if above.spelling and "(" not in above.spelling else "(anonymous namespace)")
            above = above.semantic_parent
        return "::".join(reversed(parts))

    # -- expressions ------------------------------------------------------------------------------------------------

    def _inside(self, cursor: Any, parent: Any) -> int:
        kind = cursor._kind_id
        kinds = self._kinds
        if kind == kinds.call:
            self._call(cursor, parent)
        elif kind in kinds.names:
            target = cursor.referenced
            if target is not None and target._kind_id in kinds.functions:
                self._use("name", cursor, (target,))
        elif kind == kinds.candidates:
            self._overloads(cursor)
        elif kind == kinds.variable:
            if self._holds_function(cursor.type):
                self._value(cursor, cursor)
        elif kind == kinds.binary:
            self._assignment(cursor)
        elif kind == kinds.returned:
            self._value(None, cursor)
        elif kind == kinds.lambda_:
            file, line, here = self._place(cursor.location)
            if here:
                self._lambdas[file, line] = None
        return _RECURSE

    def _call(self, cursor: Any, parent: Any) -> None:
        target = cursor.referenced
        if target is not None and target.spelling in _CONFIGURATIONS:
            # The configuration is a call that clang puts inside of a launch.
            if parent is not None and parent._kind_id == self._kinds.call:
                parent._tu = cursor._tu
                self._applied("launch", parent, parent.referenced)
            return
        self._applied("call", cursor, target)

    def _applied(self, kind: str, cursor: Any, target: Any) -> None:
        """A call or launch of ``target``, which may be a function, a variable that holds one, or unknown (None)."""
        if target is None or target._kind_id in self._kinds.functions:
            self._use(kind, cursor, (target,) if target is not None else ())
            return
        file, line, here = self._place(target.location)
        self._use(kind, cursor, (), through=(file, line) if here else None)

    def _overloads(self, cursor: Any) -> None:
        count = self._library.clang_getNumOverloadedDecls(cursor)
        found = []
        for number in range(min(count, _MOST_CANDIDATES)):
            one = self._library.clang_getOverloadedDecl(cursor, number)
            one._tu = cursor._tu
            if one._kind_id in self._kinds.functions:
                found.append(one)
        if found:
            self._use("name", cursor, tuple(found), dependent=True)

    def _use(
        self,
        kind: str,
        cursor: Any,
        targets: tuple[Any, ...],
        dependent: bool = False,
        through: tuple[str, int] | None = None,
    ) -> None:
        handle, line = self._places.of(cursor.location)
        file, here = self._places.named(handle)
        if not here:
            return
        found = tuple(dict.fromkeys(self._symbol(target) for target in targets))
        if kind == "name" and not any(self._symbol_list[number].here for number in found):
            return
        start_handle, start = self._places.of(cursor.extent.start)
        start = start if start_handle == handle else line
        end = max(line, self._places.of(cursor.extent.end)[1]) if kind == "call" else line
        name = targets[0].spelling if targets else cursor.spelling
        self._uses[ClangUse(kind, name, file, line, start, found, dependent, through, end)] = None

    def _place(self, location: Any) -> tuple[str, int, bool]:
        """``(file, line, whether it lies in the tree)``."""
        handle, line = self._places.of(location)
        file, here = self._places.named(handle)
        return file, line, here

    # -- functions as values ----------------------------------------------------------------------------------------

    def _holds_function(self, kind: Any) -> bool:
        made = kind.get_canonical()
        return made.kind in self._kinds.pointers and made.get_pointee().kind in self._kinds.function_types

    def _assignment(self, cursor: Any) -> None:
        left: list[Any] = []

        def look(child: Any, _: Any) -> int:
            left.append(child)
            return _BREAK

        self._visit(cursor, look)
        # A comparison of two pointers is a truth value; what has a pointer's type assigns one.
        if left and left[0]._kind_id in self._kinds.names and self._holds_function(cursor.type):
            target = left[0].referenced
            if target is not None and target._kind_id in self._kinds.variables:
                self._value(target, cursor)

    def _value(self, into: Any, cursor: Any) -> None:
        """Notes what goes into a variable, or out by ``return`` (``into`` None)."""
        kinds = self._kinds
        names: list[Any] = []
        calls: list[Any] = []
        variables: list[Any] = []

        def look(child: Any, _: Any) -> int:
            if child._kind_id == kinds.call:
                calls.append(child.referenced)
                return _CONTINUE
            if child._kind_id in kinds.names:
                target = child.referenced
                if target is not None and target._kind_id in kinds.functions:
                    names.append(target)
                elif target is not None and target._kind_id in kinds.variables:
                    variables.append(target)
            return _RECURSE

        self._visit(cursor, look)
        file, line, here = self._place(cursor.location)
        if not here or not (names or calls or variables):
            return
        held = self._place(into.location) if into is not None else None
        places = dict.fromkeys(self._place(one.location) for one in variables if into is None or one != into)
        value = ClangValue(
            held[:2] if held else None,
            file,
            line,
            self._numbers(names),
            self._numbers(one for one in calls if one is not None and one._kind_id in kinds.functions),
            tuple((where, number) for where, number, in_tree in places if in_tree),
        )
        if value.names or value.calls or value.variables:
            self._values[value] = None

    def _numbers(self, targets: Iterable[Any]) -> tuple[int, ...]:
        """The symbols of functions, those of the tree alone."""
        found = dict.fromkeys(self._symbol(target) for target in targets)
        return tuple(number for number in found if self._symbol_list[number].here)

    # -- what is referred to ----------------------------------------------------------------------------------------

    def _symbol(self, target: Any) -> int:
        """The number of a function's symbol. An instance of a template is put on the list of what is to be read."""
        own = target.get_usr()
        number = self._by_usr.get(own)
        if number is not None:
            return number
        template = self._library.clang_getSpecializedCursorTemplate(target)
        pattern = None
        if template is not None and template._kind_id in self._kinds.functions:
            template._tu = target._tu
            pattern = template
        # An explicit specialisation has a definition of its own; an instance stands where its template does.
        body = target.get_definition()
        definition = body if body is not None or pattern is None else pattern.get_definition()
        file, line, here = self._place((definition if definition is not None else target).location)
        usr = own
        if pattern is not None and (definition is None or self._stands_with(pattern, file, line)):
            usr = pattern.get_usr()
        made = ClangSymbol(self._qualified(target), usr, file, line, definition is not None, here)
        number = self._symbols.setdefault(made, len(self._symbols))
        if number == len(self._symbol_list):
            self._symbol_list.append(made)
        self._by_usr[own] = number
        if pattern is not None and here and body is not None:
            self._instance(number, body)
        return number

    def _stands_with(self, pattern: Any, file: str, line: int) -> bool:
        definition = pattern.get_definition()
        return self._place((definition if definition is not None else pattern).location)[:2] == (file, line)

    def _instance(self, number: int, body: Any) -> None:
        count = self._instances.get(number, 0)
        if count >= MOST_OF_ONE or self._instance_count >= MOST_INSTANCES:
            self._cut = True
            return
        self._instances[number] = count + 1
        self._instance_count += 1
        self._pending.append(body)

    # -- macros -----------------------------------------------------------------------------------------------------

    def _macro(self, cursor: Any, file: str, line: int) -> None:
        end = self._places.of(cursor.extent.end)[1]
        words = dict.fromkeys(
            token.spelling for token in cursor.get_tokens() if token.kind.name in ("IDENTIFIER", "KEYWORD")
        )
        words.pop(cursor.spelling, None)
        self._macros.append(ClangMacro(cursor.spelling, file, line, end, tuple(words)))

    def _macro_use(self, cursor: Any) -> None:
        file, line, here = self._place(cursor.location)
        if not here:
            return
        definition = cursor.referenced
        place = self._place(definition.location)[:2] if definition is not None else ("", 0)
        self._macro_uses[ClangMacroUse(cursor.spelling, file, line, *place)] = None

    # -- together ---------------------------------------------------------------------------------------------------

    def facts(self, path: str, diagnostics: Any, started: float, own_lines: int | None) -> ClangUnit:
        """All that was read, with what clang had to complain about in the first ``own_lines`` of the unit (None: in
        all)."""
        placed = [
            (*self._place(d.location), d.spelling) for d in diagnostics if d.severity >= self._cindex.Diagnostic.Error
        ]
        errors = [one for one in placed if own_lines is None or one[0] != path or one[1] <= own_lines]
        missing = dict.fromkeys(found[1] for *_, text in errors if (found := _MISSING.search(text)))
        here = [(file, line, text) for file, line, in_tree, text in errors if in_tree]
        shown = [f"{file}:{line}: {text}" for file, line, text in here if not _MISSING.search(text)]
        return ClangUnit(
            path=path,
            functions=tuple(self._functions.values()),
            symbols=tuple(self._symbol_list),
            uses=tuple(self._uses),
            values=tuple(self._values),
            macro_uses=tuple(self._macro_uses),
            macros=tuple(self._macros),
            lambdas=tuple(self._lambdas),
            errors=len(errors),
            first_errors=tuple(shown[:_SHOWN_ERRORS]),
            error_lines=tuple(dict.fromkeys((file, line) for file, line, _ in here))[:_KEPT_ERRORS],
            missing=tuple(missing),
            seconds=round(time.perf_counter() - started, 2),
            clang=version(),
            cut=self._cut,
        )
