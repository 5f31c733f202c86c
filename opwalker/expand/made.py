"""Declarations that macros make: a function's head before a body (``DEFINE_KERNEL(name) { … }``), or whole
definitions of functions, classes, enumerations, aliases and variables.

In: macro uses at namespace level, and includes of lists that are written for a macro of the file that includes them.
Out: ``MadeFile`` per file, plain data that can be kept. A made head keeps the body's real place; a whole definition
gets a place behind the end of its file, whose line is that of the macro's use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from string import ascii_letters, digits
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.binding_blocks import RegistrationMacros
from opwalker.expand.files import Files
from opwalker.expand.macros import MacroTable
from opwalker.expand.made_names import named_by_macros
from opwalker.expand.preprocess import Preprocessor
from opwalker.expand.tokens import tokenize
from opwalker.facts.cpp_functions import placed_parameters
from opwalker.facts.cpp_heads import parse_function
from opwalker.facts.cpp_scan import scan
from opwalker.link.index import Index
from opwalker.model.cpp import (
    Alias,
    ClassDef,
    ClassInstantiation,
    EnumDef,
    Function,
    Invocation,
    MacroEvent,
    Variable,
)
from opwalker.model.source import SourceFile
from opwalker.notation.regex import Regex

T = TypeVar("T", ClassDef, ClassInstantiation, EnumDef, Alias, Variable)
_EXPLICIT = Regex(r"\btemplate\s+(?!<)")
_WORD = Regex(r"[A-Za-z_]\w*")
_APPLIED = Regex(r"\b([A-Za-z_]\w*)\s*\(")
_WHOLE = Regex(r"\)\s*(?:const\s*|noexcept\s*|override\s*)*\{")
#: What else a macro may declare: classes, aliases, constants, tables.
_DECLARED = Regex(
    r"\b(?:struct|class|union|enum)\b[^;(){}]*\{|\]\s*=\s*\{|\bconstexpr\b[^;(){}]*[={]|\busing\s[\w\s#]+="
    r"|\btypedef\b|\bextern\b"
)
_OTHERS = ("classes", "enums", "aliases", "variables")
#: What the text of a macro ends with that writes a function's head.
_HEAD_ENDS = tuple(")_>" + ascii_letters + digits)
#: The name that an include goes by among the uses of macros.
_INCLUDE = "#include"
#: Text that the macros of one file may make, in characters.
MAX_TEXT = 4_000_000


class MadeFile(Struct, frozen=True):
    """What macros make in a file: functions and other declarations, and the ``(text, line)`` of whole definitions, in
    order; ``instead`` are the offsets of functions that the file's own facts show under a name that is none."""

    path: str
    functions: tuple[Function, ...]
    texts: tuple[tuple[str, int], ...] = ()
    classes: tuple[ClassDef, ...] = ()
    enums: tuple[EnumDef, ...] = ()
    aliases: tuple[Alias, ...] = ()
    variables: tuple[Variable, ...] = ()
    instead: tuple[int, ...] = ()
    instantiations: tuple[ClassInstantiation, ...] = ()

    def names(self) -> Iterator[str]:
        """All that a lookup by name can find of it."""
        yield from (f"{one.name} {' '.join(one.flags)}" for one in self.functions)
        for kind in (self.classes, self.enums, self.aliases, self.variables):
            yield from ("|", *(str(one.name) for one in kind))
        yield from (member for enum in self.enums for member, _ in enum.members)

    def plain_names(self) -> Iterator[str]:
        """The names alone."""
        for kind in (self.functions, self.classes, self.enums, self.aliases, self.variables):
            yield from (one.name for one in kind)
        yield from (member for enum in self.enums for member, _ in enum.members)


