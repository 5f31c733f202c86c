"""Synchronisation points of a walk, and the structures whose members are their flags.

In: the host functions that a walk entered, and readings of its kernels. Out: ``SyncPoint`` values, host first, then
each kernel with the functions that it calls; ``FlagStruct`` values. What a point protects is said only as far as the
text around it shows which memory is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.workbench import Workbench
from opwalker.model.walk import FlagStruct, Span, SyncPoint
from opwalker.notation.cpp_expression import parse_expression, walk
from opwalker.views.device_functions import Reading
from opwalker.views.flag_structs import Flags
from opwalker.views.ops import shown_condition
from opwalker.views.sync_data import Touched, shared_names, touched
from opwalker.views.sync_events import Event, asked_of_threads, events_of, opened, root_of

#: Kinds at which what stands before and behind is told apart, by what they order.
_BARRIERS = frozenset(("barrier", "warp_barrier", "grid_barrier", "cluster_barrier", "cluster_wait", "flag_barrier"))
_WITHIN = frozenset(("barrier", "warp_barrier"))
_BEFORE = frozenset(("release", "acq_rel", "sc"))
_AFTER = frozenset(("acquire", "acq_rel", "sc"))
_NAMES_SHOWN = 6


class SyncReader:
    """Makes the points of one walk."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self.flags = Flags(workbench)

    def host(self, bodies: Iterable[Body]) -> Iterator[SyncPoint]:
        """The points of host functions."""
        for body in bodies:
            for event in events_of(body):
                yield self._point(event, body, None, self._held(body, event))

    def kernels(self, readings: Sequence[Reading]) -> Iterator[SyncPoint]:
        """The points of kernels and of the functions that they call, each once."""
        points: dict[tuple, SyncPoint] = {}
        for kernel in readings:
            for reading in kernel.all():
                for point in self._of(reading, kernel, readings):
                    key = (point.file, point.line, point.kind, point.text, point.at, point.condition, point.under)
                    held = points.get(key)
                    if held is None:
                        points[key] = point
                    elif kernel.name not in held.kernels:
                        points[key] = replace(held, kernels=(*held.kernels, kernel.name))
        yield from points.values()

    def _of(self, reading: Reading, kernel: Reading, readings: Sequence[Reading]) -> Iterator[SyncPoint]:
        if reading.accessor and any(reading is not k for k in readings):
            return  # its events are those of its callers
        body = reading.body
        found = [*reading.events, *self._flag_barriers(reading)]
        found.sort(key=lambda event: event.start)
        self.flags.see(reading)
        for number, event in enumerate(found):
            if reading is kernel or event.kind in _BARRIERS:
                protects = self._protected(reading, found, number)
            else:
                protects = None
            if reading is not kernel:
                if not _compiles(kernel, reading, event):
                    continue
                if protects is None:
                    protects = self._by_callers(reading, event, readings)
            yield replace(self._point(event, body, reading.name, protects), kernels=(kernel.name,))

    def _flag_barriers(self, reading: Reading) -> Iterator[Event]:
        """Calls of functions that store a flag and wait for one: barriers made of flags."""
        for call, inner in reading.calls:
            if not inner.accessor and is_flag_barrier(inner):
                scopes = [e.scope for e in inner.events if e.address is not None and e.scope]
                scope = next((s for s in ("system", "gpu", "cluster", "block") if s in scopes), None)
                text = reading.body.written((call.start, call.end))
                words = f"barrier made of flags, {_SCOPES.get(scope or '', 'scope not shown')}"
                yield Event("flag_barrier", text, words, None, scope, call.start, reading.body.use_line(call.start),
                            at=(inner.candidate.path, inner.candidate.function.line), through=inner.name)  # fmt: skip

    def _point(self, event: Event, body: Body, function: str | None, protects: str | None) -> SyncPoint:
        flag = opened(body, event.address, event.start) if event.address is not None else None
        member = self.flags.member(flag, body) if flag is not None else None
        value = opened(body, event.value, event.start) if event.value is not None else None
        if value is not None and event.value != value:
            value = f"{event.value} = {value}"
        at = Span(event.at[0], event.at[1], event.at[1]) if event.at is not None else None
        name = function or (body.function.qualified_name if body.function is not None else None)
        return SyncPoint(
            event.kind, event.text, protects, body.path, event.line, event.means, event.order, event.scope, name, flag,
            member, value, event.spins, event.under, shown_condition(event.condition), event.through, at,
            threads=tuple(asked_of_threads(body, event.start)),
        )  # fmt: skip

    # -- what is protected ------------------------------------------------------------------------------------------

    def _protected(self, reading: Reading, events: Sequence[Event], number: int) -> str | None:
        """What stands before and behind a point of a function, up to the barriers beside it."""
        body = reading.body
        types = {c.start: tuple(p.type for p in r.candidate.function.parameters) for c, r in reading.calls}
        event = events[number]
        full = event.kind in _BARRIERS or event.order in ("sc", "acq_rel")
        if not full and event.order not in _BEFORE | _AFTER:
            return None
        # A barrier of the block carries what other threads did on to the flag that one of them stores.
        beside = _BARRIERS if event.kind in _BARRIERS else _BARRIERS - _WITHIN
        begin = max((e.start for e in events[:number] if e.kind in beside), default=0)
        end = min((e.start for e in events[number + 1 :] if e.kind in beside), default=len(body.expanded.text))
        without = self._flags_of(body, events)
        if event.scope in ("gpu", "system"):
            without |= shared_names(body)  # nobody beyond the block sees it
        before = touched(body, begin, event.start, without, types)
        after = touched(body, _behind(body, event.start), end, without, types)
        if event.kind in ("barrier", "warp_barrier"):
            return _handed_over(body, before, after)
        parts = []
        if full or event.order in _BEFORE:
            parts.append(before.first(_NAMES_SHOWN).said("before"))
        if full or event.order in _AFTER:
            parts.append(after.first(_NAMES_SHOWN).said("after"))
        return "; ".join(part for part in parts if part) or None

    def _by_callers(self, reading: Reading, event: Event, readings: Sequence[Reading]) -> str | None:
        """What kernels touch around their calls of a function that holds an ordered access."""
        if event.order not in _BEFORE | _AFTER and event.kind != "fence":
            return None
        out: dict[str, None] = {}
        for kernel in readings:
            for call, inner in kernel.calls:
                if inner is reading and _is_taken(call, kernel.body, event, reading):
                    marks = [*kernel.events, *self._flag_barriers(kernel)]
                    marks.sort(key=lambda one: one.start)
                    marker = Event(event.kind, "", "", event.order, event.scope, call.start, 0)
                    around = sorted([*(m for m in marks if m.start != call.start), marker], key=lambda one: one.start)
                    said = self._protected(kernel, around, around.index(marker))
                    if said:
                        out[f"in {kernel.name.rsplit('::', 1)[-1]}, {said}"] = None
        return " · ".join(out) or None

    @staticmethod
    def _flags_of(body: Body, events: Sequence[Event]) -> frozenset[str]:
        """Variables that flags are reached through: they are no data. Those that are passed to flag barriers too."""
        held = [e for e in events if e.address is not None]
        roots = {root for e in held for root in (root_of(e.address), root_of(opened(body, e.address, e.start)))}
        for event in events:
            if event.kind == "flag_barrier":
                roots |= {
                    n.text for part in parse_expression(event.text).parts[1:] for n in walk(part) if n.kind == "name"
                }
        return frozenset(root for root in roots if root)

    def _held(self, body: Body, event: Event) -> str | None:
        """What is changed while a lock is held."""
        if event.kind != "lock":
            return None
        blocks = [b for b in body.facts.blocks if b.start <= event.start < b.end]
        end = min((b.end for b in blocks), default=len(body.expanded.text))
        names: dict[str, None] = {}
        own = {*body.locals, *(p.name for p in body.function.parameters)} if body.function is not None else body.locals
        for change in body.accesses.changes:
            root = root_of(change.target)
            if event.start < change.start < end and root and root not in own:
                names[root] = None
        for call in body.facts.calls:
            if call.receiver is not None and event.start < call.start < end:
                root = root_of(body.text(call.receiver))
                if root and root not in own and root != root_of(event.address or ""):
                    names[root] = None
        return ", ".join(list(names)[:_NAMES_SHOWN]) or None


