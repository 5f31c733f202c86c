"""A source opened and indexed, and the later stages made when an answer is not at hand.

In: the options that every command shares. Out: a ``Session``, whose parts are made lazily. Answers are kept in the
store by what they depend on: the tree's digest, this program's code, and the question.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from opwalker.answers import BUILT, Answers, Options
from opwalker.model.build import BuildFacts
from opwalker.model.source import FileEntry, SourceRoot
from opwalker.model.walk import Gap, Op, SourceInfo
from opwalker.notation.readings import KEPT, Readings
from opwalker.notation.regex import CODES, engine

if TYPE_CHECKING:
    from opwalker.expand.made import MadeFile
    from opwalker.expand.workbench import Workbench
    from opwalker.link.build_cuda import AskedArchitectures

Progress = Callable[[int, int | None, str], None] | None
Say = Callable[[str], None] | None
T = TypeVar("T")

#: How deep this program's own calls may nest. Bounds on the source count calls and definitions that stand one inside
#: the other; reading one of them takes a dozen calls here, and Python's default of 1,000 is less than the bounds allow.
STACK = 10_000

#: Files too large to read that an answer names.
_SAID = 3


def asked_architectures(options: Options) -> AskedArchitectures | None:
    """The CUDA architectures that were asked for; None where none was, or for another kind of build."""
    if not options.archs or options.build != "cuda":
        return None
    from opwalker.link.build_cuda import AskedArchitectures, architecture

    names = tuple(dict.fromkeys(found for found in map(architecture, options.archs) if found is not None))
    return AskedArchitectures(names, toolkit(options)) if names else None


def toolkit(options: Options) -> str:
    """The version of the CUDA toolkit that ``CUDA_VERSION`` names among the macros: ``12.8`` for ``12080``."""
    from opwalker.expand.configuration import CUDA_VERSION

    asked = dict(options.defines).get("CUDA_VERSION") or ""
    version = int(asked if asked.isdigit() else CUDA_VERSION)
    return f"{version // 1000}.{version % 1000 // 10}"


def _kept_readings() -> tuple[tuple[str, Readings, Any], ...]:
    """What is read once for any state of a tree, by name, with the type of what is kept."""
    return (*KEPT, (f"regexes {engine()}", CODES, dict[str, msgspec.Raw]))


class OpsTable(Struct, frozen=True):
    """All ops of a tree and the gaps met while they were read."""

    ops: tuple[Op, ...]
    gaps: tuple[Gap, ...]


class Session(Answers):
    """One source, indexed. Later stages are made when an answer is not at hand."""

    #: Whether one thing alone is asked for: then each part of its answer is kept by what it was read from.
    single = False

    def __init__(self, options: Options, progress: Progress = None, say: Say = None) -> None:
        from opwalker import resources
        from opwalker.facts import registry
        from opwalker.indexing import index
        from opwalker.link.store import Store
        from opwalker.link.traced import Reads
        from opwalker.source.cache import cache_root
        from opwalker.source.opened import open_source

        self.options = options
        self._cuda = asked_architectures(options)
        self.progress = progress
        self.say = say or (lambda text: None)
        cache = options.cache or cache_root()
        resources.keep_parsers_in(cache / "parsers")
        self.root: SourceRoot = open_source(options.source, cache=cache, progress=progress)
        if self.root.note:
            self.say(self.root.note)
        if options.archs and self._cuda is None:
            self.say(f"--arch {', '.join(options.archs)} narrows nothing: it is read for CUDA builds alone")
        self.store = Store.open(self.root, cache / "facts", self.say)
        for name, readings, kind in _kept_readings():
            readings.recall_from(lambda name=name, kind=kind: self.recall(self._key(name, ""), kind))
        # Looked at now: processes that are forked below would ask a store that is none of theirs.
        CODES.load()
        told = (lambda stage, done, total: progress(done, total, stage)) if progress else None
        self.report = index(self.root, self.store, jobs=options.jobs, progress=told)
        for path, problem in [one for one in self.report.problems if one[1].kind == "too-large"][:_SAID]:
            self.say(f"{path} was not read: {problem.message}")
        self._states: dict[tuple[str, ...], str] = {}
        self._python_read = False
        #: What the workbench has read so far.
        self._read = Reads()
        self.producers = registry.producers(registry.REGISTRY)
        self.source = SourceInfo(self.root.name, self.root.version, self.root.revision)

    @functools.cached_property
    def workbench(self):
        """The tools that read the tree, for the build asked for."""
        return self._new_workbench(self.made)

    def _read_made(self) -> tuple[MadeFile, ...]:
        """What macros make in the tree."""
        return self._new_workbench(()).read_made()

    def _new_workbench(self, made: tuple[MadeFile, ...]) -> Workbench:
        from opwalker.expand.workbench import Workbench
        from opwalker.link.index import Index
        from opwalker.views.build_side import build_view

        builds = self.builds
        searched = [(target.include_dirs, [source.path for source in target.sources]) for target in builds.targets]
        index = Index(self._stored, searched, lambda paths, read: self._included(repr(searched), paths, read))
        self._read = index.reads
        return Workbench(
            index,
            build_view(builds, self._read_for(None), self._cuda.names)
            if self._cuda
            else build_view(builds, gates=self._gates),
            self.options.build,
            self.options.defines,
            self.kept_native,
            self.apart if self.single else None,
            made,
        )

    def _included(
        self, searched: str, paths: Iterable[str], read: Callable[[str], Sequence[str]]
    ) -> dict[str, Sequence[str]]:
        """What each of all C++ files includes, as ``read`` tells it: kept for as long as the file says the same and
        the same is ``searched`` among the same files."""
        where = "\n".join((searched, *sorted(paths))).encode("utf-8", "surrogateescape")
        key = self._key("included", hashlib.blake2b(where, digest_size=16).hexdigest())
        held = self.recall(key, dict[str, tuple[str, list[str]]]) or {}
        found = {}
        for path in paths:
            digest, (then, files) = self.known[path][3], held.get(path, ("", []))
            found[path] = digest, files if then == digest else read(path)
        if found != held:
            self.keep(key, found)
        return {path: files for path, (_, files) in found.items()}

    @functools.cached_property
    def _stored(self):
        """The facts of C++ files."""
        from opwalker.link.fact_store import StoredFacts

        return StoredFacts(self.store, self.producers["cpp"], self.text, self._names_of_kind)

    def apart(self, question: str, kind: type[T], answer: Callable[[Workbench], T], moves: bool = False) -> T:
        """The answer to a question about C++, found by tools of its own: it does not depend on what was read for
        others. ``moves`` is as for ``kept_native``."""
        if not self.single:
            return self.kept_native(question, kind, lambda: answer(self.workbench), moves)
        others = self._read
        found = self.kept_native(question, kind, lambda: answer(self._new_workbench(self.made)), moves)
        others.update(self._read)
        self._read = others
        return found

    @functools.cached_property
    def builds(self) -> BuildFacts:
        """What the build files say."""
        return self._read_for(self._cuda)

    def _gates(self) -> BuildFacts:
        """The build files for all architectures that they name: which file is compiled for which."""
        from opwalker.link.build_cuda import AskedArchitectures, plain

        builds = self.builds
        named = plain(builds.architectures)
        return self._read_for(AskedArchitectures(named, toolkit(self.options), assumed=True)) if named else builds

    def _read_for(self, cuda: AskedArchitectures | None) -> BuildFacts:
        """The build files for some architectures, or for all that they name."""
        question = f"builds:{cuda.listed} {cuda.toolkit} {cuda.assumed}" if cuda is not None else "builds"
        return self.kept(question, BuildFacts, lambda: self._read_builds(cuda), BUILT)

    def _read_builds(self, cuda: AskedArchitectures | None) -> BuildFacts:
        from opwalker.facts.build_files import is_setup_script
        from opwalker.views.build_side import read_build_facts

        hinted = set(self.store.paths_with("py_builds"))

        def counts(path: str) -> bool:
            return is_setup_script(path) or path in hinted

        return read_build_facts(self.known, self.text_in_key, counts, cuda=cuda)

    @functools.cached_property
    def light(self):
        """The light facts of every Python file."""
        from opwalker.views.python_side import light_facts

        return light_facts(self.store, self.producers)

    @functools.cached_property
    def known(self):
        """Every file of the source: ``path -> (size, mtime_ns, language, digest)``."""
        return self.store.known()

    def text(self, path: str) -> str:
        """A file's text, as the source stage reads it."""
        if path in self.known and self.known[path][2] == "python":
            self._python_read = True
        return self.text_in_key(path)

    def text_in_key(self, path: str) -> str:
        """A file's text, for those in whose key it counts whatever they take from it."""
        from opwalker.source.read import read

        row = self.known.get(path)
        if row is None:
            return ""
        return read(self.root.path, FileEntry(path, row[0], row[1], row[2])).text

    @functools.cached_property
    def python(self):
        """Everything that Python says of ops."""
        from opwalker.facts.registry import REGISTRY
        from opwalker.indexing import part_key
        from opwalker.views.python_side import PythonSide, full_facts, read_python

        (round_,) = [one for one in REGISTRY.rounds if one.language == "python"]
        full = full_facts(self.store, self.producers)

        def read() -> PythonSide:
            return read_python(
                self.light,
                full,
                lambda part: self.store.result(part_key(round_, part)),
                lambda part, blob: self.store.put_result(part_key(round_, part), blob),
            )

        # What was read says it all: an edit that changes no fact changes no answer.
        return self.kept("python", PythonSide, read, state=f"{self.light.state()} {full.state()}")

    @functools.cached_property
    def view(self):
        """The ops of the tree, each worked out when asked for."""
        from opwalker.views.joined import JoinedOps

        return JoinedOps(_KeptOps(self), self.python, self.signatures)

    @functools.cached_property
    def native(self):
        """The ops that C++ registers."""
        from opwalker.views.ops import OpsView

        return OpsView(self.workbench, self.signatures)

    def ops(self) -> OpsTable:
        """All ops of the tree."""
        return self._ops

    @functools.cached_property
    def _ops(self) -> OpsTable:
        return self.kept("ops", OpsTable, self._read_ops)

    def _read_ops(self) -> OpsTable:
        from opwalker.views.joined import JoinedOps

        ops = JoinedOps(self.native, self.python, self.signatures).all()
        return OpsTable(ops, tuple(dict.fromkeys((*self.native.gaps(), *self.python.gaps))))

    @functools.cached_property
    def signatures(self):
        """What schemas say; a text says the same in every state of a tree."""
        from opwalker.views.signatures import Known, Signatures

        return Signatures(lambda: self.recall(self._key("signatures", ""), Known))

    def close(self) -> None:
        """Let go of the store."""
        for name, readings, _ in _kept_readings():
            if readings.fresh:
                self.keep(self._key(name, ""), readings.known)
            # What is not known yet cannot come from this store any more.
            readings.recall_from(lambda: None)
        if "signatures" in self.__dict__ and self.signatures.fresh:
            self.keep(self._key("signatures", ""), self.signatures.known)
        self.store.close()


class _KeptOps:
    """The ops that C++ registers, as they were kept for as long as no file of C++ has changed."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return self._session.kept_native("names", tuple[str, ...], lambda: self._session.native.names())

    def op(self, name: str) -> Op | None:
        """One op by its full name."""
        if name not in self.names():
            return None
        return self._session.kept_native(f"op:{name}", Op, lambda: self._session.native.op(name), moves=True)


def asked(options: Options, progress: Progress, say: Say, answer: Callable[[Session], T]) -> T:
    """The answer of a session; of a second one where the store was found damaged, dropped, and made anew meanwhile."""
    from opwalker.link.store import StoreRebuilt

    sys.setrecursionlimit(max(sys.getrecursionlimit(), STACK))
    try:
        with contextlib.closing(Session(options, progress, say)) as session:
            return answer(session)
    except StoreRebuilt:
        with contextlib.closing(Session(options, progress, say)) as session:
            return answer(session)
