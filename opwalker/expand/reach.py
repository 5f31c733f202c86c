"""Calls followed from a host function to every launch it can reach.

In: a definition and the unit it is compiled in. Out: ``Reach``. Control flow is not judged: what stands in any branch
counts. Function pointers are followed through variables, arguments, returns and tables (``expand/kernels.py``); a name
that several definitions fit is followed into each and marked ``possible``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.callees import (
    applied,
    constructions,
    functor_name,
    handed_name,
    handed_over,
    is_device_code,
    is_made,
    is_read_here,
    made_class,
    simple_of,
    unread_places,
)
from opwalker.expand.environment import Tools
from opwalker.expand.fits import Fit
from opwalker.expand.found import Found
from opwalker.expand.frames import Frame, Named
from opwalker.expand.held import HeldFunctions, Holding
from opwalker.expand.host_names import HostFinder
from opwalker.expand.instances import InstanceReader, Judge
from opwalker.expand.kernels import KernelFinder
from opwalker.expand.launches import LaunchReader
from opwalker.expand.leading import Leading
from opwalker.expand.registries import Registries
from opwalker.expand.resolve import Candidate, Context, Resolver, strip_arguments
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
from opwalker.model.reach import Reach
from opwalker.model.walk import Gap, PathStep, Span

#: Functions that one walk enters, and how deep calls nest, before the rest is reported as not followed.
MAX_FUNCTIONS = 20000
MAX_DEPTH = 1024
#: Calls that are followed one inside the other; deeper ones wait, because each takes some of Python's own stack.
AT_ONCE = 48
TOO_MUCH = f"more than {MAX_FUNCTIONS:,} functions or {MAX_DEPTH:,} calls deep: the rest is not followed"
#: Sets of template constants that one function is entered with; beyond, its branches are not told apart.
MAX_VARIANTS = 3000


class Follower:
    """Follows one entry point."""

    def __init__(
        self,
        index: Index,
        resolver: Resolver,
        bodies: Bodies,
        tools: Tools,
        judge: Judge | None = None,
        leading: Leading | None = None,
        registries: Registries | None = None,
    ) -> None:
        self._index = index
        self._resolver = resolver
        self._bodies = bodies
        self._types = TypeReader(index)
        self._leading = leading or Leading(index, bodies.files)
        self._instances = InstanceReader(tools, bodies, judge)
        self._kernels = KernelFinder(index, resolver, bodies, self._instances)
        self._variants: dict[tuple[str, int], int] = {}
        self._registries = registries or Registries(index, resolver, bodies)
        self._held = HeldFunctions(index, resolver, bodies, self._types)
        self._hosts = HostFinder(index, resolver, bodies, self._instances)
        self._launch_reader = LaunchReader(self._kernels)
        self._found = Found()
        self._visited: dict[tuple, int] = {}
        self._again: set[int] = set()
        self._later: deque[tuple[Frame, int]] = deque()

    def follow(self, candidate: Candidate, root: str) -> Reach:
        """Everything that a function reaches, in the unit that begins at ``root``."""
        self._enter(Frame(candidate, root, ()), 0)
        return self._result()

    def follow_named(
        self, candidate: Candidate, root: str, context: Context, owner: str | None, template: str | None
    ) -> Reach:
        """As ``follow``, for a function that is named in a context, with template arguments or as a member of the class
        ``owner`` that has some."""
        fit = self._instances.registered(candidate, context, owner, template)
        self._enter(Frame(candidate, root, (), bound=fit.bound, unbound=fit.why, owner=fit.owner), 0)
        return self._result()

    def follow_bound(
        self, candidate: Candidate, bound: dict, why: str | None, origins: dict, owner: str | None = None
    ) -> Reach:
        """A function template with its parameters bound, such as an explicit instantiation of it; ``owner`` is the
        class that a member is instantiated for."""
        self._enter(Frame(candidate, candidate.path, (), bound=bound, unbound=why, origins=origins, owner=owner), 0)
        return self._result()

    def follow_body(self, body: Body, name: str) -> Reach:
        """The same for a lambda that is registered in place."""
        self._body(Frame(None, body.root, (), name=name), body, 0)
        return self._result()

    def _result(self) -> Reach:
        while self._later:
            self._visit(*self._later.popleft())
        return self._found.result(frozenset(self._again))

    def _enter(self, frame: Frame, depth: int) -> None:
        if self._was_here(frame):
            return
        if len(self._visited) >= MAX_FUNCTIONS or depth > MAX_DEPTH:
            self._found.cut(TOO_MUCH)
        elif depth and depth % AT_ONCE == 0:
            self._later.append((frame, depth))
        else:
            self._visit(frame, depth)

    def _was_here(self, frame: Frame) -> bool:
        """Whether a function has been entered in this way; then it is noted that there is another call of it."""
        number = self._visited.get(frame.key, 0)
        self._again.add(number)
        return number > 0

    def _visit(self, frame: Frame, depth: int) -> None:
        if self._was_here(frame):
            return
        frame = replace(frame, number=len(self._visited) + 1)
        self._visited[frame.key] = frame.number
        self._found.entered(frame)
        self._body(frame, self._bodies.of(frame.candidate, frame.root), depth)

    def _body(self, frame: Frame, body: Body, depth: int) -> None:
        for fact in body.facts.launches:
            self._found.launch(frame, self._launch_reader.chevron(frame, body, fact))
        for call in body.facts.calls:
            self._call(frame, body, call, depth)
        for fit, doubt, offset in self._instances.mentioned(body, frame):
            self._mention(frame, body, fit, doubt, offset, depth)
        for call in constructions(body, self._index.type_names):
            self._construct(frame, body, call, call.name, depth)
        for path, line, reason in self._bodies.unread_includes(body):
            self._found.gap(Gap("include", Span(path, line, line), reason))
        for gap in unread_places(body):
            self._found.gap(gap)

    # -- calls ------------------------------------------------------------------------------------------------------

    def _call(self, frame: Frame, body: Body, call: CallFact, depth: int) -> None:
        simple = call.simple
        if simple in LAUNCH_CALLS:
            self._found.launch(frame, self._launch_reader.runtime(frame, body, call))
            return
        if KERNEL_QUERIES.match(simple) or simple in NO_FUNCTIONS:
            return
        if call.receiver is not None:
            self._member_call(frame, body, call, depth)
        elif simple in body.locals and "::" not in call.name:
            self._variable_call(frame, body, call, depth)
        elif call.name[-1] in ")]" and not is_made(call.name, self._index.names_of_kind("class")):
            found = self._instances.members(body, frame, call)
            named = [] if found else self._hosts.held_by(body, call.callee, frame)
            if not found and not named:
                named = self._held.element(frame, body, call)
            self._steps(frame, body, call, found, depth)
            self._named_steps(frame, body, call, named, depth)
            if not found and not named:
                self._found.lost(body, call, body.written(call.callee))
        else:
            self._free_call(frame, body, call, depth)
        self._passed_functions(frame, body, call, depth)

    def _free_call(self, frame: Frame, body: Body, call: CallFact, depth: int) -> None:
        name = call.name
        if name[0] == "[":
            return  # a lambda that is called where it stands: its body is read with this one
        context = frame.context(body)
        if "::" in name and name.split("::")[0] in frame.bound:
            meant = self._instances.members(body, frame, call)
            if meant:
                self._steps(frame, body, call, meant, depth)
                return
        resolution = self._resolver.function(name, context, len(call.arguments), kernel=False)
        if resolution.candidates:
            meant = replace(frame, certain=False) if resolution.loose else frame
            self._steps(meant, body, call, resolution.candidates, depth)
            return
        made = made_class(call, body, self._index.names_of_kind("class"))
        if made is not None and self._construct(frame, body, call, made, depth):
            return
        members = self._instances.members(body, frame, call)
        if members:
            self._steps(frame, body, call, members, depth)
            return
        functor = functor_name(name)
        if functor:
            found = self._resolver.method("operator()", functor, context, len(call.arguments))
            self._steps(frame, body, call, found.candidates, depth)
            if found.candidates:
                return
        later = applied(name, context, self._types, self._resolver)
        if later is not None:
            for candidate in later:
                self._pass(frame, body, call, candidate, depth)
            return
        kind = terminal_kind(self._types.expanded_name(name, context))
        held = self._held.member(frame, body, call, "this") if kind is None and "::" not in name else None
        if kind is not None:
            self._found.terminal(frame, body, call, kind, name)
        elif held is not None:
            self._through(frame, body, call, held, depth)
        elif resolution.declared and not name.startswith("std::"):
            path, line = body.origin(call.start)
            reason = f"{name} is declared, but its body is not in the source"
            self._found.gap(Gap("no-body", Span(path, line, line), reason))
        elif name[0] != "[" and made is None and not is_harmless(self._types.expanded_name(name, context)):
            self._found.lost(body, call, name)

    def _construct(self, frame: Frame, body: Body, call: CallFact, name: str, depth: int) -> bool:
        """Enters the constructors of a class that take the arguments of a call; whether there is one."""
        simple = simple_of(strip_arguments(name))
        if simple not in self._index.names_of_kind("class"):
            found: Sequence[Candidate] = self._instances.constructors(body, frame, call)
        elif simple not in self._index.names_of_kind("function"):
            return False
        else:
            found = self._resolver.method(simple, name, frame.context(body), len(call.arguments)).candidates
        self._steps(frame, body, call, found, depth)
        return bool(found)

    def _member_call(self, frame: Frame, body: Body, call: CallFact, depth: int) -> None:
        receiver = body.text(call.receiver)
        context = frame.context(body)
        if receiver == "this" or receiver.startswith("(*this"):
            type_text = made = context.scope[-1] if context.scope else None
        else:
            type_text = self._types.of_expression(receiver, body, frame)
            made = self._types.class_name(type_text, context) if type_text else None
        found = self._resolver.method(call.name, made, context, len(call.arguments)) if made else None
        candidates = found.candidates if found else ()
        if not candidates:
            candidates = self._instances.members(body, frame, call)
        if candidates:
            self._steps(frame, body, call, candidates, depth)
            return
        op = dispatched_op(call.simple, " ".join((receiver, *map(body.text, body.values_of(receiver, call.start)))))
        if op is not None:
            self._found.terminal(frame, body, call, "torch", op)
            return
        held = self._held.member(frame, body, call)
        if held is not None:
            self._through(frame, body, call, held, depth)
            return
        full = self._types.expanded_name(type_text, context) if type_text else ""
        if full and is_library_type(full) and call.simple in ("run", "operator()", "initialize", "execute", "Run"):
            if call.simple != "initialize":
                self._found.terminal(frame, body, call, "library", f"{full}::{call.simple}")
        elif is_tensor_work(call.simple) and (type_text is None or "ensor" in type_text):
            if type_text is not None:
                self._found.terminal(frame, body, call, "torch", f"{receiver}.{call.simple}")
        elif type_text is not None and made is None and not is_harmless_type(full):
            self._found.lost(body, call, f"{receiver}.{call.simple} of {type_text}")

    def _through(self, frame: Frame, body: Body, call: CallFact, held: Holding, depth: int) -> None:
        """A call through a member that holds a function."""
        meant = frame if held.sure else replace(frame, certain=False)
        self._named_steps(meant, body, call, held.named, depth)
        if not held.named:
            self._found.lost(body, call, body.written(call.callee))

    def _variable_call(self, frame: Frame, body: Body, call: CallFact, depth: int) -> None:
        """A call through a local: a lambda stands in this body and is read with it; a pointer is followed."""
        named = self._hosts.held_by(body, call.callee, frame)
        self._named_steps(frame, body, call, named, depth)
        local = body.locals_at(call.simple, call.start)[-1]
        type_text = local.type
        full = self._types.expanded_name(type_text, frame.context(body))
        if is_library_type(full):
            self._found.terminal(frame, body, call, "library", f"{full}::operator()")
            return
        candidates: Sequence[Candidate] = ()
        if type_text.startswith("auto"):
            candidates = self._instances.members(body, frame, call)
            type_text = self._types.of_local(local, body, frame) or ""
        made = self._types.class_name(type_text, frame.context(body))
        if made and not candidates:
            candidates = self._resolver.method("operator()", made, frame.context(body), len(call.arguments)).candidates
        self._steps(frame, body, call, candidates, depth)
        if not (named or candidates or is_harmless_type(type_text) or is_read_here(body, call)):
            self._found.lost(body, call, call.simple)

    def _passed_functions(self, frame: Frame, body: Body, call: CallFact, depth: int) -> None:
        """Functions of the tree that are passed as arguments may be called by whoever gets them, and so may those that
        an object holds which is."""
        for span in (call.receiver, *call.arguments) if call.receiver else call.arguments:
            text = body.text(span)
            for candidate in self._registries.stored(text, frame.steps[0].file if frame.steps else body.path):
                self._pass(replace(frame, certain=False), body, call, candidate, depth)
            name = handed_name(text, frame, body, self._index.names_of_kind("function"))
            if name is None:
                continue
            for candidate in self._resolver.function(name, frame.context(body), None, kernel=False).candidates:
                self._pass(frame, body, call, candidate, depth)

    def _steps(self, frame: Frame, body: Body, call: CallFact, candidates: Sequence[Candidate], depth: int) -> None:
        """Enters each function that a call can mean, with each way in which the call binds its template parameters."""
        leading = [c for c in candidates if self._leading.leads(c)]
        for candidate in candidates:
            if candidate not in leading:
                self._pass(frame, body, call, candidate, depth)
        if not leading:
            return
        entries = self._instances.entries(candidates, body, frame, call)
        self._fits(frame, body, call, entries, depth)
        seen = self._index.closure(frame.root)
        if not entries and seen.isdisjoint(c.path for c in candidates):
            for candidate in candidates:  # of a class that another unit defines: what it is made of is not in sight
                self._pass(replace(frame, certain=False), body, call, candidate, depth)

    def _named_steps(self, frame: Frame, body: Body, call: CallFact, named: Sequence[Named], depth: int) -> None:
        """Enters each function that a called variable can hold."""
        leading = [n for n in named if self._leading.leads(n.candidate)]
        for one in named:
            if one not in leading:
                self._pass(frame, body, call, one.candidate, depth)
        if leading:
            self._fits(frame, body, call, self._instances.through(leading, body, frame, call), depth)

    def _mention(self, frame: Frame, body: Body, fit: Fit, doubt: str | None, at: int, depth: int) -> None:
        """Enters a function template that is named with its arguments, whoever calls it."""
        candidate = fit.candidate
        if is_device_code(candidate) or not self._leading.leads(candidate):
            return
        near = candidate.path in self._index.closure(frame.root) or candidate.path == frame.root
        steps = (*frame.steps, PathStep(frame.display_name, body.path, body.use_line(at)))
        made = Frame(
            candidate, frame.root if near else candidate.path, steps, bound=fit.bound, certain=frame.certain,
            owner=fit.owner, doubt=doubt,
        )  # fmt: skip
        self._enter(made, depth + 1)

    def _fits(
        self, frame: Frame, body: Body, call: CallFact, entries: Sequence[tuple[Fit, dict, str | None]], depth: int
    ) -> None:
        """Enters functions with what a call binds."""
        handed: dict[tuple, tuple[dict, dict]] = {}
        for fit, origins, doubt in entries:
            candidate = fit.candidate
            if is_device_code(candidate):
                continue
            if candidate.key not in handed:
                handed[candidate.key] = handed_over(self._kernels, self._types, frame, body, call, candidate)
            functions, types = handed[candidate.key]
            bound, why = fit.bound, fit.why
            count = self._variants[candidate.key] = self._variants.get(candidate.key, 0) + 1
            if count > MAX_VARIANTS:
                bound, why = dict.fromkeys(bound), f"more than {MAX_VARIANTS} instances of {candidate.function.name}"
            steps, root = self._way(frame, body, call, candidate)
            certain = frame.certain and fit.sure
            made = Frame(
                candidate, root, steps, functions, types, bound, why, certain,
                origins=origins, owner=fit.owner, given=fit.given, doubt=doubt, caller=(frame, body, call),
            )  # fmt: skip
            self._enter(made, depth + 1)

    def _way(self, frame: Frame, body: Body, call: CallFact, candidate: Candidate) -> tuple[tuple[PathStep, ...], str]:
        """The steps to a function that is called, and the translation unit that it is read in."""
        steps = (*frame.steps, PathStep(frame.display_name, body.path, body.use_line(call.start)))
        if len(steps) > 1 and steps[-1] == steps[-2]:
            steps = steps[:-1]  # a recursion over template arguments: one step for a reader
        near = candidate.path in self._index.closure(frame.root) or candidate.path == frame.root
        return steps, frame.root if near else candidate.path

    def _pass(self, frame: Frame, body: Body, call: CallFact, candidate: Candidate, depth: int) -> None:
        """Enters a function that is not called here but handed on: what it is called with is not known."""
        if not is_device_code(candidate):
            steps, root = self._way(frame, body, call, candidate)
            self._enter(Frame(candidate, root, steps, certain=frame.certain, doubt=frame.doubt), depth + 1)
