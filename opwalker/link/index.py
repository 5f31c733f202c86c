"""The joined view of a tree: facts by path, names to paths, includes to files. Nothing is loaded before it is asked
for.

In: a store of per-file facts. Out: ``Index``, which every later stage asks. It joins; it does not interpret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Protocol

from msgspec.structs import replace

from opwalker.link.by_name import ByName
from opwalker.link.include_folders import IncludeFolders, Searched, includers
from opwalker.link.traced import INCLUDES, Declared, Names, NotedFacts, Reads
from opwalker.model.cpp import Alias, ClassDef, ClassInstantiation, CppFacts, EnumDef, Function, Parameter, Variable


class FactStore(Protocol):
    """What the index needs from storage."""

    def cpp_paths(self) -> Sequence[str]:
        """Every C++/CUDA file, sorted."""

    def cpp_facts(self, path: str) -> CppFacts | None:
        """The facts of one file."""

    def text(self, path: str) -> str:
        """The file's text as it was read."""

    def op_lists(self) -> Sequence[tuple[str, str]]:
        """The files that may list ops, each with its text."""

    def paths_of(self, name: str, kinds: Sequence[str]) -> Sequence[str]:
        """Files in which ``name`` is one of ``kinds``, sorted."""

    def paths_with(self, kind: str) -> Sequence[str]:
        """Files that hold any name of a kind, sorted."""

    def names_of_kind(self, kind: str) -> Iterable[str]:
        """All names of a kind in the tree."""


#: ``included(paths, what one of them includes)``.
Included = Callable[[Iterable[str], Callable[[str], Collection[str]]], Mapping[str, Collection[str]]]

#: Entries of one name that are looked at one by one.
_FEW = 48


