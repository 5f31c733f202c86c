"""An op's registrations, taken apart into what stands at the registration and what is followed from there.

In: a binding and the definitions that its function can mean. Out: ``Registered``, which says all that following it
depends on besides files of C++, and nothing of where the registration stands; and ``Followed``, what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from opwalker.expand.resolve import Candidate
from opwalker.expand.workbench import Workbench
from opwalker.link.store_rows import value_digest
from opwalker.model.binding import Binding
from opwalker.model.walk import FlagStruct, Gap, Implementation, Ownership, ShapeSource, SyncPoint


class Registered(Struct, frozen=True):
    """A registration to follow: in which build, and to which definitions, by path and offset; none for a lambda."""

    binding: Binding
    build: str
    hosts: tuple[tuple[str, int], ...] = ()

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
    """What became of registrations: the outcomes of each, and where the threads of all of them wait."""

    outcomes: tuple[tuple[Outcome, ...], ...]
    synchronisation: tuple[SyncPoint, ...] = ()
    flags: tuple[FlagStruct, ...] = ()


def registered(binding: Binding, build: str, hosts: Sequence[Candidate] = ()) -> Registered:
    """A registration, wherever it stands."""
    places = tuple((host.path, host.function.offset) for host in hosts)
    return Registered(replace(binding, line=0, condition=()), build, places)


def hosts_of_registered(workbench: Workbench, one: Registered) -> list[Candidate]:
    """The definitions that a registration means, in a tree that is as it was when they were found."""
    found = []
    for path, offset in one.hosts:
        facts = workbench.index.facts(path)
        found += [Candidate(path, f) for f in (facts.functions if facts else ()) if f.offset == offset]
    return found


def question(them: Sequence[Registered], names: Sequence[str], wrapper: Mapping[str, ShapeSource]) -> str:
    """What following some registrations depends on besides files: the key of the answer."""
    return f"followed:{value_digest((tuple(them), tuple(names), dict(wrapper)))}"
