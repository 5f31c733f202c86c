"""The store of facts in trouble: damaged, of another edition, locked, without room or rights, killed, shared."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

import opwalker
from opwalker.link import store_file
from opwalker.link.store import Store, StoreRebuilt
from opwalker.model.source import SourceRoot

ROOT = SourceRoot("/some/where/lib", "lib")
#: Seconds after which something hangs, on however slow a machine.
WHATEVER_IT_TAKES = 600.0
PACKAGE_FOLDER = str(Path(opwalker.__file__).parents[1])


@pytest.fixture
def lines() -> list[str]:
    return []


def rows(count: int, size: int = 100) -> list:
    return [(f"d{n:05}", "cpp", "p", bytes([n % 256]) * size, [(f"f{n}", "function")]) for n in range(count)]


def filled(cache: Path, count: int = 50, size: int = 100) -> Path:
    """A closed store with ``count`` files; gives its path."""
    store = Store.open(ROOT, cache, lambda line: None)
    store.put_facts(rows(count, size))
    store.update_files({f"{n}.cu": (n, n, "cuda", f"d{n:05}") for n in range(count)})
    path = store.path
    store.close()
    assert path is not None
    return path


def usable(store: Store) -> bool:
    store.put_facts([("d", "cpp", "p", b"blob", [("name", "function")])])
    store.update_files({"p.cu": (1, 1, "cuda", "d")})
    return store.facts("d", "cpp", "p") == b"blob" and store.paths_of("name", ["function"]) == ["p.cu"]


def make_garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all" * 500)


def make_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def make_foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE something_else(x)")
    db.close()


def make_older(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '0' WHERE key = 'edition'")
    db.close()


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        (make_garbage, "damaged"),
        (make_short, "damaged"),
        (make_foreign, "damaged"),
        (make_older, "another edition"),
    ],
)
def test_an_unusable_store_is_made_anew_with_one_line(tmp_path: Path, lines: list[str], harm, word: str) -> None:
    path = filled(tmp_path)
    harm(path)
    store = Store.open(ROOT, tmp_path, lines.append)
    assert len(lines) == 1 and word in lines[0] and "\n" not in lines[0]
    assert store.known() == {}
    assert usable(store)
    assert store.path is not None and not path.exists()
    store.close()
    Store.open(ROOT, tmp_path, lines.append).close()
    assert len(lines) == 1


def test_an_empty_file_counts_as_new(tmp_path: Path, lines: list[str]) -> None:
    path = filled(tmp_path)
    path.write_bytes(b"")
    store = Store.open(ROOT, tmp_path, lines.append)
    assert lines == [] and usable(store)
    store.close()


def test_every_damaged_page_is_noticed_or_harmless(tmp_path: Path) -> None:
    """Each page in turn is overwritten: every answer is then right, or the store says so and is made anew."""
    original = filled(tmp_path / "whole", 40, 3000).read_bytes()
    noticed = 0
    pages = len(original) // 4096
    for page in range(pages):
        cache = tmp_path / f"page{page}"
        path = filled(cache, 1)
        harmed = original[: page * 4096] + b"\x5a" * 4096 + original[(page + 1) * 4096 :]
        path.write_bytes(harmed)
        lines: list[str] = []
        store = Store.open(ROOT, cache, lines.append)
        try:
            known = store.known()
            if known:
                assert known == {f"{n}.cu": (n, n, "cuda", f"d{n:05}") for n in range(40)}
            for n in range(len(known)):
                assert store.facts(f"d{n:05}", "cpp", "p") == bytes([n]) * 3000
                assert store.paths_of(f"f{n}", ["function"]) == [f"{n}.cu"]
        except StoreRebuilt as error:
            assert "run the command again" in str(error)
        if lines:
            noticed += 1
            assert len(lines) == 1 and store.known() == {} and usable(store)
        store.close()
    assert noticed > pages // 2


def test_a_damaged_blob_is_noticed(tmp_path: Path, lines: list[str]) -> None:
    path = filled(tmp_path, 3)
    path.write_bytes(path.read_bytes().replace(bytes([1]) * 100, bytes([1]) * 50 + b"\0" + bytes([1]) * 49))
    store = Store.open(ROOT, tmp_path, lines.append)
    assert store.facts("d00000", "cpp", "p") == bytes(100)
    with pytest.raises(StoreRebuilt):
        store.facts("d00001", "cpp", "p")
    assert len(lines) == 1 and usable(store)
    store.close()


def test_locked_for_too_long_to_be_read(tmp_path: Path, lines: list[str]) -> None:
    path = filled(tmp_path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("DELETE FROM results")
    store = Store.open(ROOT, tmp_path, lines.append, timeout=0.3)
    assert len(lines) == 1 and "locked by another process" in lines[0]
    assert usable(store)
    store.close()
    holder.close()


def test_locked_for_too_long_to_be_written(tmp_path: Path, lines: list[str]) -> None:
    path = filled(tmp_path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    store = Store.open(ROOT, tmp_path, lines.append, timeout=0.2)
    assert len(store.known()) == 50 and lines == []
    assert usable(store)
    assert len(lines) == 1 and "for this run only" in lines[0]
    assert store.path is None and len(store.known()) == 51
    assert store.facts("d00007", "cpp", "p") == bytes([7]) * 100
    holder.execute("ROLLBACK")
    holder.close()
    store.close()
    again = Store.open(ROOT, tmp_path, lines.append)
    assert len(again.known()) == 50 and len(lines) == 1
    again.close()


HOLDER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(0.3)
db.execute("COMMIT")
"""


