"""The store of facts: rows and names by key, and what must hold when files move, code changes or answers pile up."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwalker.link import store as store_module
from opwalker.link.store import Store, tree_digest
from opwalker.link.store_rows import stamps_digest
from opwalker.model.source import SourceRoot

ROOT = SourceRoot("/some/where/lib", "lib")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, lines: list[str]):
    opened = Store.open(ROOT, tmp_path / "cache", lines.append)
    yield opened
    opened.close()


def fill(store: Store) -> None:
    store.put_facts(
        [
            (
                digest("a"),
                "cpp",
                "p1",
                b"facts of a",
                [("run", "function"), ("k", "kernel"), ("run", "kernel")],
            ),
            (
                digest("b"),
                "cpp",
                "p1",
                b"facts of b",
                [("run", "function"), ("N", "constant")],
            ),
        ]
    )
    store.update_files({"x/a.cu": (10, 1, "cuda", digest("a")), "b.cu": (20, 2, "cuda", digest("b"))})


def test_rows_come_back_and_survive_closing(store: Store, tmp_path: Path, lines: list[str]) -> None:
    fill(store)
    store.close()
    again = Store.open(ROOT, tmp_path / "cache", lines.append)
    assert again.known() == {
        "x/a.cu": (10, 1, "cuda", digest("a")),
        "b.cu": (20, 2, "cuda", digest("b")),
    }
    assert again.facts(digest("a"), "cpp", "p1") == b"facts of a"
    assert again.facts(digest("a"), "cpp", "p2") is None
    assert again.facts(digest("a"), "py", "p1") is None
    assert again.digests_with_facts("cpp", "p1") == {digest("a"), digest("b")}
    assert again.digest_of("b.cu") == digest("b")
    assert again.digest_of("c.cu") is None
    assert again.languages() == {"cuda": 2}
    assert again.paths(("cpp", "cuda")) == ["b.cu", "x/a.cu"] and again.paths(("cpp",)) == again.paths(()) == []
    assert list(again.facts_by_path("cpp", "p1")) == [
        ("b.cu", b"facts of b"),
        ("x/a.cu", b"facts of a"),
    ]
    assert lines == []
    again.close()


def test_names_are_found_in_live_files_only(store: Store) -> None:
    fill(store)
    assert store.paths_of("run", ("function",)) == ["b.cu", "x/a.cu"]
    assert store.paths_of("run", ("kernel",)) == ["x/a.cu"]
    assert store.paths_of("run", ()) == []
    assert store.paths_with("constant") == ["b.cu"]
    assert store.names_of_kind("function") == [("run", "b.cu"), ("run", "x/a.cu")]
    store.update_files({}, ["b.cu"])
    assert store.paths_of("run", ("function",)) == ["x/a.cu"]
    assert store.paths_with("constant") == []
    assert store.names_of_kind("constant") == []


def test_a_renamed_or_doubled_file_keeps_its_facts(store: Store) -> None:
    fill(store)
    store.update_files(
        {
            "moved.cu": (10, 9, "cuda", digest("a")),
            "twin.cu": (10, 9, "cuda", digest("a")),
        },
        ["x/a.cu"],
    )
    assert store.paths_of("k", ("kernel",)) == ["moved.cu", "twin.cu"]
    assert store.facts(digest("a"), "cpp", "p1") == b"facts of a"


def test_names_of_older_code_are_not_met(store: Store) -> None:
    fill(store)
    store.put_facts([(digest("a"), "cpp", "p2", b"better facts of a", [("go", "function")])])
    store.use_producers(["p2"])
    assert store.paths_of("run", ("function",)) == []
    assert store.paths_of("go", ("function",)) == ["x/a.cu"]
    assert store.names_of_kind("function") == [("go", "x/a.cu")]
    assert store.paths_with("kernel") == []
    assert ("k", "x/a.cu") in store.names_of_kind("kernel", any_producer=True)


def test_facts_put_twice_stand_once(store: Store) -> None:
    fill(store)
    fill(store)
    assert store.names_of_kind("function") == [("run", "b.cu"), ("run", "x/a.cu")]
    store.put_facts([(digest("a"), "cpp", "p1", b"other", [("other", "function")])])
    assert store.facts(digest("a"), "cpp", "p1") == b"facts of a"
    assert store.paths_of("other", ("function",)) == []


def test_facts_are_replaced_on_request(store: Store) -> None:
    fill(store)
    other = [(digest("a"), "cpp", "p1", b"other", [("other", "function")]), (digest("n"), "cpp", "p1", b"n", [])]
    store.put_facts(other, replace=True)
    assert store.facts(digest("a"), "cpp", "p1") == b"other"
    assert store.facts(digest("n"), "cpp", "p1") == b"n"
    assert store.names_of_kind("function") == [("other", "x/a.cu"), ("run", "b.cu")]
    assert store.paths_with("kernel") == []
    many = [(f"d{n}", "cpp", "p1", b"one", [("one", "function")]) for n in range(2500)]
    store.put_facts(many)
    store.put_facts([(d, kind, p, b"two", [("two", "function")]) for d, kind, p, _, _ in many], replace=True)
    assert store._db.execute("SELECT count(*) FROM names WHERE name = 'one'").fetchone() == (0,)
    assert store._db.execute("SELECT count(*) FROM names WHERE name = 'two'").fetchone() == (2500,)


def test_the_tree_digest_follows_paths_and_contents_and_nothing_else(
    store: Store,
) -> None:
    empty = store.tree_digest()
    fill(store)
    first = store.tree_digest()
    assert first == tree_digest({"b.cu": digest("b"), "x/a.cu": digest("a")}) != empty
    store.update_files({"b.cu": (20, 777, "cuda", digest("b"))})
    assert store.tree_digest() == first
    store.update_files({"b.cu": (20, 777, "cuda", digest("c"))})
    changed = store.tree_digest()
    assert changed != first
    store.update_files({"c.cu": (20, 777, "cuda", digest("c"))}, ["b.cu"])
    assert store.tree_digest() not in (first, changed)


def test_the_files_are_those_that_any_process_has_written(tmp_path: Path, lines: list[str]) -> None:
    """Rows are held in memory, and read again where another process has written meanwhile."""
    one, two = Store.open(ROOT, tmp_path, lines.append), Store.open(ROOT, tmp_path, lines.append)
    fill(one)
    held = one.known()
    assert one.known() is held
    one.update_files({"b.cu": (21, 3, "cuda", digest("c"))})
    assert list(one.known().items()) == list(two.known().items())
    assert one.known()["b.cu"] == (21, 3, "cuda", digest("c")) and held["b.cu"] == (20, 2, "cuda", digest("b"))
    two.update_files({"b.cu": (22, 4, "cuda", digest("d"))})
    # What this one counted on when it wrote is not what was there.
    one.update_files({"x/a.cu": (11, 5, "cuda", digest("e"))})
    assert one.known() == two.known()
    assert one.tree_digest() == tree_digest({"b.cu": digest("d"), "x/a.cu": digest("e")})
    for changed, removed in (({"a.cu": (1, 1, "cuda", digest("a"))}, ()), ({}, ["b.cu"])):
        one.update_files(changed, removed)
        assert list(one.known().items()) == list(two.known().items())
    one.close()
    two.close()


STAMPS = ("cpp", "p1", "cuda")
#: What changes the facts of CUDA files, and what does not.
WRITES = {
    "another content": (lambda s: s.update_files({"b.cu": (20, 2, "cuda", digest("a"))}), True),
    "a file more": (lambda s: s.update_files({"c.cu": (20, 2, "cuda", digest("a"))}), True),
    "a file less": (lambda s: s.update_files({}, ["b.cu"]), True),
    "another language": (lambda s: s.update_files({"b.cu": (20, 2, "cpp", digest("b"))}), True),
    "other facts": (lambda s: s.put_facts([(digest("a"), "cpp", "p1", b"other", [])], replace=True), True),
    "a file in another language": (lambda s: s.update_files({"d.py": (1, 1, "python", digest("d"))}), False),
    "other facts of another kind": (lambda s: s.put_facts([(digest("a"), "py", "p1", b"other", [])]), False),
    "a note": (lambda s: s.set_note("tree", "text"), False),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("known", [False, True])
def test_the_state_of_stamps_is_that_of_the_facts(store: Store, name: str, known: bool) -> None:
    write, changes = WRITES[name]
    fill(store)
    if known:
        store.known()
    before = store.stamps_state(*STAMPS)
    assert before == stamps_digest(store.stamps(*STAMPS))
    write(store)
    store._stamps.clear()
    assert store.stamps_state(*STAMPS) == stamps_digest(store.stamps(*STAMPS))
    assert (store.stamps_state(*STAMPS) != before) is changes


def test_a_state_of_stamps_is_worked_out_once(store: Store) -> None:
    fill(store)
    store.known()
    states = {store.stamps_state(*STAMPS)}
    store.update_files({"d.py": (1, 1, "python", digest("d")), "e.py": (1, 1, "python", digest("d"))})
    store.known()
    store.update_files({"d.py": (1, 2, "python", digest("e"))}, ["e.py"])
    asked: list[str] = []
    store._db.set_trace_callback(asked.append)
    states.add(store.stamps_state(*STAMPS))
    store._db.set_trace_callback(None)
    assert len(states) == 1 and [sql for sql in asked if " facts" in sql] == []


def test_complete_holds_until_a_file_changes(store: Store) -> None:
    fill(store)
    assert not store.is_complete("p1")
    store.mark_complete("p1", store.tree_digest())
    assert store.is_complete("p1")
    assert not store.is_complete("p")
    assert not store.is_complete("p2")
    store.update_files({"b.cu": (20, 3, "cuda", digest("b"))})
    assert store.is_complete("p1")
    store.update_files({"b.cu": (20, 3, "cuda", digest("new"))})
    assert not store.is_complete("p1")


def test_complete_for_another_tree_does_not_count(store: Store) -> None:
    """Another process changed files between this one's reading and its mark."""
    fill(store)
    store.mark_complete("p1", tree_digest({"b.cu": digest("b")}))
    assert not store.is_complete("p1")


