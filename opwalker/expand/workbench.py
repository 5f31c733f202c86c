"""The tools of the expand stage set up for a tree: one set a build, made when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from opwalker.expand.bindings import BindingReader, Bindings
from opwalker.expand.bodies import Bodies
from opwalker.expand.configuration import configuration
from opwalker.expand.environment import Tools
from opwalker.expand.explicit import Explicit, written_members, written_out
from opwalker.expand.files import Files
from opwalker.expand.homes import Homes
from opwalker.expand.instances import Judge
from opwalker.expand.known import known_macros
from opwalker.expand.leading import Leading
from opwalker.expand.macros import MacroTable
from opwalker.expand.made import MadeFile, read_made
from opwalker.expand.preprocess import Preprocessor
from opwalker.expand.reach import Follower
from opwalker.expand.registries import Registries
from opwalker.expand.resolve import Candidate, Resolver, is_header
from opwalker.expand.settled import Settled
from opwalker.expand.terms import Term
from opwalker.expand.tokens import tokenize
from opwalker.facts.cpp_functions import placed_parameters
from opwalker.link.index import Index
from opwalker.model.binding import Binding
from opwalker.model.build import Define
from opwalker.model.cpp import Function, Parameter

#: ``keep(question, type of the answer, how to find it)``.
Keep = Callable[[str, Any, Callable[[], Any]], Any]
#: ``apart(question, type of the answer, how to find it with tools that have read nothing else, moves)``: with ``moves``
#: the answer holds lines, and no other places.
Apart = Callable[..., Any]


def at_once(question: str, kind: Any, read: Callable[[], Any]) -> Any:
    """A ``Keep`` that knows no answer."""
    return read()


class BuildView(Struct, frozen=True):
    """What is known of the builds of a tree.

    ``builds_of`` gives the kinds of build that compile a file (None: nothing says), ``names_of`` what
    ``TORCH_EXTENSION_NAME`` can stand for in it, ``defines_of`` the macros that a build sets;
    ``units_of`` those that it sets for single files alone;
    ``closed`` says that build files were there to read. Where architectures were asked for (``archs``), ``unset_of``
    gives the macros that a build sets for others alone, and ``absent`` says of a file that is compiled for others
    alone where and under which condition. ``archs_of`` gives the architectures that a file is compiled for, if that is
    known. ``flagged`` are macros that something is compiled with, which files is not known.
    """

    builds_of: Callable[[str], tuple[str, ...] | None]
    names_of: Callable[[str], Sequence[str]]
    defines_of: Callable[[str], Sequence[Define]]
    closed: bool = False
    archs: tuple[str, ...] = ()
    unset_of: Callable[[str], Sequence[str]] = lambda build: ()
    absent: Callable[[str], str | None] = lambda path: None
    archs_of: Callable[[str], tuple[str, ...]] = lambda path: ()
    units_of: Callable[[str], Mapping[str, Sequence[Define]]] = lambda build: {}
    flagged: tuple[str, ...] = ()

    def read_by(self, path: str) -> tuple[str, ...] | None:
        """The kinds of build that read a file: those that compile it; one in HIP's own language is for ROCm alone."""
        found = self.builds_of(path)
        return ("rocm",) if found is None and path.endswith(".hip") else found


