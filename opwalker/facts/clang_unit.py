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
from typing import Any

from opwalker.facts.clang_library import Places, load, version
from opwalker.model.clang import (
    ClangFunction,
    ClangMacro,
    ClangMacroUse,
    ClangSymbol,
    ClangUnit,
    ClangUse,
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
_CONTINUE, _RECURSE = 1, 2


def read_unit(request: UnitRequest) -> ClangUnit:
    """The facts of one unit. Raises ``ClangMissing`` where the library is not there; what clang cannot read at all is
    said in ``unread``."""
    cindex = load()
    started = time.perf_counter()
    options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | _KEEP_GOING
    path = os.path.join(request.root, request.path)
    try:
        unit = cindex.Index.create().parse(path, args=list(request.arguments), options=options)
    except cindex.TranslationUnitLoadError:
        return ClangUnit(request.path, clang=version(), unread="clang cannot read it with these flags")
    reader = _Reader(cindex, Places(request.root, request.outside))
    reader.read(unit.cursor)
    return reader.facts(request.path, unit.diagnostics, started)


class _Kinds:
    """The kinds of cursor that matter, by number."""

    def __init__(self, cindex: Any) -> None:
        def ids(*names: str) -> frozenset[int]:
            return frozenset(getattr(cindex.CursorKind, name).value for name in names)

        self.scopes = ids("NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL")
        self.classes = ids("CLASS_DECL", "STRUCT_DECL", "CLASS_TEMPLATE", "CLASS_TEMPLATE_PARTIAL_SPECIALIZATION")
        self.functions = ids(
            "FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION", "FUNCTION_TEMPLATE"
        )
        self.named_scopes = ids("NAMESPACE") | self.classes
        self.call = cindex.CursorKind.CALL_EXPR.value
        self.names = ids("DECL_REF_EXPR", "MEMBER_REF_EXPR")
        self.candidates = cindex.CursorKind.OVERLOADED_DECL_REF.value
        self.lambda_ = cindex.CursorKind.LAMBDA_EXPR.value
        self.macro = cindex.CursorKind.MACRO_DEFINITION.value
        self.macro_use = cindex.CursorKind.MACRO_INSTANTIATION.value
        self.global_ = cindex.CursorKind.CUDAGLOBAL_ATTR.value
        self.device = cindex.CursorKind.CUDADEVICE_ATTR.value
        self.host = cindex.CursorKind.CUDAHOST_ATTR.value
        self.body = cindex.CursorKind.COMPOUND_STMT.value


class _Reader:
    """One pass over a unit."""

    def __init__(self, cindex: Any, places: Places) -> None:
        self._cindex = cindex
        self._places = places
        self._kinds = _Kinds(cindex)
        self._library = cindex.conf.lib
        self._callback = cindex.callbacks["cursor_visit"]
        self._by_usr: dict[str, int] = {}
        self._symbols: dict[ClangSymbol, int] = {}
        self._symbol_list: list[ClangSymbol] = []
        self._functions: dict[tuple[str, int], ClangFunction] = {}
        self._uses: dict[ClangUse, None] = {}
        self._macros: list[ClangMacro] = []
        self._macro_uses: dict[ClangMacroUse, None] = {}
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
        end = self._places.of(target.extent.end)[1]
        self._use(kind, cursor, (), through=(file, line, max(end, line)) if here else None)

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
        through: tuple[str, int, int] | None = None,
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
        name = targets[0].spelling if targets else cursor.spelling
        self._uses[ClangUse(kind, name, file, line, start, found, dependent, through)] = None

    def _place(self, location: Any) -> tuple[str, int, bool]:
        """``(file, line, whether it lies in the tree)``."""
        handle, line = self._places.of(location)
        file, here = self._places.named(handle)
        return file, line, here

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

    def facts(self, path: str, diagnostics: Any, started: float) -> ClangUnit:
        """All that was read, with what clang had to complain about."""
        errors = [d for d in diagnostics if d.severity >= self._cindex.Diagnostic.Error]
        missing = dict.fromkeys(found[1] for d in errors if (found := _MISSING.search(d.spelling)))
        placed = [(*self._place(d.location), d.spelling) for d in errors]
        here = [(file, line, text) for file, line, in_tree, text in placed if in_tree]
        shown = [f"{file}:{line}: {text}" for file, line, text in here if not _MISSING.search(text)]
        return ClangUnit(
            path=path,
            functions=tuple(self._functions.values()),
            symbols=tuple(self._symbol_list),
            uses=tuple(self._uses),
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
