"""Answers kept in the store, each for as long as what it depends on stays the same.

In: a question, and what works out its answer. Out: the answer, worked out now or by an earlier run. What an answer
depends on is its key: the options, this program's own code, and the files that it was read from. Questions and their
tools are ``opwalker.asking``'s.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from opwalker.errors import InternalError
from opwalker.model.source import SourceRoot

if TYPE_CHECKING:
    from opwalker.expand.made import MadeFile
    from opwalker.facts.cpp_lines import Lines
    from opwalker.link.store import Store
    from opwalker.link.traced import Reads, Trace
    from opwalker.unchanged import Change, Version

T = TypeVar("T")

#: The question for what macros make.
MADE = "made"

#: Changed files that an answer is compared with.
_MOST_CHANGED = 24

#: ``(path, digest of the content, digest of its code)``.
FileState = tuple[str, str, str]

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


class Answers:
    """The answers about one source. Whoever derives from it gives what is declared here."""

    options: Options
    root: SourceRoot
    store: Store
    #: Every file of the source: ``path -> (size, mtime_ns, language, digest)``.
    known: Mapping[str, tuple[int, int, str, str]]
    producers: Mapping[str, str]
    #: What the tools have read of C++ so far, and whether they read any Python.
    _read: Reads
    _python_read: bool
    _states: dict[tuple[str, ...], str]

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

    def kept_native(self, question: str, kind: type[T], answer: Callable[[], T], moves: bool = False) -> T:
        """The answer to a question that Python has no say in, but for what it says of builds: it holds until a file of
        C++ changes in anything that was read on the way, or a name comes or goes that was asked for. With ``moves`` it
        is brought up to date where nothing of that has changed but the lines that things stand on. Where Python texts
        have been read on the way, it is kept for the whole tree as it is."""
        from opwalker.link.traced import Trace

        made = self._made_states if question != MADE else {}
        # Op lists are no C++: what they hold is part of every state.
        key = self._key(question, f"traced {self._state((*BUILT, 'yaml'))}")
        whole = self._key(question, self._state(()))
        trace = self.recall(key, Trace)
        if trace is not None:
            found = self.recall(f"{key}|{trace.files}", kind)
            if found is not None and (trace.files != self._files_state or dict(trace.made) != made):
                found = self._brought_up(found, trace, made, moves)
            if found is not None:
                self._read.update(self._now(trace))
                return found
        found = self.recall(whole, kind)
        if found is not None:
            # It was kept so because Python texts were read for it: that is so of every answer that rests on it.
            self._python_read = True
        else:
            others, self._python_read = self._python_read, False
            found = answer()
            if self._python_read:
                self.keep(whole, found)
            else:
                # Whatever the tools have read so far may have had its say.
                trace = self._read.trace(self._files_state, made.items())
                self.keep(key, trace)
                self.keep(f"{key}|{trace.files}", found)
                self._keep_files([*trace.whole, *(path for path, _ in trace.parts)] if moves else ())
            self._python_read |= others
        return found

    def said(self, path: str) -> str:
        """A digest of what a file of C++ says, with what macros make in it."""
        return f"{self._code.get(path) or self.store.digest_of(path)}:{self._made_states.get(path)}"

    # -- other states of the tree ------------------------------------------------------------------------------------

    def _brought_up(self, answer: T, trace: Trace, made: Mapping[str, str], moves: bool) -> T | None:
        """An answer with its lines as they are now; None where anything else has changed that it was read from, or
        where it holds more places than lines (without ``moves``) and any of these has moved."""
        from opwalker.link.moved import moved
        from opwalker.unchanged import moves_of

        changes = self._changes_since(trace.files)
        if changes is None:
            return None
        found = moves_of(trace, changes, made, self._made_names, exact=not moves)
        return found if found is None else moved(answer, found) if moves else answer

    def _now(self, trace: Trace) -> Trace:
        """The trace of an answer that still holds, with spans where their text is now: what is kept with it as a part
        is compared with the files as they are now."""
        changes = {one.path: one for one in self._changes_since(trace.files) or ()}
        if trace.files == self._files_state or not changes:
            return trace
        parts = ((path, changes[path].spans(held) if path in changes else held) for path, held in trace.parts)
        return replace(trace, parts=tuple(parts))

    def _changes_since(self, files: str) -> list[Change] | None:
        """The C++ files that have changed since a state of them; None where that is not known, or where they are too
        many to look at."""
        if files not in self._changed:
            rows = self.recall(f"files:{files}", tuple[FileState, ...])
            before = {path: (digest, code) for path, digest, code in rows or ()}
            paths = [path for path, code in self._code.items() if before.get(path, ("", ""))[1] != code]
            if before.keys() != self._code.keys() or len(paths) > _MOST_CHANGED:
                self._changed[files] = None
            else:
                found = [self._change(path, *before[path]) for path in sorted(paths)]
                self._changed[files] = None if None in found else found
        return self._changed[files]

    @functools.cached_property
    def _changed(self) -> dict[str, list[Change] | None]:
        return {}

    def _change(self, path: str, digest: str, code: str) -> Change | None:
        """What a file said in an earlier state, and what it says now; None where the earlier one is not known any
        more."""
        from opwalker.unchanged import Change

        text = self.recall(f"text:{code}", str)
        then = self._version(digest, text if text is not None else "")
        now = self._version(self.known[path][3], self.text_in_key(path))
        return Change(path, then, now) if then is not None and now is not None else None

    def _version(self, digest: str, text: str) -> Version | None:
        from opwalker.facts.cpp_scan import names
        from opwalker.model.cpp import CppFacts
        from opwalker.unchanged import Version

        blob = self.store.facts(digest, "cpp", self.producers["cpp"])
        if blob is None:
            return None
        facts = msgspec.msgpack.decode(blob, type=CppFacts)
        return Version(facts, text, frozenset(names(facts)))

    def _keep_files(self, paths: Iterable[str]) -> None:
        """Keep the state that all C++ files are in, and the texts of some."""
        if not self.has(f"files:{self._files_state}"):
            rows = ((path, self.known[path][3], code) for path, code in self._code.items())
            self.keep(f"files:{self._files_state}", tuple(rows))
        for path in paths:
            code = self._code.get(path)
            if code is not None and code not in self._texts_kept and not self.has(f"text:{code}"):
                self.keep(f"text:{code}", self.text_in_key(path))
                self._texts_kept.add(code)

    @functools.cached_property
    def _texts_kept(self) -> set[str]:
        return set()

    def _made_names(self, path: str) -> frozenset[str]:
        """The names of what macros make in a file."""
        return frozenset(name for one in self.made if one.path == path for name in one.plain_names())

    def still(self, value: object) -> str:
        """A digest of what a value says, which stays the same where lines of C++ files move and nothing else does."""
        from opwalker.link.moved import moved
        from opwalker.link.store_rows import value_digest

        found = moved(value, _Numbers(self._counted))
        return value_digest(value if found is None else found)

    def _counted(self, path: str) -> Callable[[int], int | None] | None:
        """The numbers from 1 of the lines of a file that count; None for a file that is none of C++."""
        digest = self._code.get(path)
        if digest is None:
            return None
        lines = self._kept_lines(digest) or self._lines_of(path, digest)
        return lambda line: None if (number := lines.number(line)) is None else number + 1

    def _kept_lines(self, digest: str) -> Lines | None:
        """The lines that count of a file with a digest."""
        from opwalker.facts.cpp_lines import Lines

        return self.recall(f"lines:{digest}", Lines)

    def _lines_of(self, path: str, digest: str) -> Lines:
        """The lines of a file that count."""
        from opwalker.facts.cpp_lines import read_lines

        if path not in self._lines:
            self._lines[path] = read_lines(self.text_in_key(path))
            self.keep(f"lines:{digest}", self._lines[path])
        return self._lines[path]

    @functools.cached_property
    def _lines(self) -> dict[str, Lines]:
        return {}

    def text_in_key(self, path: str) -> str:
        raise InternalError("whoever derives from Answers reads texts")

    @functools.cached_property
    def made(self) -> tuple[MadeFile, ...]:
        """What macros make in the tree: it has its say in every other answer, wherever it was read from."""
        from opwalker.expand.made import MadeFile
        from opwalker.link.traced import Reads

        others, self._read = self._read, Reads()
        found = self.kept_native(MADE, tuple[MadeFile, ...], self._read_made)
        self._read = others
        return found

    def _read_made(self) -> tuple[MadeFile, ...]:
        raise InternalError("whoever derives from Answers reads what macros make")

    @functools.cached_property
    def _made_states(self) -> dict[str, str]:
        """Digests of what macros make, by file; under no path, of all names that they make."""
        from opwalker.link.store_rows import value_digest

        whole = hashlib.blake2b(digest_size=16)
        states: dict[str, str] = {}
        for one in self.made:
            states[one.path] = value_digest(one)
            whole.update(repr((one.path, *one.names())).encode("utf-8", "surrogateescape"))
        return {**states, "": whole.hexdigest()}

    @functools.cached_property
    def _files_state(self) -> str:
        """What stands for all C++ code."""
        rows = "\n".join(f"{path}:{digest}" for path, digest in self._code.items())
        return hashlib.blake2b(rows.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def _names_of_kind(self, kind: str) -> set[str]:
        """All names of a kind in C++ files: gathering them takes longer than reading them again."""
        key = f"names of {kind}|{self._names_state}"
        found = self.recall(key, set[str])
        if found is None:
            found = self.store.distinct_names(kind)
            self.keep(key, sorted(found))
        return found

    @functools.cached_property
    def _names_state(self) -> str:
        """What stands for the names that files of C++ hold, by kind."""
        digests = "\n".join(digest for digest, _ in self.store.names_of_kind("named"))
        return hashlib.blake2b(digests.encode(), digest_size=16).hexdigest()

    @functools.cached_property
    def _code(self) -> dict[str, str]:
        """Digests of C++ code: what stands behind the last word of it does not count."""
        return {path: digest for digest, path in sorted(self.store.names_of_kind("code"), key=lambda row: row[1])}

    def _settings(self) -> str:
        # The folder is part of the key as little as the time is: only what was read and what read it.
        options = self.options
        return repr((options.build, options.defines, options.archs, self.root.name, self.root.version))

    def _key(self, question: str, state: str) -> str:
        return f"{question}|{self._settings()}|{state}"

    def recall(self, key: str, kind: type[T]) -> T | None:
        """What this program's code has kept under a key, which says all that the answer depends on; or None."""
        blob = self.store.result(f"{key}|{_program()}")
        if blob is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                return msgspec.msgpack.decode(blob, type=kind)
        return None

    def has(self, key: str) -> bool:
        """Whether anything is kept under a key."""
        return self.store.result(f"{key}|{_program()}") is not None

    def keep(self, key: str, answer: object) -> None:
        """Keep an answer under a key."""
        self.store.put_result(f"{key}|{_program()}", msgspec.msgpack.encode(answer))

    def about(self) -> str:
        """What every answer depends on besides the files: the options, and this program's code."""
        return f"{self._settings()}|{_program()}"

    @functools.cached_property
    def _sorted(self) -> list[tuple[str, tuple[int, int, str, str]]]:
        return sorted(self.known.items())

    @functools.cached_property
    def _listing(self) -> bytes:
        """Which files there are."""
        return "".join(f"{path}\n" for path, _ in self._sorted).encode("utf-8", "surrogateescape")

    def _state(self, languages: tuple[str, ...]) -> str:
        """A digest of the contents that an answer depends on."""
        if not languages:
            return self.store.tree_digest()
        if languages not in self._states:
            from opwalker.facts.build_files import is_setup_script

            named = {path for kind in languages for path in self.store.paths_with(kind)}
            if "py_builds" in languages:
                named.update(path for path in self.known if is_setup_script(path))
            said = [f"{path}:{row[3]}" for path, row in self._sorted if row[2] in languages or path in named]
            state = hashlib.blake2b(self._listing, digest_size=16)
            state.update("\n".join(said).encode("utf-8", "surrogateescape"))
            self._states[languages] = state.hexdigest()
        return self._states[languages]


class _Numbers(dict):
    """How lines are numbered in each file that is asked about."""

    def __init__(self, of: Callable[[str], Callable[[int], int | None] | None]) -> None:
        super().__init__()
        self._of = of

    def get(self, path, default=None):
        if path not in self:
            self[path] = self._of(path)
        return self[path]
