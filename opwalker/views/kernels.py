"""Every kernel of a tree, with the ops that reach it.

In: walks of all ops. Out: ``KernelEntry`` values by name and place; one that no op reaches has a gap that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from opwalker.expand.callees import is_device_code
from opwalker.expand.explicit import Explicit
from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Workbench
from opwalker.link.build_cuda import in_order
from opwalker.model.cpp import Function
from opwalker.model.reach import KernelRef
from opwalker.model.walk import Gap, KernelEntry, KernelsResult, Launch, Op, SourceInfo, Span
from opwalker.notation.regex import Regex
from opwalker.views.axes import JoinedAxes, axes_of, split_arguments
from opwalker.views.compiled import Compiled
from opwalker.views.launched import LaunchFinder, Place, Shared, one_by_one
from opwalker.views.named_outside import Outside
from opwalker.views.ops import shown_condition
from opwalker.views.walk import WalkView


def list_kernels(
    workbench: Workbench,
    source: SourceInfo,
    ops: Sequence[Op],
    only: Op | None,
    shared: Shared = one_by_one,
) -> KernelsResult:
    """All kernels (or those of one op), in path and line order. ``shared`` may have several processes at it."""
    gathered = _Gathered(lambda launch: only is not None or _in_sight(workbench, launch))
    gaps: dict[Gap, None] = {}
    entered: set[Place] = set()
    compiled = Compiled(workbench, entered)
    outside = Outside(workbench, compiled)
    if only is not None:
        view = WalkView(workbench, source, kernels=False, hosts=False)
        walk = view.walk(only, build=workbench.build)
        entered.update(view.entered)
        for implementation in walk.implementations:
            if implementation.builds is None or workbench.build in implementation.builds:
                gathered.add(only.name, implementation.launches)
        gaps.update(dict.fromkeys(walk.gaps))
    else:
        finder = LaunchFinder(workbench, source, shared)
        for op, found in finder.by_ops(ops):
            entered.update(found.entered)
            gathered.add(op.name, found.launches)
            gathered.add(None, found.asked)
        _add_explicit(finder, entered, gathered, compiled)
        _add_unreached(workbench, finder, entered, gathered, compiled, outside)
        gathered.settle()
    entries = []
    mentions = _Mentions(workbench, entered, compiled)
    for path, function in _definitions(workbench):
        key = (path, function.line, function.qualified_name)
        found = tuple(gathered.ops.get(key, ()))
        if only is not None and not found:
            continue
        why = gathered.reasons.get(key)
        if not found and key not in gathered.instances:
            why = _unreached(workbench, path, function)
        elif why is None and only is None:
            why = mentions.elsewhere(path, function)
            if why is None and function.template:
                why = outside.elsewhere(path, function, gathered.instances[key])
        if why is not None and gathered.instances.get(key) == {""} and _stands_alone(path, function, compiled):
            why = None
        if why is None and any((path, name) in workbench.named_by_units for name in function.scope):
            why = "the units that read it give its namespace several names"
        if why is None and (reader := compiled.repeated_in(path)) is not None:
            why = f"{reader} includes {path} several times with other macros each time: one reading is shown"
        if why is None and not gathered.instances.get(key):
            why = "no instance was found"
        condition = shown_condition(workbench.index.facts(path).conditions[function.condition])
        instances = tuple(sorted(gathered.instances.get(key, ())))
        entries.append(
            KernelEntry(
                function.qualified_name,
                path,
                function.line,
                found,
                instances,
                why is None,
                why,
                condition,
                gathered.axes[key].of(instances) if key in gathered.axes else (),
                _archs(workbench, sorted(gathered.units.get(key, ()))),
            )
        )
        if not found:
            span = Span(path, function.line, function.line)
            gaps[Gap("unreached", span, f"{function.qualified_name}: {_unreached(workbench, path, function)}")] = None
    return KernelsResult(source=source, kernels=tuple(entries), gaps=tuple(gaps))


def _stands_alone(path: str, function: Function, compiled: Compiled) -> bool:
    """Whether a kernel is compiled whatever names it: no template, and known outside of its unit."""
    local = "static" in function.flags or any("anonymous" in name for name in function.scope)
    return function.template is None and not local and compiled.is_compiled(path, function)


def _archs(workbench: Workbench, ways: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The architectures of the units that the launches of a kernel are compiled in; nothing where one is not known."""
    out: dict[str, None] = {}
    for files in ways:
        unit = next((f for f in reversed(files) if workbench.builds.archs_of(f)), None)
        if unit is None or files[-1] not in workbench.index.closure(unit) | {unit}:
            return ()
        out.update(dict.fromkeys(workbench.builds.archs_of(unit)))
    return in_order(out)


