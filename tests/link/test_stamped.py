"""Facts by path, each with a stamp: what has changed shows in the state of all of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from opwalker.link.stamped import FactsGone, FactsInStore, HeldFacts
from opwalker.link.store import Store
from opwalker.model.source import SourceRoot

ROOT = SourceRoot("/some/where/lib", "lib")


def put(store: Store, facts: dict[str, str], replace: bool = False) -> None:
    rows = [(f"digest of {path}", "py", "p", msgspec.msgpack.encode(one), []) for path, one in facts.items()]
    store.put_facts(rows, replace=replace)
    store.update_files({path: (1, 1, "python", f"digest of {path}") for path in facts})


@pytest.fixture
def store(tmp_path: Path):
    opened = Store.open(ROOT, tmp_path, lambda line: None)
    put(opened, {"a.py": "of a", "b.py": "of b"})
    yield opened
    opened.close()


def facts_in(store: Store) -> FactsInStore[str]:
    return FactsInStore(store, "py", "p", "python", str)


def test_facts_in_a_store_have_the_state_of_those_in_memory(store: Store) -> None:
    held = HeldFacts({"b.py": "of b", "a.py": "of a"})
    found = facts_in(store)
    assert found.state() == held.state()
    assert dict(found) == dict(held) and found.state() == held.state()
    put(store, {"a.py": "other"}, replace=True)
    assert facts_in(store).state() != held.state()
    assert found.state() == held.state(), "it is what was read"
    found.renew()
    assert found["a.py"] == "other" and found.state() == facts_in(store).state()


def test_facts_that_are_no_longer_those_whose_state_was_told_are_not_given(store: Store) -> None:
    found = facts_in(store)
    found.state()
    put(store, {"c.py": "of c"})
    with pytest.raises(FactsGone):
        list(found)
