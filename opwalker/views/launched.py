"""What a build compiles of kernels, found piece by piece: by each op, by each explicit instantiation, by each function
that no op reaches.

In: a workbench, and ops. Out: ``Launched`` values, which ``views/kernels.py`` joins by kernel. No piece depends on
another, so ``Shared`` may have several processes answer them; whether it does changes nothing of what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from opwalker.expand.explicit import Explicit, explicit_instantiations
from opwalker.expand.workbench import Workbench
from opwalker.model.reach import Reach
from opwalker.model.walk import Launch, Op, SourceInfo
from opwalker.views.compiled import Compiled
from opwalker.views.walk import WalkView

#: ``shared(names, answer, type of an answer, kin)``: the answer for the number of every name, in order; names that are
#: of one ``kin`` share much of what is read for them.
Shared = Callable[[Sequence[str], Callable[[int], Any], Any, Sequence[str]], list[Any]]
#: A function, by its file and where it begins.
Place = tuple[str, int]


def one_by_one(names: Sequence[str], answer: Callable[[int], Any], kind: Any, kin: Sequence[str]) -> list[Any]:
    """A ``Shared`` of one process."""
    return [answer(number) for number in range(len(names))]


class Launched(Struct, frozen=True):
    """``launches`` in the order found, and the functions that were entered on the way to them; ``asked`` are kernels
    that are named without being launched, which compiles them, as if launched there."""

    launches: tuple[Launch, ...] = ()
    entered: tuple[Place, ...] = ()
    asked: tuple[Launch, ...] = ()


class LaunchFinder:
    """Follows what compiles kernels in one tree."""

    def __init__(self, workbench: Workbench, source: SourceInfo, shared: Shared = one_by_one) -> None:
        self._workbench = workbench
        self._source = source
        self._shared = shared
        self._view = WalkView(workbench, source, kernels=False, hosts=False)

    def by_ops(self, ops: Sequence[Op]) -> list[tuple[Op, Launched]]:
        """What the implementations of each op launch that the build has; ops without any are left out."""
        # What a name means may depend on them: entered now, what the ops lead to is not read once more for the rest.
        self._workbench.add_instantiations()
        bound = {b.name: b.path for b in reversed(self._workbench.bindings().bindings) if b.role == "impl"}
        chosen = [op for op in ops if op.name in bound]
        names = [op.name for op in chosen]
        files = [bound[name] for name in names]
        found = self._shared(names, lambda number: self._by_op(chosen[number]), Launched, files)
        return list(zip(chosen, found, strict=True))

    def _by_op(self, op: Op) -> Launched:
        view = WalkView(self._workbench, self._source, kernels=False, hosts=False)
        build = self._workbench.build
        native = view.native(op, build=build)
        launches = [
            launch
            for implementation in native.implementations
            if implementation.builds is None or build in implementation.builds
            for launch in implementation.launches
        ]
        return Launched(tuple(launches), tuple(sorted(view.entered)), tuple(view.asked))

    def by_instantiations(self, compiled: Compiled) -> Iterator[tuple[Explicit, Launched]]:
        """What each explicit instantiation compiles; of one that names a kernel, no more than that it is there."""
        workbench = self._workbench
        workbench.add_instantiations()
        with_kernels = frozenset(workbench.index.paths_with("kernel"))
        unit = workbench.unit()
        found: list[Explicit] = []
        hosts: list[Explicit] = []
        for made in explicit_instantiations(workbench.index, unit.resolver, unit.tools):
            where = made.origin.path if made.origin is not None else made.candidate.path
            if compiled.is_left_out(where):
                continue
            if "global" not in made.candidate.function.flags:
                # A library of vectors instantiates thousands of functions that have no kernel in sight.
                near = workbench.index.closure(where)
                if with_kernels.isdisjoint(near) and not compiled.may_name_kernels(made.candidate):
                    continue
                hosts.append(made)
            found.append(made)

        def follow(number: int) -> Launched:
            made = hosts[number]
            follower = workbench.unit().follower()
            return self._of(follower.follow_bound(made.candidate, made.bound, made.reason, made.origins, made.owner))

        names = [made.candidate.function.qualified_name for made in hosts]
        followed = iter(self._shared(names, follow, Launched, [made.candidate.path for made in hosts]))
        for made in found:
            yield made, Launched() if "global" in made.candidate.function.flags else next(followed)

    def by_functions(self, compiled: Compiled, entered: set[Place]) -> Iterator[Launched]:
        """What functions compile that no op reaches. ``entered`` are those that were entered so far; it grows."""
        unit = self._workbench.unit()
        functions = list(compiled.functions())
        # Each process knows what it has entered itself; of what another one has, it may follow some for nothing.
        known = set(entered)

        def follow(number: int) -> Launched | None:
            candidate, root, again = functions[number]
            if candidate.key in known and not again:
                return None
            found = self._of(unit.follower().follow(candidate, root))
            known.update(found.entered)
            return found

        names = [candidate.function.qualified_name for candidate, *_ in functions]
        files = [candidate.path for candidate, *_ in functions]
        for (candidate, root, again), found in zip(
            functions, self._shared(names, follow, Launched | None, files), strict=True
        ):
            if candidate.key in entered and not again:
                continue
            # What entered it where it was left out has itself been left out here.
            taken = found or self._of(unit.follower().follow(candidate, root))
            entered.update(taken.entered)
            yield taken

    def by_variables(self, compiled: Compiled) -> Iterable[Launched]:
        """What the initialisers of variables compile outside of functions."""
        named = list(compiled.variables())

        def follow(number: int) -> Launched:
            candidate, root, context, owner, written = named[number]
            return self._of(self._workbench.unit().follower().follow_named(candidate, root, context, owner, written))

        names = [candidate.function.qualified_name for candidate, *_ in named]
        return self._shared(names, follow, Launched, [candidate.path for candidate, *_ in named])

    def _of(self, reach: Reach) -> Launched:
        entered = {(path, function.offset) for path, function, _ in reach.functions}
        launches, asked = self._view.launches_of(reach), self._view.asked_of(reach)
        return Launched(tuple(launches), tuple(sorted(entered)), tuple(asked))
