"""What an index notes of what it is asked for."""

from __future__ import annotations

import pytest

from opwalker.link.index import Index
from opwalker.link.traced import INCLUDES, MOST_NAMES, Reads
from tests.trees import MemoryStore

FILES = {
    "a.cu": '#include "b.h"\n#define M 1\nint f(int x) { return x; }\n',
    "b.h": "struct C { int g() { return 1; } };\nusing D = C;\n",
}


@pytest.fixture
def index() -> Index:
    return Index(MemoryStore(FILES))


def test_nothing_was_asked_for(index: Index) -> None:
    trace = index.reads.trace("state", ())
    assert (trace.whole, trace.parts, trace.asked, trace.met, trace.kinds) == ((), (), (), (), ())


def test_a_lookup_by_name(index: Index) -> None:
    assert index.functions("f") and not index.functions("h")
    assert index.reads.asked == {"f", "h"}
    assert not index.reads.whole and not index.reads.parts
    assert index.reads.loaded == {"a.cu"}


def test_what_a_file_declares(index: Index) -> None:
    assert [one.name for one in index.declared("a.cu").macros] == ["M"]
    assert not hasattr(index.declared("a.cu"), "functions")
    assert index.declared("none.h") is None
    assert set(index.reads.parts) == {"a.cu", "none.h"}
    index.part("a.cu", 4, 9)
    assert index.reads.parts["a.cu"] == {(4, 9)}
    assert index.includes("a.cu") == ((0, "b.h"),)
    assert not index.reads.whole


@pytest.mark.parametrize("read", [lambda i: i.facts("a.cu"), lambda i: i.store.text("a.cu")])
def test_anything_of_a_file(index: Index, read) -> None:
    read(index)
    assert index.reads.trace("", ()).whole == ("a.cu",)
    index.part("a.cu", 1, 2)
    assert index.reads.trace("", ()).parts == ()


def test_names_of_a_kind(index: Index) -> None:
    functions, aliases = index.names_of_kind("function"), index.names_of_kind("alias")
    assert "f" in functions and "nobody" not in functions
    assert {"g", "other"} & functions == {"g"} == functions & {"g", "other"}
    assert functions.isdisjoint({"one", "two"}) and not functions.isdisjoint(["f"])
    assert "D" in functions | aliases and "E" not in functions | aliases
    assert index.reads.met == {"f", "nobody", "g", "other", "one", "two", "D", "E"}
    assert not index.reads.kinds
    assert sorted(functions | aliases) == ["D", "f", "g"]
    assert index.reads.kinds == {"function", "alias"}


@pytest.mark.parametrize(
    "ask",
    [
        lambda i: len(i.names_of_kind("class")),
        lambda i: i.names_of_kind("class") | {"x"},
        lambda i: {"x"} | i.names_of_kind("class"),
        lambda i: i.names_of_kind("class") & i.names_of_kind("class"),
        lambda i: i.paths_with("class"),
        lambda i: i.store.names_of_kind("class"),
        lambda i: {"x"}.isdisjoint(i.names_of_kind("class")),
        lambda i: i.names_of_kind("class") - {"C"},
    ],
)
def test_all_names_of_a_kind(index: Index, ask) -> None:
    ask(index)
    assert index.reads.kinds == {"class"}


def test_what_others_have_read() -> None:
    one, other = Reads(), Reads()
    other.part("a.cu", 1, 2)
    other.whole.add("b.h")
    other.asked.add("f")
    one.part("a.cu", 4, 5)
    one.update(other)
    one.update(other.trace("", ()))
    trace = one.trace("state", {"a.cu": "m"}.items())
    assert (trace.whole, trace.parts, trace.asked) == (("b.h",), (("a.cu", ((1, 2), (4, 5))),), ("f",))
    assert trace.made == (("a.cu", "m"),)


def test_too_many_names_are_told_coarsely(index: Index) -> None:
    index.functions("f")
    index.names_of_kind("function").isdisjoint({f"n{n}" for n in range(MOST_NAMES + 1)})
    trace = index.reads.trace("", ())
    assert trace.any_name and trace.whole == ("a.cu",) and not trace.met


def test_who_includes_a_file_is_read_of_the_includes_alone(index: Index) -> None:
    assert index.includers("b.h") == ["a.cu", "b.h"]
    assert index.reads.kinds == {INCLUDES} and not index.reads.parts and not index.reads.whole
    assert index.closure("a.cu") == {"a.cu", "b.h"}
    assert set(index.reads.parts) == {"a.cu", "b.h"}, "what is asked of one file is noted of it"


def test_what_is_of_two_kinds(index: Index) -> None:
    """A name of the larger kind alone may come and go."""
    assert index.names_of_kind("macro") & index.names_of_kind("function") == frozenset()
    assert (index.reads.kinds, index.reads.met) == ({"macro"}, {"M"})
