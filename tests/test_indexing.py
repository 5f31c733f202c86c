"""Indexing: only what changed is read, and whatever happens meanwhile, the store ends up as after one clean run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import opwalker
from opwalker.errors import InputError, InternalError
from opwalker.facts import workers_job
from opwalker.facts.registry import Extractor, Registry, Round, producer
from opwalker.indexing import IndexReport, index, problems_of
from opwalker.link.store import Store
from opwalker.model.source import Problem, SourceFile, SourceRoot

HERE = __name__
PACKAGE_FOLDER = str(Path(opwalker.__file__).parents[1])


@dataclass(frozen=True, slots=True)
class Words:
    words: tuple[str, ...] = ()
    process: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """``lines`` are those that hold one of the names in ``watched``; ``fresh`` the names that this reading added."""

    lines: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def words(source: SourceFile) -> Words:
    if source.text.startswith("die"):
        os._exit(1)
    problems = (Problem("odd", "an odd file", 1),) if source.text.startswith("odd") else ()
    return Words(tuple(source.text.split()), os.getpid(), source.problems + problems)


def find(source: SourceFile, watch: frozenset[str], known: Found | None) -> Found:
    if source.text.startswith("second die"):
        os._exit(1)
    before = frozenset(known.watched) if known else frozenset()
    watched = watch | before
    lines = tuple(line for line in source.text.splitlines() if not watched.isdisjoint(line.split()))
    return Found(lines, tuple(sorted(watched)), tuple(sorted(watched - before)), source.problems)


def names(facts: Words | Found) -> list[tuple[str, str]]:
    if isinstance(facts, Found):
        return [(line, "line") for line in facts.lines]
    return [(word, "word") for word in dict.fromkeys(facts.words)]


def users(first: Mapping[str, Words], kept: Callable[[str], bytes | None]) -> dict[str, set[str]]:
    """``{word: files that hold it}``."""
    assert kept("users") in (None, b"kept")
    found: dict[str, set[str]] = {}
    for path, facts in first.items():
        for word in facts.words:
            found.setdefault(word, set()).add(path)
    return found


def to_keep(prepared: Mapping[str, set[str]]) -> dict[str, bytes]:
    """One part, to be handed to ``users`` next time."""
    return {"users": b"kept"}


def needed(
    first: Mapping[str, Words], found: Mapping[str, Found], prepared: Mapping[str, set[str]]
) -> dict[str, frozenset[str]]:
    """Files that say "start" for nothing; files that use a name which a found line defines ("def x") for that name."""
    wanted: dict[str, set[str]] = {path: {"start"} for path in prepared.get("start", ())}
    for facts in found.values():
        for line in facts.lines:
            for word in line.split("def ")[1:]:
                for path in prepared[word.split()[0]]:
                    wanted.setdefault(path, set()).add(word.split()[0])
    return {
        path: frozenset(asked)
        for path, asked in wanted.items()
        if path not in found or not asked <= set(found[path].watched)
    }


def extractor(kind: str, function: str, facts: str, *sources: str) -> Extractor:
    return Extractor(kind, f"{HERE}:{function}", f"{HERE}:{facts}", sources or ("facts/registry.py",))


WORDS = extractor("words", "words", "Words")
NEWER_WORDS = extractor("words", "words", "Words", "facts/registry.py", "errors.py")
FIND = extractor("find", "find", "Found")
PLAIN = Registry({"cuda": (WORDS,), "cpp": (WORDS,), "python": (WORDS,)})
NEWER = Registry({"cuda": (NEWER_WORDS,), "cpp": (NEWER_WORDS,), "python": (NEWER_WORDS,)})
ROUND = Round("python", "words", FIND, f"{HERE}:needed", f"{HERE}:users", f"{HERE}:to_keep", ("indexing.py",))
ROUNDS = Registry(PLAIN.extractors, (ROUND,))
FIND_PRODUCER = producer(FIND)


class Place:
    """A tree in a folder, its cache, and how to index it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tree"
        self.folder.mkdir()
        self.cache = folder / "cache"
        self.root = SourceRoot(str(self.folder), "tree")
        self.lines: list[str] = []

    def write(self, files: Mapping[str, str], age: float = 1000) -> None:
        for path, text in files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            self.set_age(path, age)

    def set_age(self, path: str, seconds: float) -> None:
        then = time.time_ns() - int(seconds * 1e9)
        os.utime(self.folder / path, ns=(then, then))

    def open(self) -> Store:
        return Store.open(self.root, self.cache, self.lines.append)

    def index(self, registry: Registry = PLAIN, **options) -> IndexReport:
        store = self.open()
        try:
            return index(self.root, store, registry=registry, **options)
        finally:
            store.close()

    def content(self, kind: str = "words") -> dict[str, tuple[str, tuple[str, ...]]]:
        """All facts and names by path, without what differs from run to run."""
        store = self.open()
        named: dict[str, list[str]] = {}
        for name, path in store.names_of_kind("word"):
            named.setdefault(path, []).append(name)
        found = {}
        for path, (_, _, language, digest) in store.known().items():
            rows = store._db.execute(
                "SELECT blob FROM facts WHERE digest = ? AND kind = ? ORDER BY id DESC", (digest, kind)
            ).fetchall()
            facts = msgspec.msgpack.decode(rows[0][0][4:], type=Words) if rows else Words()
            found[path] = (language, facts.words, tuple(sorted(named.get(path, ()))), facts.problems)
        store.close()
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


