"""The walk of one op: every implementation followed from its registration to its launches.

In: an op and the bindings behind it. Out: ``Walk``. Nothing is dropped: what could not be followed is a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from opwalker.expand.bodies import Body
from opwalker.expand.frames import unit_of
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.workbench import Unit, Workbench
from opwalker.model.binding import Binding
from opwalker.model.reach import KernelRef, LaunchSite, Reach
from opwalker.model.walk import (
    Dispatch,
    Gap,
    Host,
    Implementation,
    Kernel,
    Launch,
    Op,
    Ownership,
    PythonRef,
    ShapeSource,
    SourceInfo,
    Span,
    Terminal,
    UnderFact,
    Unreachable,
    Walk,
)
from opwalker.views.asserting import asserting
from opwalker.views.axes import axes_of
from opwalker.views.branching import branchings
from opwalker.views.checks import checks_of
from opwalker.views.constants import known_of
from opwalker.views.dispatch import dispatches
from opwalker.views.ends import placed
from opwalker.views.entered import Entered
from opwalker.views.following import HostSide, followed_by, host_side, question
from opwalker.views.helpers import helpers_of, on_way
from opwalker.views.host import body_facts, checked_locals, read_host
from opwalker.views.joined import NativeSide, joined_walk
from opwalker.views.launch_values import chosen, configuration, never_chosen, others_streams
from opwalker.views.layout import taken_as_lengths
from opwalker.views.left_out import with_left_out
from opwalker.views.ops import build_for, hosts_of, shown_condition, without_body
from opwalker.views.ownership import is_allocation, ownership_of
from opwalker.views.parameters import host_parameters, with_code
from opwalker.views.python_dims import with_dims
from opwalker.views.registered import Followed, Outcome, Registered, hosts_of_registered, registered
from opwalker.views.shapes import NO_WRAPPER
from opwalker.views.sync import WalkSync
from opwalker.views.told_names import told_names
from opwalker.views.unreachable import Judge, unreachable
from opwalker.views.walk_kernels import Kerneled, launched_kernels, read_kernels
from opwalker.views.way import Way
from opwalker.views.wrapper_shapes import wrappers_say

#: Calls that a gap names of those that are followed nowhere.
_NAMED = 16


class WalkView:
    """Walks ops of one tree."""

    def __init__(self, workbench: Workbench, source: SourceInfo, kernels: bool = True, hosts: bool = True) -> None:
        self._workbench = workbench
        self._source = source
        #: Whether kernels are read and it is said what can never run, or only which ones are launched; whether host
        #: functions are read.
        self._kernels = kernels
        self._hosts = hosts
        self.sync = WalkSync(workbench)
        #: The kernels that are launched, where they are read later.
        self._launched: list[Kerneled] | None = None
        #: Functions that any walk so far has entered, by file and place.
        self.entered: set[tuple[str, int]] = set()
        #: Kernels that any walk so far has met named and not launched, where that is all that is read of a walk.
        self.asked: list[Launch] = []

    def walk(self, op: Op, callers: tuple[PythonRef, ...] = (), build: str | None = None) -> Walk:
        """The whole walk of an op, or what one build has of it. ``callers`` are its calls in Python, over all
        levels."""
        wrapper = wrappers_say(op, callers or op.python, self._workbench.index.store.text)
        found = joined_walk(self._source, self._workbench.build, op, self.native(op, wrapper, build), callers)
        return with_dims(found, callers or op.python, self._workbench.index.store.text)

    def native(self, op: Op, wrapper: Mapping[str, ShapeSource] = NO_WRAPPER, build: str | None = None) -> NativeSide:
        """What C++ registers for an op, followed. ``wrapper`` is what its wrappers say of its arguments' shapes."""
        bindings = self._workbench.implementations(op.name)
        absent: str | None = None
        read: list[tuple[dict, Registered | Gap]] = []
        for binding in bindings:
            builds = self._workbench.builds_at(binding.path, binding.condition)
            if build is not None and builds is not None and build not in builds:
                absent = absent or self._workbench.absent(binding.path)
            else:
                read.append(self._registered(op, binding, builds))
        names = tuple(a.name for a in op.arguments)
        them = tuple(one for _, one in read if isinstance(one, Registered))

        def follow(workbench: Workbench, some: Sequence[Registered], later: bool = False) -> HostSide:
            view = WalkView(workbench, self._source, self._kernels, self._hosts)
            return view._follow(some, names, wrapper, self, later)

        whole = self._kernels and self._hosts
        ask = question(names, wrapper)
        followed = followed_by(self._workbench, them, ask, follow) if whole else follow(self._workbench, them).followed
        outcomes = iter(followed.outcomes)
        gaps: dict[Gap, None] = {}
        implementations: list[Implementation] = []
        owned = Ownership()
        for common, one in read:
            if isinstance(one, Gap):
                implementations.append(Implementation(certainty="proved", host=None, **common))
                gaps[one] = None
                continue
            for one in next(outcomes):
                implementations.append(replace(one.implementation, **common))
                gaps.update(dict.fromkeys(one.gaps))
                owned = joined_ownership(owned, one.ownership)
        found = tuple(dict.fromkeys(implementations))
        return NativeSide(found, tuple(gaps), owned, absent, followed.synchronisation, followed.flags)

    def _registered(self, op: Op, binding: Binding, builds: tuple[str, ...] | None) -> tuple[dict, Registered | Gap]:
        """What stands at a registration, and what there is to follow from it; or why nothing is."""
        workbench = self._workbench
        place = Span(binding.path, binding.line, binding.line)
        common = {
            "key": binding.key,
            "builds": builds,
            "condition": shown_condition(binding.condition),
            "registered_at": place,
        }
        absent = workbench.absent(binding.path) if builds == () else None
        if absent is not None:
            return common, Gap("not-built", place, absent)
        function = binding.function
        if function is None:
            return common, Gap("no-function", place, f"the function bound to {binding.name} is not named in the source")
        named = build_for(workbench, binding)
        if function.lambda_span is not None:
            return common, registered(workbench, binding, named)
        hosts = hosts_of(workbench, binding, len(op.arguments) if op.schema else None)
        if not hosts:
            return common, Gap("no-body", place, without_body(workbench, binding))
        return common, registered(workbench, binding, named, hosts)

    def _follow(
        self,
        them: Sequence[Registered],
        names: tuple[str, ...],
        wrapper: Mapping[str, ShapeSource],
        asking: WalkView,
        later: bool,
    ) -> HostSide:
        """Registrations followed to their ends, each by itself but for where their threads wait; where kernels are
        read ``later``, to these."""
        self._launched = [] if later else None
        outcomes: list[tuple[Outcome, ...]] = []
        for one in them:
            unit = self._workbench.unit(one.build)
            common = {"key": one.binding.key}
            if one.is_lambda:
                found = [self._lambda(unit, one.binding, common)]
            else:
                hosts = hosts_of_registered(self._workbench, one)
                certainty = "proved" if len(hosts) == 1 else "possible"
                found = [self.implementation(unit, h, names, certainty, common, wrapper, one.binding) for h in hosts]
            outcomes.append(tuple(Outcome(made, tuple(gaps), held) for made, gaps, held in found))
        asking.entered |= self.entered
        asking.asked += self.asked
        found = Followed(tuple(outcomes), *self.sync.found(), *self.sync.seen())
        return host_side(self._workbench, found, self._launched)

    def implementation(
        self,
        unit: Unit,
        host: Candidate,
        argument_names: tuple[str, ...],
        certainty: str,
        common: dict,
        wrapper: Mapping[str, ShapeSource] = NO_WRAPPER,
        binding: Binding | None = None,
    ) -> tuple[Implementation, list[Gap], Ownership]:
        """A host function followed to its ends; ``common`` are the fields that its registration gives, ``binding``
        is where it is named with template arguments."""
        body = unit.bodies.of(host, host.path)
        follower = unit.follower(Judge() if self._kernels else None)
        if binding is not None and binding.function is not None and is_template(unit, host):
            context = Context(binding.path, binding.path, binding.scope)
            named = binding.function
            owner = named.owner or named.name.rpartition("::")[0] or None
            reach = follower.follow_named(host, host.path, context, owner, named.template)
        else:
            reach = follower.follow(host, host.path)
        reach = with_left_out(self._workbench, unit, reach, host.path)
        if not self._hosts:
            return self._bare(Implementation(certainty=certainty, host=None, **common), reach)
        parameters = host_parameters(self._workbench, host, argument_names, wrapper)
        base = Implementation(certainty=certainty, host=read_host(self._workbench, host, body, parameters), **common)
        filled = self._filled(base, unit, reach, body, host.path)
        gaps = _gaps(reach, host.function.qualified_name, common)
        return filled, gaps, ownership_of(self._workbench, unit, reach, host.path)

    def _bare(self, base: Implementation, reach: Reach) -> tuple[Implementation, list[Gap], Ownership]:
        """An implementation with the launches that are reached, and nothing of what is read of them."""
        self.entered.update((path, function.offset) for path, function, _ in reach.functions)
        self.asked += self.asked_of(reach)
        bare = replace(base, launches=tuple(self.launches_of(reach)), terminals=reach.terminals)
        return bare, _gaps(reach, None, {"key": base.key}), Ownership()

    def _lambda(self, unit: Unit, binding: Binding, common: dict) -> tuple[Implementation, list[Gap], Ownership]:
        """A lambda that is registered in place: its text is the host function."""
        start, end = binding.function.lambda_span
        view = self._workbench.files.view(binding.path)
        brace = view.blanked.plain.find("{", view.blanked.plain.find("]", start))
        body = unit.bodies.span(binding.path, brace, end, binding.path, None, binding.scope)
        reach = unit.follower(Judge() if self._kernels else None).follow_body(body, "lambda")
        if not self._hosts:
            return self._bare(Implementation(certainty="proved", host=None, **common), reach)
        facts = body_facts(body)
        held = checked_locals(body, facts, known_of(self._workbench))
        host = Host("lambda", binding.path, view.blanked.line(start), view.blanked.line(end - 1), held=held, **facts)
        implementation = self._filled(
            Implementation(certainty="proved", host=host, **common), unit, reach, body, binding.path
        )
        owned = ownership_of(self._workbench, unit, reach, binding.path, ("lambda", body))
        return implementation, _gaps(reach, "lambda", common), owned

    def _filled(self, base: Implementation, unit: Unit, reach: Reach, body: Body, root: str) -> Implementation:
        """An implementation with what was reached from it."""
        self.entered.update((path, function.offset) for path, function, _ in reach.functions)
        way = Way(self._workbench, unit, reach, body, root)
        entered = Entered(way, reach)
        if base.host is not None:
            parameters = with_code(self._workbench, way, reach, base.host.parameters, entered)
            asserted = asserting(way, reach)
            if asserted:
                base = replace(base, host=replace(base.host, checks=checks_of(body, asserted)))
            helpers = helpers_of(self._workbench, way, reach, entered, parameters, asserted)
            choices = branchings(on_way(reach, way, base.host.name), reach, entered)
            base = replace(base, host=replace(base.host, parameters=parameters), helpers=helpers, branches=choices)
        dispatch = self._dispatch(unit, reach, body, root, entered)
        macros = frozenset(use.macro for use in dispatch)
        launches = []
        for site in reach.launches:
            for launch in self._launches(site, reach):
                said = configuration(way, site, entered, macros)
                own = chosen(way, site, entered, launch.kernel.rsplit("::", 1)[-1])
                said["conditions"] = tuple(dict.fromkeys((*said.get("conditions", ()), *own)))
                if launch.instances == ("",) and (why := never_chosen(way, site, launch.kernel)) is not None:
                    said["unreachable"] = (Unreachable("", *why, launch.path[-1].file),)
                launches.append(replace(launch, **said))
        them = launched_kernels(self._workbench, reach, way, base.host, self.sync) if self._kernels else []
        kernels: tuple[Kernel, ...] = ()
        if self._launched is None:
            kernels = read_kernels(self._workbench, unit, them, self.sync)
        else:
            self._launched += them
        if kernels and base.host is not None:
            lengths = taken_as_lengths(base.host.parameters, kernels)
            base = replace(base, host=replace(base.host, parameters=lengths))
        terminals = list(reach.terminals)
        if launches or any(not is_allocation(t) for t in terminals):
            # An allocation is no end of a path that goes on; ownership lists it.
            terminals = [t for t in terminals if not is_allocation(t)]
        if base.host is not None and not terminals and others_streams(body, launches):
            # The streams that it asks for are not those of its launches: it waits for them, or records events.
            unused = tuple(replace(fact, unused=True) for fact in base.host.streams)
            base = replace(base, host=replace(base.host, streams=unused))
        if not launches and not terminals and not reach.gaps and base.host is not None:
            if not reach.unfollowed:
                terminals.append(Terminal("host", base.host.name, base.host.file, base.host.line))
        found = replace(
            base,
            dispatch=dispatch,
            launches=tuple(launches),
            kernels=kernels,
            terminals=tuple(placed(way, entered, terminals)),
        )
        if found.host is None:
            return found
        return replace(found, host=replace(found.host, named=told_names(body, found, way.known)))

    def launches_of(self, reach: Reach) -> list[Launch]:
        """The launches of anything that was followed."""
        return [launch for site in reach.launches for launch in self._launches(site, reach)]

    def asked_of(self, reach: Reach) -> list[Launch]:
        """The kernels that are named without being launched, as if they were launched there."""
        return [launch for site in reach.asked for launch in self._launches(site, reach)]

    def _launches(self, site: LaunchSite, reach: Reach) -> list[Launch]:
        """One launch a kernel that the site can mean, with the instances that all its copies compile."""
        used = Span(site.used_at[0], site.used_at[1], site.used_at[1]) if site.used_at else None
        by_kernel: dict[tuple[str, int], list[KernelRef]] = {}
        for reference in site.kernels:
            by_kernel.setdefault((reference.path, reference.function.offset), []).append(reference)
        out = []
        for references in by_kernel.values():
            first = references[0]
            conditions = self._workbench.index.declared(first.path).conditions
            instances = tuple(sorted({text for reference in references for text in reference.instances}))
            out.append(
                Launch(
                    kernel=first.name,
                    file=site.place[0],
                    line=site.place[1],
                    style=site.style,
                    grid=site.grid,
                    block=site.block,
                    shared=site.shared,
                    stream=site.stream,
                    # Of several kernels that a variable holds, each has arguments of its own.
                    template_arguments=(site.spelt and site.template_arguments) or first.template_arguments,
                    instances=instances,
                    complete=all(r.incomplete is None and r.certain for r in references),
                    why_incomplete=next((r.incomplete for r in references if r.incomplete), None),
                    kernel_at=Span(first.path, first.function.line, first.function.end_line),
                    path=site.steps,
                    certainty=site.certainty,
                    used_at=used,
                    macros=site.macros,
                    condition=shown_condition(conditions[first.function.condition]),
                    under=tuple(UnderFact(text, line) for text, line in site.under),
                    axes=axes_of(first.function.template, references),
                    unreachable=unreachable(references, reach),
                )
            )
        return out

    def _dispatch(self, unit: Unit, reach: Reach, body: Body, root: str, entered: Entered) -> tuple[Dispatch, ...]:
        """Dispatch macros of the host function and of every function that lies on the way to a launch."""
        on_way = {step.function for site in reach.launches for step in site.steps}
        out: dict[Dispatch, None] = dict.fromkeys(dispatches(body))
        for path, function, _ in reach.functions:
            if function.qualified_name in on_way and (path, function.body_start) != (
                body.path,
                getattr(body.function, "body_start", -1),
            ):
                candidate = Candidate(path, function)
                inner = unit.bodies.of(candidate, unit_of(self._workbench.index, candidate, root))
                for found in dispatches(inner):
                    under = tuple(dict.fromkeys((*entered.of(path, function), *found.under)))
                    out[replace(found, under=under)] = None
        return tuple(out)


