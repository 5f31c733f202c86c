"""What following an entry point finds: launches, ends that are no kernel, functions on the way, and gaps."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.body import Span2
from opwalker.model.cpp import Function
from opwalker.model.walk import Gap, PathStep, Terminal

Place = tuple[str, int]
#: Why the name of an instance cannot be told whole: one of its arguments is a function of its own unit alone, or stands
#: in a library of headers whose namespace carries its version.
HASHED = "is static: a build writes a hash of its own before its name"
VERSIONED = "stands in a namespace that a build names after its version of CUB"


class Origin(Struct, frozen=True):
    """Where the value of a template argument comes from.

    ``kind``: ``macro`` (``text`` names the macro, at its use; ``case`` is its branch), ``switch`` (``text`` is what it
    tests, ``case`` the label), ``branch`` (``text`` is written under the condition ``case``), ``argument`` (written as
    an argument), ``local`` (a constant or alias of the function), ``deduced`` (from the type of the argument ``text``),
    ``default`` (of the parameter), ``computed`` (``text`` is worked out from other arguments), ``instantiation``
    (written in an explicit instantiation). ``parts`` are the names in a computed ``text``: each with its value there,
    as printed, and where that comes from.
    """

    kind: str
    text: str
    path: str
    line: int
    case: str | None = None
    parts: tuple[tuple[str, str, Origin], ...] = ()


class Never(Struct, frozen=True):
    """Why the host never launches an instance, and where the condition stands that is never met.

    ``relies`` are numbers of functions on the way for which it counts who calls them.
    """

    reason: str
    path: str
    line: int
    relies: frozenset[int] = frozenset()


class KernelRef(Struct, frozen=True, eq=False):
    """A kernel that an expression can mean: where it is defined, and its template arguments as written there.

    ``certain`` is false where a part of the source that decides is missing. ``instances`` are the argument lists that
    this mention compiles, ``incomplete`` the reason why there may be more; ``origins`` say where values come from:
    the parameter's number, the value as printed, its origin; ``never`` those of ``instances`` that are never launched
    from here.
    """

    path: str
    function: Function
    template_arguments: tuple[str, ...]
    certain: bool = True
    instances: tuple[str, ...] = ()
    incomplete: str | None = None
    origins: tuple[tuple[int, str, Origin], ...] = ()
    never: tuple[tuple[str, Never], ...] = ()

    def __eq__(self, other: object) -> bool:
        # Where the values come from does not tell two references apart.
        return isinstance(other, KernelRef) and all(getattr(self, name) == getattr(other, name) for name in _TELLING)

    def __hash__(self) -> int:
        # What tells references apart in practice: hashing all of a function's facts costs more than comparing them.
        return hash((self.path, self.function.offset, self.template_arguments, self.instances))

    @property
    def name(self) -> str:
        """The kernel's qualified name."""
        return self.function.qualified_name


_TELLING = tuple(name for name in KernelRef.__struct_fields__ if name != "origins")


class LaunchSite(Struct, frozen=True):
    """One launch in the source. ``place`` is where its text stands; ``used_at`` the use of the outermost macro around
    it, None when there is none. ``expression`` is the kernel as written; ``kernels`` what it can mean. ``extents`` are
    where grid, block, shared memory and stream stand in the expanded body that launches, each with its components,
    ``passed`` the kernel's arguments; ``at`` is the offset of the kernel's name there, ``copies`` are those of other
    copies of the text that a macro's branches make. ``template_arguments`` are those of the kernel, ``spelt`` with the
    parameters of the macro whose body they stand in."""

    kernels: tuple[KernelRef, ...]
    expression: str
    place: Place
    style: str
    grid: str | None
    block: str | None
    shared: str | None
    stream: str | None
    steps: tuple[PathStep, ...]
    certainty: str
    used_at: Place | None
    macros: tuple[str, ...]
    template_arguments: tuple[str, ...] = ()
    under: tuple[tuple[str, int], ...] = ()
    extents: tuple[tuple[Span2, ...], ...] = ()
    at: int = 0
    passed: tuple[Span2, ...] = ()
    copies: tuple[int, ...] = ()
    spelt: tuple[str, ...] = ()


class Reach(Struct, frozen=True):
    """Everything that one entry point reaches, in the order in which it is read."""

    launches: tuple[LaunchSite, ...]
    terminals: tuple[Terminal, ...]
    functions: tuple[tuple[str, Function, tuple[PathStep, ...]], ...]
    gaps: tuple[Gap, ...]
    truncated: bool = False
    #: Calls whose functions could not be found, outside what is known to do no device work: ``(name, path, line)``.
    unfollowed: tuple[tuple[str, str, int], ...] = ()
    #: Numbers of functions that were met again by another way than the one that they were entered by.
    again: frozenset[int] = frozenset()
    #: Kernels that are named without being launched, which compiles them, as if they were launched there.
    asked: tuple[LaunchSite, ...] = ()
