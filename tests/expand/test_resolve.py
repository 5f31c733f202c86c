"""Which definition a name means: translation units, scopes, aliases, overloads, builds."""

from __future__ import annotations

import pytest

from opwalker.expand.arity import accepts
from opwalker.expand.resolve import Context, strip_arguments, visible
from opwalker.expand.workbench import Workbench
from tests.trees import function, scan_text, tree


def found(
    bench: Workbench, name: str, path: str = "a.cu", arguments: int | None = None, **context
) -> list[tuple[str, int]]:
    """``(path, line)`` of what a name can mean in a file."""
    place = Context(path, context.pop("root", path), **context)
    resolution = bench.unit().resolver.function(name, place, arguments)
    return sorted((c.path, c.function.line) for c in resolution.candidates)


# -- translation units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["static ", "namespace { ", "inline "])
def test_functions_of_one_name_in_two_files(head: str) -> None:
    tail = " }" if "{" in head else ""
    text = f"{head}void go(int* a) {{}}{tail}\nvoid h(int* a) {{ go(a); }}\n"
    bench = tree({"a.cu": text, "b.cu": text})
    assert found(bench, "go", "a.cu") == [("a.cu", 1)]
    assert found(bench, "go", "b.cu") == [("b.cu", 1)]


def test_internal_functions_of_other_files_are_out_of_sight() -> None:
    bench = tree({"a.cu": "", "b.cu": "static void s() {}\nnamespace { void n() {} }\nvoid e() {}\n"})
    assert found(bench, "s") == []
    assert found(bench, "n") == []
    assert found(bench, "e") == [("b.cu", 3)]


def test_a_header_is_seen_by_whoever_includes_it() -> None:
    files = {"a.cu": '#include "one.h"\n', "b.cu": "", "one.h": '#include "two.h"\n', "two.h": "inline void f() {}\n"}
    bench = tree(files)
    assert found(bench, "f", "a.cu") == [("two.h", 1)]
    assert found(bench, "f", "b.cu") == []
    assert found(bench, "f", "one.h", root="a.cu") == [("two.h", 1)]


def test_two_headers_of_one_name_are_told_apart_by_the_include() -> None:
    files = {
        "a/x.cu": '#include "k.h"\n',
        "a/k.h": "inline void f() {}\n",
        "b/x.cu": '#include "k.h"\n',
        "b/k.h": "inline void f() {}\n",
    }
    bench = tree(files)
    assert found(bench, "f", "a/x.cu") == [("a/k.h", 1)]
    assert found(bench, "f", "b/x.cu") == [("b/k.h", 1)]


def test_the_own_file_goes_before_what_it_includes() -> None:
    bench = tree({"a.cu": '#include "k.h"\nvoid f(int a) {}\n', "k.h": "inline void f(int a) {}\n"})
    assert found(bench, "f") == [("a.cu", 2)]


def test_a_source_that_is_included_by_a_source() -> None:
    bench = tree({"a.cu": '#include "b.cu"\n', "b.cu": "static void f() {}\n"})
    assert found(bench, "f") == [("b.cu", 1)]


def test_a_declaration_alone_is_said_to_be_one() -> None:
    bench = tree({"a.cu": "void f(int);\n"})
    resolution = bench.unit().resolver.function("f", Context("a.cu", "a.cu"), 1)
    assert (resolution.candidates, resolution.declared) == ((), True)
    assert not bench.unit().resolver.function("g", Context("a.cu", "a.cu"), 1).declared


@pytest.mark.parametrize(("head", "kernel"), [("void", False), ("__global__ void", True)])
def test_what_is_declared_here_and_defined_in_a_header_of_another_unit(head: str, kernel: bool) -> None:
    files = {
        "decl.h": f"template <typename T>\n{head} f(T* a);\n",
        "def.h": f"template <typename T>\n{head} f(T* a) {{}}\n",
        "a.cu": '#include "decl.h"\n',
        "b.cu": f'#include "decl.h"\n#include "def.h"\ntemplate {head} f<float>(float* a);\n',
    }
    resolver = tree(files).unit().resolver
    declared = resolver.function("f", Context("a.cu", "a.cu"), 1, kernel)
    assert [candidate.path for candidate in declared.candidates] == ["def.h"]


def test_several_definitions_of_a_name_are_all_possible() -> None:
    bench = tree({"a.cu": "", "b.cu": "void f() {}\n", "c.cu": "void f() {}\n"})
    resolution = bench.unit().resolver.function("f", Context("a.cu", "a.cu"))
    assert resolution.certainty == "possible"
    assert found(bench, "f") == [("b.cu", 1), ("c.cu", 1)]


# -- scopes ---------------------------------------------------------------------------------------------------

SCOPES = """void f() {}
namespace a {
void f() {}
namespace b {
void f() {}
}
}
namespace c {
void f() {}
void only_c() {}
struct S { static void f() {} };
}
namespace { void hidden() {} }
namespace d { inline namespace v1 { void deep() {} } }
"""

