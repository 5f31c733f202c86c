"""Launches that read alike, told once: the same kernel at the same place with other template arguments.

In: the launches of an implementation. Out: groups, in source order; the switch that a macro makes of one launch is one
group of many uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opwalker.model.walk import Launch, Span


@dataclass(frozen=True, slots=True)
class LaunchGroup:
    """Launches of one kernel, in the same text: ``first`` speaks for all of what they share."""

    first: Launch
    launches: tuple[Launch, ...]

    @property
    def instances(self) -> tuple[str, ...]:
        """The template arguments of all of them."""
        return tuple(dict.fromkeys(one for launch in self.launches for one in launch.instances))

    @property
    def complete(self) -> bool:
        """Whether the instances of all of them are known."""
        return all(launch.complete for launch in self.launches)

    @property
    def why_incomplete(self) -> str | None:
        """The first reason why not."""
        return next((launch.why_incomplete for launch in self.launches if launch.why_incomplete), None)

    @property
    def places(self) -> tuple[Span, ...]:
        """Where the text stands, and where its macro is used."""
        own = dict.fromkeys(Span(one.file, one.line, one.line) for one in self.launches)
        used = dict.fromkeys(one.used_at for one in self.launches if one.used_at)
        return (*own, *used)


def launch_groups(launches: Iterable[Launch]) -> tuple[LaunchGroup, ...]:
    """The launches by what a reader would call one launch."""
    groups: dict[tuple[object, ...], list[Launch]] = {}
    for launch in launches:
        key = (launch.kernel, launch.kernel_at, launch.style, launch.grid, launch.block, launch.shared, launch.stream)
        place = launch.macros[-1:] or (launch.file, launch.line)
        groups.setdefault((*key, place), []).append(launch)
    return tuple(LaunchGroup(found[0], tuple(found)) for found in groups.values())