class Index:
    """Facts of a tree, joined by name and by include."""

    def __init__(self, store: FactStore, searched: Sequence[Searched] = (), included: Included | None = None) -> None:
        """``included`` may know from before what each of some files includes, as a function tells it of one."""
        #: What was asked for so far.
        self.reads = Reads()
        self._stored = store
        self.store: FactStore = NotedFacts(store, self.reads)
        self._include_folders = IncludeFolders(lambda: self.paths, searched)
        self._facts: dict[str, CppFacts | None] = {}
        self._texts: dict[str, str] = {}
        self._declared_in: dict[str, tuple[CppFacts | None, Declared | None]] = {}
        self._paths: frozenset[str] | None = None
        self._includes: dict[str, tuple[tuple[int, str], ...]] = {}
        self._closures: dict[str, frozenset[str]] = {}
        self._includers: dict[str, list[str]] | None = None
        self._included = included
        self._functions: dict[str, tuple[tuple[str, Function], ...]] = {}
        self._entries: dict[tuple[str, ...], list[tuple[str, object]]] = {}
        self._named = ByName()
        self._entries_by_path: dict[tuple[str, ...], tuple[list, dict[str, list[tuple[str, object]]]]] = {}
        self._kind_names: dict[str, set[str]] = {}
        self._names: dict[str, Names] = {}
        self._added_names: dict[str, set[str]] = {}
        self._namespace_aliases: dict[str, dict[str, str]] = {}
        self._type_names: Set[str] | None = None
        self._made: dict[str, set[str]] = {}
        self._more: dict[str, list[tuple[Mapping[str, Sequence], Sequence[int]]]] = {}
        self._declared: dict[tuple[str, str], set[str]] = {}
        self._made_kinds: dict[str, set[str]] = {}
        #: Counts what was entered besides the files' own facts: what names lead to holds for one count.
        self.changes = 0
        #: Gives the name that a macro stands for where it is used as a scope (``namespace NAME {``), or None.
        self.scope_name: Callable[[str, str, int], str | None] | None = None
        #: Gives the parameters of a function whose list holds a macro, expanded.
        self.parameters: Callable[[str, Function], tuple[Parameter, ...]] | None = None
        #: Gives the functions of a file with those settled that stand in several readings, none of them the build's.
        self.settled: Callable[[str, CppFacts], tuple[Function, ...]] | None = None
        #: Gives the text of a template head that holds a macro, expanded.
        self.template_head: Callable[[str, str, int], str] | None = None

    def facts(self, path: str) -> CppFacts | None:
        """The facts of a file; None for a path that is not in the tree."""
        self.reads.whole.add(path)
        return self._read(path)

    def declared(self, path: str) -> Declared | None:
        """The facts of a file but for its functions: an answer that was read from them alone may outlive changes of
        functions."""
        self.reads.part(path)
        if path not in self._declared_in or self._declared_in[path][0] is not self._facts.get(path):
            facts = self._read(path)
            fields = Declared.__struct_fields__
            made = Declared(*(getattr(facts, name) for name in fields)) if facts is not None else None
            self._declared_in[path] = (facts, made)
        return self._declared_in[path][1]

    def part(self, path: str, start: int = 0, end: int = 0) -> str:
        """A file's text, for one who looks at no functions but those in a span, at what stands above these, and at
        what is no function."""
        self.reads.part(path, start, end)
        if path not in self._texts or path not in self.paths:
            self._texts[path] = self._stored.text(path)  # others, such as those of Python, are noted by whoever reads
        return self._texts[path]

    def functions_at(self, path: str, line: int) -> list[Function]:
        """The functions of a file whose names stand on a line, those with a body."""
        self.reads.part(path)
        facts = self._read(path)
        found = [f for f in (facts.functions if facts is not None else ()) if f.line == line and f.body_end]
        for function in found:
            self.reads.part(path, function.offset, function.body_end)
        return found

    def note_head(self, path: str, line: int) -> None:
        """Note that an answer names a line of a file that stands in the head of a function, or outside of all."""
        self.reads.part(path)
        facts = self._read(path)
        for function in facts.functions if facts is not None else ():
            if function.start_line <= line <= function.end_line:
                self.reads.asked.add(function.name)

    def functions_near(self, path: str) -> tuple[Function, ...]:
        """The functions of a file, for one who goes by whether they own something, and says by ``part`` which do."""
        self.reads.part(path)
        self.reads.near.add(path)
        facts = self._read(path)
        return facts.functions if facts is not None else ()

    def _read(self, path: str) -> CppFacts | None:
        if path not in self._facts:
            self.reads.loaded.add(path)
            facts = self._facts[path] = self._stored.cpp_facts(path)
            if facts is not None and self.scope_name is not None:
                facts = self.renamed(path, facts)
            for more, instead in self._more.pop(path, ()):
                facts = _joined(facts, more, instead)
            self._facts[path] = facts
        return self._facts[path]

    def stored(self, path: str) -> CppFacts | None:
        """The facts of a file as stored: to ask what macros make of it while one is looked up would be a circle."""
        self.reads.part(path)
        return self._stored.cpp_facts(path)

    def renamed(self, path: str, facts: CppFacts) -> CppFacts:
        """The facts with macros in scopes, parameter lists and template heads spelt by what they stand for."""
        macros = self.names_of_kind("macro")
        changed: dict[str, tuple] = {}
        if self.settled is not None:
            facts = replace(facts, functions=self.settled(path, facts))
        for name in ("functions", "classes", "enums", "aliases", "variables", "invocations"):
            entries = getattr(facts, name)
            if not macros.isdisjoint({part for item in entries for part in item.scope}):
                changed[name] = tuple(self._in_scope(path, item, macros) for item in entries)
        if self.parameters is not None:
            functions = changed.get("functions", facts.functions)
            if not macros.isdisjoint({p.type for f in functions for p in f.parameters if not p.name}):
                changed["functions"] = tuple(
                    replace(f, parameters=self.parameters(path, f))
                    if any(not p.name and p.type in macros for p in f.parameters)
                    else f
                    for f in functions
                )
        if self.template_head is not None:
            for name in ("functions", "classes"):
                entries = changed.get(name, getattr(facts, name))
                if any(_holds_macro(item.template, macros) for item in entries):
                    changed[name] = tuple(
                        replace(item, template=self.template_head(path, item.template, item.offset))
                        if _holds_macro(item.template, macros)
                        else item
                        for item in entries
                    )
        return replace(facts, **changed) if changed else facts

    def _in_scope(self, path: str, item, macros: Set[str]):
        if not any(part in macros for part in item.scope):
            return item
        names = ((self.scope_name(path, p, item.offset) or p) if p in macros else p for p in item.scope)
        return replace(item, scope=tuple(names))

    def names_of_kind(self, kind: str) -> Set[str]:
        """All names of a kind, for a quick no."""
        found = self._names.get(kind)
        if found is None:
            held = self._kind_names[kind] = {*self._stored.names_of_kind(kind), *self._added_names.get(kind, ())}
            found = self._names[kind] = Names(held, (kind,), self.reads)
        return found

    def _add_name(self, kind: str, name: str) -> None:
        self._added_names.setdefault(kind, set()).add(name)
        if kind in self._kind_names:
            self._kind_names[kind].add(name)

    def _add(self, path: str, more: Mapping[str, Sequence], instead: Sequence[int] = ()) -> None:
        """Join entries to a file's facts: at once, or when these are first read."""
        self.changes += 1
        if path in self._facts:
            self._facts[path] = _joined(self._facts[path], more, instead)
        else:
            self._more.setdefault(path, []).append((more, instead))

    def add_class_instantiations(self, path: str, instantiations: Sequence[ClassInstantiation]) -> None:
        """Enter explicit instantiations of classes that the file's own facts do not show."""
        self._add(path, {"instantiations": instantiations})

    def add_declarations(
        self,
        path: str,
        classes: Sequence[ClassDef] = (),
        enums: Sequence[EnumDef] = (),
        aliases: Sequence[Alias] = (),
        variables: Sequence[Variable] = (),
    ) -> None:
        """Enter what else the file's own facts do not show."""
        self._add(path, {"classes": classes, "enums": enums, "aliases": aliases, "variables": variables})
        names = [("class", made.name) for made in classes]
        names += [("enum", enum.name) for enum in enums]
        names += [("enumerator", member) for enum in enums for member, _ in enum.members]
        names += [("alias", alias.name) for alias in aliases if alias.kind != "namespace"]
        names += [("namespace_alias", alias.name) for alias in aliases if alias.kind == "namespace"]
        names += [("variable", variable.name) for variable in variables]
        for kind, name in names:
            if name:
                self._add_name(kind, name)
                self._declared.setdefault((name, kind), set()).add(path)
        self._entries.clear()
        self._namespace_aliases.clear()
        self._type_names = None

    def namespace_aliases(self, root: str) -> dict[str, str]:
        """The namespace aliases that a translation unit sees: ``{name: namespace}``."""
        found = self._namespace_aliases.get(root)
        if found is None:
            found = self._namespace_aliases[root] = {
                alias.name: alias.target
                for path in sorted(self.closure(root))
                if (facts := self.declared(path)) is not None
                for alias in facts.aliases
                if alias.kind == "namespace"
            }
        return found

    @property
    def type_names(self) -> Set[str]:
        """Names that an object's type can have: classes, and aliases of them."""
        if self._type_names is None:
            self._type_names = self.names_of_kind("class") | self.names_of_kind("alias")
        return self._type_names

    def paths_of(self, name: str, kinds: Sequence[str]) -> list[str]:
        """Files in which a name is one of ``kinds``, entered declarations included, sorted."""
        self.reads.asked.add(name)
        made = [path for kind in kinds for path in self._declared.get((name, kind), ())]
        return sorted({*self._stored.paths_of(name, kinds), *made})

    def add_functions(self, path: str, functions: Sequence[Function], instead: Sequence[int] = ()) -> None:
        """Enter functions that the file's own facts do not show, such as those whose head a macro makes; ``instead`` of
        the functions at some offsets."""
        self._add(path, {"functions": functions}, instead)
        for function in functions:
            kind = "kernel" if "global" in function.flags else "function"
            self._add_name(kind, function.name)
            self._made.setdefault(function.name, set()).add(path)
            self._made_kinds.setdefault(kind, set()).add(path)
            self._functions.pop(function.name, None)

    def paths_with(self, kind: str) -> list[str]:
        """Files that hold any name of a kind, entered functions included, sorted."""
        self.reads.kinds.add(kind)
        return sorted({*self._stored.paths_with(kind), *self._made_kinds.get(kind, ())})

    @property
    def paths(self) -> frozenset[str]:
        """Every C++/CUDA path of the tree."""
        if self._paths is None:
            self._paths = frozenset(self._stored.cpp_paths())
        return self._paths

    def functions(self, name: str) -> tuple[tuple[str, Function], ...]:
        """Every function, kernel or declaration of a simple name, with its path, in path and line order."""
        if name not in self._functions:
            found: list[tuple[str, Function]] = []
            self.reads.asked.add(name)
            paths = self._stored.paths_of(name, ("function", "kernel", "declaration", "instantiation"))
            for path in sorted({*paths, *self._made.get(name, ())}):
                facts = self._read(path)
                if facts:
                    found += [(path, f) for f in self._named.of(facts.functions, name)]
            self._functions[name] = tuple(found)
        return self._functions[name]

    def entries(
        self, name: str, kinds: Sequence[str], read: Callable[[CppFacts], Iterable]
    ) -> list[tuple[str, object]]:
        """Entries called ``name`` from the list that ``read`` picks out of each file's facts; the kinds say which."""
        key = (name, *kinds)
        out = self._entries.get(key)
        if out is None:
            out = []
            for path in self.paths_of(name, kinds):
                facts = self._read(path)
                if facts:
                    out += [(path, entry) for entry in self._named.of(read(facts), name)]
            self._entries[key] = out
        return out

    def entries_in(
        self, name: str, kinds: Sequence[str], read: Callable[[CppFacts], Iterable], paths: frozenset[str]
    ) -> list[tuple[str, object]]:
        """As ``entries``, those of some files."""
        entries = self.entries(name, kinds, read)
        if len(entries) <= _FEW:
            return [entry for entry in entries if entry[0] in paths]
        held = self._entries_by_path.get((name, *kinds))
        if held is None or held[0] is not entries:
            by_path: dict[str, list[tuple[str, object]]] = {}
            for entry in entries:
                by_path.setdefault(entry[0], []).append(entry)
            held = self._entries_by_path[name, *kinds] = (entries, by_path)
        return [entry for path in sorted(held[1].keys() & paths) for entry in held[1][path]]

    def resolve_include(self, includer: str, target: str) -> str | None:
        """The tree's file that an ``#include`` in ``includer`` means; None for one that is outside the tree."""
        return self._include_folders.resolve(includer, target)

    def includes(self, path: str) -> tuple[tuple[int, str], ...]:
        """The includes of a file that lie in the tree: ``(offset, path)`` in order."""
        if path not in self._includes:
            self.reads.part(path)
            self._includes[path] = self._read_includes(path)
        return self._includes[path]

    def _read_includes(self, path: str) -> tuple[tuple[int, str], ...]:
        facts = self._stored.cpp_facts(path)
        out = []
        for include in facts.includes if facts else ():
            found = self.resolve_include(path, include.target)
            if found and found != path:
                out.append((include.offset, found))
        return tuple(out)

    def _read_included(self, path: str) -> list[str]:
        return sorted({found for _, found in self._read_includes(path)})

    def closure(self, path: str) -> frozenset[str]:
        """A file and everything it includes, directly or not."""
        if path not in self._closures:
            seen = {path}
            stack = [path]
            while stack:
                for _, found in self.includes(stack.pop()):
                    if found not in seen:
                        seen.add(found)
                        stack.append(found)
            self._closures[path] = frozenset(seen)
        return self._closures[path]

    def near(self, root: str, path: str) -> frozenset[str]:
        """What a unit includes, and one file more."""
        closure = self.closure(root)
        return closure if path in closure else closure | {path}

    def includers(self, path: str) -> Sequence[str]:
        """Every file that includes a file, directly or not, and itself; sorted."""
        self.reads.kinds.add(INCLUDES)
        if self._includers is None:
            # Which file includes which is read of every file, and nothing else.
            included = self._included(self.paths, self._read_included) if self._included else None
            self._includers = includers(included or {one: self._read_included(one) for one in self.paths})
        return self._includers.get(path, ())


def _joined(facts: CppFacts | None, more: Mapping[str, Sequence], instead: Sequence[int]) -> CppFacts | None:
    """A file's facts with further entries, ``instead`` of its functions at some offsets."""
    if facts is None:
        return None
    if instead:
        facts = replace(facts, functions=tuple(f for f in facts.functions if f.offset not in instead))
    return replace(facts, **{name: (*getattr(facts, name), *entries) for name, entries in more.items()})


def _holds_macro(template: str | None, macros: Set[str]) -> bool:
    """Whether a parameter in a template head is nothing but the name of a macro, or a default names one."""
    words = (*map(str.strip, template.split(",")), *re.findall(r"\w+", template.partition("=")[2])) if template else ()
    return any(word in macros for word in words)