def test_a_short_lock_is_waited_for(tmp_path: Path, lines: list[str]) -> None:
    path = filled(tmp_path)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            HOLDER,
            str(path),
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdout.readline()
    store = Store.open(ROOT, tmp_path, lines.append, timeout=WHATEVER_IT_TAKES)
    assert usable(store) and store.path == path and lines == []
    store.close()
    holder.communicate()


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Store.open(ROOT, tmp_path / "file" / "cache", lines.append)
    assert len(lines) == 1 and "for this run only" in lines[0]
    assert store.path is None and usable(store)
    store.close()


def child_arguments(code: str, *arguments: str) -> list[str]:
    prelude = f"""
        import sys; sys.path.insert(0, {PACKAGE_FOLDER!r})
        from pathlib import Path
        from opwalker.link.store import Store
        from opwalker.model.source import SourceRoot
        ROOT = SourceRoot("/some/where/lib", "lib")
        lines = []
    """
    return [
        sys.executable,
        "-c",
        textwrap.dedent(prelude) + textwrap.dedent(code),
        *arguments,
    ]


def run_child(code: str, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = child_arguments(code, *arguments)
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=WHATEVER_IT_TAKES, **options)


@pytest.mark.parametrize("filled_before", [True, False])
def test_a_cache_folder_that_is_read_only(filled_before: bool) -> None:
    code = """
        import os
        if os.geteuid() == 0:  # rights do not bind root
            os.setgid(65534)
            os.setuid(65534)
        store = Store.open(ROOT, Path(sys.argv[1]), lines.append)
        print(len(store.known()))
        store.put_facts([("d", "cpp", "p", b"blob", [("name", "function")])])
        store.update_files({"p.cu": (1, 1, "cuda", "d")})
        print(store.paths_of("name", ["function"]), store.path)
        store.close()
        print(len(lines), lines[0])
    """
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        if filled_before:
            filled(cache).chmod(0o444)
        cache.chmod(0o555)
        done = run_child(code, str(cache))
        cache.chmod(0o755)
    assert done.stderr == ""
    known, found, said = done.stdout.splitlines()
    assert known == ("50" if filled_before else "0")
    assert found == "['p.cu'] None"
    assert said.startswith("1 ") and "for this run only" in said