NAMES = [
    ("f", (), 1),
    ("f", ("a",), 3),
    ("f", ("a", "b"), 5),
    ("f", ("a", "x"), 3),
    ("::f", ("a", "b"), 1),
    ("a::f", (), 3),
    ("::a::b::f", ("c",), 5),
    ("b::f", ("a",), 5),
    ("a::b::f", ("a", "b"), 5),
    ("c::f", ("a", "b"), 9),
    ("S::f", ("c",), 11),
    ("c::S::f", (), 11),
    ("hidden", ("a",), 13),
    ("d::v1::deep", (), 14),
    ("f<int>", ("a",), 3),
    ("a::b::f<int, 3>", (), 5),
]


@pytest.mark.parametrize(("name", "scope", "line"), NAMES)
def test_scopes(name: str, scope: tuple[str, ...], line: int) -> None:
    assert found(tree({"a.cu": SCOPES}), name, scope=scope) == [("a.cu", line)]


@pytest.mark.parametrize(
    ("name", "scope"), [("x::f", ()), ("::b::f", ()), ("a::only_c", ()), ("a::c::f", ()), ("", ())]
)
def test_names_that_mean_nothing(name: str, scope: tuple[str, ...]) -> None:
    assert found(tree({"a.cu": SCOPES}), name, scope=scope) == []


ALIASES = [
    ("namespace ab = a::b;\n", "ab::f", 5),
    ("using namespace c;\n", "only_c", 10),
    ("using T = c::S;\n", "T::f", 11),
    ("typedef c::S T;\n", "T::f", 11),
]


@pytest.mark.parametrize(("text", "name", "line"), ALIASES)
def test_aliases_of_the_file(text: str, name: str, line: int) -> None:
    assert found(tree({"a.cu": SCOPES + text}), name) == [("a.cu", line)]


@pytest.mark.parametrize(("text", "name", "line"), ALIASES)
def test_aliases_of_an_included_header(text: str, name: str, line: int) -> None:
    bench = tree({"a.cu": SCOPES + '#include "k.h"\n', "k.h": text, "other.cu": ""})
    assert found(bench, name) == [("a.cu", line)]


def test_an_alias_of_a_file_that_is_not_included() -> None:
    bench = tree({"a.cu": SCOPES, "k.h": "namespace ab = a::b;\n"})
    assert found(bench, "ab::f") == []


def test_names_that_a_body_brings_in() -> None:
    bench = tree({"a.cu": SCOPES})
    assert found(bench, "only_c", usings=("c",)) == [("a.cu", 10)]
    assert found(bench, "q::f", aliases=(("q", "a::b"),)) == [("a.cu", 5)]


# -- overloads ------------------------------------------------------------------------------------------------

OVERLOADS = (
    "void f(int a) {}\nvoid f(int a, int b) {}\nvoid f(int a, int b, int c, int d = 3) {}\nvoid v(int a, ...) {}\n"
)


@pytest.mark.parametrize(
    ("count", "lines"), [(1, [1]), (2, [2]), (3, [3]), (4, [3]), (5, []), (0, []), (None, [1, 2, 3])]
)
def test_overloads_by_the_number_of_arguments(count: int | None, lines: list[int]) -> None:
    assert [line for _, line in found(tree({"a.cu": OVERLOADS}), "f", arguments=count)] == lines


@pytest.mark.parametrize(("count", "fits"), [(1, True), (2, True), (7, True)])
def test_variable_arguments(count: int, fits: bool) -> None:
    assert bool(found(tree({"a.cu": OVERLOADS}), "v", arguments=count)) == fits


def test_a_default_that_only_a_declaration_gives() -> None:
    files = {"k.h": "namespace n { void f(int a, int b = 3); }\n", "k.cu": "namespace n { void f(int a, int b) {} }\n"}
    files["a.cu"] = '#include "k.h"\n'
    bench = tree(files)
    assert found(bench, "n::f", arguments=1) == [("k.cu", 1)]
    assert found(bench, "n::f", arguments=2) == [("k.cu", 1)]
    assert found(bench, "n::f", arguments=0) == []


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("void f();", {0}),
        ("void f(int a, int b = 3);", {1, 2}),
        ("void f(int a = 1, int b = 3);", {0, 1, 2}),
        ("template <class... T> void f(T&&... t);", {0, 1, 2, 3, 4}),
    ],
)
def test_accepts(text: str, counts: set[int]) -> None:
    made = function(scan_text(text), "f")
    assert {count for count in range(5) if accepts(made, count)} == counts


def test_kernels_and_functions_are_told_apart() -> None:
    bench = tree({"a.cu": "__global__ void f(int* a) {}\nvoid f(float a) {}\n"})
    place = Context("a.cu", "a.cu")
    assert [c.function.line for c in bench.unit().resolver.function("f", place, kernel=True).candidates] == [1]
    assert [c.function.line for c in bench.unit().resolver.function("f", place, kernel=False).candidates] == [2]


def test_an_explicit_instantiation_is_no_definition() -> None:
    bench = tree({"a.cu": "template <class T> void f(T a) {}\ntemplate void f<int>(int);\n"})
    assert found(bench, "f", arguments=1) == [("a.cu", 1)]


