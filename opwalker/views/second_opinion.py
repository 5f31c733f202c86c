"""A second opinion on a walk: each of its edges beside what a compiler resolves at the same place.

In: a ``Walk`` and the units of ``views.clang_units`` as clang reads them. Out: the walk with the certainties that this
gives, and a ``ClangReport``. An edge is *proved* where clang resolves the very use to the very function; it is
*contradicted* only where clang resolves it to another one; all else is *not confirmed*, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from opwalker.model.clang import (
    CONTRADICTED,
    NOT_CONFIRMED,
    PROVED,
    RULED_OUT,
    ClangEdge,
    ClangFunction,
    ClangUnit,
)
from opwalker.model.walk import Dispatch, Implementation, Launch, OpImpl, PathStep, Span, Terminal, Walk
from opwalker.views.clang_reading import ClangReading, Row, Way, last, means, meets, plain_instance, simple

#: A registration may go on for this many lines behind the one that names the op.
_REGISTRATION_LINES = 12


class Opinion:
    """Judges edges by what the units of a walk say together."""

    def __init__(self, units: Sequence[ClangUnit]) -> None:
        self._reading = ClangReading(units)

    # -- edges ------------------------------------------------------------------------------------------------------

    def registration(self, one: Implementation, entry: OpImpl | None) -> ClangEdge | None:
        """The edge from a registration to its host function; None where there is no registration in C++."""
        at, host = one.registered_at, one.host
        if at is None or host is None or at.file.endswith(".py"):
            return None
        made = _Edge("registration", f"{one.key or 'registration'} → {host.name}", at, one.certainty == "possible")
        if host.name == "lambda":
            lines = range(at.line, host.end_line + 1)
            if at.file == host.file and any((at.file, line) in self._reading.lambdas for line in lines):
                return made.proved()
            return made.open(self._reading.lost(at.file, at.line, at.line) or "clang sees no lambda there")
        wanted = self._reading.defined_at(host.file, host.line, host.end_line, host.name)
        if wanted is None:
            return made.open(self._reading.unseen(host.name, host.file, host.line))
        names = {simple(host.name), simple((entry.function if entry else None) or host.name)}
        for line in range(at.line, at.line + _REGISTRATION_LINES):
            rows = [row for row in self._reading.at(at.file, line) if row[0].line == line and row[0].name in names]
            if rows and self._reading.in_one_call(at.file, at.line, line):
                return self._judged(made, rows, wanted)
        return made.open(
            self._reading.lost(at.file, at.line, at.line + 1) or f"clang sees no mention of {simple(host.name)} there"
        )

    def call(self, step: PathStep, following: PathStep, way: Way, possible: bool) -> ClangEdge:
        """The edge from a function on the way to the next one; the steps of ``way`` led to the first."""
        at = Span(step.file, step.line, step.line)
        made = _Edge("call", f"{step.function} → {following.function}", at, possible)
        wanted = self._reading.around(following.file, following.line, following.function)
        if wanted is None:
            return made.open(self._reading.unseen(following.function, following.file, following.line))
        return self._used(made, step, wanted, way)

    def launch(self, launch: Launch) -> ClangEdge:
        """The edge from the launching function, the last on the way, to the kernel's definition."""
        step = launch.path[-1]
        at = launch.used_at or Span(launch.file, launch.line, launch.line)
        made = _Edge("launch", f"{step.function} → {launch.kernel}", at, launch.certainty == "possible")
        kernel = launch.kernel_at
        if kernel is None:
            return made.open("the place of the kernel is not known")
        wanted = self._reading.defined_at(kernel.file, kernel.line, kernel.end_line, launch.kernel)
        if wanted is None:
            return made.open(self._reading.unseen(launch.kernel, kernel.file, kernel.line))
        return self._used(made, step, wanted, launch.path[:-1], (at.file, at.line))

    def instances(self, launch: Launch) -> ClangEdge | None:
        """Whether what a launch is said to compile is what clang compiles there; None where nothing is said."""
        at = launch.used_at or Span(launch.file, launch.line, launch.line)
        kernel = launch.kernel_at
        if kernel is None or not launch.complete or not any(launch.instances) or not launch.path:
            return None
        made = _Edge("instances", launch.kernel, at, False)
        wanted = self._reading.defined_at(kernel.file, kernel.line, kernel.end_line, launch.kernel)
        step = launch.path[-1]
        if wanted is None:
            return made.open(self._reading.unseen(launch.kernel, kernel.file, kernel.line))
        # A kernel that goes through a variable is named elsewhere in the function, or by those who pass it.
        places = [(at.file, at.line, at.line)]
        for one in reversed(launch.path):
            around = self._reading.around(one.file, one.line, one.function)
            places += [(around.file, around.start_line, around.end_line)] if around is not None else []
        said = {plain_instance(text) for text in launch.instances}
        found: set[str | None] = set()
        compiled: set[str] = set()
        for place in places:
            found |= self._reading.instances(*place, wanted)
            compiled = {plain_instance(text) for text in found if text is not None}
            if said <= compiled:
                break
        if said <= compiled:
            more = len(compiled - said)
            return made.proved(f"{len(said)} instances" + (f", {more} more for other callers" if more else ""))
        overloads = self._reading.overloads(at.file, at.line, wanted) if compiled else {}
        elsewhere = {overloads[text] for text in said - compiled if text in overloads}
        if elsewhere:
            places = ", ".join(f"{file}:{line}" for file, line in sorted(elsewhere))
            text = (
                f"clang shows {len(said & compiled)} of {len(said)}; its host pass takes the overload at {places} for "
            )
            return made.open(text + ", ".join(sorted(said & overloads.keys())))
        if None in found:
            return made.open("an argument is a function, a template or a pack, which clang's interface does not tell")
        if not compiled:
            return made.open("clang shows no instance" + self._reading.lacking(step.file))
        return made.open(f"clang shows {len(said & compiled)} of {len(said)}" + self._reading.lacking(step.file))

    def _used(
        self,
        made: _Edge,
        step: PathStep,
        wanted: ClangFunction,
        way: Way = (),
        place: tuple[str, int] | None = None,
    ) -> ClangEdge:
        """An edge that is a use of ``wanted`` at the line of a step."""
        rows = [*self._reading.at(step.file, step.line), *(self._reading.at(*place) if place else ())]
        named = [row for row in rows if row[0].name == simple(wanted.name) or meets(row[1], wanted)]
        if named:
            return self._judged(made, named, wanted)
        # A function that is passed on stands among the arguments, which may go on for lines.
        last = self._reading.end_of_calls(step.file, step.line)
        for line in range(step.line, last + 1):
            if any(
                use.kind == "name" and not use.dependent and meets(found, wanted)
                for use, found in self._reading.at(step.file, line)
            ):
                return made.proved()
        through = [use.through for use, _ in rows if use.through is not None]
        if any(self._reading.flows(variable, wanted, way) for variable in through):
            return made.proved()
        if through:
            text = "it goes through a variable, and clang does not show how it gets there"
            return made.open(text + self._reading.lacking(step.file))
        lost = self._reading.lost(step.file, step.line, last)
        return made.open(lost or f"clang sees no use of {simple(wanted.name)} there" + self._reading.lacking(step.file))

    def _judged(self, made: _Edge, rows: list[Row], wanted: ClangFunction) -> ClangEdge:
        """What the uses of a name at a place say of the function that it should mean."""
        certain = [symbol for use, symbols in rows if not use.dependent for symbol in symbols]
        if any(means(symbol, wanted) for symbol in certain):
            return made.proved()
        others = [s for s in certain if s.name.rsplit("::", 1)[-1] == simple(wanted.name)]
        place, ends = rows[0][0], max(use.end_line for use, _ in rows)
        faulty = self._reading.faulty(place.file, place.start_line, max(place.line, ends))
        for symbol in others:
            elsewhere = self._reading.definition_of(symbol)
            if made.kind == "launch" and symbol.name == wanted.name and elsewhere is not None:
                # Which of a kernel's overloads is meant may hang on __CUDA_ARCH__; nvcc runs what a device pass takes.
                return made.open(f"clang's host pass takes the overload at {elsewhere[0]}:{elsewhere[1]}")
            # Where there is an error, the use that is meant may be what clang dropped.
            if elsewhere is not None and not faulty:
                return made.refuted(f"clang takes {symbol.name} at {elsewhere[0]}:{elsewhere[1]}", elsewhere)
        if others:
            place = f"{others[0].file}:{others[0].line}"
            return made.open(f"clang finds the declaration at {place}, and no definition of it in what was read")
        candidates = [symbols for use, symbols in rows if use.dependent]
        if candidates:
            count = len({symbol for symbols in candidates for symbol in symbols})
            among = any(means(symbol, wanted) for symbols in candidates for symbol in symbols)
            lacking = self._reading.lacking(rows[0][0].file)
            text = "it depends on template parameters, and nothing read here instantiates it"
            if lacking:
                text = "the types that decide it are not all known" + lacking
            if among:
                text += "; " + (f"one of {count} candidates" if count > 1 else "the only candidate that clang has")
            return made.open(text)
        first = rows[0][0]
        lost = self._reading.lost(first.file, first.line, first.line)
        return made.open(lost or "clang cannot resolve it" + self._reading.lacking(first.file))

    def terminal(self, end: Terminal) -> ClangEdge | None:
        """The edge from the last function on a way to a call that leaves the source; None where there is no way."""
        if not end.path or end.kind == "host":
            return None
        step = end.path[-1]
        at = Span(end.file, end.line, end.line)
        made = _Edge("call", f"{step.function} → {end.name}", at, False)
        rows = [*self._reading.at(end.file, end.line), *self._reading.at(step.file, step.line)]
        named = [row for row in rows if row[0].name == last(end.name)]
        if any(not use.dependent and symbols for use, symbols in named):
            return made.proved()
        return made.open(
            self._reading.lost(end.file, end.line, end.line)
            or "clang does not resolve a call of that name there" + self._reading.lacking(end.file)
        )

    # -- macros -----------------------------------------------------------------------------------------------------

    def dispatch(self, use: Dispatch) -> ClangEdge:
        """The edge from the use of a dispatch macro to its definition."""
        at = Span(use.file, use.line, use.line)
        made = _Edge("dispatch", use.macro, at, False)
        found = [one for one in self._reading.macro_uses.get((use.file, use.line), {}) if one.name == use.macro]
        if not found:
            return self._nested(made, use)
        wanted = use.defined_at
        for one in found:
            place = (one.defined_file, one.defined_line)
            if wanted is None:
                # opwalker knows this one by name; where its header is, clang says.
                return made.proved(f"defined at {place[0]}:{place[1]}", place)
            if place == (wanted.file, wanted.line):
                return made.proved()
        place = (found[0].defined_file, found[0].defined_line)
        return made.refuted(f"clang takes the definition at {place[0]}:{place[1]}", place)

    def _nested(self, made: _Edge, use: Dispatch) -> ClangEdge:
        """A macro that is used in another one's text: clang records definitions there, not uses."""
        outer = [
            macro
            for macros in self._reading.macros.values()
            for macro in macros
            if macro.file == use.file and macro.line <= use.line <= macro.end_line and use.macro in macro.words
        ]
        if not outer:
            return made.open(self._reading.lost(use.file, use.line, use.line) or "clang sees no use of the macro there")
        definitions = list(self._reading.macros.get(use.macro, ()))
        wanted = use.defined_at
        if wanted is None:
            return made.open(f"it stands in the text of {outer[0].name}, and its definition is outside of the tree")
        here = [one for one in definitions if (one.file, one.line) == (wanted.file, wanted.line)]
        if len(definitions) == 1 and here:
            return made.proved(f"in the text of {outer[0].name}, with one definition in what was read")
        if here:
            return made.open(f"it stands in the text of {outer[0].name} and has {len(definitions)} definitions")
        return made.open(f"clang reads no definition of it at {wanted.file}:{wanted.line}")