class Unit:
    """The tools for one build."""

    def __init__(
        self, index: Index, files: Files, builds: BuildView, build: str, asked: Sequence[tuple[str, str | None]]
    ) -> None:
        defines = builds.defines_of(build)
        self.build = build
        self.macros, self.device_macros = (
            MacroTable(
                index,
                configuration(
                    build,
                    device,
                    defines,
                    asked,
                    builds.closed,
                    builds.unset_of(build),
                    builds.archs if device else (),
                    builds.units_of(build),
                    builds.flagged,
                ),
                known_macros(),
            )
            for device in (False, True)
        )
        self.preprocessor = Preprocessor(files, self.macros)
        self.device_preprocessor = Preprocessor(files, self.device_macros)
        self.settled = Settled(files, self.macros, self.preprocessor)
        self.resolver = Resolver(index, self.macros, builds.read_by, self.device_macros, builds.names_of)
        self.resolver.expanded = lambda path, start, end: self.device_preprocessor.span(path, start, end, path).full
        self.bodies = Bodies(files, self.preprocessor, self.device_preprocessor)
        self.tools = Tools(
            index,
            self.resolver,
            self.bodies.expand,
            written_out=self._written_out,
            written_members=self._written_members,
        )
        #: Enters the explicit instantiations that macros make, when one may matter.
        self.enter_instantiations: Callable[[], None] = lambda: None
        self._explicit: dict[tuple, list[dict[str, Term | None]]] = {}
        self._members: dict[tuple, list[Explicit]] | None = None
        self.homes = Homes(self.tools)
        self._leading = Leading(index, files)
        self._registries = Registries(index, self.resolver, self.bodies, builds.names_of)
        self._index = index
        #: What a view keeps with the unit, by its own name.
        self.kept: dict[str, Any] = {}

    def _written_out(self, candidate: Candidate) -> list[dict[str, Term | None]]:
        found = self._explicit.get(candidate.key)
        if found is None:
            self.enter_instantiations()
            made = written_out(candidate, self._index, self.resolver, self.tools)
            whole = all(one.reason is None for one in made)
            found = self._explicit[candidate.key] = [one.bound for one in made] if whole else []
        return found

    def _written_members(self, candidate: Candidate) -> list[tuple[dict[str, Term | None], str]]:
        if self._members is None:
            self.enter_instantiations()
            self._members = written_members(self._index, self.resolver, self.tools)
        return [(one.bound, one.owner or "") for one in self._members.get(candidate.key, ())]

    def follower(self, judge: Judge | None = None) -> Follower:
        """A fresh follower for one entry point. ``judge`` says which instances are never launched."""
        return Follower(self._index, self.resolver, self.bodies, self.tools, judge, self._leading, self._registries)


