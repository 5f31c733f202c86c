"""The whole flow on one page: a source opened, indexed, joined, and asked.

``source → facts → link → expand → views``. Every command of the program calls one function here; nothing here decides
how an answer looks. Answers are kept in the store by what they depend on: the tree's digest, this program's code, and
the question.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from opwalker.errors import InputError
from opwalker.model.build import BuildFacts
from opwalker.model.source import FileEntry, SourceRoot
from opwalker.model.walk import Gap, KernelsResult, Op, OpsResult, SourceInfo, Walk

Progress = Callable[[int, int | None, str], None] | None
Say = Callable[[str], None] | None
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """What every command shares."""

    source: str | None = None
    build: str = "cuda"
    defines: tuple[tuple[str, str | None], ...] = ()
    archs: tuple[str, ...] = ()
    jobs: int | None = None
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class OpsTable:
    """All ops of a tree and the gaps met while they were read."""

    ops: tuple[Op, ...]
    gaps: tuple[Gap, ...]


@functools.lru_cache(maxsize=1)
def _program() -> str:
    """A digest of this program's own files: answers of other code are not used again."""
    from opwalker import resources

    state = hashlib.blake2b(digest_size=8)
    for folder in (Path(__file__).parent, resources.folder("grammars")):
        for parent, folders, files in os.walk(folder):
            folders.sort()
            if parent.endswith("__pycache__"):
                continue
            for name in sorted(files):
                if name.endswith((".py", ".lark", ".scm", ".h")):
                    found = os.stat(os.path.join(parent, name))
                    state.update(f"{name}:{found.st_size}:{found.st_mtime_ns};".encode())
    return state.hexdigest()


class Session:
    """One source, indexed. Later stages are made when an answer is not at hand."""

    def __init__(self, options: Options, progress: Progress = None, say: Say = None) -> None:
        from opwalker import resources
        from opwalker.facts import registry
        from opwalker.indexing import index
        from opwalker.link.store import Store
        from opwalker.source.cache import cache_root
        from opwalker.source.opened import open_source

        self.options = options
        self.progress = progress
        self.say = say or (lambda text: None)
        cache = options.cache or cache_root()
        resources.keep_parsers_in(cache / "parsers")
        self.root: SourceRoot = open_source(options.source, cache=cache, progress=progress)
        if self.root.note:
            self.say(self.root.note)
        if options.archs:
            self.say("--arch does not narrow answers yet: code for every architecture is read")
        self.store = Store.open(self.root, cache / "facts", self.say)
        told = (lambda stage, done, total: progress(done, total, stage)) if progress else None
        self.report = index(self.root, self.store, jobs=options.jobs, progress=told)
        self._states: dict[tuple[str, ...], str] = {}
        self._producers = registry.producers(registry.REGISTRY)
        self.source = SourceInfo(self.root.name, self.root.version, self.root.revision)

    @functools.cached_property
    def workbench(self):
        """The tools that read the tree, for the build asked for."""
        from opwalker.expand.workbench import Workbench
        from opwalker.link.fact_store import StoredFacts
        from opwalker.link.index import Index
        from opwalker.views.build_side import build_view

        builds = self.kept("builds", BuildFacts, self._read_builds, ("cmake", "toml", "py_builds"))
        folders = dict.fromkeys(folder for target in builds.targets for folder in target.include_dirs)
        index = Index(StoredFacts(self.store, self._producers["cpp"], self.text), tuple(folders))
        return Workbench(
            index,
            build_view(builds),
            self.options.build,
            self.options.defines,
            self.kept,
        )

    def _read_builds(self) -> BuildFacts:
        from opwalker.facts.build_files import is_setup_script
        from opwalker.views.build_side import read_build_facts

        hinted = set(self.store.paths_with("py_builds"))
        return read_build_facts(self.known, self.text, lambda path: is_setup_script(path) or path in hinted)

    @functools.cached_property
    def light(self):
        """The light facts of every Python file."""
        from opwalker.views.python_side import light_facts

        return light_facts(self.store, self._producers["py-light"])

    @functools.cached_property
    def known(self):
        """Every file of the source: ``path -> (size, mtime_ns, language, digest)``."""
        return self.store.known()

    def text(self, path: str) -> str:
        """A file's text, as the source stage reads it."""
        from opwalker.source.read import read

        row = self.known.get(path)
        if row is None:
            return ""
        return read(self.root.path, FileEntry(path, row[0], row[1], row[2])).text

    def kept(self, question: str, kind: type[T], answer: Callable[[], T], languages: tuple[str, ...] = ()) -> T:
        """The answer to a question, from the store when nothing that it depends on has changed: files in ``languages``
        (or with a name of that kind, and which files there are), or every file."""
        # The folder is part of the key as little as the time is: only what was read and what read it.
        about = repr((self.options.build, self.options.defines, self.options.archs, self.root.name, self.root.version))
        key = f"{question}|{about}|{self._state(languages)}|{_program()}"
        blob = self.store.result(key)
        if blob is not None:
            try:
                return msgspec.msgpack.decode(blob, type=kind)
            except msgspec.MsgspecError:
                pass
        found = answer()
        self.store.put_result(key, msgspec.msgpack.encode(found))
        return found

    def _state(self, languages: tuple[str, ...]) -> str:
        """A digest of the contents that an answer depends on."""
        if not languages:
            return self.store.tree_digest()
        if languages not in self._states:
            state = hashlib.blake2b(digest_size=16)
            named = {path for kind in languages for path in self.store.paths_with(kind)}
            for path, row in sorted(self.known.items()):
                counts = row[2] in languages or path in named
                state.update(f"{path}:{row[3] if counts else ''};".encode("utf-8", "surrogateescape"))
            self._states[languages] = state.hexdigest()
        return self._states[languages]

    @functools.cached_property
    def python(self):
        """Everything that Python says of ops."""
        from opwalker.views.python_side import PythonSide, read_python

        return self.kept(
            "python", PythonSide, lambda: read_python(self.store, self._producers, self.light), ("python",)
        )

    @functools.cached_property
    def view(self):
        """The ops of the tree, each worked out when asked for."""
        from opwalker.views.ops import OpsView

        return OpsView(self.workbench, self.python)

    def ops(self) -> OpsTable:
        """All ops of the tree."""
        return self.kept("ops", OpsTable, self._read_ops)

    def _read_ops(self) -> OpsTable:
        return OpsTable(*self.view.build())

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()


