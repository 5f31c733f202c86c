"""An op's registrations, taken apart into what stands at the registration and what is followed from there.

In: a binding and the definitions that its function can mean. Out: ``Registered``, which says all that following it
depends on besides files of C++, and nothing of where the registration stands; and ``Followed``, what became of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Workbench
from opwalker.model.binding import Binding
from opwalker.model.cpp import Function
from opwalker.model.walk import FlagStruct, Gap, Implementation, Ownership, Span, SyncPoint


class Registered(Struct, frozen=True):
    """A registration to follow: in which build, and to which definitions, by path, name and number among those of the
    name in the file; none for a lambda."""

    binding: Binding
    build: str
    hosts: tuple[tuple[str, str, int], ...] = ()

    @property
    def is_lambda(self) -> bool:
        """Whether the function stands in the registration itself."""
        return self.binding.function is not None and self.binding.function.lambda_span is not None


class Outcome(Struct, frozen=True):
    """What became of one definition."""

    implementation: Implementation
    gaps: tuple[Gap, ...]
    ownership: Ownership


class Followed(Struct, frozen=True):
    """What became of registrations: the outcomes of each, and where the threads of all of them wait: on the host,
    then in kernels. ``entered`` are the host functions that were looked at for it, by file and line; ``kernels`` says
    that kernels were."""

    outcomes: tuple[tuple[Outcome, ...], ...]
    host_points: tuple[SyncPoint, ...] = ()
    kernel_points: tuple[SyncPoint, ...] = ()
    flags: tuple[FlagStruct, ...] = ()
    entered: tuple[Span, ...] = ()
    kernels: bool = False

    @property
    def synchronisation(self) -> tuple[SyncPoint, ...]:
        """All points, each once."""
        return tuple(dict.fromkeys((*self.host_points, *self.kernel_points)))


def registered(workbench: Workbench, binding: Binding, build: str, hosts: Sequence[Candidate] = ()) -> Registered:
    """A registration, wherever it stands."""
    places = tuple(_place(workbench, host) for host in hosts)
    return Registered(replace(binding, line=0, condition=()), build, places)


def _place(workbench: Workbench, host: Candidate) -> tuple[str, str, int]:
    """A definition, wherever it stands in its file."""
    named = of_file(workbench, host.path, host.function.name)
    return host.path, host.function.name, named.index(host.function)


def of_file(workbench: Workbench, path: str, name: str) -> list[Function]:
    """The functions of a name in a file, in order."""
    return [function for other, function in workbench.index.functions(name) if other == path]


def hosts_of_registered(workbench: Workbench, one: Registered) -> list[Candidate]:
    """The definitions that a registration means, in a tree that is as it was when they were found."""
    found = []
    for path, name, number in one.hosts:
        found.append(Candidate(path, of_file(workbench, path, name)[number]))
    return found
