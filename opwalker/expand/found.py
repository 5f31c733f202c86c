"""What following an entry point has found so far: launches, ends, functions, gaps, each once.

In: finds, in the order in which they are met. Out: ``Reach``.
"""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.expand.resolve import Candidate
from opwalker.model.reach import KernelRef, LaunchSite, Reach
from opwalker.model.walk import Gap, PathStep, Terminal


class Found:
    """Collects one walk's finds."""

    def __init__(self) -> None:
        self._launches: dict[tuple, LaunchSite] = {}
        self._kernels: dict[tuple, dict[KernelRef, None]] = {}
        self._terminals: dict[tuple, Terminal] = {}
        self._functions: dict[tuple[str, int], tuple] = {}
        self._gaps: dict[Gap, None] = {}
        self._unfollowed: dict[str, tuple[str, int]] = {}
        self._asked: dict[KernelRef, LaunchSite] = {}
        self._cut: str | None = None

    def result(self, again: frozenset[int]) -> Reach:
        """Everything that was found; ``again`` are the numbers of functions that more than one call enters."""
        launches = tuple(replace(site, kernels=tuple(self._kernels[k])) for k, site in self._launches.items())
        if self._cut is not None:
            launches = tuple(replace(site, kernels=_not_whole(site.kernels, self._cut)) for site in launches)
        return Reach(
            launches,
            tuple(self._terminals.values()),
            tuple(self._functions.values()),
            tuple(self._gaps),
            self._cut is not None,
            tuple((name, *place) for name, place in self._unfollowed.items()),
            again,
            tuple(dict.fromkeys(self._asked.values())),
        )

    def cut(self, why: str) -> None:
        """The walk stops at one of its bounds: no set of instances is whole."""
        self._cut = why
        self.gap(Gap("limit", None, why))

    def gap(self, gap: Gap) -> None:
        """Something that could not be read or linked."""
        self._gaps[gap] = None

    def entered(self, candidate: Candidate, steps: tuple[PathStep, ...]) -> None:
        """A function on the way."""
        self._functions.setdefault(candidate.key, (candidate.path, candidate.function, steps))

    def lost(self, name: str, place: tuple[str, int]) -> None:
        """A call that could not be followed: it counts where nothing else is found."""
        self._unfollowed.setdefault(name, place)

    def terminal(self, terminal: Terminal, steps: tuple[PathStep, ...]) -> None:
        """An end of the path that is no kernel of the source, behind some steps."""
        key = (terminal.kind, terminal.name, terminal.file, terminal.line)
        if key not in self._terminals:
            self._terminals[key] = replace(terminal, path=(*steps, *terminal.path))

    def asked(self, site: LaunchSite) -> None:
        """Kernels that are named without being launched: each instance once."""
        for kernel in site.kernels:
            self._asked.setdefault(kernel, replace(site, kernels=(kernel,)))

    def site(self, site: LaunchSite) -> None:
        """A launch."""
        # A macro's body stands once in the source however often its branches repeat it: one launch for a reader.
        key = (
            site.place,
            site.used_at,
            (site.grid, site.block),
            tuple(sorted({(k.path, k.function.offset) for k in site.kernels})),
            site.steps[-1],
        )
        self._kernels.setdefault(key, {}).update(dict.fromkeys(site.kernels))
        held = self._launches.get(key)
        if held is None:
            self._launches[key] = site
            return
        sure = held if held.certainty == "matched" else site
        copies = tuple(at for at in dict.fromkeys((*held.copies, site.at)) if at != sure.at)
        given = _both(held.template_arguments, site.template_arguments, sure.spelt)
        if sure is not held or copies != held.copies or given != held.template_arguments:
            self._launches[key] = replace(sure, copies=copies, template_arguments=given)


def _both(one: tuple[str, ...], other: tuple[str, ...], spelt: tuple[str, ...]) -> tuple[str, ...]:
    """The template arguments of two copies of one text: those that differ as the macro spells them."""
    if one == other or not len(one) == len(other) == len(spelt):
        return one
    return tuple(a if a == b else text for a, b, text in zip(one, other, spelt, strict=True))


def _not_whole(kernels: tuple[KernelRef, ...], why: str) -> tuple[KernelRef, ...]:
    """Kernels of a reading that was cut short: what was not followed may compile further instances."""
    return tuple(replace(kernel, incomplete=kernel.incomplete or why) for kernel in kernels)