class Workbench:
    """A tree with everything that reads it. ``keep`` may answer a question of the C++ side from an earlier run, and so
    may ``apart``, which hands tools of its own to whoever finds the answer: it then depends on what these read alone.
    ``made`` is what macros make in the tree, where that is known."""

    def __init__(
        self,
        index: Index,
        builds: BuildView,
        build: str = "cuda",
        asked: Sequence[tuple[str, str | None]] = (),
        keep: Keep = at_once,
        apart: Apart | None = None,
        made: Sequence[MadeFile] | None = None,
    ) -> None:
        self.index = index
        self.builds = builds
        self.build = build
        self.files = Files(index)
        self._asked = tuple(asked)
        self._units: dict[str, Unit] = {}
        self._bindings: Bindings | None = None
        self._implementations: dict[str, list[Binding]] | None = None
        self.keep = keep
        self.apart = apart or self.together
        #: Whether what is asked for apart may be known from before.
        self.keeps_apart = apart is not None
        self._instantiated = False
        self._scope_names: dict[tuple[str, str], str | None] = {}
        #: Names of namespaces that a macro gives a file, by file, of which each of several units gives another.
        self.named_by_units: set[tuple[str, str]] = set()
        index.scope_name = self._scope_name
        index.parameters = self._parameters
        index.template_head = self._template_head
        index.settled = lambda path, facts: self.unit().settled.functions(path, facts)
        for one in self.read_made() if made is None else made:
            self.files.extend(one.path, one.texts)
            index.add_functions(one.path, one.functions, one.instead)
            index.add_declarations(one.path, one.classes, one.enums, one.aliases, one.variables)

    def read_made(self, instantiations: bool = False) -> tuple[MadeFile, ...]:
        """What macros make in the tree; with ``instantiations``, the explicit instantiations that they make."""
        unit = self.unit()
        return read_made(self.index, self.files, unit.macros, unit.preprocessor, instantiations)

    def together(self, question: str, kind: Any, read: Callable[[Workbench], Any], moves: bool = False) -> Any:
        """An ``Apart`` that knows no answer, and hands out these tools."""
        return read(self)

    def add_instantiations(self) -> None:
        """Enter explicit instantiations that macros make, once: a list of all kernels asks for them, and a call of a
        template whose definition its unit does not see."""
        if self._instantiated:
            return
        self._instantiated = True
        for made in self.keep("instantiations", tuple[MadeFile, ...], lambda: self.read_made(instantiations=True)):
            self.index.add_functions(made.path, made.functions)
            self.index.add_class_instantiations(made.path, made.instantiations)
        for unit in self._units.values():
            unit.bodies.moves.clear()  # what a name means may be another one now

    def _scope_name(self, path: str, name: str, offset: int) -> str | None:
        """What an object-like macro stands for as the name of a namespace."""
        key = (path, name)
        if key not in self._scope_names:
            self._scope_names[key] = self._read_scope_name(path, name, offset)
        return self._scope_names[key]

    def _read_scope_name(self, path: str, name: str, offset: int) -> str | None:
        macros = self.unit().macros

        def read_by(unit: str) -> str | None:
            choice = macros.lookup(name, path, offset, unit)
            text = (choice.event.body or "").strip() if choice and choice.event.parameters is None else ""
            return text if text.isidentifier() else None

        units: Sequence[str] = ()
        if len(self.index.store.paths_of(name, ("macro",))) > 1 or macros.configuration.units:
            units = [unit for unit in self.index.includers(path) if not is_header(unit)]
        names = dict.fromkeys(map(read_by, units))
        if len(names) > 1:
            self.named_by_units.update((path, made) for made in (*names, read_by(path), name) if made)
        return next(iter(names)) if len(names) == 1 else read_by(path)

    def _parameters(self, path: str, function: Function) -> tuple[Parameter, ...]:
        """The parameters of a function with the macros among them expanded; each at the place of the whole list."""
        start, end = function.parameters[0].offset, function.parameters[-1].end
        text = self.unit().preprocessor.span(path, start, end, path).full
        return placed_parameters(text, (0, len(text)), end, end)

    def _template_head(self, path: str, text: str, offset: int) -> str:
        """A template head with its macros expanded."""
        return self.unit().preprocessor.tokens(path, tokenize(text, offset), path).full

    def unit(self, build: str | None = None) -> Unit:
        """The tools for a build; the one that was asked for by default."""
        name = build or self.build
        if name not in self._units:
            made = self._units[name] = Unit(self.index, self.files, self.builds, name, self._asked)
            made.enter_instantiations = self.add_instantiations
        return self._units[name]

    def bindings(self) -> Bindings:
        """Every registration of the tree, read once."""
        if self._bindings is None:
            unit = self.unit()
            reader = BindingReader(self.index, self.files, unit.macros, unit.preprocessor, self.builds.names_of)
            self._bindings = self.keep("bindings", Bindings, reader.read)
        return self._bindings

    def implementations(self, name: str) -> Sequence[Binding]:
        """The registrations that implement an op, in order."""
        if self._implementations is None:
            self._implementations = {}
            for binding in self.bindings().bindings:
                if binding.role == "impl":
                    self._implementations.setdefault(binding.name, []).append(binding)
        return self._implementations.get(name, ())

    def absent(self, path: str) -> str | None:
        """Why a file is compiled for none of the architectures asked for, with the condition in the build files: its
        own, or that of every file that a build compiles and that includes it."""
        told = self.builds.absent(path)
        if told is not None or not self.builds.archs or self.builds.builds_of(path) is not None:
            return told
        reasons = [self.builds.absent(p) for p in self._including.get(path, ())]
        return reasons[0] if reasons and all(reasons) else None

    @cached_property
    def _including(self) -> dict[str, list[str]]:
        """By file, those that a build compiles and that include it."""
        out: dict[str, list[str]] = {}
        for compiled in sorted(self.index.paths):
            if self.builds.builds_of(compiled) is not None:
                for path in self.index.closure(compiled):
                    out.setdefault(path, []).append(compiled)
        return out

    def builds_at(self, path: str, terms: tuple[str, ...]) -> tuple[str, ...] | None:
        """The kinds of build that read a place: those of its file for which its condition is not false."""
        from opwalker.model.build import BUILDS

        named = self.builds.read_by(path)
        if not terms:
            return named
        kept = tuple(b for b in (named or BUILDS) if self.unit(b).macros.truth(path, terms, 0, path) is not False)
        if named is None and len(kept) == len(BUILDS):
            return None
        return kept
