"""Calls followed from a host function to every launch it can reach.

In: a definition and the unit it is compiled in. Out: ``Reach``. Control flow is not judged: what stands in any branch
counts. Function pointers are followed through variables, arguments, returns and tables (``expand/kernels.py``); a name
that several definitions fit is followed into each and marked ``possible``.
"""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from opwalker.expand.bodies import Bodies, Body
from opwalker.expand.body_moves import MoveReader
from opwalker.expand.environment import Environment, Tools
from opwalker.expand.fitting import Fitter
from opwalker.expand.found import Found
from opwalker.expand.frames import Frame
from opwalker.expand.instances import Judge
from opwalker.expand.leading import Leading
from opwalker.expand.moves import Asked, Entry, Lost, Move, Stored, passed_on
from opwalker.expand.registries import Registries
from opwalker.expand.resolve import Candidate, Context, Resolver
from opwalker.link.index import Index
from opwalker.model.reach import LaunchSite, Reach
from opwalker.model.walk import PathStep, Terminal

#: Functions that one walk enters, and how deep calls nest, before the rest is reported as not followed.
MAX_FUNCTIONS = 20000
MAX_DEPTH = 1024
#: Calls that are followed one inside the other; deeper ones wait, because each takes some of Python's own stack.
AT_ONCE = 48
TOO_MUCH = f"more than {MAX_FUNCTIONS:,} functions or {MAX_DEPTH:,} calls deep: the rest is not followed"
#: Sets of template constants that one function is entered with; beyond, its branches are not told apart.
MAX_VARIANTS = 3000


#: Functions whose moves are kept for the walks that follow.
MAX_KEPT = 30_000

#: A function to enter, the steps to it, and how deep in calls it is.
_Way = tuple[Frame, tuple[PathStep, ...], int]


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
        self._bodies = bodies
        self._tools = tools
        self._judges = judge is not None
        self._registries = registries or Registries(index, resolver, bodies)
        leading = leading or Leading(index, bodies.files)
        self._reader = MoveReader(index, resolver, bodies, tools, judge, leading, self._registries)
        self._variants: dict[tuple[str, int], int] = {}
        self._found = Found()
        self._visited: dict[tuple, int] = {}
        self._again: set[int] = set()
        self._later: deque[_Way] = deque()
        self._begin = ""

    def follow(self, candidate: Candidate, root: str) -> Reach:
        """Everything that a function reaches, in the unit that begins at ``root``."""
        return self._from(Frame(candidate, root, ()))

    def follow_named(
        self, candidate: Candidate, root: str, context: Context, owner: str | None, template: str | None
    ) -> Reach:
        """As ``follow``, for a function that is named in a context, with template arguments or as a member of the class
        ``owner`` that has some."""
        fit = Fitter(self._tools).registered(candidate, Environment(self._tools, context), owner, template)
        return self._from(Frame(candidate, root, (), bound=fit.bound, unbound=fit.why, owner=fit.owner))

    def follow_bound(
        self, candidate: Candidate, bound: dict, why: str | None, origins: dict, owner: str | None = None
    ) -> Reach:
        """A function template with its parameters bound, such as an explicit instantiation of it; ``owner`` is the
        class that a member is instantiated for."""
        path = candidate.path
        return self._from(Frame(candidate, path, (), bound=bound, unbound=why, origins=origins, owner=owner))

    def follow_body(self, body: Body, name: str) -> Reach:
        """The same for a lambda that is registered in place."""
        frame = Frame(None, body.root, (), name=name)
        self._begin = body.path
        self._play(frame, self._reader.of(frame, body), (), 0)
        return self._result()

    def _from(self, frame: Frame) -> Reach:
        self._begin = frame.candidate.path
        self._enter(frame, (), 0)
        return self._result()

    def _result(self) -> Reach:
        while self._later:
            self._visit(*self._later.popleft())
        return self._found.result(frozenset(self._again))

    def _enter(self, frame: Frame, steps: tuple[PathStep, ...], depth: int) -> None:
        if self._was_here(frame):
            return
        if len(self._visited) >= MAX_FUNCTIONS or depth > MAX_DEPTH:
            self._found.cut(TOO_MUCH)
        elif depth and depth % AT_ONCE == 0:
            self._later.append((frame, steps, depth))
        else:
            self._visit(frame, steps, depth)

    def _was_here(self, frame: Frame) -> bool:
        """Whether a function has been entered in this way; then it is noted that there is another call of it."""
        number = self._visited.get(frame.key, 0)
        self._again.add(number)
        return number > 0

    def _visit(self, frame: Frame, steps: tuple[PathStep, ...], depth: int) -> None:
        if self._was_here(frame):
            return
        number = self._visited[frame.key] = len(self._visited) + 1
        self._found.entered(frame.candidate, steps)
        if self._judges:
            frame = replace(frame, number=number)
            moves = self._reader.of(frame, self._bodies.of(frame.candidate, frame.root))
        else:
            moves = self._kept_moves(frame)
        self._play(frame, moves, steps, depth)

    def _kept_moves(self, frame: Frame) -> tuple[Move, ...]:
        """What a function leads to does not depend on the way to it: it is read once for all walks of a tree."""
        known = self._bodies.moves
        moves = known.get(frame.whole)
        if moves is None:
            if len(known) >= MAX_KEPT:
                known.clear()
            # A copy of the frame, since what is worked out for a frame stays with it.
            moves = known[frame.whole] = self._reader.of(replace(frame), self._bodies.of(frame.candidate, frame.root))
        return moves

    def _play(self, frame: Frame, moves: tuple[Move, ...], steps: tuple[PathStep, ...], depth: int) -> None:
        """Takes what was read of a function: what is found there is found by these steps, what is called is entered."""
        for move in moves:
            if isinstance(move, Entry):
                self._go(frame, move, steps, depth)
            elif isinstance(move, Lost):
                self._found.lost(move.name, move.place)
            elif isinstance(move, LaunchSite):
                self._found.site(replace(move, steps=(*steps, *move.steps)))
            elif isinstance(move, Asked):
                self._found.asked(replace(move.site, steps=(*steps, *move.site.steps)))
            elif isinstance(move, Terminal):
                self._found.terminal(move, steps)
            elif isinstance(move, Stored):
                for candidate in self._registries.stored(move.text, self._begin):
                    self._go(frame, passed_on(self._index, candidate, move.frame, move.by), steps, depth)
            else:
                self._found.gap(move)

    def _go(self, frame: Frame, move: Entry, steps: tuple[PathStep, ...], depth: int) -> None:
        """Enters a function from another one."""
        made = move.frame
        if move.counted:
            key = made.candidate.key
            count = self._variants[key] = self._variants.get(key, 0) + 1
            if count > MAX_VARIANTS:
                why = f"more than {MAX_VARIANTS} instances of {made.candidate.function.name}"
                made = replace(made, bound=dict.fromkeys(made.bound), unbound=why)
        if self._was_here(made):
            return
        if move.caller is not None:
            made = replace(made, caller=(frame, *move.caller))
        # A recursion over template arguments is one step for a reader.
        further = steps if move.called and steps[-1:] == (move.by,) else (*steps, move.by)
        self._enter(made, further if move.through is None else (*further, move.through), depth + 1)