# -- builds ---------------------------------------------------------------------------------------------------

VARIANTS = "#ifdef USE_ROCM\nvoid f() {}\n#else\nvoid f() {}\n#endif\n#ifdef OF_NOBODY\nvoid u() {}\n#endif\n"


@pytest.mark.parametrize(("build", "line"), [("cuda", 4), ("rocm", 2), ("cpu", 4)])
def test_variants_of_builds(build: str, line: int) -> None:
    assert found(tree({"a.cu": VARIANTS}, build), "f") == [("a.cu", line)]


def test_a_condition_that_nobody_decides_hides_nothing() -> None:
    assert found(tree({"a.cu": VARIANTS}), "u") == [("a.cu", 7)]


def test_files_of_other_builds_are_not_read() -> None:
    files = {"a.cu": "", "cuda.cu": "void f() {}\n", "cpu.cpp": "void f() {}\n"}
    builds = {"cuda.cu": ("cuda", "rocm"), "cpu.cpp": ("cpu",)}
    assert found(tree(files, builds_of=builds), "f") == [("cuda.cu", 1)]
    assert found(tree(files, "cpu", builds_of=builds), "f") == [("cpu.cpp", 1)]


# -- members --------------------------------------------------------------------------------------------------

CLASSES = """struct A { void run(int a) {} void run(int a, int b) {} };
struct B : A { void other() {} };
struct C { void run(int a) {} };
void run(int a) {}
template <class T> struct D { void run(int a) {} };
struct E { void out(); };
void E::out() {}
"""


@pytest.mark.parametrize(
    ("name", "made", "count", "lines"),
    [
        ("run", "A", 1, [1]),
        ("run", "A", 2, [1]),
        ("run", "A", 3, []),
        ("run", "B", 1, [1]),
        ("run", "C", 1, [3]),
        ("run", "D<int>", 1, [5]),
        ("out", "E", 0, [7]),
        ("run", "X", 1, []),
        ("run", None, 1, []),
        ("missing", "A", None, []),
    ],
)
def test_members(name: str, made: str | None, count: int | None, lines: list[int]) -> None:
    resolver = tree({"a.cu": CLASSES}).unit().resolver
    resolution = resolver.method(name, made, Context("a.cu", "a.cu"), count)
    assert [c.function.line for c in resolution.candidates] == lines


def test_members_of_a_nested_class() -> None:
    text = "namespace n { struct A { struct B { void run() {} }; void run() {} }; }\n"
    resolver = tree({"a.cu": text}).unit().resolver
    for made, scope in (("B", ("n", "A", "B")), ("A", ("n", "A")), ("n::A::B", ("n", "A", "B"))):
        (found_one,) = resolver.method("run", made, Context("a.cu", "a.cu"), 0).candidates
        assert found_one.function.scope == scope
    assert resolver.method("n::A::run", "A", Context("a.cu", "a.cu"), 0).candidates


def test_device_functions_are_read_as_device_code() -> None:
    text = "#ifdef __CUDA_ARCH__\n__device__ void d() {}\nvoid h() {}\n#endif\n"
    bench = tree({"a.cu": text})
    assert found(bench, "d") == [("a.cu", 2)]
    assert found(bench, "h") == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("f", "f"),
        ("A<B>::f<C>", "A::f"),
        ("A<B<C, D>>::template f<E>", "A::templatef"),
        ("a :: b", "a::b"),
        ("A<(1 > 2)>::x", "A::x"),
        ("a < b", "a<b"),
    ],
)
def test_strip_arguments(text: str, wanted: str) -> None:
    assert strip_arguments(text) == wanted


def test_anonymous_namespaces_are_no_part_of_a_name() -> None:
    assert visible(("a", "(anonymous namespace)", "b")) == ("a", "b")


# -- many of one name -----------------------------------------------------------------------------------------


SCOPED = {
    "a.cu": "namespace one { void f() {} namespace { void f(int) {} } namespace two { void f() {} } }\nvoid f() {}\n",
    "b.cu": '#include "near.h"\nusing namespace used;\n',
    "c.cu": '#include "inner.h"\n',
    "near.h": "namespace near { inline void f() {} }\nnamespace used { inline void f() {} }\n",
    "inner.h": "namespace one { inline namespace v2 { inline void f(long) {} } }\n",
}


@pytest.mark.parametrize("path", ["a.cu", "b.cu", "c.cu"])
@pytest.mark.parametrize("scope", [(), ("one",), ("one", "two"), ("other",)])
@pytest.mark.parametrize("name", "f ::f one::f two::f one::two::f ::one::f near::f v2::f x::f".split())
def test_names_mean_the_same_where_many_functions_bear_them(
    monkeypatch: pytest.MonkeyPatch, path: str, scope: tuple[str, ...], name: str
) -> None:
    one_by_one = found(tree(SCOPED), name, path, scope=scope)
    monkeypatch.setattr("opwalker.expand.resolve.FEW", 0)
    assert found(tree(SCOPED), name, path, scope=scope) == one_by_one
