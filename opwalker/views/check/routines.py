"""Every function of a tree as statements, read in parallel and kept by what each file's reading depends on.

In: a workbench, and a store of earlier answers. Out: routines in path and line order. A file is read anew when it, or
anything it includes, has changed.
"""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from opwalker.expand.routines import RoutineReader
from opwalker.expand.workbench import Workbench
from opwalker.model.statements import Routine
from opwalker.views.check.reachable import reachable
from opwalker.views.ops import shown_condition

#: Below this many files to read, worker processes cost more than they save.
FEW = 12


class Kept(Struct, frozen=True):
    """How answers are kept: ``find`` and ``put`` by key, ``digest`` of a file's content."""

    find: Callable[[str], bytes | None]
    put: Callable[[str, bytes], None]
    digest: Callable[[str], str]
    about: str


def read_routines(
    workbench: Workbench, kept: Kept, jobs: int, without: Collection[str] = frozenset()
) -> tuple[Routine, ...]:
    """The routines of every file that the build reads, those of some files left out."""
    index = workbench.index
    out: dict[str, list[Routine]] = {}
    missing: list[tuple[str, str]] = []
    for path in sorted(set(index.paths).difference(without)):
        # Files that include each other have one state between them.
        key = f"routines|{kept.about}|{path}|{_state(workbench, path, kept.digest)}"
        blob = kept.find(key)
        found = _decoded(blob) if blob is not None else None
        if found is None:
            missing.append((path, key))
        else:
            out[path] = found
    for path, key, blob in _read(workbench, missing, jobs):
        kept.put(key, blob)
        out[path] = _decoded(blob) or []
    return tuple(routine for path in sorted(out) for routine in out[path])


def _state(workbench: Workbench, path: str, digest: Callable[[str], str]) -> str:
    """A digest of a file and all that it includes."""
    state = hashlib.blake2b(digest_size=12)
    for one in sorted({path, *workbench.index.closure(path)}):
        state.update(f"{one}:{digest(one)};".encode("utf-8", "surrogateescape"))
    return state.hexdigest()


def _decoded(blob: bytes) -> list[Routine] | None:
    try:
        return msgspec.msgpack.decode(blob, type=list[Routine])
    except msgspec.MsgspecError:
        return None


def _read(workbench: Workbench, missing: Sequence[tuple[str, str]], jobs: int) -> list[tuple[str, str, bytes]]:
    if jobs < 2 or len(missing) < FEW or "fork" not in multiprocessing.get_all_start_methods():
        reader = _Reader(workbench)
        return [(path, key, reader.file(path)) for path, key in missing]
    # What comes from the store is loaded here: a child process must not share the parent's connection.
    for path, _ in missing:
        workbench.index.closure(path)
    global _shared
    _shared = _Reader(workbench)
    try:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            blobs = pool.map(_file, [path for path, _ in missing], chunksize=4)
    finally:
        _shared = None
    return [(path, key, blob) for (path, key), blob in zip(missing, blobs, strict=True)]


class _Reader:
    def __init__(self, workbench: Workbench) -> None:
        self._index = workbench.index
        unit = workbench.unit()
        self._resolver = unit.resolver
        self._reader = RoutineReader(workbench.files, unit.macros, unit.device_macros)

    def file(self, path: str) -> bytes:
        """The routines of one file, packed."""
        facts = self._index.facts(path)
        out = []
        for function in facts.functions if facts is not None else ():
            if not function.body_end or not self._resolver.is_read(path, function):
                continue
            condition = shown_condition(facts.conditions[function.condition])
            out.append(self._reader.read(path, function, path, condition))
        return msgspec.msgpack.encode(reachable(out, self._index.store.text))


_shared: Any = None


def _file(path: str) -> bytes:
    """Runs in a child process, which was forked with the reader at hand."""
    return _shared.file(path)
