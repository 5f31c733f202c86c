"""Brings the store of facts up to date with a source root: what ``opwalker index`` runs, and every command first.

In: a ``SourceRoot``, its ``Store`` and a registry of extractors. Out: the store with the facts of every file, and an
``IndexReport``. Files are found by ``source.discover``, compared by size and time with what the store knows, read by
worker processes (``facts.workers``) and written by this one. What facts mean is not looked at here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from opwalker.errors import InternalError
from opwalker.facts.registry import (
    PROBLEM,
    REGISTRY,
    Extractor,
    Registry,
    Round,
    named_problem,
    problem_name,
    producers,
    round_producer,
)
from opwalker.link.stamped import FactsGone, FactsInStore
from opwalker.link.store import FileRow, Store, StoreRebuilt
from opwalker.link.store_rows import FactsRow, tree_digest
from opwalker.model.source import FileEntry, Problem, SourceRoot

if TYPE_CHECKING:
    from opwalker.facts.workers_job import Hint

#: Rows are written when this many files, or this many bytes of facts, have gathered.
_WRITE_FILES = 400
_WRITE_BYTES = 4 << 20

#: A time that no file has: such a row never counts as unchanged.
_NEVER = -1

#: How often files are looked for whose facts another process has dropped meanwhile.
_MOST_PASSES = 3

#: The store's note with the problems of files that discovery left out.
_LEFT_OUT = "left out"

_READER = "opwalker.source.read:read"

#: Problems for which a file is never read in this process again.
_RISKY = ("worker-died", "timeout", "memory")

#: ``(stage, files done, files in all)``.
Progress = Callable[[str, int, int], None]


class IndexReport(Struct, frozen=True):
    """What a run of ``index`` found and did.

    ``files`` counts by language. ``read`` files were opened; ``changed`` of them are new or have other content;
    of ``reused`` files all facts were there; ``removed`` are there no more. ``problems`` are those of all files of the
    tree, sorted. ``seconds`` are by stage. ``scanned`` is false where a tree that cannot change was not looked at.
    """

    files: tuple[tuple[str, int], ...]
    read: int = 0
    changed: int = 0
    reused: int = 0
    removed: int = 0
    problems: tuple[tuple[str, Problem], ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()
    scanned: bool = True


def index(
    root: SourceRoot,
    store: Store,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    registry: Registry = REGISTRY,
) -> IndexReport:
    """Give ``store`` the facts of every file of ``root``, reading only what has changed.

    ``jobs`` is the number of worker processes (default: one for each processor). Raises InputError when the root cannot
    be listed, InternalError when extraction cannot be run at all; what is wrong with a file becomes a problem.
    """
    try:
        return _Run(root, store, jobs, progress, registry).run()
    except StoreRebuilt:
        # The store is empty now, and has said so: once more from the start.
        return _Run(root, store, jobs, progress, registry).run()


class _Run:
    """One run. ``_digests`` are the contents of the tree as far as they are known."""

    def __init__(
        self, root: SourceRoot, store: Store, jobs: int | None, progress: Progress | None, registry: Registry
    ) -> None:
        self._root = root
        self._store = store
        self._jobs = jobs
        self._progress = progress
        self._registry = registry
        self._producers = producers(registry)
        self._all_producers = _key(self._producers, registry.rounds)
        self._digests: dict[str, str] = {}
        self._seconds: dict[str, float] = {}
        self._current = "other"
        self._since = time.perf_counter()
        self._complete_before = False
        self._risky: frozenset[str] = frozenset()
        self._read: set[str] = set()
        self._made: set[str] = set()
        self._changed: set[str] = set()
        self._without_facts: set[str] = set()
        store.use_producers(self._producers.values())

    def run(self) -> IndexReport:
        complete = self._complete_before = self._store.is_complete(self._all_producers)
        if complete and self._root.immutable:
            return replace(self._report(0), scanned=False)
        with self._stage("scan"):
            from opwalker.source.discover import discover

            found = discover(self._root)
            self._note_left_out(found.problems)
        with self._stage("compare"):
            entries = {entry.path: entry for entry in found.entries}
            known = self._store.known()
            self._digests = {path: known[path][3] for path in entries if path in known}
            todo = [entry for entry in found.entries if _differs(entry, known.get(entry.path))]
            removed = known.keys() - entries.keys()
        if todo or removed or not complete:
            risky = self._store.names_of_kind(PROBLEM, any_producer=True)
            self._risky = frozenset(path for name, path in risky if name.startswith(_RISKY))
            self._extract(todo, self._registry.extractors, known, "facts")
        if self._changed or removed or not complete:
            with self._stage("write"):
                self._store.update_files({}, removed)
            affected = {entries[path].language for path in self._changed} | {known[path][2] for path in removed}
            rounds = [r for r in self._registry.rounds if not complete or r.language in affected]
            self._complete(entries, known, rounds)
        return self._report(len(removed))

    def _complete(
        self, entries: Mapping[str, FileEntry], known: Mapping[str, FileRow], rounds: Sequence[Round]
    ) -> None:
        """Make the facts that are still missing, and the rounds; then note that all is there."""
        for _ in range(_MOST_PASSES):
            self._extract(self._missing(entries), self._registry.extractors, known, "facts")
            try:
                whole = [self._again(round_, entries, known) for round_ in rounds]
            except FactsGone:
                whole, self._complete_before = [False], False
            # Another process may have dropped facts that this one counted on.
            if all(whole) and not self._missing(entries):
                self._store.mark_complete(self._all_producers, tree_digest(self._digests))
                break
        with self._stage("finish"):
            self._store.tree_digest()
            self._store.prune()

    def _missing(self, entries: Mapping[str, FileEntry]) -> list[FileEntry]:
        """The files of which some facts are not there."""
        with self._stage("compare"):
            # Where all was there before, all but what has changed still is.
            looked_at = [entries[path] for path in self._changed] if self._complete_before else entries.values()
            kept = self._kept(self._registry.extractors, looked_at)
            return [entry for entry in looked_at if self._lacks(entry, kept)]

    def _kept(
        self, extractors: Mapping[str, Sequence[Extractor]], entries: Iterable[FileEntry]
    ) -> dict[str, set[str]]:
        """The digests of contents of which facts are kept, by kind: the kinds that some files have facts of."""
        languages = {entry.language for entry in entries}
        kinds = {extractor.kind for language in languages for extractor in extractors.get(language, ())}
        return {kind: self._store.digests_with_facts(kind, self._producers[kind]) for kind in sorted(kinds)}

    def _lacks(self, entry: FileEntry, kept: Mapping[str, set[str]]) -> bool:
        row = self._registry.extractors.get(entry.language, ())
        return any(self._digests[entry.path] not in kept[extractor.kind] for extractor in row)

    def _extract(
        self,
        tasks: Sequence[FileEntry],
        extractors: Mapping[str, tuple[Extractor, ...]],
        known: Mapping[str, FileRow],
        stage: str,
        hints: Mapping[str, Hint] | None = None,
    ) -> None:
        """Read ``tasks``, run ``extractors`` where their facts are missing, and write what comes of it.

        With ``hints`` they are run in any case, and what they make takes the place of what is there.
        """
        if not tasks:
            return
        from opwalker.facts.workers import extract_all
        from opwalker.facts.workers_job import Job, Limits

        kept = {} if hints else self._kept(extractors, tasks)
        job = Job(self._root.path, _READER, extractors, kept, Limits(), hints or {})
        progress = self._progress
        shown = (lambda done, total: progress(stage, done, total)) if progress else None
        facts: list[FactsRow] = []
        files: dict[str, FileRow] = {}
        size = 0
        with (
            self._stage(stage),
            contextlib.closing(
                extract_all(tasks, job, jobs=self._jobs, risky=self._risky, progress=shown)
            ) as extracted,
        ):
            for found in extracted:
                entry = found.entry
                mtime_ns = _NEVER if found.passing else entry.mtime_ns
                row = (entry.size, mtime_ns, entry.language, found.digest)
                before = known.get(entry.path)
                self._read.add(entry.path)
                self._digests[entry.path] = found.digest
                if before is None or before[3] != found.digest:
                    self._changed.add(entry.path)
                    if not self._registry.extractors.get(entry.language):
                        self._without_facts.add(entry.path)
                if row != before:
                    files[entry.path] = row
                for made in found.made:
                    self._made.add(entry.path)
                    facts.append((found.digest, made.kind, self._producers[made.kind], made.blob, made.names))
                    size += len(made.blob)
                if len(files) >= _WRITE_FILES or size >= _WRITE_BYTES:
                    self._write(facts, files, bool(hints))
                    facts, files, size = [], {}, 0
            self._write(facts, files, bool(hints))

    def _write(self, facts: list[FactsRow], files: dict[str, FileRow], replace_facts: bool) -> None:
        with self._stage("write"):
            # Facts first: a row of a file promises that its facts are there.
            self._store.put_facts(facts, replace=replace_facts)
            self._store.update_files(files)

    def _again(self, round_: Round, entries: Mapping[str, FileEntry], known: Mapping[str, FileRow]) -> bool:
        """Read again those files whose fuller facts are needed, until no further one is; false if some are lacking."""
        extractor = round_.extractor
        (of_first,) = [e for e in self._registry.extractors[round_.language] if e.kind == round_.first]
        with self._stage("link"):
            first = self._facts_in(of_first, round_.language)
            found = self._facts_in(extractor, round_.language)
        # What was found for another state of the tree may hold more than is needed now, and that does no harm.
        wanted = self._as_before(extractor, first.keys() - found.keys(), known)
        asked: dict[str, frozenset[str]] = {}
        prepared: Any = None
        while True:
            asked |= {path: names | asked.get(path, frozenset()) for path, names in wanted.items()}
            tasks, hints = self._hinted(wanted, extractor, entries)
            self._extract(tasks, {round_.language: (extractor,)}, known, extractor.kind, hints)
            with self._stage("link"):
                found.renew()
                if not asked.keys() <= found.keys():
                    return False
                if prepared is None:
                    if _state_of(round_, first, found) == self._store.note(f"round {extractor.kind}"):
                        # For these very facts nothing more was needed.
                        return True
                    prepared = _loaded(round_.prepare)(first, self._kept_parts(round_))
                wanted = {
                    path: names
                    for path, names in _loaded(round_.needed)(first, found, prepared).items()
                    if path in first and not (path in asked and names <= asked[path])
                }
            if not wanted:
                with self._stage("finish"):
                    for part, blob in _loaded(round_.keep)(prepared).items():
                        self._store.put_result(part_key(round_, part), blob)
                    self._store.set_note(f"round {extractor.kind}", _state_of(round_, first, found))
                return True

    def _kept_parts(self, round_: Round) -> Callable[[str], bytes | None]:
        return lambda part: self._store.result(part_key(round_, part))

    def _as_before(
        self, extractor: Extractor, paths: Set[str], known: Mapping[str, FileRow]
    ) -> dict[str, frozenset[str]]:
        """For changed files, the names that they were read for: mostly the same are wanted, and asking takes time."""
        before = {path: known[path][3] for path in sorted(paths & self._changed & known.keys())}
        blobs = (
            (path, self._store.facts(digest, extractor.kind, self._producer(extractor)))
            for path, digest in before.items()
        )
        facts = _decoded(extractor, ((path, blob) for path, blob in blobs if blob is not None))
        return {path: frozenset(old.watched) for path, old in facts}

    def _hinted(
        self, wanted: Mapping[str, frozenset[str]], extractor: Extractor, entries: Mapping[str, FileEntry]
    ) -> tuple[list[FileEntry], dict[str, Hint]]:
        """One task for each content, with all names that are wanted of the files that have it."""
        from opwalker.facts.workers_job import Hint

        paths: dict[str, str] = {}
        names: dict[str, frozenset[str]] = {}
        for path in sorted(wanted):
            digest = self._digests[path]
            paths.setdefault(digest, path)
            names[digest] = names.get(digest, frozenset()) | wanted[path]
        hints = {path: Hint(names[digest], digest, self._facts_of(path, extractor)) for digest, path in paths.items()}
        return [entries[path] for path in hints], hints

    def _facts_in(self, extractor: Extractor, language: str) -> FactsInStore[Any]:
        """The facts of the files in a language: one of another may have the same content, an empty one."""
        return FactsInStore(self._store, extractor.kind, self._producer(extractor), language, _loaded(extractor.facts))

    def _facts_of(self, path: str, extractor: Extractor) -> bytes | None:
        return self._store.facts(self._digests[path], extractor.kind, self._producer(extractor))

    def _producer(self, extractor: Extractor) -> str:
        return self._producers[extractor.kind]

    def _note_left_out(self, problems: Sequence[tuple[str, Problem]]) -> None:
        text = json.dumps([(path, problem_name(problem)) for path, problem in problems]) if problems else ""
        if text != (self._store.note(_LEFT_OUT) or ""):
            self._store.set_note(_LEFT_OUT, text)

    def _report(self, removed: int) -> IndexReport:
        files = self._store.languages()
        return IndexReport(
            files=tuple(files.items()),
            read=len(self._read),
            changed=len(self._changed),
            reused=sum(files.values()) - len(self._made | self._without_facts),
            removed=removed,
            problems=tuple(problems_of(self._store)),
            seconds=tuple(self._seconds.items()),
        )

    @contextlib.contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """Time spent within goes to this stage, and not to the one around it."""
        outer = self._current
        self._charge(outer)
        self._current = name
        try:
            yield
        finally:
            self._charge(name)
            self._current = outer

    def _charge(self, stage: str) -> None:
        now = time.perf_counter()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._since
        self._since = now


def problems_of(store: Store) -> list[tuple[str, Problem]]:
    """``(path, problem)`` of every file of the tree, sorted, those that were left out included."""
    rows = [(path, name) for name, path in store.names_of_kind(PROBLEM)]
    rows += json.loads(store.note(_LEFT_OUT) or "[]")
    found = {(path, named_problem(name)) for path, name in rows}
    return sorted(found, key=lambda row: (row[0], row[1].line, row[1].column, row[1].kind, row[1].message))


def _decoded(extractor: Extractor, rows: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, Any]]:
    import msgspec

    decode = msgspec.msgpack.Decoder(_loaded(extractor.facts)).decode
    return ((path, decode(blob)) for path, blob in rows)


def _loaded(name: str) -> Any:
    from opwalker.facts.workers_job import CannotLoad, load

    try:
        return load(name)
    except CannotLoad as error:
        raise InternalError(str(error)) from error


def _differs(entry: FileEntry, row: FileRow | None) -> bool:
    return row is None or row[:3] != (entry.size, entry.mtime_ns, entry.language)


def _key(by_kind: Mapping[str, str], rounds: Sequence[Round]) -> str:
    """The digest of all producers together."""
    whole = repr((sorted(by_kind.items()), [round_producer(round_) for round_ in rounds]))
    return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


def _state_of(round_: Round, first: FactsInStore[Any], found: FactsInStore[Any]) -> str:
    """What stands for the facts that a round knows, and for the code that says what it needs."""
    return f"{round_producer(round_)} {first.state()} {found.state()}"


def part_key(round_: Round, part: str) -> str:
    """The key under which a part is kept that a round's code made."""
    return f"{part}|{round_producer(round_)}"