def _asked(options: Options, progress: Progress, say: Say, answer: Callable[[Session], T]) -> T:
    """The answer of a session; of a second one where the store was found damaged, dropped, and made anew meanwhile."""
    from opwalker.link.store import StoreRebuilt

    try:
        with contextlib.closing(Session(options, progress, say)) as session:
            return answer(session)
    except StoreRebuilt:
        with contextlib.closing(Session(options, progress, say)) as session:
            return answer(session)


def list_ops(
    options: Options,
    *,
    kind: str | None = None,
    namespace: str | None = None,
    progress: Progress = None,
    say: Say = None,
) -> OpsResult:
    """Every op of a source."""
    return _asked(options, progress, say, lambda session: _list_ops(session, kind, namespace))


def _list_ops(session: Session, kind: str | None, namespace: str | None) -> OpsResult:
    table = session.ops()
    chosen = tuple(op for op in table.ops if _chosen(op, kind, namespace))
    return OpsResult(
        source=session.source,
        ops=chosen,
        gaps=table.gaps,
        files_read=sum(count for _, count in session.report.files),
        looked_for=LOOKED_FOR,
    )


#: What a registration can be, in words, for an answer that is empty.
LOOKED_FOR = (
    "TORCH_LIBRARY and its family",
    "STABLE_TORCH_LIBRARY",
    "torch.library in Python",
    "PYBIND11_MODULE",
    "TVM-FFI exports",
)


def _chosen(op: Op, kind: str | None, namespace: str | None) -> bool:
    if kind is not None and op.kind != kind:
        return False
    return namespace is None or op.name.startswith((f"{namespace}::", f"{namespace}."))


def walk(options: Options, name: str, *, progress: Progress = None, say: Say = None) -> Walk:
    """The walk of one op, file, function, class or kernel."""
    return _asked(
        options,
        progress,
        say,
        lambda session: session.kept(f"walk:{name}", Walk, lambda: _walk(session, name)),
    )