class _Edge:
    """An edge on its way to a verdict. ``possible`` says that opwalker lists it as one of several."""

    def __init__(self, kind: str, what: str, at: Span, possible: bool) -> None:
        self.kind = kind
        self._fields = (kind, what, at)
        self._possible = possible

    def proved(self, says: str | None = None, place: tuple[str, int] | None = None) -> ClangEdge:
        return ClangEdge(*self._fields, PROVED, says, Span(*place, place[1]) if place else None)

    def refuted(self, says: str, place: tuple[str, int]) -> ClangEdge:
        status = RULED_OUT if self._possible else CONTRADICTED
        return ClangEdge(*self._fields, status, says, Span(*place, place[1]))

    def open(self, reason: str) -> ClangEdge:
        return ClangEdge(*self._fields, NOT_CONFIRMED, reason)


def compared(walk: Walk, units: Sequence[ClangUnit], judged: Sequence[Implementation]) -> tuple[Walk, list[ClangEdge]]:
    """The walk with the certainties that clang gives it, and all edges of the implementations that are judged."""
    opinion = Opinion(units)
    edges: dict[ClangEdge, None] = {}
    implementations = []
    for one in walk.implementations:
        if any(one is other for other in judged):
            one, found = _implementation(opinion, one, _entry_of(walk, one))
            edges.update(dict.fromkeys(found))
        implementations.append(one)
    return replace(walk, implementations=tuple(implementations)), list(edges)


