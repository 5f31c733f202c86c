"""How a launch is reached: dispatch, the steps to it, and the launch itself."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.axis import Axis
from opwalker.model.places import Span


class DispatchAxis(Struct, frozen=True):
    """One value that a dispatch tests, in the order of the tests: ``on`` what, for ``tests`` which values
    (``"otherwise"`` for what is left), and the names that it alone ``binds``."""

    on: str
    tests: tuple[str, ...]
    binds: tuple[str, ...] = ()


class DispatchRow(Struct, frozen=True):
    """One branch of a dispatch: the conditions that lead to it, in words, and what it binds (``values``, in the order
    of ``Dispatch.binds``) or calls."""

    under: tuple[str, ...]
    values: tuple[str, ...]
    line: int = 0


class DispatchFailure(Struct, frozen=True):
    """The branch of a dispatch that raises: what would have led to another one, in words, and its message."""

    words: str | None
    message: str | None
    kind: str
    file: str
    line: int


class Branching(Struct, frozen=True):
    """A ``switch`` or chain of ``if`` that a function itself writes on the way to its launches, and that leads to
    different calls. ``rows`` say which branch calls what; ``fails`` is the branch that raises; ``under`` are the
    conditions under which the choice is made at all."""

    kind: str
    function: str
    on: str
    file: str
    line: int
    rows: tuple[DispatchRow, ...] = ()
    fails: tuple[DispatchFailure, ...] = ()
    under: tuple[str, ...] = ()


class Dispatch(Struct, frozen=True):
    """A dispatch macro in use: where, on which run-time value, what name each branch binds and to which values.
    ``axes``, ``rows`` and ``fails`` tell the branches apart; ``on_value`` is what a local ``on`` holds; ``under`` are
    the conditions under which it is used."""

    macro: str
    file: str
    line: int
    on: str | None
    binds: str | None
    values: tuple[str, ...] = ()
    defined_at: Span | None = None
    axes: tuple[DispatchAxis, ...] = ()
    rows: tuple[DispatchRow, ...] = ()
    fails: tuple[DispatchFailure, ...] = ()
    on_value: str | None = None
    under: tuple[str, ...] = ()


class PathStep(Struct, frozen=True):
    """A function on the way from the host function to a launch; ``line`` is where the next step is called."""

    function: str
    file: str
    line: int


class UnderFact(Struct, frozen=True):
    """A run-time condition of the host function that a launch stands under (``"n > 0"``, ``"case 2"``)."""

    condition: str
    line: int


class CaseFact(Struct, frozen=True):
    """One of several values that something can have: ``under`` which conditions, in words; none for what is left."""

    under: tuple[str, ...]
    value: str


class NamedValue(Struct, frozen=True):
    """A name in a resolved expression, and what it holds (``num_tokens``: ``slot_mapping.size(0)``). Where that depends
    on conditions, ``cases`` list them in order: the first one that holds counts. ``filled`` where ``value`` is a call
    that is given the name's address, to fill it."""

    name: str
    value: str
    cases: tuple[CaseFact, ...] = ()
    filled: bool = False


class LaunchAttribute(Struct, frozen=True):
    """An attribute of a launch: its identifier, its value as written, the line, and the conditions it stands under."""

    id: str
    value: str | None
    line: int
    under: tuple[str, ...] = ()


class Unreachable(Struct, frozen=True):
    """An instance that is compiled and that the host never launches here: what leads to it is never so. ``line`` is
    that of the condition which is never met, in ``file``."""

    instance: str
    reason: str
    line: int
    file: str


class Launch(Struct, frozen=True):
    """A kernel launch. ``file``/``line`` are where its text stands (in a macro body: there); ``used_at`` where the
    outermost macro that holds it is used; ``macros`` the macros between, outermost first; ``under`` the conditions that
    the launching function itself tests before it, outermost first; ``axes`` why its instances are what they are,
    ``unreachable`` those of them that can never run.

    ``grid_resolved``, ``block_resolved`` and ``shared_resolved`` are those expressions with their names followed back
    to sizes, parameters and constants (components that are 1 at the end left out); ``names`` says what the names that
    are left hold; integer casts are not shown. Where an extent depends on conditions, its ``…_cases`` list them in
    order: the first one that holds counts. ``shared_opt_in`` are calls that set an attribute of the kernel, as for more
    dynamic shared memory. ``conditions`` are ``under`` in words, with those that a macro tests which is no dispatch.
    ``loops`` are the heads of the loops of the launching function that it stands in, outermost first; ``compiled`` is
    the preprocessor condition of the launch and of the calls that lead to it, but for what the kind of build meets.
    ``stream_resolved`` is what callers pass where the stream is a parameter of the launching function.
    """

    kernel: str
    file: str
    line: int
    style: str
    grid: str | None = None
    block: str | None = None
    shared: str | None = None
    stream: str | None = None
    template_arguments: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    complete: bool = False
    path: tuple[PathStep, ...] = ()
    certainty: str = "matched"
    used_at: Span | None = None
    macros: tuple[str, ...] = ()
    condition: str | None = None
    under: tuple[UnderFact, ...] = ()
    why_incomplete: str | None = None
    kernel_at: Span | None = None
    axes: tuple[Axis, ...] = ()
    grid_resolved: str | None = None
    block_resolved: str | None = None
    shared_resolved: str | None = None
    grid_cases: tuple[CaseFact, ...] = ()
    block_cases: tuple[CaseFact, ...] = ()
    shared_cases: tuple[CaseFact, ...] = ()
    names: tuple[NamedValue, ...] = ()
    shared_opt_in: tuple[LaunchAttribute, ...] = ()
    attributes: tuple[LaunchAttribute, ...] = ()
    unreachable: tuple[Unreachable, ...] = ()
    cooperative: bool = False
    conditions: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    compiled: str | None = None
    stream_resolved: str | None = None

    @property
    def never_runs(self) -> bool:
        """Whether all instances are known, and none of them ever runs; a kernel that is no template has one."""
        never = {one.instance for one in self.unreachable}
        known = self.complete or self.instances == ("",)
        return bool(self.instances) and known and never.issuperset(self.instances)