#: A name before template arguments.
_NAMED = Regex(r"\b([A-Za-z_]\w*)\s*<")
#: A definition: its file, its line, and its name, since a macro may make several on one line.
Key = tuple[str, int, str]


class _Gathered:
    """What walks found of each kernel, by the place of its definition.

    A file that sees no more than a template's declaration compiles none of its instances: what it launches was
    instantiated where the template is defined. ``in_sight`` says which launches see the definition; the others wait
    until it is known whether the source writes instantiations out.
    """

    def __init__(self, in_sight: Callable[[Launch], bool]) -> None:
        self._in_sight = in_sight
        self._waiting: list[Launch] = []
        self.written_out: set[Key] = set()
        self.ops: dict[Key, dict[str, None]] = {}
        self.instances: dict[Key, set[str]] = {}
        self.reasons: dict[Key, str] = {}
        self.axes: dict[Key, JoinedAxes] = {}
        self.units: dict[Key, set[tuple[str, ...]]] = {}

    def add(self, op: str | None, launches: Iterable[Launch]) -> None:
        """Enter the launches of one implementation."""
        for launch in launches:
            if launch.kernel_at is None:
                continue
            key = (launch.kernel_at.file, launch.kernel_at.line, launch.kernel)
            if op is not None:
                self.ops.setdefault(key, {})[op] = None
            if launch.instances != ("",) and not self._in_sight(launch):
                self._waiting.append(launch)
            else:
                self._enter(key, launch)

    def made(self, key: Key, made: Explicit) -> None:
        """Enter one instance of a kernel that stands outside of functions."""
        if made.reason is not None:
            self.reasons.setdefault(key, made.reason)
            return
        function = made.candidate.function
        self.instances.setdefault(key, set()).add(made.text)
        named = ((n, text, made.origin) for n, text in enumerate(split_arguments(made.text)))
        reference = KernelRef(made.candidate.path, function, (), True, (made.text,), None, tuple(named))
        self.axes.setdefault(key, JoinedAxes()).add(axes_of(function.template, [reference]))

    def settle(self) -> None:
        """Enter the launches that wait and whose kernels no line of the source instantiates explicitly."""
        for launch in self._waiting:
            key = (launch.kernel_at.file, launch.kernel_at.line, launch.kernel) if launch.kernel_at else ("", 0, "")
            if key in self.written_out:
                self.units.setdefault(key, set()).add((key[0],))
                if why := self._lacking(key, launch):
                    self.reasons.setdefault(key, why)
            else:
                self._enter(key, launch)

    def _lacking(self, key: Key, launch: Launch) -> str | None:
        """Why the lines that instantiate a kernel may not be all: a launch needs each instance that it names, unless it
        stands in a branch that a compiler drops, and one that no line makes is made by a file that is missing."""
        lacking = sorted(set(launch.instances) - self.instances.get(key, set()))
        if launch.under or (launch.complete and not lacking):
            return None
        why = launch.why_incomplete if not launch.complete else f"<{lacking[0]}>"
        return f"{launch.file}:{launch.line} may launch instances that no line makes: {why}"

    def _enter(self, key: Key, launch: Launch) -> None:
        self.instances.setdefault(key, set()).update(launch.instances)
        self.axes.setdefault(key, JoinedAxes()).add(launch.axes)
        self.units.setdefault(key, set()).add(tuple(step.file for step in launch.path))
        if not launch.complete:
            self.reasons.setdefault(key, launch.why_incomplete or "a part of the source that decides is missing")


def _in_sight(workbench: Workbench, launch: Launch) -> bool:
    """Whether a unit that compiles a launch sees the kernel's definition, and not its declaration alone."""
    index, kernel = workbench.index, launch.kernel_at
    if kernel is None or kernel.file in index.closure(launch.file):
        return True
    return any(launch.file in index.closure(unit) and kernel.file in index.closure(unit) for unit in index.paths)


