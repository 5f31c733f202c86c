"""What each Python file says with its names resolved, kept from one state of the tree to the next.

In: light and full facts by path, with stamps, and what was kept before. Out: ``Units``: one unit a file, made by a
function of the ``Graph``, each with the files that it leans on. A unit is made again when its own facts have changed,
or what others see of a file that it leans on; every unit is what it would be if all were made anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from opwalker.link.python_graph import Graph, bound_name
from opwalker.link.python_modules import Modules
from opwalker.link.stamped import Stamped
from opwalker.model.python import PyFacts, PyLight

T = TypeVar("T")
U = TypeVar("U")

#: Names under which a face has what concerns every name: all of the file, and names that are imported unseen.
WHOLE = frozenset({"", "*"})


class Kept(Struct, Generic[U]):
    """What is kept. ``paths`` stands for the names of all files; ``stamps`` are those of the facts, light and full, of
    every file that has a unit or that one leans on; ``faces`` stand for what others see of the latter, by name, and
    ``reads`` are the names that a unit leans on, by file: one name, "", where a file counts as a whole."""

    paths: str = ""
    stamps: dict[str, tuple[str, str]] = field(default_factory=dict)
    faces: dict[str, dict[str, bytes]] = field(default_factory=dict)
    units: dict[str, U] = field(default_factory=dict)
    reads: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def paths_digest(light: Stamped[PyLight]) -> str:
    """What stands for the names of all files: what an import leads to depends on which files there are."""
    names = "\n".join(sorted(light.stamps))
    return hashlib.blake2b(names.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


class Units(Generic[U]):
    """Units of one kind. ``make`` gives a file's unit, None where it has nothing to say; ``face`` is what of a file's
    facts units of other files can depend on, by the name that they look up there."""

    def __init__(
        self,
        make: Callable[[Graph, str], U | None],
        face: Callable[[Modules, str, PyFacts | None], Mapping[str, Any]],
        kept: Kept[U] | None,
        paths: str,
    ) -> None:
        self._make = make
        self._face = face
        self._graph: Graph | None = None
        self.kept = kept if kept is not None and kept.paths == paths else Kept(paths)
        #: Whether anything is not as it was kept.
        self.changed = kept is not self.kept

    def renew(self, light: Stamped[PyLight], full: Stamped[PyFacts], modules: Callable[[], Modules]) -> list[str]:
        """Bring all units up to date; the files whose unit has been made again, dropped ones among them."""
        kept = self.kept
        watched = [*full.stamps, *(path for path in kept.stamps if path not in full.stamps)]
        now = {path: (light.stamps.get(path, ""), full.stamps.get(path, "")) for path in watched}
        changed = [path for path, stamps in now.items() if kept.stamps.get(path) != stamps]
        if not changed:
            return []
        self.changed = True
        graph = self._graph = self._graph or Graph(modules(), full)
        graph.take(full, changed)
        moved: dict[str, set[str]] = {}
        for path in changed:
            if path in kept.faces:
                before, face = kept.faces[path], self._face_of(graph, path)
                names = {name for name in before.keys() | face.keys() if before.get(name) != face.get(name)}
                if names:
                    kept.faces[path], moved[path] = face, names
        stale = set(changed)
        if moved:
            stale |= {path for path, reads in kept.reads.items() if _leans_on(reads, moved)}
        for path in sorted(stale):
            self._renew(graph, path)
        for read in sorted({read for path in stale for read in kept.reads.get(path, {})}):
            if read not in kept.faces:
                kept.faces[read] = self._face_of(graph, read)
                now.setdefault(read, (light.stamps.get(read, ""), full.stamps.get(read, "")))
        kept.stamps |= now
        return sorted(stale)

    def _renew(self, graph: Graph, path: str) -> None:
        kept = self.kept
        kept.units.pop(path, None)
        kept.reads.pop(path, None)
        if path not in graph.full:
            return
        reads = graph.watch()
        unit = self._make(graph, path)
        if unit is not None:
            kept.units[path] = unit
        found: dict[str, list[str]] = {other: [] for other in sorted(reads.files) if other != path}
        for other, name in sorted(reads.names):
            if other in found:
                found[other].append(name)
        if found:
            kept.reads[path] = found

    def _face_of(self, graph: Graph, path: str) -> dict[str, bytes]:
        face = self._face(graph.modules, path, graph.full.get(path))
        return {
            name: hashlib.blake2b(msgspec.msgpack.encode(seen), digest_size=6).digest() for name, seen in face.items()
        }


def _leans_on(reads: Mapping[str, list[str]], moved: Mapping[str, set[str]]) -> bool:
    """Whether one of the names that are read has moved: or, of a file that others may see whole, anything."""
    for path in moved.keys() & reads.keys():
        if not WHOLE.isdisjoint(moved[path]) or not moved[path].isdisjoint(reads[path]):
            return True
    return False


def decoded(blob: bytes | None, kind: type[T]) -> T | None:
    """What was kept, None where there is nothing or it cannot be read."""
    if blob is None:
        return None
    try:
        return msgspec.msgpack.decode(blob, type=kind)
    except msgspec.MsgspecError:
        return None


def names_face(modules: Modules, path: str, full: PyFacts | None) -> dict[str, list[Any]]:
    """What names of a file can mean to others: all but where things stand."""
    seen: dict[str, list[Any]] = {}

    def enter(name: str, *what: Any) -> None:
        row, known = (name, *what), seen.setdefault(name.partition(".")[0], [])
        if row not in known:
            known.append(row)

    for one in modules.imported(path):
        enter(one.alias, one.module, one.name, one.level)
    for one in full.functions if full is not None else ():
        enter(one.qualname, one.method_of)
    if full is not None:
        functions = {one.qualname for one in full.functions}
        for one in full.classes:
            enter(one.qualname, one.bases, one.methods)
        for one in full.imports:
            enter(one.alias, one.module, one.name, one.level, one.scope)
        for one in full.aliases:
            enter(f"{one.scope}.{one.name}" if one.scope else one.name, one.target)
        for step in full.steps:
            name = bound_name(step, functions)
            if name is not None:
                enter(name, "slot")
    return seen


def flow_face(modules: Modules, path: str, full: PyFacts | None) -> dict[str, Any]:
    """What the flow of registrations can take from a file."""
    imports = [tuple(one) for one in modules.imported(path)]
    if full is None:
        return {"": imports}
    return {"": (imports, full.functions, full.classes, full.imports, full.steps)}
