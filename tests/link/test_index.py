"""The joined view of a tree: names to files, includes to files, closures, entered functions, renamed scopes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from opwalker.link.index import Index
from tests.trees import MemoryStore, function, tree


def index(files: dict[str, str], include_dirs: tuple[str, ...] = ()) -> Index:
    return Index(MemoryStore(files), [(include_dirs, ())])


INCLUDES = [
    ("a/x.cu", "k.h", {"a/k.h", "b/k.h", "k.h"}, "a/k.h"),
    ("a/x.cu", "../b/k.h", {"a/k.h", "b/k.h"}, "b/k.h"),
    ("a/x.cu", "b/k.h", {"b/k.h", "a/b/k.h"}, "a/b/k.h"),
    ("a/x.cu", "b/k.h", {"deep/b/k.h"}, "deep/b/k.h"),
    ("a/x.cu", "lib/k.h", {"a/lib/k.h", "a/sub/lib/k.h"}, "a/lib/k.h"),
    ("one/csrc/x.cu", "k.h", {"one/include/k.h", "two/include/k.h"}, "one/include/k.h"),
    ("a/x.cu", "../../../k.h", {"k.h"}, "k.h"),
    ("a/x.cu", "./k.h", {"a/k.h"}, "a/k.h"),
    ("a/x.cu", "vector", {"a/k.h"}, None),
    ("a/x.cu", "k.h", {"a/other_k.h"}, None),
    ("a/x.cu", "b/k.h", {"c/k.h"}, None),
]


@pytest.mark.parametrize(("includer", "target", "paths", "wanted"), INCLUDES)
def test_which_file_an_include_means(includer: str, target: str, paths: set[str], wanted: str | None) -> None:
    made = index({includer: "", **dict.fromkeys(paths, "")})
    assert made.resolve_include(includer, target) == wanted


def test_the_folders_of_the_build_go_before_a_guess() -> None:
    files = {"a/x.cu": "", "a/sub/k.h": "", "include/k.h": ""}
    assert index(files, ("include",)).resolve_include("a/x.cu", "k.h") == "include/k.h"
    assert index({**files, "a/k.h": ""}, ("include",)).resolve_include("a/x.cu", "k.h") == "a/k.h"


TARGETS = [
    (("include", "kernels"), ("kernels/moe/x.cu", "kernels/y.cu")),
    (("flash/src",), ("kernels/flash/z.cu",)),
]

OF_TARGETS = [
    ("kernels/moe/x.cu", "include/utils.h"),
    ("kernels/flash/z.cu", "flash/src/utils.h"),
    # A header is not compiled: the targets of the nearest folder that holds compiled files are asked.
    ("kernels/moe/inner/deep.cuh", "include/utils.h"),
    ("kernels/flash/traits.h", "flash/src/utils.h"),
    # Several targets compile files there: the nearest file is meant, as without targets.
    ("flash/shared.h", "flash/src/utils.h"),
    ("kernels/both.h", "include/utils.h"),
]


@pytest.mark.parametrize(("includer", "wanted"), OF_TARGETS)
def test_a_target_looks_in_the_folders_of_its_own(includer: str, wanted: str) -> None:
    files = dict.fromkeys(["include/utils.h", "flash/src/utils.h", *(name for name, _ in OF_TARGETS)], "")
    assert Index(MemoryStore(files), TARGETS).resolve_include(includer, "utils.h") == wanted


def test_includes_in_order_with_their_offsets() -> None:
    text = '#include "b.h"\n#include <vector>\n#include "a.h"\n#include "x.cu"\n'
    made = index({"x.cu": text, "a.h": "", "b.h": ""})
    assert made.includes("x.cu") == ((0, "b.h"), (text.index('#include "a.h"'), "a.h"))


def test_the_closure_of_a_file() -> None:
    files = {"x.cu": '#include "a.h"\n', "a.h": '#include "b.h"\n', "b.h": '#include "a.h"\n', "c.h": ""}
    made = index(files)
    assert made.closure("x.cu") == {"x.cu", "a.h", "b.h"}
    assert made.closure("b.h") == {"a.h", "b.h"}
    assert made.closure("c.h") == {"c.h"}


def test_functions_of_a_name_over_all_files() -> None:
    made = index(
        {"b.cu": "void f() {}\nvoid f(int);\n", "a.cu": "struct S { void f() {} };\n", "c.cu": "void g() {}\n"}
    )
    assert [(path, f.qualified_name, f.is_definition) for path, f in made.functions("f")] == [
        ("a.cu", "S::f", True),
        ("b.cu", "f", True),
        ("b.cu", "f", False),
    ]
    assert made.functions("missing") == ()


def test_entries_of_a_name() -> None:
    made = index({"a.cu": "using T = int;\nusing U = T;\n", "b.cu": "namespace n { using T = float; }\n"})
    found = made.entries("T", ("alias",), lambda facts: facts.aliases)
    assert [(path, alias.target) for path, alias in found] == [("a.cu", "int"), ("b.cu", "float")]


def test_names_of_a_kind() -> None:
    made = index({"a.cu": "#define M 1\nvoid f() {}\n__global__ void k() {}\nvoid d();\n"})
    assert made.names_of_kind("macro") == {"M"}
    assert made.names_of_kind("function") == {"f"}
    assert made.names_of_kind("kernel") == {"k"}
    assert made.names_of_kind("declaration") == {"d"}
    assert made.names_of_kind("enum") == frozenset()


def test_a_path_that_is_not_in_the_tree() -> None:
    made = index({"a.cu": ""})
    assert made.facts("b.cu") is None
    assert made.includes("b.cu") == ()
    assert made.closure("b.cu") == {"b.cu"}


def test_entered_functions_are_found_like_any_other() -> None:
    made = index({"a.cu": "void f() {}\n", "b.cu": ""})
    assert made.functions("k") == ()
    entered = replace(function(made.facts("a.cu"), "f"), name="k", flags=("global",))
    made.add_functions("b.cu", [entered])
    assert made.functions("k") == (("b.cu", entered),)
    assert "k" in made.names_of_kind("kernel") and "f" in made.names_of_kind("function")
    assert made.paths_with("kernel") == ["b.cu"]


def test_a_namespace_that_a_macro_names() -> None:
    files = {
        "ns.h": "#define FLASH_NAMESPACE flash\n",
        "a.cu": '#include "ns.h"\nnamespace FLASH_NAMESPACE {\nvoid f() {}\nstruct S { void m() {} };\n}\n',
    }
    made = tree(files).index
    assert [f.qualified_name for f in made.facts("a.cu").functions] == ["flash::f", "flash::S::m"]
    assert [c.scope for c in made.facts("a.cu").classes] == [("flash",)]


def test_a_namespace_that_is_called_like_a_function_like_macro_keeps_its_name() -> None:
    made = tree({"a.cu": "#define ns(x) x\nnamespace ns {\nvoid f() {}\n}\n"}).index
    assert [f.qualified_name for f in made.facts("a.cu").functions] == ["ns::f"]


def test_parameters_that_a_macro_gives() -> None:
    text = "#define PARAMS int* out, int n\nvoid f(float x, PARAMS) {}\nvoid g(float x, int) {}\n"
    made = tree({"a.cu": text}).index
    names = [[(p.type, p.name) for p in f.parameters] for f in made.facts("a.cu").functions]
    assert names == [[("float", "x"), ("int*", "out"), ("int", "n")], [("float", "x"), ("int", "")]]