def _add_explicit(finder: LaunchFinder, entered: set[Place], gathered: _Gathered, compiled: Compiled) -> None:
    """What explicit instantiations compile besides what the ops reach."""
    for made, found in finder.by_instantiations(compiled):
        function = made.candidate.function
        key = (made.candidate.path, function.line, function.qualified_name)
        if "global" not in function.flags:
            entered.update(found.entered)
            gathered.add(None, (*found.launches, *found.asked))
            continue
        gathered.written_out.add(key)
        gathered.made(key, made)


def _add_unreached(
    workbench: Workbench,
    finder: LaunchFinder,
    entered: set[Place],
    gathered: _Gathered,
    compiled: Compiled,
    outside: Outside,
) -> None:
    """What functions compile that no op reaches."""
    for found in finder.by_functions(compiled, entered):
        gathered.add(None, (*found.launches, *found.asked))
    for found in finder.by_variables(compiled):
        entered.update(found.entered)
        gathered.add(None, (*found.launches, *found.asked))
    for made in (*outside.kernels(), *outside.specialised()):
        function = made.candidate.function
        gathered.made((made.candidate.path, function.line, function.qualified_name), made)
    for path, function in _definitions(workbench):
        if function.template is None and compiled.is_compiled(path, function):
            gathered.instances.setdefault((path, function.line, function.qualified_name), {""})


class _Mentions:
    """The host functions that name a kernel with template arguments and that nothing entered: every file is read once
    for all kernels."""

    def __init__(self, workbench: Workbench, entered: set[Place], compiled: Compiled) -> None:
        self._workbench = workbench
        self._entered = entered
        self._compiled = compiled
        self._paths = sorted(workbench.index.paths)
        self._held: dict[str, dict[str, list[Function]]] = {}

    def elsewhere(self, path: str, function: Function) -> str | None:
        """One that may compile further instances of a kernel, in words."""
        if not function.template:
            return None
        for other in self._paths:
            if path not in self._workbench.index.closure(other):
                continue
            for held in self._of(other).get(function.name, ()):
                if self._compiled.is_compiled(other, held) and self._compiled.may_be_called(other, held):
                    return f"{held.qualified_name} ({other}:{held.line}) names it too, and no op reaches that"
        return None

    def _of(self, path: str) -> dict[str, list[Function]]:
        """By the name of a kernel, the functions of a file that name it, in the order in which they do."""
        found = self._held.get(path)
        if found is None:
            found = self._held[path] = {}
            functions = [f for f in self._workbench.index.facts(path).functions if self._counts(path, f)]
            names = self._workbench.index.names_of_kind("kernel")
            plain = self._workbench.files.view(path).blanked.plain if functions else ""
            for match in _NAMED.finditer(plain):
                if match.group(1) in names:
                    around = [f for f in functions if f.body_start < match.start() < f.body_end]
                    held = found.setdefault(match.group(1), [])
                    held += [f for f in around if f not in held[-1:]]
        return found

    def _counts(self, path: str, function: Function) -> bool:
        on_device = is_device_code(Candidate(path, function))
        return bool(function.body_end) and not on_device and (path, function.offset) not in self._entered


def _definitions(workbench: Workbench) -> list[tuple[str, Function]]:
    """Every kernel's definition. Of several that one body has in different branches, those that the build reads."""
    found: dict[Key, list[tuple[str, Function]]] = {}
    for path, function in _all_definitions(workbench):
        found.setdefault((path, function.line, function.qualified_name), []).append((path, function))
    resolver = workbench.unit().resolver
    out = []
    for same in found.values():
        read = [one for one in same if resolver.is_read(*one)] if len(same) > 1 else same
        out += read or same[:1]
    return out


def _all_definitions(workbench: Workbench) -> list[tuple[str, Function]]:
    out = []
    for path in workbench.index.paths_with("kernel"):
        facts = workbench.index.facts(path)
        out += [
            (path, f)
            for f in facts.functions
            if "global" in f.flags and f.body_end and "explicit_instantiation" not in f.flags
        ]
    return out


def _unreached(workbench: Workbench, path: str, function: Function) -> str:
    """Why no op reaches a kernel, as far as the source shows."""
    absent = workbench.absent(path)
    if absent is not None:
        return absent
    if not workbench.unit().resolver.is_read(path, function):
        builds = workbench.builds.read_by(path)
        if builds and workbench.build not in builds:
            return f"its file is compiled for {', '.join(builds)} only"
        condition = shown_condition(workbench.index.facts(path).conditions[function.condition])
        return f"it stands under `{condition}`, which the {workbench.build} build does not set"
    return "no op of the source launches it by a path that could be followed"