def test_prune_waits_until_unneeded_facts_outweigh(store: Store) -> None:
    fill(store)
    store.put_facts([(digest(f"old {n}"), "cpp", "p1", b"old", [("old", "function")]) for n in range(200)])
    assert store.prune() == 0
    store.put_facts([(digest(f"older {n}"), "cpp", "p1", b"old", [("old", "function")]) for n in range(200)])
    assert store.prune() == 400
    assert store.digests_with_facts("cpp", "p1") == {digest("a"), digest("b")}
    assert store.paths_of("run", ("function",)) == ["b.cu", "x/a.cu"]
    assert store._db.execute("SELECT count(*) FROM names WHERE name = 'old'").fetchone() == (0,)
    assert store._db.execute("SELECT count(*) FROM has").fetchone() == (4,)


def test_prune_drops_the_facts_of_older_code(store: Store) -> None:
    contents = [digest(str(n)) for n in range(300)]
    store.update_files({f"{n}.cu": (1, 1, "cuda", content) for n, content in enumerate(contents)})
    for producer in ("p1", "p2", "p3"):
        store.put_facts([(content, "cpp", producer, b"x", [("f", "function")]) for content in contents])
    store.use_producers(["p3"])
    assert store.prune() == 600
    assert store.digests_with_facts("cpp", "p1") == set()
    assert store.digests_with_facts("cpp", "p3") == set(contents)


