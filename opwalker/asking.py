"""A source opened and indexed, and the later stages made when an answer is not at hand.

In: the options that every command shares. Out: a ``Session``, whose parts are made lazily. Answers are kept in the
store by what they depend on: the tree's digest, this program's code, and the question.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from opwalker.model.build import BuildFacts
from opwalker.model.source import FileEntry, SourceRoot
from opwalker.model.walk import Gap, Op, SourceInfo

if TYPE_CHECKING:
    from opwalker.link.build_cuda import AskedArchitectures

Progress = Callable[[int, int | None, str], None] | None
Say = Callable[[str], None] | None
T = TypeVar("T")

#: How deep this program's own calls may nest. Bounds on the source count calls and definitions that stand one inside
#: the other; reading one of them takes a dozen calls here, and Python's default of 1,000 is less than the bounds allow.
STACK = 10_000

#: Files too large to read that an answer names.
_SAID = 3

#: What says how something is built.
BUILT = ("cmake", "toml", "py_builds")


class Options(Struct, frozen=True):
    """What every command shares."""

    source: str | None = None
    build: str = "cuda"
    defines: tuple[tuple[str, str | None], ...] = ()
    archs: tuple[str, ...] = ()
    jobs: int | None = None
    cache: Path | None = None


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


class OpsTable(Struct, frozen=True):
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
                if name.endswith((".py", ".lark", ".scm", ".h", ".md", ".j2")):
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
        told = (lambda stage, done, total: progress(done, total, stage)) if progress else None
        self.report = index(self.root, self.store, jobs=options.jobs, progress=told)
        for path, problem in [one for one in self.report.problems if one[1].kind == "too-large"][:_SAID]:
            self.say(f"{path} was not read: {problem.message}")
        self._states: dict[tuple[str, ...], str] = {}
        self._python_read = False
        #: The files of C++ that the workbench has read so far.
        self._read: set[str] = set()
        self.producers = registry.producers(registry.REGISTRY)
        self.source = SourceInfo(self.root.name, self.root.version, self.root.revision)

    @functools.cached_property
    def workbench(self):
        """The tools that read the tree, for the build asked for."""
        from opwalker.expand.workbench import Workbench
        from opwalker.link.fact_store import StoredFacts
        from opwalker.link.index import Index
        from opwalker.link.traced import TracedFacts
        from opwalker.views.build_side import build_view

        builds = self.builds
        folders = dict.fromkeys(folder for target in builds.targets for folder in target.include_dirs)
        facts = TracedFacts(StoredFacts(self.store, self.producers["cpp"], self.text))
        self._read = facts.read
        index = Index(facts, tuple(folders))
        return Workbench(
            index,
            build_view(builds, self._read_for(None), self._cuda.names)
            if self._cuda
            else build_view(builds, gates=self._gates),
            self.options.build,
            self.options.defines,
            self.kept_native,
        )

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

    def kept(
        self,
        question: str,
        kind: type[T],
        answer: Callable[[], T],
        languages: tuple[str, ...] = (),
        *,
        state: str | None = None,
    ) -> T:
        """The answer to a question, from the store when nothing that it depends on has changed: files in ``languages``
        (or with a name of that kind, and which files there are), or every file; or what ``state`` stands for."""
        key = self._key(question, state or self._state(languages))
        found = self.recall(key, kind)
        if found is None:
            found = answer()
            self.keep(key, found)
        return found

    def kept_native(self, question: str, kind: type[T], answer: Callable[[], T]) -> T:
        """The answer to a question that Python has no say in, but for what it says of builds: it holds until a file of
        C++ changes that was read on the way, or a name comes or goes anywhere. Where Python texts have been read on the
        way, it is kept for the whole tree as it is."""
        from opwalker.link.traced import Trace

        key, whole = self._key(question, "traced"), self._key(question, self._state(()))
        trace = self.recall(key, Trace)
        if trace is not None and self._traced(trace.paths) == trace.state:
            found = self.recall(f"{key}|{trace.state}", kind)
            if found is not None:
                self._read.update(trace.paths)
                return found
        found = self.recall(whole, kind)
        if found is None:
            others, self._python_read = self._python_read, False
            found = answer()
            if self._python_read:
                self.keep(whole, found)
            else:
                # Whatever the tools have read so far may have had its say.
                paths = tuple(sorted(self._read))
                trace = Trace(paths, self._traced(paths))
                self.keep(key, trace)
                self.keep(f"{key}|{trace.state}", found)
            self._python_read |= others
        return found

    def _traced(self, paths: Sequence[str]) -> str:
        """A digest of what some files of C++ say, of what the build files say, and of all names anywhere."""
        state = hashlib.blake2b(f"{self._state(BUILT)}\n{self._names}\n".encode(), digest_size=16)
        for path in paths:
            digest = self._code.get(path) or self.store.digest_of(path)
            state.update(f"{path}:{digest};".encode("utf-8", "surrogateescape"))
        return state.hexdigest()

    @functools.cached_property
    def _names(self) -> str:
        """A digest of the names that files of C++ hold, by file."""
        rows = "\n".join(f"{path}:{digest}" for digest, path in sorted(self.store.names_of_kind("named")))
        return hashlib.blake2b(rows.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    @functools.cached_property
    def _code(self) -> dict[str, str]:
        """Digests of C++ code: what stands behind the last word of it does not count."""
        return {path: digest for digest, path in self.store.names_of_kind("code")}

    def _key(self, question: str, state: str) -> str:
        # The folder is part of the key as little as the time is: only what was read and what read it.
        about = repr((self.options.build, self.options.defines, self.options.archs, self.root.name, self.root.version))
        return f"{question}|{about}|{state}"

    def recall(self, key: str, kind: type[T]) -> T | None:
        """What this program's code has kept under a key, which says all that the answer depends on; or None."""
        blob = self.store.result(f"{key}|{_program()}")
        if blob is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                return msgspec.msgpack.decode(blob, type=kind)
        return None

    def keep(self, key: str, answer: object) -> None:
        """Keep an answer under a key."""
        self.store.put_result(f"{key}|{_program()}", msgspec.msgpack.encode(answer))

    def about(self) -> str:
        """What every answer depends on besides the files: the options, and this program's code."""
        # The folder is part of the key as little as the time is: only what was read and what read it.
        options = self.options
        return repr((options.build, options.defines, options.archs, self.root.name, self.root.version, _program()))

    def _state(self, languages: tuple[str, ...]) -> str:
        """A digest of the contents that an answer depends on."""
        if not languages:
            return self.store.tree_digest()
        if languages not in self._states:
            from opwalker.facts.build_files import is_setup_script

            state = hashlib.blake2b(digest_size=16)
            named = {path for kind in languages for path in self.store.paths_with(kind)}
            if "py_builds" in languages:
                named.update(path for path in self.known if is_setup_script(path))
            rows = (
                f"{path}:{row[3]};" if row[2] in languages or path in named else path
                for path, row in sorted(self.known.items())
            )
            state.update("\n".join(rows).encode("utf-8", "surrogateescape"))
            self._states[languages] = state.hexdigest()
        return self._states[languages]

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
        return self._session.kept_native(f"op:{name}", Op, lambda: self._session.native.op(name))


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