SMALL = {"a.cu": "kernel a", "sub/b.h": "header b", "c.py": "python c", "CMakeLists.txt": "project(x)"}


def brief(report: IndexReport) -> tuple[int, int, int, int]:
    return report.read, report.changed, report.reused, report.removed


def test_a_first_run_reads_everything(place: Place) -> None:
    place.write(SMALL)
    report = place.index()
    assert brief(report) == (4, 4, 0, 0)
    assert report.files == (("cmake", 1), ("cpp", 1), ("cuda", 1), ("python", 1))
    assert report.problems == () and report.scanned
    assert {"scan", "facts", "write"} <= dict(report.seconds).keys()
    assert place.content()["sub/b.h"] == ("cpp", ("header", "b"), ("b", "header"), ())
    assert place.lines == []


def test_a_second_run_reads_nothing(place: Place) -> None:
    place.write(SMALL)
    first = place.index()
    content = place.content()
    second = place.index()
    assert brief(second) == (0, 0, 4, 0)
    assert (second.files, second.problems) == (first.files, first.problems)
    assert place.content() == content


def test_one_edited_file_costs_one_file(place: Place) -> None:
    place.write(SMALL)
    place.index()
    place.write({"sub/b.h": "header changed"}, age=500)
    assert brief(place.index()) == (1, 1, 3, 0)
    assert place.content()["sub/b.h"][2] == ("changed", "header")
    assert brief(place.index()) == (0, 0, 4, 0)


def test_an_edit_that_keeps_size_and_is_young_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written, indexed and written again within one tick of the file system's clock."""
    monkeypatch.setattr(workers_job, "_TICK_NS", 24 * 3600 * 10**9)
    place.write({"a.cu": "one"}, age=0)
    place.index()
    time_of_it = (place.folder / "a.cu").stat().st_mtime_ns
    (place.folder / "a.cu").write_text("two")
    os.utime(place.folder / "a.cu", ns=(time_of_it, time_of_it))
    place.index()
    assert place.content()["a.cu"][1] == ("two",)


def test_a_new_time_alone_costs_a_digest(place: Place) -> None:
    place.write(SMALL)
    place.index()
    place.set_age("a.cu", 10)
    assert brief(place.index()) == (1, 0, 4, 0)
    assert brief(place.index()) == (0, 0, 4, 0)