def _walk(session: Session, name: str) -> Walk:
    from opwalker.views.entries import EntryView
    from opwalker.views.names import find_op
    from opwalker.views.walk import WalkView

    view = None
    if name in session.workbench.index.paths:
        view = EntryView(session.workbench, session.source).walk(name)
    op = None if view else find_op(session.view.names(), name, session.options.build, session.view.op)
    if op is None:
        view = view or EntryView(session.workbench, session.source).walk(name)
        if view is None:
            raise _not_found(session, name)
        return view
    base = op.name.split(".", 1)[0] if "::" in op.name else op.name
    found = WalkView(session.workbench, session.source).walk(op, session.python.callers.get(base, ()))
    builds = {build for one in (*op.defs, *op.impls) for build in one.builds or ()}
    if builds and session.options.build not in builds:
        note = f"no {session.options.build} build registers this op; shown as the build for {', '.join(sorted(builds))}"
        return replace(found, notes=(*found.notes, note))
    return found


def _not_found(session: Session, name: str) -> InputError:
    """What a user needs to know when nothing registers a name: who calls it, what was seen instead."""
    from opwalker.views.names import foreign_imports, nearest, spellings

    names = session.view.names()
    wanted = spellings(name)[0]
    evidence = []
    calls = [c for c in session.python.callers.get(wanted, ()) if c.depth == 0]
    if calls:
        evidence.append("called at " + ", ".join(f"{c.file}:{c.call_line or c.line}" for c in calls[:3]))
        imported = foreign_imports({c.file: session.text(c.file) for c in calls[:3]}, session.known)
        if imported:
            evidence.append("imported there from outside this source: " + ", ".join(imported[:4]))
    namespaces = sorted({full.split("::")[0] for full in names if "::" in full})
    if "::" in wanted or calls:
        evidence.append(f"namespaces seen: {', '.join(namespaces[:12]) or 'none'}")
    message = f"no registration of `{wanted}` in the indexed roots"
    if evidence:
        message += f" ({'; '.join(evidence)})"
    near = nearest(names, name)
    return InputError(message, f"nearest: {', '.join(near)}" if near else "`opwalker ops` lists what there is")


def kernels(
    options: Options,
    op: str | None = None,
    *,
    progress: Progress = None,
    say: Say = None,
) -> KernelsResult:
    """Every kernel of a source, or those that one op reaches."""
    return _asked(
        options,
        progress,
        say,
        lambda session: session.kept(f"kernels:{op}", KernelsResult, lambda: _kernels(session, op)),
    )


def _kernels(session: Session, name: str | None) -> KernelsResult:
    from opwalker.views.kernels import list_kernels
    from opwalker.views.names import find_op

    ops = session.ops().ops
    only = find_op(session.view.names(), name, session.options.build, session.view.op) if name is not None else None
    if name is not None and only is None:
        raise _not_found(session, name)
    return list_kernels(session.workbench, session.source, ops, only, session.progress)


def build_index(options: Options, *, progress: Progress = None, say: Say = None) -> Any:
    """Index a source; the report of what was read."""
    return _asked(options, progress, say, lambda session: session.report)


def dump(
    options: Options, stage: str, path: str | None = None, *, progress: Progress = None, say: Say = None
) -> object:
    """One stage's product as it is: ``source`` (the files), ``facts`` of a path, ``index`` (names and includes)."""
    return _asked(options, progress, say, lambda session: _dump(session, stage, path))


def _dump(session: Session, stage: str, path: str | None) -> object:
    if stage == "source":
        return {
            "root": session.root,
            "files": [
                {"path": p, "size": r[0], "language": r[2], "digest": r[3]}
                for p, r in sorted(session.store.known().items())
            ],
        }
    if stage == "facts":
        return _dump_facts(session, path)
    index = session.workbench.index
    return {
        "bindings": session.workbench.bindings().bindings,
        "includes": {p: [found for _, found in index.includes(p)] for p in sorted(index.paths)},
        "names": {
            kind: sorted(index.names_of_kind(kind)) for kind in ("kernel", "function", "macro", "class", "alias")
        },
    }


def _dump_facts(session: Session, path: str | None) -> object:
    from opwalker.facts import registry
    from opwalker.views.names import nearest

    known = session.store.known()
    if path is None or path not in known:
        near = nearest(known, path or "")
        raise InputError(f"no file {path!r} in the source", f"nearest: {', '.join(near)}" if near else None)
    out = {}
    for extractor in registry.REGISTRY.all().values():
        blob = session.store.facts(known[path][3], extractor.kind, session._producers[extractor.kind])
        if blob is not None:
            out[extractor.kind] = msgspec.msgpack.decode(blob)
    return {"path": path, "facts": out}


__all__: Sequence[str] = ("Options", "Session", "build_index", "dump", "kernels", "list_ops", "walk")
