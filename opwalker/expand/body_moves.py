"""What a body leads to: its launches, its ends, the functions that it enters, in the order in which they stand there.

In: a body, and the frame that it is read in. Out: moves (``expand/moves.py``). Which of the functions are then entered,
and in which order, is up to whoever follows them. Control flow is not judged: what stands in any branch counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.callees import (
    applied,
    constructions,
    functor_name,
    handed_name,
    handed_over,
    is_bit_copy,
    is_device_code,
    is_made,
    is_read_here,
    made_class,
    runs_on_device,
    simple_of,
    unread_places,
)
from opwalker.expand.environment import Tools
from opwalker.expand.fits import Fit
from opwalker.expand.frames import Frame, Named, unit_of
from opwalker.expand.held import HeldFunctions, Holding
from opwalker.expand.host_names import HostFinder
from opwalker.expand.instances import InstanceReader, Judge
from opwalker.expand.kernels import KernelFinder
from opwalker.expand.launches import LaunchReader
from opwalker.expand.leading import Leading
from opwalker.expand.moves import Asked, Entry, Lost, Move, Stored, passed_on
from opwalker.expand.named_kernels import named_kernels
from opwalker.expand.registries import Registries
from opwalker.expand.resolve import Candidate, Resolver, strip_arguments
from opwalker.expand.terminals import (
    KERNEL_QUERIES,
    LAUNCH_CALLS,
    NO_FUNCTIONS,
    dispatched_op,
    is_harmless,
    is_harmless_type,
    is_library_type,
    is_tensor_work,
    terminal_kind,
)
from opwalker.expand.types import TypeReader
from opwalker.link.index import Index
from opwalker.model.body import CallFact
from opwalker.model.reach import LaunchSite
from opwalker.model.walk import Gap, PathStep, Span, Terminal
from opwalker.notation.regex import Regex

_MADE = Regex(r"(?:^|::|\.)(?:new_)?(?:empty|zeros|ones|full)(?:_like|_strided)?\Z|(?:^|::)from_blob\Z")
_SHOWN = 120


class MoveReader:
    """Reads bodies of one tree for what they lead to. ``judge`` says which instances are never launched: the moves then
    hold for the way alone by which the frame was entered."""

    def __init__(
        self,
        index: Index,
        resolver: Resolver,
        bodies: Bodies,
        tools: Tools,
        judge: Judge | None,
        leading: Leading,
        registries: Registries,
    ) -> None:
        self._index = index
        self._resolver = resolver
        self._bodies = bodies
        self._types = TypeReader(index)
        self._leading = leading
        self._registries = registries
        self._instances = InstanceReader(tools, bodies, judge)
        self._kernels = KernelFinder(index, resolver, bodies, self._instances)
        self._held = HeldFunctions(index, resolver, bodies, self._types)
        self._hosts = HostFinder(index, resolver, bodies, self._instances)
        self._launches = LaunchReader(self._kernels)
        self._moves: list[Move] = []
        #: Frames of functions that are entered with nothing.
        self._plain: dict[tuple, Frame] = {}

    def of(self, frame: Frame, body: Body) -> tuple[Move, ...]:
        """The moves of a body that is read in a frame without steps, in order."""
        self._moves = []
        for fact in body.facts.launches:
            self._launch(frame, self._launches.chevron(frame, body, fact))
        for call in body.facts.calls:
            if not runs_on_device(body, call.start):
                self._call(frame, body, call)
        for fit, doubt, offset in self._instances.mentioned(body, frame):
            if not runs_on_device(body, offset):
                self._mention(frame, body, fit, doubt, offset)
        self._named_kernels(frame, body)
        for call in constructions(body, self._index.type_names):
            if not runs_on_device(body, call.start):
                self._construct(frame, body, call, call.name)
        for path, line, reason in self._bodies.unread_includes(body):
            self._moves.append(Gap("include", Span(path, line, line), reason))
        if body.cut is not None:
            path, line = body.origin(0)
            self._moves.append(Gap("unread", Span(path, line, line), f"{frame.display_name}: {body.cut}"))
        self._moves += unread_places(body)
        return tuple(self._moves)

    def _launch(self, frame: Frame, site: LaunchSite | Terminal | Gap | None) -> None:
        """A launch, or what a launch turned out to be."""
        if isinstance(site, LaunchSite) and not frame.certain:
            site = replace(site, certainty="possible")
        if site is not None:
            self._moves.append(site)

    def _terminal(self, frame: Frame, body: Body, call: CallFact, kind: str, name: str) -> None:
        """An end of the path that is no kernel of the source."""
        path, line = body.origin(call.start)
        shown = name if len(name) < _SHOWN else name[: _SHOWN - 3] + "..."
        if kind == "torch" and _MADE.search(name):
            kind = "memory"
        self._moves.append(Terminal(kind, shown, path, line, (_step(frame, body, call.start),)))

    def _lost(self, body: Body, call: CallFact, name: str) -> None:
        """A call that could not be followed: it counts where nothing else is found."""
        self._moves.append(Lost(name if len(name) < 80 else name[:77] + "...", body.origin(call.start)))

    # -- calls ------------------------------------------------------------------------------------------------------

    def _call(self, frame: Frame, body: Body, call: CallFact) -> None:
        simple = call.simple
        if simple in LAUNCH_CALLS:
            self._launch(frame, self._launches.runtime(frame, body, call))
            return
        if simple in NO_FUNCTIONS or KERNEL_QUERIES.match(simple):
            return
        if call.receiver is not None:
            self._member_call(frame, body, call)
        elif simple in body.locals and "::" not in call.name:
            self._variable_call(frame, body, call)
        elif call.name[-1] in ")]" and not is_made(call.name, self._index.names_of_kind("class")):
            found = self._instances.members(body, frame, call)
            named = [] if found else self._hosts.held_by(body, call.callee, frame)
            if not found and not named:
                named = self._held.element(frame, body, call)
            self._steps(frame, body, call, found)
            self._named_steps(frame, body, call, named)
            if not found and not named:
                self._lost(body, call, body.written(call.callee))
        else:
            self._free_call(frame, body, call)
        self._passed_functions(frame, body, call)

    def _named_kernels(self, frame: Frame, body: Body) -> None:
        """Kernels that are named and not launched in these words: whoever names an instance compiles it, be it to ask
        about it, to hand it on, or to keep it."""

        def holds(name: str) -> bool:
            return self._kernels.may_hold(name, frame.root)

        for span in named_kernels(body, self._index.names_of_kind("kernel"), holds):
            site = None if self._is_member(body, span) else self._launches.named(frame, body, span)
            if isinstance(site, LaunchSite):
                self._moves.append(Asked(site))

    def _is_member(self, body: Body, span: tuple[int, int]) -> bool:
        """Whether a name without arguments is that of a data member of a class around the body."""
        name = body.text(span)
        if body.function is None or not name.isidentifier() or name not in self._index.names_of_kind("variable"):
            return False
        around = body.function.scope
        held = self._index.entries(name, ("variable",), lambda facts: facts.variables)
        return any(v.scope and v.scope == around[: len(v.scope)] for _, v in held)

    def _free_call(self, frame: Frame, body: Body, call: CallFact) -> None:
        name = call.name
        if name[0] == "[":
            return  # a lambda that is called where it stands: its body is read with this one
        context = frame.context(body)
        if "::" in name and name.split("::")[0] in frame.bound:
            meant = self._instances.members(body, frame, call)
            if meant:
                self._steps(frame, body, call, meant)
                return
        resolution = self._resolver.function(name, context, body.passed(call), kernel=False)
        if resolution.candidates:
            meant = replace(frame, certain=False) if resolution.loose else frame
            self._steps(meant, body, call, resolution.candidates)
            return
        if filled := self._registries.filled(name):
            for candidate, step in filled:
                self._pass(frame, body, call, candidate, step)
            return
        made = made_class(call, body, self._index.names_of_kind("class"))
        if made is not None and self._construct(frame, body, call, made):
            return
        members = self._instances.members(body, frame, call)
        if members:
            self._steps(frame, body, call, members)
            return
        functor = functor_name(name)
        if functor:
            found = self._resolver.method("operator()", functor, context, body.passed(call))
            self._steps(frame, body, call, found.candidates)
            if found.candidates:
                return
        later = applied(name, context, self._types, self._resolver)
        if later is not None:
            for candidate in later:
                self._pass(frame, body, call, candidate)
            return
        kind = terminal_kind(self._types.expanded_name(name, context))
        held = self._held.member(frame, body, call, "this") if kind is None and "::" not in name else None
        if kind is not None:
            if not is_bit_copy(body, call):
                self._terminal(frame, body, call, kind, name)
        elif held is not None:
            self._through(frame, body, call, held)
        elif resolution.declared and not name.startswith("std::"):
            path, line = body.origin(call.start)
            reason = f"{name} is declared, but its body is not in the source"
            self._moves.append(Gap("no-body", Span(path, line, line), reason))
        elif name[0] != "[" and made is None and not is_harmless(self._types.expanded_name(name, context)):
            self._lost(body, call, name)

    def _construct(self, frame: Frame, body: Body, call: CallFact, name: str) -> bool:
        """Enters the constructors of a class that take the arguments of a call, and its destructor; whether there is
        a constructor."""
        simple, context = simple_of(strip_arguments(name)), frame.context(body)
        if simple not in self._index.names_of_kind("class"):
            found: Sequence[Candidate] = self._instances.constructors(body, frame, call)
        else:
            found = self._resolver.method(simple, name, context, body.passed(call)).candidates
        self._steps(frame, body, call, found)
        self._steps(frame, body, call, self._resolver.method(f"~{simple}", name, context, 0).candidates)
        return bool(found)

    def _member_call(self, frame: Frame, body: Body, call: CallFact) -> None:
        receiver = body.text(call.receiver)
        context = frame.context(body)
        if receiver == "this" or receiver.startswith("(*this"):
            type_text = made = context.scope[-1] if context.scope else None
        else:
            type_text = self._types.of_expression(receiver, body, frame)
            made = self._types.class_name(type_text, context) if type_text else None
        found = self._resolver.method(call.name, made, context, body.passed(call)) if made else None
        candidates = found.candidates if found else ()
        if not candidates:
            candidates = self._instances.members(body, frame, call)
        if candidates:
            self._steps(frame, body, call, candidates)
            return
        op = dispatched_op(call.simple, " ".join((receiver, *map(body.text, body.values_of(receiver, call.start)))))
        if op is not None:
            self._terminal(frame, body, call, "torch", op)
            return
        held = self._held.member(frame, body, call)
        if held is not None:
            self._through(frame, body, call, held)
            return
        full = self._types.expanded_name(type_text, context) if type_text else ""
        if full and is_library_type(full) and call.simple in ("run", "operator()", "initialize", "execute", "Run"):
            if call.simple != "initialize":
                self._terminal(frame, body, call, "library", f"{full}::{call.simple}")
        elif is_tensor_work(call.simple) and (type_text is None or "ensor" in type_text):
            if type_text is not None:
                self._terminal(frame, body, call, "torch", f"{receiver}.{call.simple}")
        elif type_text is not None and made is None and not is_harmless_type(full):
            self._lost(body, call, f"{receiver}.{call.simple} of {type_text}")

    def _through(self, frame: Frame, body: Body, call: CallFact, held: Holding) -> None:
        """A call through a member that holds a function."""
        meant = frame if held.sure else replace(frame, certain=False)
        self._named_steps(meant, body, call, held.named)
        if not held.named:
            self._lost(body, call, body.written(call.callee))

    def _variable_call(self, frame: Frame, body: Body, call: CallFact) -> None:
        """A call through a local: a lambda stands in this body and is read with it; a pointer is followed."""
        named = self._hosts.held_by(body, call.callee, frame)
        self._named_steps(frame, body, call, named)
        local = body.locals_at(call.simple, call.start)[-1]
        type_text = local.type
        full = self._types.expanded_name(type_text, frame.context(body))
        if is_library_type(full):
            self._terminal(frame, body, call, "library", f"{full}::operator()")
            return
        candidates: Sequence[Candidate] = ()
        if type_text.startswith("auto"):
            candidates = self._instances.members(body, frame, call)
            type_text = self._types.of_local(local, body, frame) or ""
        made = self._types.class_name(type_text, frame.context(body))
        if made and not candidates:
            candidates = self._resolver.method("operator()", made, frame.context(body), body.passed(call)).candidates
        self._steps(frame, body, call, candidates)
        if not (named or candidates or is_harmless_type(type_text) or is_read_here(body, call)):
            self._lost(body, call, call.simple)

    def _passed_functions(self, frame: Frame, body: Body, call: CallFact) -> None:
        """Functions of the tree that are passed as arguments may be called by whoever gets them, and so may those that
        an object holds which is."""
        for span in (call.receiver, *call.arguments) if call.receiver else call.arguments:
            text = body.text(span)
            if self._registries.knows(text):
                self._moves.append(Stored(text, replace(frame, certain=False), _step(frame, body, call.start)))
            name = handed_name(text, frame, body, self._index.names_of_kind("function"))
            if name is None:
                continue
            for candidate in self._resolver.function(name, frame.context(body), None, kernel=False).candidates:
                self._pass(frame, body, call, candidate)

    def _steps(self, frame: Frame, body: Body, call: CallFact, candidates: Sequence[Candidate]) -> None:
        """Enters each function that a call can mean, with each way in which the call binds its template parameters."""
        others = [c for c in candidates if not self._leading.leads(c)]
        for candidate in others:
            self._pass(frame, body, call, candidate)
        if len(others) == len(candidates):
            return
        entries = self._instances.entries(candidates, body, frame, call)
        if not entries and self._index.closure(frame.root).isdisjoint(c.path for c in candidates):
            # Of a class that another unit defines.
            entries = self._instances.linked_members(candidates, body, frame, call)
            for candidate in candidates if not entries else ():  # what it is made of is not in sight
                self._pass(replace(frame, certain=False), body, call, candidate)
        self._fits(frame, body, call, entries)

    def _named_steps(self, frame: Frame, body: Body, call: CallFact, named: Sequence[Named]) -> None:
        """Enters each function that a called variable can hold."""
        leading = [n for n in named if self._leading.leads(n.candidate)]
        for one in named:
            if one not in leading:
                self._pass(frame, body, call, one.candidate)
        if leading:
            self._fits(frame, body, call, self._instances.through(leading, body, frame, call))

    def _mention(self, frame: Frame, body: Body, fit: Fit, doubt: str | None, at: int) -> None:
        """Enters a function template that is named with its arguments, whoever calls it."""
        candidate = fit.candidate
        if is_device_code(candidate) or not self._leading.leads(candidate):
            return
        made = Frame(
            candidate, unit_of(self._index, candidate, frame.root), (), bound=fit.bound, certain=frame.certain,
            owner=fit.owner, doubt=doubt,
        )  # fmt: skip
        self._moves.append(Entry(made, _step(frame, body, at), called=False))

    def _fits(
        self,
        frame: Frame,
        body: Body,
        call: CallFact,
        entries: Sequence[tuple[Fit, dict, str | None]],
    ) -> None:
        """Enters functions with what a call binds."""
        handed: dict[tuple, tuple[dict, dict]] = {}
        passed: list[tuple] = []
        by = _step(frame, body, call.start)
        caller = (body, call) if self._instances.judges else None
        for fit, origins, doubt in entries:
            candidate = fit.candidate
            if is_device_code(candidate):
                continue
            key = candidate.key
            if not handed:
                passed = [self._kernels.in_argument(body, span, frame) for span in call.arguments]
            if key not in handed:
                handed[key] = handed_over(self._kernels, self._types, frame, body, call, passed, candidate)
            functions, types = handed[key]
            # One that is entered with nothing is entered so from many places.
            nothing = not (functions or types or fit.bound or origins or fit.given)
            way = (key, fit.owner, fit.why, fit.sure, frame.root, frame.certain, doubt)
            made = self._plain.get(way) if nothing else None
            if made is None:
                made = Frame(
                    candidate, unit_of(self._index, candidate, frame.root), (), functions, types, fit.bound, fit.why,
                    frame.certain and fit.sure, origins=origins, owner=fit.owner, given=fit.given, doubt=doubt,
                )  # fmt: skip
                if nothing:
                    self._plain[way] = made
            self._moves.append(Entry(made, by, counted=True, caller=caller))

    def _pass(
        self, frame: Frame, body: Body, call: CallFact, candidate: Candidate, through: PathStep | None = None
    ) -> None:
        """Enters a function that is not called here but handed on: what it is called with is not known."""
        if not is_device_code(candidate):
            made = passed_on(self._index, candidate, frame, _step(frame, body, call.start))
            self._moves.append(replace(made, through=through))


def _step(frame: Frame, body: Body, offset: int) -> PathStep:
    """The step that leaves a function at an offset of its body."""
    return PathStep(frame.display_name, body.path, body.use_line(offset))
