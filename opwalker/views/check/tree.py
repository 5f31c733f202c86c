"""A source as rules see it: routines, ops, and the edges between them.

In: a workbench, the ops, and all routines. Out: a ``Tree`` that answers what ``model.check.CheckedTree`` promises.
Edges are worked out when a rule asks for them, once.
"""

from __future__ import annotations

import copy
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from opwalker.expand.resolve import Candidate, Context, strip_arguments
from opwalker.expand.workbench import Workbench
from opwalker.model.check import CallSite, Draft, PythonFunction, Settings, Spread
from opwalker.model.cpp import ClassDef, CppFacts, Function, MacroEvent
from opwalker.model.statements import CallText, LaunchText, MacroUse, Routine, Statement
from opwalker.model.walk import Op, SourceInfo
from opwalker.source.changes import Changes
from opwalker.views.check.constants import constants_of
from opwalker.views.check.focus import Focus, place_of, reached
from opwalker.views.check.members import bare_type, data_members, followed
from opwalker.views.check.routines import Routines
from opwalker.views.check.shapes import OpShapes

Place = tuple[str, int]


class Tree:
    """One source, for one build."""

    def __init__(
        self,
        workbench: Workbench,
        source: SourceInfo,
        ops: Sequence[Op],
        routines: Routines,
        settings: Settings,
        text: Callable[[str], str],
        languages: Callable[[str], str],
        fakes: Callable[[Op], Sequence[PythonFunction]],
        shapes: OpShapes,
        without: Collection[str] = frozenset(),
    ) -> None:
        self.source = source
        self.build = workbench.build
        self.settings = settings
        self.every_op = ops
        self.changed: frozenset[str] | None = None
        self._held = routines
        self.whole = self
        self._focus: Focus | None = None
        self._spread: Spread = "both"
        self._within: dict[Spread, Tree] = {}
        self.text = text
        self.fakes = fakes
        self._shapes = shapes
        self.documented = shapes.documented
        self.shapes = shapes.of
        self.contract = shapes.contract
        self._workbench = workbench
        self._index = workbench.index
        self._resolver = workbench.unit().resolver
        self._languages = languages
        self._without = without
        self._constants: dict[str, Mapping[str, str]] = {}
        self._by_line: dict[str, dict[int, Routine]] = {}
        self._sites: dict[str, dict[str, list[CallSite]]] = {}
        self._starts: dict[str, dict[str, list[tuple[Routine, LaunchText]]]] = {}
        self._callers: dict[Place, list[CallSite]] = {}
        self._fields: dict[tuple[str, int], Sequence[tuple[str, str, int]]] = {}
        self._targets: dict[tuple[Place, str, str | None, int], tuple[Routine, ...]] = {}

    @cached_property
    def every_routine(self) -> Sequence[Routine]:
        """Every function definition that the build reads."""
        return self._held.all()

    @property
    def routines(self) -> Sequence[Routine]:
        """The routines to look at."""
        return self.every_routine if self._focus is None else self._focus.of(self._spread)[0]

    @property
    def ops(self) -> Sequence[Op]:
        """The ops to look at."""
        return self.every_op if self._focus is None else self._focus.of(self._spread)[1]

    @property
    def missing(self) -> str | None:
        """What could not be asked of this tree, and why, in one line."""
        return self._shapes.missing

    def narrowed(self, changes: Changes) -> Tree:
        """The same tree, with the routines and ops to look at that findings about a change can come from."""
        made = copy.copy(self)
        made._focus, made.whole, made._within = Focus(self, changes), self, {}
        made.changed = frozenset(changes)
        made.shapes = partial(self._shapes.of, changes=changes)
        return made

    def is_shared(self, one: Draft) -> bool:
        """Whether a draft is about a change by its steps alone, and stands in a macro: others may stand there too."""
        held = self._focus is not None and any(at.line <= one.line <= at.end_line for at in self.macros(one.file))
        return held and self._focus.steps_alone(one)

    def within(self, spread: Spread) -> Tree:
        """The same tree, with what findings can come from that spread no farther."""
        if self._focus is None:
            return self
        if spread not in self._within:
            made = self._within[spread] = copy.copy(self)
            made._spread = spread
        return self._within[spread]

    def routine_at(self, file: str, line: int) -> Routine | None:
        """The routine whose name stands at a line."""
        if file not in self._by_line:
            self._by_line[file] = {one.line: one for one in sorted(self._held.of(file), key=lambda r: r.line)}
        return self._by_line[file].get(line)

    def routine_around(self, file: str, line: int) -> Routine | None:
        """The innermost routine around a line."""
        found = self.routines_in(file)
        for one in reversed(found[: bisect_right(found, line, key=lambda r: r.line)]):
            if one.line <= line <= one.end_line:
                return one
        return None

    def routines_in(self, file: str) -> Sequence[Routine]:
        """The routines of a file, in the order of their lines."""
        return sorted(self._held.of(file), key=lambda r: r.line)

    @cached_property
    def volatile(self) -> Mapping[str, tuple[str, int]]:
        """What is declared volatile, and where."""
        return self._held.volatile()

    @cached_property
    def ordered(self) -> Sequence[Routine]:
        """The routines that may access memory with an order, or that of a peer."""
        return tuple(self._held.ordered())

    def calling_any(self, names: Collection[str]) -> Iterable[Routine]:
        """The routines that call something of some names, and perhaps others."""
        return self._held.naming(names)

    def implementations(self, op: Op) -> Sequence[tuple[str | None, Routine]]:
        """The host functions of an op that the build compiles."""
        out = []
        for impl in op.impls:
            if impl.host is None or (impl.builds is not None and self.build not in impl.builds):
                continue
            routine = self.routine_at(impl.host.file, impl.host.line)
            if routine is not None:
                out.append((impl.key, routine))
        return out

    @cached_property
    def entries(self) -> dict[Place, list[str]]:
        """Host functions by place, with the ops that they stand for."""
        out: dict[Place, list[str]] = {}
        for op in self.every_op:
            for _, routine in self.implementations(op):
                out.setdefault((routine.file, routine.line), []).append(op.name)
        return out

    def is_entry(self, routine: Routine) -> bool:
        """Whether something outside the source may call a routine."""
        return (routine.file, routine.line) in self.entries or "extern_c" in routine.flags

    @cached_property
    def _ways(self) -> dict[Place, dict[str, None]]:
        """The ops whose path enters each routine."""
        out: dict[Place, dict[str, None]] = {}
        for place, names in self.entries.items():
            pending, seen = [one for one in (self.routine_at(*place),) if one is not None], {place}
            while pending:
                one = pending.pop()
                out.setdefault((one.file, one.line), {}).update(dict.fromkeys(names))
                for following in self.following(one):
                    key = (following.file, following.line)
                    if key not in seen:
                        seen.add(key)
                        pending.append(following)
        return out

    def following(self, routine: Routine) -> Iterable[Routine]:
        """What a routine calls or launches."""
        for statement in routine.walk():
            for call in statement.calls:
                yield from self.targets(routine, call)
            for launch in statement.launches:
                yield from self.kernels(routine, launch)

    def ops_of(self, routine: Routine) -> Sequence[str]:
        """The ops whose path enters a routine, by name."""
        if self._focus is None:
            return sorted(self._ways.get(place_of(routine), ()))
        return sorted({name for place in reached([routine], self.leading) for name in self.entries.get(place, ())})

    def place(self, macro: MacroUse) -> tuple[str, int]:
        """The file and the line that a macro's text stands on."""
        return self._workbench.files.place(macro)

    def targets(self, routine: Routine, call: CallText) -> Sequence[Routine]:
        """What a call can mean in this source."""
        key = ((routine.file, routine.line), call.name, call.receiver, len(call.arguments))
        found = self._targets.get(key)
        if found is None:
            found = self._targets[key] = tuple(self._resolved(routine, call))
        return found

    def _resolved(self, routine: Routine, call: CallText) -> Iterable[Routine]:
        if not call.name:
            return
        context = self._context(routine)
        count = len(call.arguments)
        if call.receiver is not None:
            kind = self._class_of(routine, call.receiver)
            candidates = self._resolver.method(call.simple, kind, context, count).candidates if kind else ()
        else:
            candidates = self._resolver.function(call.name, context, count).candidates
            if not candidates and routine.classes:
                candidates = self._resolver.method(call.simple, routine.scope[-1], context, count).candidates
        yield from self._routines_of(candidates)

    def kernels(self, routine: Routine, launch: LaunchText) -> Sequence[Routine]:
        """The kernels that a launch names."""
        found = self._resolver.function(strip_arguments(launch.kernel), self._context(routine), None, True).candidates
        return tuple(self._routines_of(found))

    def _routines_of(self, candidates: Iterable[Candidate]) -> Iterable[Routine]:
        for one in candidates:
            routine = self.routine_at(one.path, one.function.line)
            if routine is not None:
                yield routine

    @staticmethod
    def _context(routine: Routine) -> Context:
        return Context(routine.file, routine.file, routine.scope)

    def _class_of(self, routine: Routine, receiver: str) -> str | None:
        """The class of an object that a method is called on, where its declaration is in sight."""
        if receiver in ("this", "(*this)", "*this"):
            return routine.scope[-1] if routine.classes and routine.scope else None
        for parameter in routine.parameters:
            if parameter.name == receiver:
                return bare_type(parameter.type)
        for statement in routine.walk():
            for declared in statement.declares:
                if declared.name != receiver:
                    continue
                made = re.match(r"(?:new\s+|(?:reinterpret|static)_cast<)([\w:]+)", declared.value or "")
                return bare_type(made[1] if made and declared.type.startswith("auto") else declared.type)
        if routine.classes:
            for file, definition in self.classes(routine.scope[-1]):
                for name, kind, _ in self.fields(file, definition):
                    if name == receiver:
                        return bare_type(kind)
        return None

    def calling(self, name: re.Pattern[str]) -> Iterator[Routine]:
        """The routines of the files in which something is called whose name begins like that."""
        return (routine for file in self._held.matching(name) for routine in self._held.of(file))

    def _calls(self, name: str) -> Iterator[CallSite]:
        """The calls of something by the last part of its name: what each can mean is asked when somebody wants to
        know."""
        for file in self._held.calling(name):
            if file not in self._sites:
                sites = self._sites[file] = {}
                for routine, statement in self._statements(file):
                    for call in statement.calls:
                        sites.setdefault(call.simple, []).append(CallSite(routine, call))
            yield from self._sites[file].get(name, ())

    def launches(self, name: str) -> Iterator[tuple[Routine, LaunchText]]:
        """The launches of something by the last part of its name, each with the routine that it stands in."""
        for file in self._held.launching(name):
            if file not in self._starts:
                starts = self._starts[file] = {}
                for routine, statement in self._statements(file):
                    for launch in statement.launches:
                        starts.setdefault(launch.simple, []).append((routine, launch))
            yield from self._starts[file].get(name, ())

    def _statements(self, file: str) -> Iterator[tuple[Routine, Statement]]:
        return ((routine, statement) for routine in self._held.of(file) for statement in routine.walk())

    def leading(self, routine: Routine) -> Iterable[Routine]:
        """What calls or launches a routine."""
        yield from (site.caller for site in self.callers(routine))
        for caller, launch in self.launches(_simple(routine)):
            if routine in self.kernels(caller, launch):
                yield caller

    def naming(self, routine: Routine) -> Iterable[Routine]:
        """What calls or launches something of a routine's name, be it this one or not, or makes an object of it."""
        yield from (site.caller for site in self._calls(_simple(routine)))
        yield from (caller for caller, _ in self.launches(_simple(routine)))
        name = _simple(routine).removeprefix("~")
        made = re.compile(rf"\b{re.escape(name)}\b")
        for file in self._held.declaring(name):
            for maker, statement in self._statements(file):
                if any(made.search(declared.type) for declared in statement.declares):
                    yield maker

    def mentioning(self, file: str, names: Collection[str]) -> Iterator[Routine]:
        """The routines of a file that name any of some names, or use macros of these names; and perhaps others."""
        return self._held.mentioning(file, names)

    def facts(self, file: str) -> CppFacts | None:
        """What a file of C++ says."""
        return self._index.facts(file)

    def lines(self, file: str) -> tuple[Callable[[int], int], str]:
        """A file's code without comments, and what gives the line of a place in it."""
        blanked = self._workbench.files.view(file).blanked
        return blanked.line, blanked.code

    @property
    def compiled(self) -> Collection[str]:
        """The files of C++ and CUDA that the build reads."""
        return self._index.paths

    def including(self, files: Collection[str]) -> Sequence[str]:
        """The files that read any of some files, these among them."""
        if not files:
            return ()
        return [path for path in sorted(self._index.paths) if not self._index.closure(path).isdisjoint(files)]

    def callers(self, routine: Routine) -> Sequence[CallSite]:
        """The calls that can mean a routine."""
        place = (routine.file, routine.line)
        found = self._callers.get(place)
        if found is None:
            found = self._callers[place] = [
                site
                for site in self._calls(_simple(routine))
                if any((one.file, one.line) == place for one in self.targets(site.caller, site.call))
            ]
        return found

    def functions(self, name: str) -> Sequence[tuple[str, Function]]:
        """Declarations and definitions with an unqualified name."""
        return self._index.functions(name)

    def classes(self, name: str) -> Sequence[tuple[str, ClassDef]]:
        """Class definitions with an unqualified name."""
        wanted = strip_arguments(name).rsplit("::", 1)[-1]
        return self._index.entries(wanted, ("class",), lambda facts: facts.classes)

    def enumerations(self, name: str) -> Sequence[tuple[str, ...]]:
        """The members of the enumerations with an unqualified name."""
        found = self._index.entries(name.rsplit("::", 1)[-1], ("enum",), lambda facts: facts.enums)
        return [tuple(member for member, _ in enum.members) for _, enum in found]

    def fields(self, file: str, definition: ClassDef) -> Sequence[tuple[str, str, int]]:
        """The data members of a class."""
        key = (file, definition.body_start)
        if key not in self._fields:
            view = self._workbench.files.view(file)
            self._fields[key] = data_members(view.blanked.code, definition, view.blanked.line)
        return self._fields[key]

    def macros(self, file: str) -> Sequence[MacroEvent]:
        """The macro definitions of a file."""
        facts = self._index.facts(file)
        return facts.macros if facts is not None else ()

    def files(self, *languages: str) -> Sequence[str]:
        """The paths of some languages; of C++ and CUDA, the source's own."""
        held = ((path, language) for language in languages for path in sorted(self._languages(language)))
        return [path for path, language in held if language == "python" or path not in self._without]

    def included(self, file: str) -> frozenset[str]:
        """The files that a file includes, itself among them."""
        return self._index.closure(file)

    def constants(self, file: str) -> Mapping[str, str]:
        """The constants that a file and what it includes declare."""
        if file not in self._constants:
            self._constants[file] = constants_of(self._index, self.included(file))
        return self._constants[file]

    def type_of(self, name: str, routine: Routine | None) -> str:
        """A type with aliases followed."""
        bare = bare_type(name)
        for statement in routine.walk() if routine is not None else ():
            for declared in statement.declares:
                if declared.type == "using" and declared.name == bare and declared.value:
                    return name.replace(bare, declared.value)
        return followed(name, self._index)


def _simple(routine: Routine) -> str:
    return routine.name.rsplit("::", 1)[-1]