def joined_ownership(left: Ownership, right: Ownership) -> Ownership:
    """What two walks hold together, each thing once."""
    joined = {
        name: tuple(dict.fromkeys((*getattr(left, name), *getattr(right, name))))
        for name in Ownership.__struct_fields__
    }
    # What one of the two enters does not lie beside the walk.
    entered = {(one.file, one.line) for one in joined["resources"]}
    beside = tuple(one for one in joined["beside"] if (one.file, one.line) not in entered)
    return Ownership(**{**joined, "beside": beside})


def _gaps(reach: Reach, name: str | None, common: Mapping[str, object]) -> list[Gap]:
    """The gaps of a reach; where nothing at all was found, the calls that could not be followed are one. It says of
    which implementation: there may be others that are followed to their launches."""
    gaps = list(reach.gaps)
    if reach.unfollowed and not gaps and not reach.launches and not any(not is_allocation(t) for t in reach.terminals):
        shown = ", ".join(f"`{name}`" for name, _, _ in reach.unfollowed[:_NAMED])
        more = f" and {len(reach.unfollowed) - _NAMED} more" if len(reach.unfollowed) > _NAMED else ""
        _, path, line = reach.unfollowed[0]
        behind = f" behind `{name}`" if name and name != "lambda" else ""
        of = f" for {common['key']}" if common.get("key") else ""
        text = f"no device work was found{behind}{of}; not followed, as no body was found for it: {shown}{more}"
        gaps.append(Gap("unfollowed", Span(path, line, line), text))
    return gaps


def is_template(unit: Unit, host: Candidate) -> bool:
    """Whether a host function, or the class that it is a member of, has template parameters."""
    return bool(host.function.template) or unit.homes.in_template(host)