def _entry_of(walk: Walk, one: Implementation) -> OpImpl | None:
    at = one.registered_at
    for entry in walk.op.impls if walk.op and at else ():
        if (entry.key, entry.file, entry.line) == (one.key, at.file, at.line):
            return entry
    return None


def _implementation(
    opinion: Opinion, one: Implementation, entry: OpImpl | None
) -> tuple[Implementation, list[ClangEdge]]:
    edges: list[ClangEdge] = []
    registration = opinion.registration(one, entry)
    if registration is not None:
        edges.append(registration)
        one = replace(one, certainty=_certainty(one.certainty, [registration]))
    edges += [opinion.dispatch(use) for use in one.dispatch]
    launches = []
    for launch in one.launches:
        found = [*_calls(opinion, launch.path, launch.certainty == "possible")]
        if launch.path:
            found.append(opinion.launch(launch))
        launches.append(replace(launch, certainty=_certainty(launch.certainty, found)))
        edges += found
        instances = opinion.instances(launch)
        edges += [instances] if instances is not None else []
    for end in one.terminals:
        edges += _calls(opinion, end.path, False)
        last = opinion.terminal(end)
        if last is not None:
            edges.append(last)
    return replace(one, launches=tuple(launches)), edges


def _calls(opinion: Opinion, path: Sequence[PathStep], possible: bool) -> Iterator[ClangEdge]:
    for number, (step, following) in enumerate(pairwise(path)):
        yield opinion.call(step, following, tuple(path[:number]), possible)


def _certainty(before: str, edges: list[ClangEdge]) -> str:
    if any(edge.status in (CONTRADICTED, RULED_OUT) for edge in edges):
        return "possible"
    if edges and all(edge.status == PROVED for edge in edges):
        return "proved"
    return before