def test_a_renamed_file_keeps_its_facts(place: Place) -> None:
    place.write(SMALL)
    place.index()
    (place.folder / "a.cu").rename(place.folder / "sub" / "moved.cu")
    assert brief(place.index()) == (1, 1, 4, 1)
    content = place.content()
    assert "a.cu" not in content and content["sub/moved.cu"][2] == ("a", "kernel")


def test_a_removed_file_goes_and_comes_back_free(place: Place) -> None:
    place.write(SMALL)
    place.index()
    (place.folder / "a.cu").unlink()
    assert brief(place.index()) == (0, 0, 3, 1)
    assert "a.cu" not in place.content()
    place.write({"a.cu": "kernel a"})
    assert brief(place.index()) == (1, 1, 4, 0)


def test_an_empty_tree_and_one_that_was_emptied(place: Place) -> None:
    assert brief(place.index()) == (0, 0, 0, 0)
    place.write(SMALL)
    place.index()
    for path in SMALL:
        (place.folder / path).unlink()
    assert brief(place.index()) == (0, 0, 0, 4)
    assert place.content() == {}


def test_a_root_that_is_not_there(place: Place) -> None:
    place.folder.rmdir()
    with pytest.raises(InputError, match="cannot list"):
        place.index()


def test_problems_are_told_in_every_run(place: Place) -> None:
    outside = place.folder.parent / "outside.cu"
    outside.write_text("x")
    place.write({**SMALL, "odd.cu": "odd one"})
    (place.folder / "link\nwith a\ttab.cu").symlink_to(outside)
    first = place.index()
    kinds = [(path, problem.kind, problem.line) for path, problem in first.problems]
    assert kinds == [("link\nwith a\ttab.cu", "outside-root", 0), ("odd.cu", "odd", 1)]
    assert place.index().problems == first.problems
    place.write({"odd.cu": "even now"}, age=500)
    assert [path for path, _ in place.index().problems] == ["link\nwith a\ttab.cu"]
    (place.folder / "link\nwith a\ttab.cu").unlink()
    assert place.index().problems == ()


def test_a_file_that_kills_its_reader_is_read_once(place: Place) -> None:
    place.write({**SMALL, "bad.cu": "die", "worse.cu": "die twice"})
    report = place.index()
    assert [(path, problem.kind) for path, problem in report.problems] == [
        ("bad.cu", "worker-died"),
        ("worse.cu", "worker-died"),
    ]
    again = place.index()
    assert brief(again) == (0, 0, 6, 0) and again.problems == report.problems


def test_a_file_that_killed_its_reader_is_never_read_in_this_process(place: Place) -> None:
    place.write({**SMALL, "bad.cu": "die"})
    place.index()
    # Newer code, and one file: this process would end if it read the file itself.
    for path in SMALL:
        (place.folder / path).unlink()
    report = place.index(NEWER)
    assert report.read == 1 and [problem.kind for _, problem in report.problems] == ["worker-died"]
    place.write({"bad.cu": "die another way"}, age=500)
    assert [problem.kind for _, problem in place.index(NEWER).problems] == ["worker-died"]
    place.write({"bad.cu": "live"}, age=400)
    assert place.index(NEWER).problems == ()


def test_newer_code_reads_all_again_and_older_facts_are_not_met(place: Place) -> None:
    place.write(SMALL)
    place.index()
    assert brief(place.index(NEWER)) == (3, 0, 1, 0)
    assert brief(place.index(NEWER)) == (0, 0, 4, 0)
    assert brief(place.index(PLAIN)) == (0, 0, 4, 0)


def test_an_unreadable_file_is_tried_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(SMALL)
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: real("/nowhere" if str(path).endswith("a.cu") else path, *rest))
    report = place.index()
    assert [(path, problem.kind) for path, problem in report.problems] == [("a.cu", "unreadable")]
    assert brief(place.index()) == (1, 0, 4, 0)
    monkeypatch.undo()
    assert brief(place.index()) == (1, 1, 3, 0)
    assert place.content()["a.cu"][1] == ("kernel", "a")
    assert place.index().problems == ()


