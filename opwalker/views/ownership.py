"""Who owns what on a walk: guards, resources with their releases, lifetimes, globals, and what C may raise.

In: everything that a walk entered. Out: ``Ownership``, in the order in which functions are entered. Where a resource of
this walk is released by another call, the releases of its kind in the same file and class are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.frames import unit_of
from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.body import CallFact
from opwalker.model.cpp import Function
from opwalker.model.owning import Holding
from opwalker.model.reach import Reach
from opwalker.model.walk import Lifetime, Ownership, PlaceFact, Resource, Terminal, UseFact
from opwalker.notation.families import Family, owns
from opwalker.notation.regex import Regex
from opwalker.views.boundaries import boundaries_of
from opwalker.views.constants import known_of
from opwalker.views.global_uses import globals_of
from opwalker.views.held import held_by
from opwalker.views.holdings import holdings_of
from opwalker.views.host import body_facts
from opwalker.views.lifetimes import lifetimes_of
from opwalker.views.made import ALLOCATION, holder_of, is_returned
from opwalker.views.owning_words import words_of
from opwalker.views.resources import OF_THE_CALL, handed_on, releases_of, resources_of
from opwalker.views.returns import Returns

#: Functions of a walk that are read for what they own, and neighbours in their files and classes.
MAX_FUNCTIONS = 60
MAX_BESIDE = 24
_FREE = Regex(
    r"(?:cuda|hip)(?:Free\w*|HostFree|HostUnregister|MemPoolDestroy)\Z|cuMem(?:Free\w*|Release|Unmap|AddressFree)\Z|free\Z|raw_delete(?:ion)?\Z|deallocate\Z"
)
_CALLBACK = Regex(
    r"(?:cuda|hip)(?:LaunchHostFunc|StreamAddCallback)\Z|cuLaunchHostFunc\Z|Py_?(?:ObjectCall\w*|Object_Call\w*)\Z|PyObject_Call\w*\Z|from_blob\Z"
)



def is_allocation(terminal: Terminal) -> bool:
    """Whether a terminal only makes a tensor or memory."""
    return terminal.kind == "memory" and bool(ALLOCATION.match(terminal.name.replace(".", "::").rsplit("::", 1)[-1]))


def ownership_of(
    workbench: Workbench, unit: Unit, reach: Reach, root: str, whole: tuple[str, Body] | None = None
) -> Ownership:
    """What the host functions of a walk hold, in the order in which they are entered; ``whole`` is a lambda that the
    walk begins in."""
    guards: dict[PlaceFact, None] = {}
    allocations: dict[tuple[str, str, int], PlaceFact] = {}
    frees: dict[tuple[str, str, int], PlaceFact] = {}
    callbacks: dict[tuple[str, str, int], PlaceFact] = {}
    resources: dict[Resource, None] = {}
    lifetimes: dict[Lifetime, None] = {}
    reader = _Reader(workbench, unit, root)
    known = known_of(workbench)
    entered = [(f.qualified_name, reader.body(p, f)) for p, f, _ in reach.functions]
    if whole is not None:
        entered.insert(0, whole)
    for number, (name, body) in enumerate(entered):
        path = body.path
        for guard in body_facts(body)["guards"]:
            guards[PlaceFact(f"{guard.type}({guard.of})" if guard.of else guard.type, path, guard.line)] = None
        branches: Returns | None = None
        for call in body.facts.calls:
            for pattern, out in ((ALLOCATION, allocations), (_FREE, frees), (_CALLBACK, callbacks)):
                # ``queue.empty()`` asks; whatever makes something is told how much of it.
                if pattern.match(call.simple) and not (pattern is ALLOCATION and call.receiver and not call.arguments):
                    branches = branches or Returns(body)
                    text, line = body.written((call.start, call.end))[:160], body.use_line(call.start)
                    # Copies that a macro makes of one text stand under what all of them do.
                    held = out.get((text, path, line))
                    under = branches.place(call.start)
                    under = under if held is None else tuple(one for one in held.under if one in under)
                    named = held_by(body, [text], known=known) if out is allocations else ()
                    holder = holder_of(body, call) if out is allocations else None
                    back = name if holder is not None and is_returned(body, holder) else None
                    out[text, path, line] = PlaceFact(text, path, line, under, named, holder, back)
        if number < MAX_FUNCTIONS:
            resources.update(dict.fromkeys(resources_of(body, name)))
            lifetimes.update(dict.fromkeys(lifetimes_of(body, name, reader.destructed)))
    beside = reader.beside(reach)
    return Ownership(
        tuple(guards),
        tuple(allocations.values()),
        tuple(frees.values()),
        tuple(callbacks.values()),
        tuple(reader.released_elsewhere(resource, reach) for resource in resources),
        tuple(lifetimes),
        globals_of(workbench, unit, entered[:MAX_FUNCTIONS]),
        boundaries_of(reach, reader.body),
        beside,
        reader.holdings(reach),
        tuple(words_of(workbench, reach)),
    )


class _Reader:
    """Reads functions beside those of a walk: of the same class, and of the host function's file."""

    def __init__(self, workbench: Workbench, unit: Unit, root: str) -> None:
        self._workbench = workbench
        self._unit = unit
        self._root = root
        self._neighbours: list[tuple[str, Function]] | None = None
        self._releases: list[tuple[str, UseFact]] | None = None

    def body(self, path: str, function: Function) -> Body:
        """A function's body as the walk reads it."""
        candidate = Candidate(path, function)
        return self._unit.bodies.of(candidate, unit_of(self._workbench.index, candidate, self._root))

    def wrapped(self, body: Body, call: CallFact) -> tuple[Family, ...]:
        """What the one function of the project that a call means releases for its caller."""
        found = self._unit.resolver.function(call.name, body.context, len(call.arguments)).candidates
        if len(found) != 1 or not found[0].function.is_definition:
            return ()
        return handed_on(self.body(found[0].path, found[0].function))

    def destructed(self, name: str) -> bool:
        """Whether a class of the tree has a destructor with a body."""
        index = self._workbench.index
        if name not in index.names_of_kind("class"):
            return False
        return any(function.is_definition for _, function in index.functions(f"~{name}"))

    def released_elsewhere(self, resource: Resource, reach: Reach) -> Resource:
        """A resource with the releases of its kind in other functions of the file and class."""
        if resource.kind in OF_THE_CALL:
            return resource
        found = [
            use
            for kind, use in self._all_releases(reach)
            if kind == resource.kind and use.function != resource.function
        ]
        kept = any(text.startswith("kept in") for text in resource.goes_to)
        word = re.compile(rf"\b{re.escape(resource.holder)}\b") if kept and resource.holder else None
        naming = [use for use in found if word is not None and word.search(use.text)]
        return replace(resource, elsewhere=tuple(naming or found)[:MAX_BESIDE], named=bool(naming))

    def beside(self, reach: Reach) -> tuple[UseFact, ...]:
        """What neighbours that the walk does not enter acquire and release."""
        entered = {(path, function.offset) for path, function, _ in reach.functions}
        out: dict[UseFact, None] = {}
        for path, function in self._near(reach):
            if (path, function.offset) in entered:
                continue
            body = self.body(path, function)
            for one in resources_of(body, function.qualified_name):
                out[UseFact(f"acquires {one.kind}: {one.text}", one.function, path, one.line)] = None
            for kind, use in releases_of(body, function.qualified_name, self.wrapped):
                out[UseFact(f"releases {kind}: {use.text}", use.function, path, use.line)] = None
        return tuple(sorted(out, key=lambda use: (use.file, use.line)))[:MAX_BESIDE]

    def holdings(self, reach: Reach) -> tuple[Holding, ...]:
        """Who has what the neighbours acquire for later calls."""
        entered = {(path, function.offset) for path, function, _ in reach.functions}
        near = [(f.qualified_name, self.body(p, f), (p, f.offset) in entered) for p, f in self._near(reach)]
        acquired = [(one, body) for name, body, inside in near if not inside for one in resources_of(body, name)]
        releases = [(kind, use, body) for name, body, _ in near for kind, use in releases_of(body, name, self.wrapped)]
        return holdings_of(sorted(acquired, key=lambda one: (one[0].file, one[0].line)), releases)[:MAX_BESIDE]

    def _all_releases(self, reach: Reach) -> list[tuple[str, UseFact]]:
        if self._releases is None:
            functions = dict.fromkeys([*((p, f) for p, f, _ in reach.functions), *self._near(reach)])
            bodies = [(f.qualified_name, self.body(p, f)) for p, f in functions]
            self._releases = [found for name, body in bodies for found in releases_of(body, name, self.wrapped)]
        return self._releases

    def _near(self, reach: Reach) -> list[tuple[str, Function]]:
        """The functions of the host function's file, and the methods of the classes that the walk enters, as far as
        their text names something that is acquired or released."""
        if self._neighbours is None:
            self._neighbours = list(dict.fromkeys(self._read_near(reach)))
        return self._neighbours

    def _read_near(self, reach: Reach) -> Iterator[tuple[str, Function]]:
        index = self._workbench.index
        classes = index.names_of_kind("class")
        places: dict[tuple[str, str | None], None] = {(self._root, None): None}
        for path, function, _ in reach.functions:
            made = function.scope[-1] if function.scope else ""
            if made in classes:
                places[path, made] = None
        for path, made in places:
            code = self._workbench.files.part(path).blanked.code
            for function in index.functions_near(path):
                flags = function.flags
                if not function.body_end or "global" in flags or ("device" in flags and "host" not in flags):
                    continue
                if made is not None and (not function.scope or function.scope[-1] != made):
                    continue
                if owns(code, function.body_start, function.body_end):
                    index.part(path, function.offset, function.body_end)
                    if self._unit.resolver.is_read(path, function):
                        yield path, function
