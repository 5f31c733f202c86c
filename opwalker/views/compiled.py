"""What a build compiles though no op reaches it: functions that name kernel templates, and plain kernels.

In: a workbench, and what walks have entered. Out: functions to follow besides, each with the translation unit that
compiles it; and for a template that nothing entered, whether anything may still call it. A compiler makes the instances
that a function names whether or not the function is ever called.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from opwalker.expand.callees import is_device_code
from opwalker.expand.mentions import mentions
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.specialised import is_full
from opwalker.expand.workbench import Workbench
from opwalker.link.build_cmake import is_foreign
from opwalker.model.cpp import Function, Variable
from opwalker.notation.regex import Regex
from opwalker.views.check.vendored import vendored

_WORD = Regex(r"[A-Za-z_]\w*")
_SOURCE = Regex(r"\.(?:cu|cc|cpp|cxx|c|hip)\Z")
_DEVICE_SOURCE = Regex(r"\.(?:cu|hip)\Z")
_MAX_ROUNDS = 20


class Compiled:
    """Asks what the chosen build compiles. ``entered`` are the places of functions that walks have entered; it may
    grow while this is used."""

    def __init__(self, workbench: Workbench, entered: set[tuple[str, int]]) -> None:
        self._bench = workbench
        self._index = workbench.index
        self._entered = entered
        self._words: dict[str, frozenset[str]] = {}
        self._repeated: dict[str, str | None] = {}
        #: By file, the units that read it, each with the object-like macros that its own file defines.
        self._defining: dict[str, list[tuple[str, list[tuple[str, str | None]]]]] = {}

    @cached_property
    def units(self) -> list[str]:
        """The files that the build compiles on their own; every source file where no build file says, and where those
        that were read name sources for a host alone."""
        builds = self._bench.builds
        named = [p for p in sorted(self._index.paths) if builds.builds_of(p) is not None]
        if not any(_DEVICE_SOURCE.search(p) for p in named):
            others = [p for p in sorted(self._index.paths) if _SOURCE.search(p)]
            if not named or any(_DEVICE_SOURCE.search(p) for p in others):
                return others
        compiled = [p for p in named if self._bench.build in builds.builds_of(p)]
        # A vendored library's own examples and tests are compiled, but not into the modules that hold the ops.
        modules = {m for path in {p for p, _ in self._entered} for m in builds.names_of(path)}
        near = [p for p in compiled if modules.intersection(builds.names_of(p))]
        return near or compiled

    @cached_property
    def _unit_of(self) -> dict[str, str]:
        """For every file that is compiled, the first unit that holds it: itself, if it is one."""
        out: dict[str, str] = {}
        for unit in self.units:
            out[unit] = unit
        for unit in self.units:
            for path in sorted(self._index.closure(unit)):
                out.setdefault(path, unit)
        return out

    def is_compiled(self, path: str, function: Function) -> bool:
        """Whether a unit of the build reads a definition."""
        unit = self._unit_of.get(path)
        return unit is not None and self._bench.unit().resolver.is_read(path, function, unit)

    def is_left_out(self, path: str) -> bool:
        """Whether a file belongs to another project's copy, or to examples or tests, and the build files, which name
        what they compile, do not name it."""
        if path in self._unit_of or not self._is_named:
            return False
        return is_foreign(path) or path in self._others

    @cached_property
    def _is_named(self) -> bool:
        return any(self._bench.builds.builds_of(path) is not None for path in self._index.paths)

    @cached_property
    def _others(self) -> frozenset[str]:
        """The files of other projects' copies."""
        return frozenset(path for files in vendored(self._index.paths, (), ()).values() for path in files)

    def repeated_in(self, path: str) -> str | None:
        """A file that includes another one several times, and gives names that it uses other meanings in between."""
        if path not in self._repeated:
            facts = self._index.facts(path)
            readers = () if facts.once else self._index.includers(path)
            found = (one for one in readers if one != path and self._repeats(one, path))
            self._repeated[path] = next(found, None)
        return self._repeated[path]

    def _repeats(self, reader: str, path: str) -> bool:
        places = [at for at, included in self._index.includes(reader) if included == path]
        if len(places) < 2:
            return False
        words = self._file_words(path)
        return any(places[0] < e.offset < places[-1] and e.name in words for e in self._index.facts(reader).macros)

    def functions(self) -> Iterator[tuple[Candidate, str, bool]]:
        """Functions that may compile instances: no templates themselves, but they name some. Each with a unit, and
        whether it is to be followed there though it was entered before: where a unit's own macros change it."""
        for path, unit in self.read_files():
            for function in self._index.facts(path).functions:
                candidate = Candidate(path, function)
                if not function.body_end or is_device_code(candidate):
                    continue
                if function.template is not None and not is_full(function):
                    continue
                words = self._body_words(path, function)
                if self._wanted.isdisjoint(words) or self._in_template(candidate):
                    continue
                if (path, function.offset) not in self._entered and self.is_compiled(path, function):
                    yield candidate, unit, False
                for other in self._other_units(path, words):
                    if self._bench.unit().resolver.is_read(path, function, other):
                        yield candidate, other, True

    def _other_units(self, path: str, words: set[str]) -> Iterator[str]:
        """The units that read a file with definitions of their own for names that one of its functions uses: one of
        each kind, and one without any."""
        if path not in self._defining:
            held = [unit for unit in self.units if unit != path and path in self._index.closure(unit)]
            self._defining[path] = [
                (unit, [(e.name, e.body) for e in self._index.facts(unit).macros if e.parameters is None])
                for unit in held
            ]
        kinds: dict[tuple, str] = {}
        for unit, defined in self._defining[path]:
            kinds.setdefault(tuple(one for one in defined if one[0] in words), unit)
        if len(kinds) > 1:
            yield from kinds.values()

    def variables(self) -> Iterator[tuple[Candidate, str, Context, str | None, str]]:
        """The function templates that initialisers of variables name, outside of functions: ``(definition, unit,
        context, class, arguments)``."""
        for found, _, context, owner, written in self.named(kernels=False):
            for candidate in found:
                yield candidate, context.root, context, owner, written

    def read_files(self) -> Iterator[tuple[str, str]]:
        """The files that are compiled and name a kernel template, or what leads to one, each with its unit."""
        for path, root in sorted(self._unit_of.items()):
            if not self._wanted.isdisjoint(self._file_words(path)):
                yield path, root

    def named(self, *, kernels: bool) -> Iterator[tuple[tuple[Candidate, ...], Variable, Context, str | None, str]]:
        """The kernels, or the host functions, that initialisers of variables name with template arguments:
        ``(definitions, variable, context, class, arguments)``."""
        unit = self._bench.unit()
        names = self._index.names_of_kind("kernel" if kernels else "function")
        for path, root in self.read_files():
            facts = self._index.facts(path)
            for variable in facts.variables:
                if not variable.value or self._wanted.isdisjoint(_WORD.findall(variable.value)):
                    continue
                terms = facts.conditions[variable.condition]
                if terms and unit.resolver.holds(path, terms, variable.offset) is False:
                    continue
                text = unit.tools.expand(path, variable.value, variable.offset)
                context = Context(path, root, variable.scope)
                for name, _, given in mentions(text):
                    if name.rsplit("::", 1)[-1] in names:
                        written = ", ".join(text[a:b].strip() for a, b in given)
                        found = unit.resolver.function(name, context, None, kernel=kernels).candidates
                        yield found, variable, context, name.rpartition("::")[0] or None, written

    def may_name_kernels(self, candidate: Candidate) -> bool:
        """Whether a function's own text names a kernel template, or what leads to one."""
        return not self._wanted.isdisjoint(self._body_words(candidate.path, candidate.function))

    def may_be_called(self, path: str, function: Function) -> bool:
        """Whether any other function or macro of the tree names a function."""
        name = function.name
        if not name.isidentifier() or function.scope[-1:] == (name,):
            return True
        for other in sorted(self._index.paths):
            if name not in self._file_words(other):
                continue
            facts = self._index.facts(other)
            if any(event.body and name in _WORD.findall(event.body) for event in facts.macros):
                return True
            for held in facts.functions:
                same = other == path and held.offset == function.offset
                if held.body_end and not same and name in self._body_words(other, held):
                    return True
            if any(v.value and name in _WORD.findall(v.value) for v in facts.variables):
                return True
        return False

    # -- words ------------------------------------------------------------------------------------------------------

    def _in_template(self, candidate: Candidate) -> bool:
        return self._bench.unit().homes.in_template(candidate)

    def _file_words(self, path: str) -> frozenset[str]:
        if path not in self._words:
            self._words[path] = frozenset(_WORD.findall(self._bench.files.view(path).blanked.plain))
        return self._words[path]

    def _body_words(self, path: str, function: Function) -> set[str]:
        plain = self._bench.files.view(path).blanked.plain
        return set(_WORD.findall(plain[function.body_start : function.body_end]))

    @cached_property
    def _wanted(self) -> frozenset[str]:
        """The names of kernel templates, and of templates and macros that name them, directly or not."""
        wanted: set[str] = set()
        for path in self._index.paths_with("kernel"):
            facts = self._index.facts(path)
            wanted.update(f.name for f in facts.functions if "global" in f.flags and f.template is not None)
        held: list[tuple[str, set[str]]] = []
        for path in sorted(self._unit_of):
            facts = self._index.facts(path)
            held += [(e.name, set(_WORD.findall(e.body))) for e in facts.macros if e.body]
            held += [(a.name, set(_WORD.findall(a.target))) for a in facts.aliases if a.name]
            for function in facts.functions:
                candidate = Candidate(path, function)
                if function.body_end and not is_device_code(candidate):
                    if function.template or self._in_template(candidate):
                        # An operator or a destructor runs where the class is named.
                        named = function.name if function.name.isidentifier() else "".join(function.scope[-1:])
                        held.append((named, self._body_words(path, function)))
        for _ in range(_MAX_ROUNDS):
            added = {name for name, words in held if name not in wanted and not wanted.isdisjoint(words)}
            if not added:
                break
            wanted |= added
        return frozenset(wanted)