class WalkSync:
    """Gathers what one walk synchronises, implementation by implementation."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._reader = SyncReader(workbench)
        self._hosts: dict[tuple[str, int], Body] = {}
        self._kernels: dict[tuple[str, int], Reading] = {}

    def host(self, body: Body) -> None:
        """A function of the host side."""
        place = body.function.offset if body.function is not None else body.expanded.use_position(0)
        self._hosts.setdefault((body.path, place), body)

    def kernel(self, reading: Reading) -> None:
        """A kernel, or a device function that is walked."""
        self._kernels.setdefault(reading.candidate.key, reading)

    def found(self) -> tuple[tuple[SyncPoint, ...], tuple[SyncPoint, ...], tuple[FlagStruct, ...]]:
        """The points of host functions and of kernels in reading order, and the structures that flags are in."""
        hosts = tuple(dict.fromkeys(self._reader.host(self._hosts.values())))
        kernels = tuple(dict.fromkeys(self._reader.kernels(tuple(self._kernels.values()))))
        return hosts, kernels, self._reader.flags.structs()

    def seen(self) -> tuple[tuple[Span, ...], bool]:
        """The host functions that were looked at, each by its first line, and whether any kernel was."""
        places = ((path, body.line_in(path, place)) for (path, place), body in self._hosts.items())
        return tuple(Span(path, line, line) for path, line in places), bool(self._kernels)


_SCOPES = {"system": "system scope", "gpu": "GPU scope", "cluster": "cluster scope", "block": "block scope"}


def is_flag_barrier(reading: Reading) -> bool:
    """Whether a function stores a flag and then waits in a loop until it reads one."""
    stores = [e for e in reading.events if e.address is not None and _stores(e.kind)]
    waits = [
        e for e in reading.events if e.address is not None and e.spins and ("load" in e.kind or e.kind == "atomic")
    ]
    # What waits first and stores then takes a lock.
    return bool(stores and waits) and stores[0].start < waits[-1].start


def _stores(kind: str) -> bool:
    """Whether others can wait for what an event of a kind stores: for what a plain store sets, nobody safely does."""
    return kind in ("atomic", "reduction") or ("store" in kind and kind != "plain_store")


def _is_taken(call, body: Body, event: Event, reading: Reading) -> bool:
    """Whether a call compiles the branch that an event stands in, as far as plain ``true`` and ``false`` tell."""
    names = list(template_parameters(reading.candidate.function.template))
    given = [body.text(span) for span in call.template_arguments or ()]
    known = {p.name: p.default for p in names}
    known.update({p.name: text for p, text in zip(names, given, strict=False)})
    for condition in event.under:
        bare = condition.lstrip("!")
        value = known.get(bare)
        if value in ("true", "false") and (value == "true") == condition.startswith("!"):
            return False
    return True


def _compiles(kernel: Reading, reading: Reading, event: Event) -> bool:
    """Whether a kernel compiles the branch that an event of a function stands in, as far as its own calls tell."""
    direct = [call for call, inner in kernel.calls if inner is reading]
    return not direct or any(_is_taken(call, kernel.body, event, reading) for call in direct)


def _behind(body: Body, start: int) -> int:
    """The end of the call or statement that begins at an offset."""
    return next((c.end for c in body.facts.calls if c.start == start), start + 1)


def _handed_over(body: Body, before: Touched, after: Touched) -> str | None:
    """What a barrier of a block is for: shared memory that is written on one side of it and touched on the other."""
    shared = shared_names(body)
    names = [
        n for n in dict.fromkeys((*before.writes, *after.writes, *before.reads))
        if n.split(".")[0] in shared
        and ((n in before.writes and n in (*after.reads, *after.writes)) or (n in before.reads and n in after.writes))
    ]  # fmt: skip
    return ", ".join(names[:_NAMES_SHOWN]) or None