def test_an_immutable_root_is_looked_at_once(place: Place) -> None:
    place.write({**SMALL, "odd.cu": "odd one"})
    place.root = SourceRoot(str(place.folder), "tree", immutable=True)
    first = place.index()
    assert first.scanned and len(first.problems) == 1
    for path in SMALL:
        (place.folder / path).unlink()
    second = place.index()
    assert not second.scanned
    assert brief(second) == (0, 0, 5, 0)
    assert (second.files, second.problems) == (first.files, first.problems)
    # Newer code has to look again.
    assert place.index(NEWER).scanned


def test_an_immutable_root_that_was_left_half_done_is_finished(place: Place) -> None:
    place.write({f"{n}.cu": f"word{n}" for n in range(50)})
    place.root = SourceRoot(str(place.folder), "tree", immutable=True)

    def stop(stage: str, done: int, total: int) -> None:
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.index(progress=stop)
    report = place.index()
    assert report.scanned and len(place.content()) == 50


def found_in(place: Place) -> dict[str, Found]:
    store = place.open()
    index(place.root, store, registry=ROUNDS)
    rows = {path: msgspec.msgpack.decode(blob, type=Found) for path, blob in store.facts_by_path("find", FIND_PRODUCER)}
    assert set(store.paths_with("line")) == {path for path, facts in rows.items() if facts.lines}
    store.close()
    return rows


def lines_in(place: Place) -> dict[str, tuple[str, ...]]:
    return {path: facts.lines for path, facts in found_in(place).items()}


#: a.py defines one, which b.py and c.py use; b.py thereby defines two, which c.py uses.
CHAIN = {
    "a.py": "start def one",
    "b.py": "one def two\nother",
    "c.py": "two or three\none",
    "d.py": "three def one_more",
    "a.cu": "start def one",
}
CHAIN_LINES = {
    "a.py": ("start def one",),
    "b.py": ("one def two",),
    "c.py": ("two or three", "one"),
}


def test_rounds_go_on_until_nothing_new_is_needed(place: Place) -> None:
    place.write(CHAIN)
    found = found_in(place)
    lines = {path: facts.lines for path, facts in found.items() if path.endswith(".py")}
    assert lines == CHAIN_LINES
    # c.py was read for one name, and in the next round for the other alone.
    assert found["c.py"].watched == ("one", "two") and found["c.py"].fresh == ("two",)
    assert brief(place.index(ROUNDS)) == (0, 0, 5, 0)


def test_rounds_read_again_only_what_is_new(place: Place) -> None:
    place.write(CHAIN)
    place.index(ROUNDS)
    place.write({"c.py": "one def three"}, age=500)
    report = place.index(ROUNDS)
    assert (report.read, report.changed) == (2, 1)
    lines = lines_in(place)
    assert lines["c.py"] == ("one def three",) and lines["d.py"] == ("three def one_more",)


def test_rounds_are_left_out_when_their_language_is_not_concerned(place: Place) -> None:
    place.write(CHAIN)
    place.index(ROUNDS)
    broken = Registry(PLAIN.extractors, (replace(ROUND, prepare=f"{HERE}:nowhere"),))
    place.write({"a.cu": "something else"}, age=500)
    assert brief(place.index(broken)) == (1, 1, 4, 0)
    (place.folder / "a.cu").unlink()
    assert brief(place.index(broken)) == (0, 0, 4, 1)
    (place.folder / "d.py").unlink()
    with pytest.raises(InternalError, match="nowhere"):
        place.index(broken)


def test_files_of_one_content_are_read_once_for_the_names_of_all(place: Place) -> None:
    place.write({**CHAIN, "copy/b.py": CHAIN["b.py"], "copy/c.py": CHAIN["c.py"]})
    found = found_in(place)
    assert found["copy/c.py"] == found["c.py"] and found["c.py"].lines == CHAIN_LINES["c.py"]


