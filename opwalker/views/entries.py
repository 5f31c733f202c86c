"""Walks that begin at no op: a file, a function, a class, a kernel.

In: a name as typed. Out: a ``Walk`` with an ``entry``, or None where the tree has nothing of that name. Host functions
become implementations without a registration, in reading order; a file has an outline, a class its view.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from opwalker.errors import InputError
from opwalker.expand.resolve import Candidate, visible
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import ClassDef
from opwalker.model.reading import Entry
from opwalker.model.walk import Gap, Implementation, Ownership, SourceInfo, Walk
from opwalker.views.classes import class_view, derived_classes, methods_in
from opwalker.views.device_functions import DeviceReader
from opwalker.views.kernel import read_kernel
from opwalker.views.ops import shown_condition
from opwalker.views.outline import bound_ops, is_host, launchers_of, outline_of
from opwalker.views.walk import WalkView, joined_ownership

#: Paths that a name can be short for, before they are only counted.
MAX_SHOWN = 8


class EntryView:
    """Walks from anything that is no op."""

    def __init__(self, workbench: Workbench, source: SourceInfo) -> None:
        self._workbench = workbench
        self._source = source
        self._walks = WalkView(workbench, source)

    def walk(self, name: str) -> Walk | None:
        """The walk from a path, ``path::function``, or a qualified or simple C++ name; None for an unknown name. A path
        may be given by its end. Raises InputError where several files end so."""
        path, _, rest = name.partition("::")
        within = self._path(path) if "." in path else None
        if within is not None and not rest:
            return self._file(within)
        wanted = tuple(p for p in (rest if within else name).split("::") if p)
        if not wanted:
            return None
        found = self._definitions(wanted, within)
        kernels = [c for c in found if "global" in c.function.flags]
        hosts = [c for c in found if c not in kernels]
        device = [c for c in hosts if not is_host(self._workbench, c.path, c.function)]
        if hosts and all(c.function.scope[-1:] == (c.function.name,) for c in hosts):
            # A name that only constructors have is the class's.
            return self._class(wanted if wanted[-2:-1] != wanted[-1:] else wanted[:-1], within)
        if hosts:
            first = hosts[0].function
            entry = Entry("function", first.qualified_name, hosts[0].path, first.line, first.end_line)
            return self._walk(entry, [c for c in hosts if c not in device], [*kernels, *device])
        if kernels:
            return self._kernel(kernels)
        return self._class(wanted, within)

    def _path(self, text: str) -> str | None:
        """The file that a path or its end means."""
        paths = self._workbench.index.paths
        if text in paths:
            return text
        found = sorted(p for p in paths if p.endswith(f"/{text}"))
        if len(found) > 1:
            more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
            raise InputError(f"several files end in {text}", f"it can be {', '.join(found[:MAX_SHOWN])}{more}")
        return found[0] if found else None

    def _definitions(self, wanted: tuple[str, ...], within: str | None) -> list[Candidate]:
        out = []
        for path, function in self._workbench.index.functions(wanted[-1]):
            scope = visible(function.scope)
            qualifiers = tuple(w for w in wanted[:-1] if not w.startswith("("))
            if not function.body_end or (within and path != within):
                continue
            if qualifiers and scope[-len(qualifiers) :] != qualifiers:
                continue
            out.append(Candidate(path, function))
        here = [c for c in out if self._workbench.unit().resolver.is_read(c.path, c.function)]
        return here or out

    def _kernel(self, kernels: list[Candidate]) -> Walk:
        """A kernel with whoever launches it: of each way only what leads to this kernel."""
        first = kernels[0].function
        entry = Entry("kernel", first.qualified_name, kernels[0].path, first.line, first.end_line)
        walk = self._walk(entry, launchers_of(self._workbench, kernels), kernels)
        places = {(k.path, k.function.line) for k in kernels}
        kept = []
        for one in walk.implementations:
            launches = tuple(
                launch
                for launch in one.launches
                if launch.kernel_at is not None and (launch.kernel_at.file, launch.kernel_at.line) in places
            )
            shown = tuple(kernel for kernel in one.kernels if (kernel.file, kernel.line) in places)
            if launches or one.host is None:
                kept.append(replace(one, launches=launches, kernels=shown))
        told = {(k.file, k.line) for one in kept for k in one.kernels}
        notes = () if any(one.launches for one in kept) else ("nothing in the source was found to launch this kernel",)
        if any((k.path, k.function.line) not in told for k in kernels):
            kept += self._alone([k for k in kernels if (k.path, k.function.line) not in told])
        return replace(walk, implementations=tuple(kept), notes=notes)

    def _file(self, path: str) -> Walk:
        facts = self._workbench.index.facts(path)
        defined = [Candidate(path, f) for f in facts.functions if f.body_end]
        hosts = [c for c in defined if is_host(self._workbench, path, c.function)]
        kernels = [c for c in defined if "global" in c.function.flags]
        lines = len(self._workbench.files.view(path).blanked.text.splitlines())
        entry = Entry("file", path, path, 1, max(1, lines))
        bound = bound_ops(self._workbench, path)
        # Entry points first: what an op is bound to, then the rest in the order of the file.
        # What another build reads stands in the outline; its walk is that build's.
        here = [c for c in hosts if self._workbench.unit().resolver.is_read(c.path, c.function)]
        hosts = here or hosts
        hosts.sort(key=lambda c: (c.function.offset not in bound, c.function.line))
        walk = self._walk(entry, hosts, kernels)
        return replace(walk, outline=outline_of(self._workbench, path, walk.implementations))

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
        # A specialisation says less than the class itself.
        found.sort(key=lambda pair: (pair[1].specialisation is not None, pair[0], pair[1].offset))
        path, made = found[0]
        entry = Entry("class", "::".join((*made.scope, made.name)), path, made.line, made.end_line)
        family = [(path, made), *derived_classes(self._workbench, made.name)]
        methods = [
            Candidate(p, f)
            for where, one in family
            for p, f in methods_in(self._workbench, where, one)
            if f.body_end and is_host(self._workbench, p, f)
        ]
        walk = self._walk(entry, dict.fromkeys(methods), [])
        others = [
            f"{'::'.join((*visible(c.scope), c.name))} ({p}:{c.line})" for p, c in found[1:] if c.specialisation is None
        ]
        notes = (f"other classes of this name: {', '.join(others[:MAX_SHOWN])}",) if others else ()
        return replace(walk, class_view=class_view(self._workbench, path, made), notes=notes)

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
        implementations += self._alone([k for k in kernels if (k.path, k.function.line) not in shown])
        hosts, kernels, flags = self._walks.sync.found()
        points = tuple(dict.fromkeys((*hosts, *kernels)))
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

    def _alone(self, kernels: list[Candidate]) -> list[Implementation]:
        """Kernels that no implementation shows, as one without a host function."""
        unit = self._workbench.unit()
        device = DeviceReader.of(self._workbench, unit)
        readings = [device.kernel(kernel, kernel.path) for kernel in kernels]
        for reading in readings:
            self._walks.sync.kernel(reading)
        read = tuple(read_kernel(self._workbench, unit, one, one.candidate.path) for one in readings)
        return [Implementation(None, "matched", None, kernels=read)] if read else []
