"""What following an entry point finds: launches, ends that are no kernel, functions on the way, and gaps."""

from __future__ import annotations

from dataclasses import dataclass

from opwalker.model.cpp import Function
from opwalker.model.walk import Gap, PathStep, Terminal

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class KernelRef:
    """A kernel that an expression can mean: where it is defined, and its template arguments as written there.

    ``certain`` is false where a part of the source that decides is missing. ``instances`` are the argument lists that
    this mention compiles, ``incomplete`` the reason why there may be more.
    """

    path: str
    function: Function
    template_arguments: tuple[str, ...]
    certain: bool = True
    instances: tuple[str, ...] = ()
    incomplete: str | None = None

    @property
    def name(self) -> str:
        """The kernel's qualified name."""
        return self.function.qualified_name


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """One launch in the source. ``place`` is where its text stands; ``used_at`` the use of the outermost macro around
    it, None when there is none. ``expression`` is the kernel as written; ``kernels`` what it can mean."""

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


@dataclass(frozen=True, slots=True)
class Reach:
    """Everything that one entry point reaches, in the order in which it is read."""

    launches: tuple[LaunchSite, ...]
    terminals: tuple[Terminal, ...]
    functions: tuple[tuple[str, Function, tuple[PathStep, ...]], ...]
    gaps: tuple[Gap, ...]
    truncated: bool = False
    #: Calls whose functions could not be found, outside what is known to do no device work: ``(name, path, line)``.
    unfollowed: tuple[tuple[str, str, int], ...] = ()