def test_a_file_that_kills_its_second_reader_is_asked_once(place: Place) -> None:
    place.write({**CHAIN, "bad.py": "second die one"})
    report = place.index(ROUNDS)
    assert [(path, problem.kind) for path, problem in report.problems] == [("bad.py", "worker-died")]
    lines = lines_in(place)
    assert lines["c.py"] == CHAIN_LINES["c.py"] and lines["bad.py"] == ()
    place.write({"d.py": "other"}, age=500)
    assert place.index(ROUNDS).read == 1


def test_rounds_in_a_tree_without_such_files(place: Place) -> None:
    place.write({"a.cu": "x"})
    assert brief(place.index(ROUNDS)) == (1, 1, 0, 0)


def test_a_round_whose_function_is_not_there(place: Place) -> None:
    place.write(CHAIN)
    broken = Registry(PLAIN.extractors, (replace(ROUND, needed=f"{HERE}:nowhere"),))
    with pytest.raises(InternalError, match="nowhere"):
        place.index(broken)


def test_facts_that_another_process_dropped_are_made_again(place: Place) -> None:
    place.write(SMALL)
    place.index()
    content = place.content()
    store = place.open()
    for table in ("facts", "names", "has"):
        store._db.execute(f"DELETE FROM {table}")
    store.set_note("complete", "no more")
    store.close()
    assert place.index().read == 3
    assert place.content() == content


def test_a_store_found_damaged_on_the_way_is_made_anew(place: Place) -> None:
    place.write({f"{n}.cu": f"word{n} " * 50 for n in range(300)})
    place.index()
    content = place.content()
    store = place.open()
    path = store.path
    first_page = store._db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'files'").fetchone()[0]
    store.close()
    with open(path, "r+b") as file:
        file.seek((first_page - 1) * 4096)
        file.write(b"\x33" * 4096)
    report = place.index()
    assert len(place.lines) == 1 and "damaged" in place.lines[0]
    assert report.changed == 300
    assert place.content() == content


def test_without_a_cache_folder_the_facts_are_kept_for_the_run(place: Place) -> None:
    place.write(SMALL)
    place.cache.write_text("in the way")
    store = place.open()
    assert brief(index(place.root, store, registry=PLAIN)) == (4, 4, 0, 0)
    assert store.paths_of("kernel", ["word"]) == ["a.cu"]
    assert brief(index(place.root, store, registry=PLAIN)) == (0, 0, 4, 0)
    store.close()
    assert len(place.lines) == 1


def test_progress_counts_up_to_the_end(place: Place) -> None:
    place.write({f"{n}.py": "start" for n in range(30)} | {"a.cu": "x"})
    steps: list[tuple[str, int, int]] = []
    place.index(ROUNDS, progress=lambda *step: steps.append(step))
    assert [step for step in steps if step[0] == "facts"] == [("facts", n, 31) for n in range(1, 32)]
    assert steps[-1] == ("find", 1, 1)


CHILD = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, sys.argv[2])
import child_facts
from pathlib import Path
from opwalker.facts import workers_job
from opwalker.facts.registry import Extractor, Registry
from opwalker.indexing import index
from opwalker.link.store import Store
from opwalker.model.source import SourceRoot
words = Extractor("words", "child_facts:words", "child_facts:Words", ("facts/registry.py",))
registry = Registry({"cuda": (words,)})
root = SourceRoot(sys.argv[3], "tree")
print("ready", flush=True)
store = Store.open(root, Path(sys.argv[4]), print, timeout=600)
report = index(root, store, registry=registry, jobs=2)
store.close()
print(report.read)
"""

CHILD_FACTS = """
import time
from dataclasses import dataclass

@dataclass(frozen=True)
class Words:
    words: tuple = ()
    process: int = 0
    problems: tuple = ()

def words(source):
    time.sleep(0.0004)
    return Words(tuple(source.text.split()))

def names(facts):
    return [(word, "word") for word in facts.words]