def read_made(
    index: Index, files: Files, macros: MacroTable, preprocessor: Preprocessor, instantiations: bool = False
) -> tuple[MadeFile, ...]:
    """Every function of a tree that a macro makes; with ``instantiations``, explicit instantiations made so instead."""
    reader = _Reader(index, files, macros, preprocessor, instantiations)
    uses: dict[str, set[str]] = {}
    for name in sorted(index.names_of_kind("invocation")):
        if reader.may_make(name) or reader.applies(name) or reader.may_begin(name) or reader.hands_on(name):
            for path in index.store.paths_of(name, ("invocation",)):
                uses.setdefault(path, set()).add(name)
    lists = reader.lists()
    named = {} if instantiations else named_by_macros(index, macros, preprocessor)
    found = []
    for path in sorted({*uses, *lists, *named}):
        made = reader.file(path, uses.get(path, set()), lists.get(path, ()))
        if path in named:
            both = (*made.functions, *named[path].functions)
            made = replace(made, functions=both, instead=named[path].instead)
        found.append(made)
    return tuple(made for made in found if made.functions or made.texts or made.instantiations)


class _Reader:
    def __init__(
        self, index: Index, files: Files, macros: MacroTable, preprocessor: Preprocessor, instantiations: bool
    ) -> None:
        self._instantiations = instantiations
        self._index = index
        self._files = files
        self._macros = macros
        self._preprocessor = preprocessor
        self._names = index.names_of_kind("macro")
        self._registering = RegistrationMacros(index)
        self._makers: dict[str, bool] = {}
        self._appliers: dict[str, bool] = {}

    def may_make(self, name: str) -> bool:
        """Whether a macro, or one that its text uses, writes what is looked for: a cheap no for most of them."""
        return self._ask(name, self._makers, lambda event: self._writes(event.body or ""))

    def applies(self, name: str) -> bool:
        """Whether a macro, or one that its text uses, gives arguments to what it is given (``X(int, 4)``): a list
        that is written for another macro."""
        return self._ask(name, self._appliers, _gives_arguments)

    def hands_on(self, name: str) -> bool:
        """Whether a macro may stand for what it is given, and nothing else: ``IF_HALF(template void f<half>();)``."""
        if name not in self._names:
            return False
        return any(
            (e.body or "").strip() in (*(e.parameters or ()), "__VA_ARGS__", e.variadic) for e in self._events(name)
        )

    def may_begin(self, name: str) -> bool:
        """Whether a macro may write the head of a function whose body stands behind its use."""
        if self._instantiations or name not in self._names or self._registering.may_register(name):
            return False
        return any((event.body or "").rstrip().endswith(_HEAD_ENDS) for event in self._events(name))

    def lists(self) -> dict[str, list[int]]:
        """The includes, by file, of files that use a macro of the file that includes them: where each one stands."""
        out: dict[str, list[int]] = {}
        names = self._names & self._index.names_of_kind("invocation")
        for name in sorted(name for name in names if self.may_make(name)):
            using = set(self._index.store.paths_of(name, ("invocation",)))
            for path in self._index.store.paths_of(name, ("macro",)):
                out.setdefault(path, []).extend(at for at, included in self._index.includes(path) if included in using)
        return {path: sorted(set(places)) for path, places in out.items() if places}

    def _writes(self, body: str) -> bool:
        if self._instantiations:
            return _EXPLICIT.search(body) is not None
        return "__global__" in body or _WHOLE.search(body) is not None or _DECLARED.search(body) is not None

    def _ask(self, name: str, known: dict[str, bool], holds: Callable[[MacroEvent], bool]) -> bool:
        """Whether ``holds`` says yes for a definition of a macro, or of one that its text uses."""
        if name not in self._names:
            return False
        if name not in known:
            known[name] = False
            seen, asked = {name}, [name]
            while asked and not known[name]:
                events = self._events(asked.pop())
                known[name] = any(holds(event) for event in events)
                words = {word for event in events for word in _WORD.findall(event.body or "")} & self._names
                asked += sorted(words - seen)
                seen |= words
        return known[name]

    def _events(self, name: str) -> list[MacroEvent]:
        return [event for _, event in self._index.entries(name, ("macro",), lambda facts: facts.macros)]

    def _is_wanted(self, use: Invocation) -> bool:
        """Whether a use makes something itself, or by a macro that it is given."""
        if self.may_make(use.name):
            return True
        if any(self._writes(argument) for argument in use.arguments or ()) and self.hands_on(use.name):
            return True
        words = {word for argument in use.arguments or () for word in _WORD.findall(argument)}
        return any(self.may_make(word) for word in sorted(words & self._names))

    def file(self, path: str, names: set[str], lists: Sequence[int] = ()) -> MadeFile:
        """What the uses of some macros make in one file, and the files included at ``lists``."""
        facts = self._index.facts(path)
        functions: list[Function] = []
        others: dict[str, list] = {name: [] for name in (*_OTHERS, "instantiations")}
        texts: list[tuple[str, int]] = []
        at = -1  # where what is made is placed; a file in which nothing is made is not looked at
        for use in (*(facts.invocations if facts else ()), *(self._inclusion(path, place) for place in lists)):
            if use.body_end:
                head = None if use.name not in names or self._instantiations else self._head(path, use)
                functions += [head] if head else []
                continue
            if use.name == _INCLUDE:
                text = self._preprocessor.span(path, use.offset, use.end, path).full
            elif use.name in names and self._is_wanted(use):
                text = self._expanded(path, use, use.end)
            else:
                continue
            if not (_WHOLE.search(text) or _EXPLICIT.search(text) or _DECLARED.search(text)):
                continue
            at = len(self._files.view(path).blanked.text) if at < 0 else at
            if at > MAX_TEXT:
                continue
            # The use may end in a semicolon of its own; an instantiation needs one to be read.
            made = scan(SourceFile(path, text + ";", "cuda", ""))
            if self._instantiations:
                # Nothing of it is read again: it needs no place.
                explicit = [f for f in made.functions if "explicit_instantiation" in f.flags]
                functions += [self._moved(f, use, at + 1) for f in explicit]
                others["instantiations"] += [_declared(one, use, at + 1) for one in made.instantiations]
                continue
            functions += [self._moved(f, use, at + 1) for f in made.functions if f.body_end]
            for name in _OTHERS:
                others[name] += [_declared(one, use, at + 1) for one in getattr(made, name)]
            texts.append((text, use.line))
            at += 1 + len(text)
        return MadeFile(path, tuple(functions), tuple(texts), **{name: tuple(held) for name, held in others.items()})

    def _inclusion(self, path: str, place: int) -> Invocation:
        """An include, as a use of what is included."""
        view = self._files.view(path)
        directive = next(d for d in view.blanked.directives if d.offset <= place < d.end)
        line = view.blanked.line(directive.offset)
        condition = view.conditionals.at(directive.offset)
        return Invocation(_INCLUDE, (), (), directive.offset, directive.end, line, 0, 0, line, condition)

    def _expanded(self, path: str, use: Invocation, end: int) -> str:
        code = self._files.view(path).blanked.code[use.offset : end]
        return self._preprocessor.tokens(path, tokenize(code, use.offset), path).full

    def _head(self, path: str, use: Invocation) -> Function | None:
        # Everything before the brace: attributes may stand between the macro's use and the body.
        text = self._expanded(path, use, use.body_start)
        text = text[_begins(text) :]
        head = parse_function(text, None)
        if head is None or not head.return_type or head.name in self._names:
            return None
        listed = head.parameters_start, head.parameters_end
        parameters = placed_parameters(text, listed, use.offset, use.offset)
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


def _gives_arguments(event: MacroEvent) -> bool:
    given = set(event.parameters or ())
    return any(match.group(1) in given for match in _APPLIED.finditer(event.body or ""))


def _declared(entry: T, use: Invocation, by: int) -> T:
    """A declaration of an expanded text, at its place behind the end of the file."""
    body = {name: getattr(entry, name) + by for name in ("body_start", "body_end") if getattr(entry, name, 0)}
    last = {"end_line": use.end_line} if hasattr(entry, "end_line") else {}
    scope = (*use.scope, *entry.scope)
    return replace(entry, scope=scope, offset=entry.offset + by, line=use.line, condition=use.condition, **body, **last)


def _begins(text: str) -> int:
    """Where the last declaration of a text begins."""
    depth = begin = 0
    for at, char in enumerate(text):
        depth += (char in "({[") - (char in ")}]")
        if not depth and char in ";}":
            begin = at + 1
    return begin
