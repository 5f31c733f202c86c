"""Launches that read alike, told once: the same kernel with the same configuration and other template arguments.

In: the launches of an implementation. Out: groups, in source order.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from opwalker.model.walk import Launch, Span


class LaunchGroup(Struct, frozen=True):
    """Launches of one kernel with one configuration: ``first`` speaks for all of what they share."""

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
        extents = (
            launch.grid_resolved or launch.grid,
            launch.block_resolved or launch.block,
            launch.shared_resolved or launch.shared,
        )
        cases = (launch.grid_cases, launch.block_cases, launch.shared_cases, launch.names)
        set_besides = (launch.shared_opt_in, launch.attributes, launch.cooperative, launch.stream, launch.condition)
        set_besides = (*set_besides, launch.stream_resolved, launch.compiled)
        way = tuple(step.function for step in launch.path)
        key = (launch.kernel, launch.kernel_at, launch.style, extents, cases, set_besides, way, launch.macros)
        groups.setdefault(key, []).append(launch)
    return tuple(LaunchGroup(found[0], tuple(found)) for found in groups.values())