def limit_file_size() -> None:
    """What a full disk looks like from inside: writes beyond 400 kB are refused."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))


def test_a_disk_that_fills_up_while_writing(tmp_path: Path, lines: list[str]) -> None:
    code = """
        store = Store.open(ROOT, Path(sys.argv[1]), lines.append)
        for start in range(0, 2000, 50):
            numbers = range(start, start + 50)
            store.put_facts([(f"d{n}", "cpp", "p", bytes(500), [(f"f{n}", "function")]) for n in numbers])
            store.update_files({f"{n}.cu": (1, 1, "cuda", f"d{n}") for n in numbers})
        print(len(store.known()), len(store.digests_with_facts("cpp", "p")), store.path, len(lines))
        print(lines[0])
        store.close()
    """
    done = run_child(code, str(tmp_path), preexec_fn=limit_file_size)
    assert done.stderr == ""
    counts, said = done.stdout.splitlines()
    assert counts == "2000 2000 None 1" and "for this run only" in said
    store = Store.open(ROOT, tmp_path, lines.append)
    known = store.known()
    assert lines == [] and 0 < len(known) < 2000
    assert {row[3] for row in known.values()} <= store.digests_with_facts("cpp", "p")
    store.close()


def test_a_disk_that_is_full_before(tmp_path: Path) -> None:
    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    code = """
        store = Store.open(ROOT, Path(sys.argv[1]), lines.append)
        store.update_files({"p.cu": (1, 1, "cuda", "d")})
        assert len(store.known()) == 1 and store.path is None, store.path
        sys.stderr.write(str(len(lines)))
    """
    assert run_child(code, str(tmp_path), preexec_fn=no_room).stderr == "1"


def test_full_is_told_by_sqlite_too(tmp_path: Path, lines: list[str]) -> None:
    store = Store.open(ROOT, tmp_path, lines.append)
    store._db.execute("PRAGMA max_page_count=40")
    store.put_facts(rows(500, 1000))
    assert len(store.digests_with_facts("cpp", "p")) == 500
    assert len(lines) == 1 and "full" in lines[0]
    store.close()


WRITER = f"""
    store = Store.open(ROOT, Path(sys.argv[1]), lines.append, timeout={WHATEVER_IT_TAKES})
    first, step = int(sys.argv[2]), int(sys.argv[3])
    for start in range(0, 3000, 60):
        numbers = [n for n in range(start, start + 60) if n % step == first % step]
        store.put_facts([(f"d{{n}}", "cpp", "p", bytes([n % 256]) * 400, [(f"f{{n}}", "function")]) for n in numbers])
        store.update_files({{f"{{n}}.cu": (n, n, "cuda", f"d{{n}}") for n in numbers}})
    print(len(lines), len(store.known()))
    store.close()
"""


def check_whole(cache: Path, lines: list[str]) -> None:
    store = Store.open(ROOT, cache, lines.append)
    assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert store.known() == {f"{n}.cu": (n, n, "cuda", f"d{n}") for n in range(3000)}
    assert all(store.facts(f"d{n}", "cpp", "p") == bytes([n % 256]) * 400 for n in range(3000))
    assert len(store.names_of_kind("function")) == 3000
    assert lines == []
    store.close()


def test_two_processes_write_at_once(tmp_path: Path, lines: list[str]) -> None:
    """Both start on an empty folder, so that they also make the store at once."""
    writers = [
        subprocess.Popen(
            child_arguments(WRITER, str(tmp_path), str(first), str(step)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for first, step in ((0, 2), (1, 2), (0, 1))
    ]
    for writer in writers:
        out, error = writer.communicate(timeout=WHATEVER_IT_TAKES)
        assert error == "" and out.startswith("0 ")
    check_whole(tmp_path, lines)


def test_a_killed_writer_loses_nothing_that_was_committed(tmp_path: Path, lines: list[str]) -> None:
    """Killed again and again at other moments, the last time left alone: the store is as after one clean run."""
    last = 0
    for round_ in range(12):
        code = WRITER.replace("    for start", "    print('begun', flush=True)\n    for start")
        writer = subprocess.Popen(child_arguments(code, str(tmp_path), "0", "1"), stdout=subprocess.PIPE)
        assert writer.stdout is not None and writer.stdout.readline() == b"begun\n"
        time.sleep(0.004 * round_)
        writer.kill()
        writer.communicate()
        store = Store.open(ROOT, tmp_path, lines.append)
        assert store._db.execute("PRAGMA quick_check").fetchone() == ("ok",)
        known = store.known()
        assert len(known) >= last and lines == []
        assert {row[3] for row in known.values()} <= store.digests_with_facts("cpp", "p")
        last = len(known)
        store.close()
    done = run_child(WRITER, str(tmp_path), "0", "1")
    assert done.stdout == "0 3000\n" and done.stderr == ""
    check_whole(tmp_path, lines)


def test_killed_while_the_tables_are_made(tmp_path: Path, lines: list[str]) -> None:
    """A file in which the log is on and no table stands yet is taken for new."""
    path = filled(tmp_path)
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        name.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.close()
    store = Store.open(ROOT, tmp_path, lines.append)
    assert lines == [] and usable(store)
    store.close()


def test_a_copy_in_memory_is_whole(tmp_path: Path) -> None:
    path = filled(tmp_path)
    db = sqlite3.connect(path)
    memory = store_file.copy_to_memory(db)
    assert memory.execute("SELECT count(*) FROM files").fetchone() == (50,)
    memory.execute("DELETE FROM files")
    assert db.execute("SELECT count(*) FROM files").fetchone() == (50,)
    db.close()
    memory.close()
