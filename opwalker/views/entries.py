"""Walks that begin at no op: a file, a function, a class, a kernel.

In: a name as typed. Out: a ``Walk`` with an ``entry``, or None where the tree has nothing of that name. Host functions
become implementations without a registration, in reading order.
"""

from __future__ import annotations

from collections.abc import Iterable

from opwalker.expand.resolve import Candidate, visible
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import ClassDef, Function
from opwalker.model.reading import Entry
from opwalker.model.walk import Gap, Implementation, Ownership, SourceInfo, Walk
from opwalker.views.device_functions import DeviceReader
from opwalker.views.kernel import read_kernel
from opwalker.views.ops import shown_condition
from opwalker.views.walk import WalkView, joined_ownership


class EntryView:
    """Walks from anything that is no op."""

    def __init__(self, workbench: Workbench, source: SourceInfo) -> None:
        self._workbench = workbench
        self._source = source
        self._walks = WalkView(workbench, source)

    def walk(self, name: str) -> Walk | None:
        """The walk from a path, ``path::function``, or a qualified or simple C++ name; None for an unknown name."""
        index = self._workbench.index
        if name in index.paths:
            return self._file(name)
        path, _, rest = name.partition("::")
        within = path if path in index.paths else None
        wanted = tuple(p for p in (rest if within else name).split("::") if p)
        if not wanted:
            return None
        found = self._definitions(wanted, within)
        kernels = [c for c in found if "global" in c.function.flags]
        hosts = [c for c in found if c not in kernels]
        if hosts:
            first = hosts[0].function
            entry = Entry("function", first.qualified_name, hosts[0].path, first.line, first.end_line)
            return self._walk(entry, hosts, kernels)
        if kernels:
            first = kernels[0].function
            entry = Entry("kernel", first.qualified_name, kernels[0].path, first.line, first.end_line)
            return self._walk(entry, self._launchers(kernels), kernels)
        return self._class(wanted, within)

    def _definitions(self, wanted: tuple[str, ...], within: str | None) -> list[Candidate]:
        out = []
        for path, function in self._workbench.index.functions(wanted[-1]):
            scope = tuple(s for s in visible(function.scope))
            qualifiers = tuple(w for w in wanted[:-1] if not w.startswith("("))
            if not function.body_end or (within and path != within):
                continue
            if qualifiers and scope[-len(qualifiers) :] != qualifiers:
                continue
            out.append(Candidate(path, function))
        here = [c for c in out if self._workbench.unit().resolver.is_read(c.path, c.function)]
        return here or out

    def _launchers(self, kernels: list[Candidate]) -> list[Candidate]:
        """Host functions whose own text names one of the kernels."""
        names = {k.function.name for k in kernels}
        paths = {k.path for k in kernels}
        index = self._workbench.index
        out: list[Candidate] = []
        for path in sorted(index.paths):
            if not (path in paths or paths & index.closure(path)):
                continue
            plain = self._workbench.files.view(path).blanked.code
            if not any(name in plain for name in names):
                continue
            for function in index.facts(path).functions:
                if function.body_end and _is_host(function):
                    body = plain[function.body_start : function.body_end]
                    if any(name in body for name in names):
                        out.append(Candidate(path, function))
        return out

    def _file(self, path: str) -> Walk:
        facts = self._workbench.index.facts(path)
        defined = [Candidate(path, f) for f in facts.functions if f.body_end]
        hosts = [c for c in defined if _is_host(c.function)]
        kernels = [c for c in defined if "global" in c.function.flags]
        entry = Entry("file", path, path, 1, facts.line_count)
        bound = {b.function.name.split("::")[-1] for b in self._workbench.bindings().bindings if b.function is not None}
        # Entry points first: what an op is bound to, then the rest in the order of the file.
        hosts.sort(key=lambda c: (c.function.name not in bound, c.function.line))
        return self._walk(entry, hosts, kernels)

    def _class(self, wanted: tuple[str, ...], within: str | None) -> Walk | None:
        found = [
            (path, made)
            for path, made in self._workbench.index.entries(wanted[-1], ("class",), lambda facts: facts.classes)
            if isinstance(made, ClassDef)
            and (within is None or path == within)
            and visible(made.scope)[-len(wanted) + 1 or len(made.scope) :] == wanted[:-1]
        ]
        if not found:
            return None
        path, made = found[0]
        entry = Entry("class", "::".join((*made.scope, made.name)), path, made.line, made.end_line)
        methods = []
        family = {made.name, *self._derived(made.name)}
        for where in sorted(self._workbench.index.paths):
            for function in self._workbench.index.facts(where).functions:
                if function.body_end and function.scope and function.scope[-1] in family:
                    methods.append(Candidate(where, function))
        methods.sort(key=lambda c: (c.function.scope[-1] != made.name, c.path, c.function.line))
        return self._walk(entry, methods, [])

    def _derived(self, name: str) -> set[str]:
        """Classes that derive from a class, by the bases that they name."""
        out: set[str] = set()
        pending = [name]
        while pending:
            current = pending.pop()
            for path in self._workbench.index.paths:
                for made in self._workbench.index.facts(path).classes:
                    bases = {base.split("<")[0].split("::")[-1].strip() for base in made.bases}
                    if current in bases and made.name not in out:
                        out.add(made.name)
                        pending.append(made.name)
        return out

    def _walk(self, entry: Entry, hosts: Iterable[Candidate], kernels: list[Candidate]) -> Walk:
        unit = self._workbench.unit()
        gaps: dict[Gap, None] = {}
        owned = Ownership()
        implementations: list[Implementation] = []
        for host in hosts:
            builds = self._workbench.builds.builds_of(host.path)
            facts = self._workbench.index.facts(host.path)
            common = {
                "key": None,
                "builds": builds,
                "condition": shown_condition(facts.conditions[host.function.condition]),
                "registered_at": None,
            }
            made, found, held = self._walks.implementation(unit, host, (), "matched", common)
            implementations.append(made)
            gaps.update(dict.fromkeys(found))
            owned = joined_ownership(owned, held)
        shown = {(k.file, k.line) for made in implementations for k in made.kernels}
        alone = [k for k in kernels if (k.path, k.function.line) not in shown]
        if alone:
            device = DeviceReader.of(self._workbench, unit)
            readings = [device.kernel(kernel, kernel.path) for kernel in alone]
            read = tuple(read_kernel(self._workbench, unit, one, one.candidate.path) for one in readings)
            for one in readings:
                self._walks.sync.kernel(one)
            implementations.append(Implementation(None, "matched", None, kernels=read))
        points, flags = self._walks.sync.found()
        return Walk(
            source=self._source,
            op=None,
            implementations=tuple(implementations),
            ownership=owned,
            gaps=tuple(gaps),
            entry=entry,
            synchronisation=points,
            flags=flags,
        )


def _is_host(function: Function) -> bool:
    flags = function.flags
    return "global" not in flags and not ("device" in flags and "host" not in flags)
