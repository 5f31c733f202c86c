"""Functions that macros make: a head before a body (``DEFINE_KERNEL(name) { … }``), or the whole definition.

In: macro uses at namespace level. Out: ``MadeFile`` per file, plain data that can be kept. A made head keeps the body's
real place; a whole definition gets a place behind the end of its file, whose line is that of the macro's use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from opwalker.expand.files import Files
from opwalker.expand.macros import MacroTable
from opwalker.expand.preprocess import Preprocessor
from opwalker.expand.tokens import tokenize
from opwalker.facts.cpp_heads import parse_function, parse_parameters
from opwalker.facts.cpp_scan import scan
from opwalker.link.index import Index
from opwalker.model.cpp import Function, Invocation, Parameter
from opwalker.model.source import SourceFile

_EXPLICIT = re.compile(r"\btemplate\s+(?!<)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WHOLE = re.compile(r"\)\s*(?:const\s*|noexcept\s*|override\s*)*\{")
#: Text that the macros of one file may make, in characters.
MAX_TEXT = 4_000_000


@dataclass(frozen=True, slots=True)
class MadeFile:
    """What macros make in a file: functions, and the ``(text, line)`` of whole definitions, in order."""

    path: str
    functions: tuple[Function, ...]
    texts: tuple[tuple[str, int], ...] = ()


def read_made(
    index: Index, files: Files, macros: MacroTable, preprocessor: Preprocessor, instantiations: bool = False
) -> tuple[MadeFile, ...]:
    """Every function of a tree that a macro makes; with ``instantiations``, explicit instantiations made so instead."""
    reader = _Reader(index, files, macros, preprocessor, instantiations)
    uses: dict[str, set[str]] = {}
    for name in sorted(index.names_of_kind("invocation")):
        if reader.may_make(name):
            for path in index.store.paths_of(name, ("invocation",)):
                uses.setdefault(path, set()).add(name)
    found = [reader.file(path, uses[path]) for path in sorted(uses)]
    return tuple(made for made in found if made.functions)


class _Reader:
    def __init__(
        self, index: Index, files: Files, macros: MacroTable, preprocessor: Preprocessor, instantiations: bool
    ) -> None:
        self._instantiations = instantiations
        self._index = index
        self._files = files
        self._macros = macros
        self._preprocessor = preprocessor

    def may_make(self, name: str) -> bool:
        """Whether any definition of a macro looks like a kernel's head or a function: a cheap no for most of them."""
        if name not in self._index.names_of_kind("macro"):
            return False
        if self._instantiations:
            return self._may_instantiate(name, set())
        return any("__global__" in body or _WHOLE.search(body) for body in self._bodies(name))

    def _bodies(self, name: str) -> list[str]:
        return [e.body for _, e in self._index.entries(name, ("macro",), lambda facts: facts.macros) if e.body]

    def _may_instantiate(self, name: str, seen: set[str]) -> bool:
        """Whether a macro, or one that its text uses, writes an explicit instantiation."""
        seen.add(name)
        bodies = self._bodies(name)
        if any(_EXPLICIT.search(body) for body in bodies):
            return True
        macros = self._index.names_of_kind("macro")
        used = {word for body in bodies for word in _WORD.findall(body) if word in macros} - seen
        return any(word not in seen and self._may_instantiate(word, seen) for word in sorted(used))

    def file(self, path: str, names: set[str]) -> MadeFile:
        """What the uses of some macros make in one file."""
        facts = self._index.facts(path)
        functions: list[Function] = []
        texts: list[tuple[str, int]] = []
        at = len(self._files.view(path).blanked.text)
        for use in facts.invocations if facts else ():
            if use.name not in names or use.arguments is None:
                continue
            if use.body_end and self._instantiations:
                continue
            if use.body_end:
                head = self._head(path, use)
                functions += [head] if head else []
                continue
            text = self._expanded(path, use, use.end)
            if not (_WHOLE.search(text) or _EXPLICIT.search(text)) or at > MAX_TEXT:
                continue
            # The use may end in a semicolon of its own; an instantiation needs one to be read.
            made = scan(SourceFile(path, text + ";", "cuda", "")).functions
            wanted = [f for f in made if ("explicit_instantiation" in f.flags if self._instantiations else f.body_end)]
            functions += [self._moved(f, use, at + 1) for f in wanted]
            if self._instantiations:
                continue  # nothing of it is read again: it needs no place
            texts.append((text, use.line))
            at += 1 + len(text)
        return MadeFile(path, tuple(functions), tuple(texts))

    def _expanded(self, path: str, use: Invocation, end: int) -> str:
        code = self._files.view(path).blanked.code[use.offset : end]
        return self._preprocessor.tokens(path, tokenize(code, use.offset), path).full

    def _head(self, path: str, use: Invocation) -> Function | None:
        choice = self._macros.lookup(use.name, path, use.offset, path)
        if choice is None or "__global__" not in (choice.event.body or ""):
            return None
        # Everything before the brace: attributes may stand between the macro's use and the body.
        text = self._expanded(path, use, use.body_start)
        head = parse_function(text, None)
        if head is None:
            return None
        parameters = tuple(
            Parameter(kind, name, default, use.offset, use.offset)
            for kind, name, default, _, _ in parse_parameters(text, head.parameters_start, head.parameters_end)
        )
        return Function(
            head.name,
            (*use.scope, *head.qualifiers),
            head.return_type,
            parameters,
            head.flags,
            head.template,
            head.specialisation,
            head.attributes,
            use.offset,
            use.line,
            use.line,
            use.body_start,
            use.body_end,
            use.end_line,
            use.condition,
        )

    @staticmethod
    def _moved(function: Function, use: Invocation, by: int) -> Function:
        """A function of an expanded text, at its place behind the end of the file."""
        return replace(
            function,
            scope=(*use.scope, *function.scope),
            parameters=tuple(replace(p, offset=p.offset + by, end=p.end + by) for p in function.parameters),
            offset=function.offset + by,
            line=use.line,
            start_line=use.line,
            body_start=function.body_start + by if function.body_end else 0,
            body_end=function.body_end + by if function.body_end else 0,
            end_line=use.end_line,
            condition=use.condition,
        )
