"""What each Python file says with its names resolved, kept from one state of the tree to the next.

In: light and full facts by path, with stamps, and what was kept before. Out: ``Units``: one unit a file, made by a
function of the ``Graph``, each with the files that it leans on. A unit is made again when its own facts have changed,
or what others see of a file that it leans on; every unit is what it would be if all were made anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from opwalker.link.python_graph import Graph
from opwalker.link.python_modules import Modules
from opwalker.link.stamped import Stamped
from opwalker.model.python import PyFacts, PyLight

T = TypeVar("T")
U = TypeVar("U")


@dataclass(slots=True)
class Kept(Generic[U]):
    """What is kept. ``paths`` stands for the names of all files; ``stamps`` are those of the facts, light and full, of
    every file that has a unit or that one leans on, ``faces`` what others see of the latter."""

    paths: str = ""
    stamps: dict[str, tuple[str, str]] = field(default_factory=dict)
    faces: dict[str, str] = field(default_factory=dict)
    units: dict[str, U] = field(default_factory=dict)
    reads: dict[str, list[str]] = field(default_factory=dict)


def paths_digest(light: Stamped[PyLight]) -> str:
    """What stands for the names of all files: what an import leads to depends on which files there are."""
    names = "\n".join(sorted(light.stamps))
    return hashlib.blake2b(names.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


class Units(Generic[U]):
    """Units of one kind. ``make`` gives a file's unit, None where it has nothing to say; ``face`` is what of a file's
    facts units of other files can depend on."""

    def __init__(
        self,
        make: Callable[[Graph, str], U | None],
        face: Callable[[PyLight | None, PyFacts | None], Any],
        kept: Kept[U] | None,
        paths: str,
    ) -> None:
        self._make = make
        self._face = face
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
        moved = set()
        for path in changed:
            if path in kept.faces:
                face = self._face_of(path, light, full)
                if face != kept.faces[path]:
                    kept.faces[path] = face
                    moved.add(path)
        stale = set(changed)
        if moved:
            stale |= {path for path, reads in kept.reads.items() if not moved.isdisjoint(reads)}
        graph = Graph(modules(), full)
        for path in sorted(stale):
            self._renew(graph, path)
        for read in sorted({read for path in stale for read in kept.reads.get(path, ())}):
            if read not in kept.faces:
                kept.faces[read] = self._face_of(read, light, full)
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
        others = sorted(reads - {path})
        if others:
            kept.reads[path] = others

    def _face_of(self, path: str, light: Mapping[str, PyLight], full: Mapping[str, PyFacts]) -> str:
        seen = msgspec.msgpack.encode(self._face(light.get(path), full.get(path)))
        return hashlib.blake2b(seen, digest_size=8).hexdigest()


def decoded(blob: bytes | None, kind: type[T]) -> T | None:
    """What was kept, None where there is nothing or it cannot be read."""
    if blob is None:
        return None
    try:
        return msgspec.msgpack.decode(blob, type=kind)
    except msgspec.MsgspecError:
        return None


def names_face(light: PyLight | None, full: PyFacts | None) -> Any:
    """What names of a file can mean to others: all but where things stand."""
    imports = light.imports if light is not None else None
    if full is None:
        return imports
    return (
        imports,
        sorted({(one.qualname, one.method_of or "") for one in full.functions}),
        sorted({(one.qualname, one.bases, one.methods) for one in full.classes}),
        _in_order((one.module, one.name or "", one.alias, one.level, one.scope or "") for one in full.imports),
        _in_order((one.name, one.target, one.scope or "") for one in full.aliases),
        _in_order((one.kind, one.target, one.scope) for one in full.steps if one.target),
    )


def flow_face(light: PyLight | None, full: PyFacts | None) -> Any:
    """What the flow of registrations can take from a file."""
    imports = light.imports if light is not None else None
    if full is None:
        return imports
    return imports, full.functions, full.classes, full.imports, full.steps


def _in_order(rows: Iterable[tuple]) -> list[tuple]:
    """Each row once, in the order of the file."""
    return list(dict.fromkeys(rows))
