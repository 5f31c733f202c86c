"""Which Python files must be read in full, and what to look for in them.

In: the light facts of all files, the full facts read so far, and what was kept of an earlier state of the tree. Out:
for each file that is still to be read (or read again) the names to look for. Asked again after each round until nothing
is left: first the files that mention ops, then callers of their wrappers and of helpers that register, then callers of
those, and the definitions that registrations use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec
from msgspec import Struct, field

from opwalker.link.python_importers import Imports
from opwalker.link.python_modules import Modules
from opwalker.link.python_resolved import Resolved, resolve
from opwalker.link.python_units import Kept, Units, decoded, names_face, paths_digest
from opwalker.link.python_wanted import Spread, Wanted, want_callers, want_registrations
from opwalker.link.stamped import HeldFacts, Stamped
from opwalker.model.python import PyFacts, PyLight

#: The parts that are kept from one state of the tree to the next.
STATE, IMPORTS, COMPILED_IMPORTS = "python files", "python imports", "python compiled"


def needed(light: Mapping[str, PyLight], full: Mapping[str, PyFacts]) -> dict[str, frozenset[str]]:
    """``{path: names to look for}`` of the files that ``facts.python_full.full`` must still read, empty when done.

    For several rounds over one tree, one ``Scope`` saves work.
    """
    return Scope(HeldFacts(light)).needed(HeldFacts(full))


def needed_in(light: Stamped[PyLight], full: Stamped[PyFacts], scope: Scope) -> dict[str, frozenset[str]]:
    """As ``needed``, for several rounds over one tree: ``scope`` is its ``Scope``, made once."""
    del light
    return scope.needed(full)


def to_keep(scope: Scope) -> dict[str, bytes]:
    """What is worth keeping of a ``Scope`` that needs nothing more, by part."""
    return scope.to_keep()


def resolved_of(
    light: Stamped[PyLight],
    full: Stamped[PyFacts],
    kept: Callable[[str], bytes | None],
    modules: Callable[[], Modules],
) -> Kept[Resolved]:
    """The resolved names of all files that were read, as ``kept`` by a ``Scope`` and brought up to date."""
    state = decoded(kept(STATE), _State)
    units = Units(resolve, names_face, state.resolved if state is not None else None, paths_digest(light))
    units.renew(light, full, modules)
    return units.kept


class _State(Struct):
    """What held when nothing more was needed: the units of all files, what each file had been searched for, the state
    of the light facts and a digest of all that was asked for."""

    resolved: Kept[Resolved] = field(default_factory=Kept)
    watched: dict[str, tuple[str, ...]] = field(default_factory=dict)
    light: str = ""
    asked: str = ""


class Scope:
    """The rounds of reading over one tree. ``kept`` gives what was kept of an earlier state of it, by part."""

    def __init__(self, light: Stamped[PyLight], kept: Callable[[str], bytes | None] | None = None) -> None:
        self._light = light
        self._kept = kept or (lambda part: None)
        self._modules: Modules | None = None
        self._imports: Imports | None = None
        self._paths = paths_digest(light)
        found = decoded(self._kept(STATE), _State)
        self._state = found if found is not None and found.resolved.paths == self._paths else _State()
        self._before = dict(self._state.watched)
        self._units: Units[Resolved] = Units(resolve, names_face, self._state.resolved, self._paths)
        self._state.resolved = self._units.kept
        self._same_light = self._state.light == light.state()
        self._spread: Spread | None = None
        self._wanted = Wanted()

    def needed(self, full: Stamped[PyFacts]) -> dict[str, frozenset[str]]:
        """The files to read next, by path, with all names to look for in each; empty when done.

        A file that was read with fewer names before is listed again. ``full`` are the facts read so far, those of
        earlier rounds among them.
        """
        watched = self._state.watched
        for path in self._units.renew(self._light, full, self.modules):
            facts = full.get(path)
            if facts is not None:
                watched[path] = facts.watched
            else:
                watched.pop(path, None)
        wanted = Wanted()
        want_registrations(self._units.kept.units, wanted)
        want_callers(self._units.kept.units, wanted)
        self._wanted = wanted
        entries: Mapping[str, Collection[str]] = self._before
        if not self._same_light or wanted.digest() != self._state.asked:
            self._spread = (self._spread or Spread(self.imports())).of(wanted)
            entries = self._spread.entries
        found: dict[str, frozenset[str]] = {}
        for path, names in entries.items():
            known = watched.get(path)
            if known is None or not set(names).issubset(known):
                found[path] = frozenset(names).union(known or ())
        return found

    def modules(self) -> Modules:
        """Where imports lead in this tree."""
        if self._modules is None:
            self._modules = Modules(self._light)
        return self._modules

    def imports(self) -> Imports:
        """Who imports what in this tree, and who mentions ops."""
        if self._imports is None:
            known = decoded(self._kept(IMPORTS), Imports)
            if known is None or known.paths != self._paths:
                known = Imports(self._paths)
            known.renew(self._light, self.modules())
            self._imports = known
        return self._imports

    def to_keep(self) -> dict[str, bytes]:
        """What is worth keeping, by part, now that nothing more is needed."""
        self._state.light, self._state.asked = self._light.state(), self._wanted.digest()
        parts = {STATE: msgspec.msgpack.encode(self._state)}
        if self._imports is not None:
            parts[IMPORTS] = msgspec.msgpack.encode(self._imports)
            parts[COMPILED_IMPORTS] = msgspec.msgpack.encode(self._imports.compiled)
        return parts