def test_answers_are_kept_and_the_oldest_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(store_module.time, "time", lambda: now[0])
    monkeypatch.setattr(store_module, "_MOST_RESULTS", 3)
    for key in ("a", "b", "c"):
        now[0] += 1
        store.put_result(key, key.encode() * 10)
    now[0] += 2 * store_module._USE_NOTED_AFTER
    assert store.result("a") == b"a" * 10
    store.put_result("d", b"d")
    assert store.result("b") is None
    assert [store.result(key) for key in ("a", "c", "d")] == [
        b"a" * 10,
        b"c" * 10,
        b"d",
    ]
    store.put_result("a", b"new")
    assert store.result("a") == b"new"


def test_answers_are_bounded_in_size(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_MOST_RESULT_BYTES", 1000)
    store.put_result("huge", bytes(300))
    assert store.result("huge") is None
    for number in range(10):
        store.put_result(str(number), bytes(200))
    kept = [number for number in range(10) if store.result(str(number)) is not None]
    assert 1 <= len(kept) <= 5


def test_roots_of_one_name_have_stores_of_their_own(tmp_path: Path, lines: list[str]) -> None:
    one = Store.open(SourceRoot("/one/lib", "lib"), tmp_path, lines.append)
    fill(one)
    two = Store.open(SourceRoot("/two/lib", "lib"), tmp_path, lines.append)
    assert two.known() == {}
    assert one.path != two.path
    for opened in (one, two):
        opened.close()


def test_odd_root_names_make_plain_file_names(tmp_path: Path, lines: list[str]) -> None:
    for name in ("../../etc", "a b\n*?", "", "ü" * 300):
        opened = Store.open(SourceRoot("/r", name), tmp_path, lines.append)
        assert opened.path is not None and opened.path.parent == tmp_path
        opened.close()
    assert lines == []


def test_two_stores_of_one_root_see_each_other(tmp_path: Path, lines: list[str]) -> None:
    one = Store.open(ROOT, tmp_path, lines.append)
    two = Store.open(ROOT, tmp_path, lines.append)
    fill(one)
    assert two.paths_of("k", ("kernel",)) == ["x/a.cu"]
    two.update_files({"c.cu": (1, 1, "cuda", digest("a"))})
    assert one.paths_of("k", ("kernel",)) == ["c.cu", "x/a.cu"]
    for opened in (one, two):
        opened.close()


names = st.text(st.characters(exclude_categories=()), max_size=8).map(
    lambda text: text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, st.tuples(names, st.binary(max_size=50)), max_size=8))