"""


@pytest.fixture
def child(place: Place, tmp_path: Path) -> Callable[[], subprocess.Popen]:
    """Starts a process that indexes the tree, with small steps between its writes."""
    (tmp_path / "child_facts.py").write_text(CHILD_FACTS)
    place.write({f"d{n % 7}/{n}.cu": f"word{n} of file" for n in range(1500)})
    small_steps = CHILD.replace("root =", "import opwalker.indexing\nopwalker.indexing._WRITE_FILES = 50\nroot =", 1)

    def start() -> subprocess.Popen:
        arguments = [PACKAGE_FOLDER, str(tmp_path), str(place.folder), str(place.cache)]
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(small_steps), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    return start


def clean(place: Place) -> dict:
    """What the store must hold after all."""
    return {
        path: ("cuda", tuple(text.split()), tuple(sorted(text.split())), ())
        for path, text in ((f"d{n % 7}/{n}.cu", f"word{n} of file") for n in range(1500))
    }


def test_killed_again_and_again_it_ends_as_after_one_clean_run(place: Place, child) -> None:
    reached = []
    for round_ in range(10):
        process = child()
        time.sleep(0.02 + 0.04 * round_)
        # The parent alone: its workers are to end by themselves.
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=600)
        store = place.open()
        assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        known = store.known()
        kept = {row[0] for row in store._db.execute("SELECT digest FROM facts")}
        assert {row[3] for row in known.values()} <= kept
        reached.append(len(known))
        store.close()
    assert reached == sorted(reached)
    out, error = child().communicate(timeout=600)
    assert error == "" and int(out) <= 1500 - reached[-1]
    assert place.content() == clean(place)
    assert place.lines == []


def test_two_processes_index_at_once(place: Place, child) -> None:
    processes = [child(), child()]
    for process in processes:
        out, error = process.communicate(timeout=600)
        assert error == "" and out.strip().isdigit()
    assert place.content() == clean(place)
    out, _ = child().communicate(timeout=600)
    assert out == "0\n"


def test_what_stands_around_the_extraction_does_not_grow_with_the_files(tmp_path: Path) -> None:
    """What makes it quick: rows are written many in a transaction, and a second run asks for all files at once.
    ``make bench`` takes the time."""
    cold, warm = {}, {}
    for count in (40, 400):
        (tmp_path / str(count)).mkdir()
        place = Place(tmp_path / str(count))
        place.write({f"d{n % 20}/{n}.cu": f"word{n} " * 100 for n in range(count)})
        first, second = statements(place), statements(place)
        rows = [statement for statement in first if statement.startswith("INSERT")]
        assert count < len(rows) < 5 * count
        cold[count], warm[count] = len(first) - len(rows), second
    assert cold[40] == cold[400] < 40
    assert warm[40] == warm[400] and len(warm[40]) < 20


def statements(place: Place) -> list[str]:
    """What the store is asked by one run, ``VALUES`` left out."""
    store = place.open()
    seen: list[str] = []
    store._db.set_trace_callback(lambda statement: seen.append(statement.split(" VALUES")[0]))
    index(place.root, store, registry=PLAIN)
    store._db.set_trace_callback(None)
    store.close()
    return seen


def test_problems_of_a_store_without_any(place: Place) -> None:
    store = place.open()
    assert problems_of(store) == []
    store.close()


def test_facts_of_a_round_that_another_process_drops_meanwhile_are_made_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write(CHAIN)
    real, calls = Store.facts_at, []

    def facts_at(store: Store, path: str, kind: str, producer: str) -> bytes | None:
        """Another process prunes just before the first look at what was found."""
        calls.append(kind)
        if len(calls) == 2:
            for table in ("names", "has"):
                store._db.execute(f"DELETE FROM {table} WHERE fact IN (SELECT id FROM facts WHERE kind = ?)", (kind,))
            store._db.execute("DELETE FROM facts WHERE kind = ?", (kind,))
        return real(store, path, kind, producer)

    monkeypatch.setattr(Store, "facts_at", facts_at)
    lines = lines_in(place)
    assert {path: lines[path] for path in CHAIN_LINES} == CHAIN_LINES
    assert brief(place.index(ROUNDS)) == (0, 0, 5, 0)
