"""The entries of one file that bear a name.

In: a list of a file's facts, and a name. Out: those of the name, in order. A file that a script makes may have tens of
thousands: there names are looked up, not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Lists up to here are looked through.
FEW = 256
#: Lists that are grouped at the same time.
_GROUPED = 64


class ByName:
    """Groups long lists by name when they are first asked."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Iterable, dict[str, list]]] = {}

    def of(self, entries: Iterable, name: str) -> list:
        """The entries that bear a name. A list must not change once it has been asked."""
        if not isinstance(entries, list | tuple) or len(entries) <= FEW:
            return [entry for entry in entries if entry.name == name]
        held = self._held.get(id(entries))
        if held is None:
            if len(self._held) >= _GROUPED:
                self._held.clear()
            groups: dict[str, list] = {}
            for entry in entries:
                groups.setdefault(entry.name, []).append(entry)
            # The list stays alive beside its groups: its identity is nobody else's meanwhile.
            held = self._held[id(entries)] = entries, groups
        return held[1].get(name, [])