def test_any_file_name_and_any_name_comes_back(tmp_path_factory: pytest.TempPathFactory, files: dict) -> None:
    store = Store.open(ROOT, tmp_path_factory.mktemp("cache"), lambda line: None)
    try:
        rows = {path: (1, 2, "cuda", digest(repr(path))) for path in files}
        store.put_facts(
            [(rows[path][3], "cpp", "p", blob, [(name, "function")]) for path, (name, blob) in files.items()]
        )
        store.update_files(rows)
        assert store.known() == rows
        for path, (name, blob) in files.items():
            assert path in store.paths_of(name, ("function",))
            assert store.facts(rows[path][3], "cpp", "p") == blob
        assert store.names_of_kind("function") == sorted((name, path) for path, (name, _) in files.items())
        assert store.tree_digest() == tree_digest({path: row[3] for path, row in rows.items()})
    finally:
        store.close()


def test_look_ups_search_and_scan_nothing(tmp_path: Path, lines: list[str]) -> None:
    """However many files and names there are: each statement of a look-up goes through an index."""
    contents = [digest(str(n)) for n in range(70)]
    store = Store.open(ROOT, tmp_path, lines.append)
    store.put_facts(
        (content, "cpp", "p", b"facts" * 50, [(f"f{n % 9}", "function"), (f"m{n}", "macro")])
        for n, content in enumerate(contents)
    )
    store.update_files({f"csrc/file{n}.cu": (n, n, "cuda", content) for n, content in enumerate(contents)})
    store.use_producers(["p"])
    asked: list[str] = []
    store._db.set_trace_callback(asked.append)
    for n in range(9):
        assert len(store.paths_of(f"f{n}", ("function", "kernel"))) in (7, 8)
        assert store.facts(contents[n], "cpp", "p")
        assert store.digest_of(f"csrc/file{n}.cu") == contents[n]
        assert store.result(f"none {n}") is None
    store._db.set_trace_callback(None)
    assert len(asked) > 36
    plans = [row[3] for sql in asked for row in store._db.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert [plan for plan in plans if plan.startswith("SCAN")] == []
    store.close()
