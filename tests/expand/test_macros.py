"""Which definition of a macro holds: certainty, conditions, includes, places; which spans of a file a build reads."""

from __future__ import annotations

import itertools

import pytest

from opwalker.expand.files import FileView, active_spans
from opwalker.expand.macros import KNOWN, MacroChoice
from opwalker.expand.workbench import BuildView, Workbench
from tests.trees import tree

END = 1 << 30


def choice(
    bench: Workbench, name: str, path: str = "a.cu", offset: int = END, root: str | None = None
) -> MacroChoice | None:
    return bench.unit().macros.lookup(name, path, offset, root or path)


def shown(found: MacroChoice | None) -> tuple | None:
    return None if found is None else (found.path, found.event.body, found.certainty, found.others)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("#define A 1\n", ("a.cu", "1", "proved", 0)),
        ("#define A 1\n#define A 2\n", ("a.cu", "2", "proved", 0)),
        ("#define A 1\n#undef A\n", None),
        ("#define A 1\n#undef A\n#define A 3\n", ("a.cu", "3", "proved", 0)),
        ("#ifdef OF_NOBODY\n#define A 1\n#else\n#define A 2\n#endif\n", ("a.cu", "2", "possible", 1)),
        ("#define A 0\n#ifdef OF_NOBODY\n#define A 1\n#endif\n", ("a.cu", "1", "possible", 1)),
        ("#ifdef OF_NOBODY\n#define A 1\n#endif\n", ("a.cu", "1", "proved", 0)),
        ("#ifdef USE_ROCM\n#define A 1\n#else\n#define A 2\n#endif\n", ("a.cu", "2", "proved", 0)),
        ("#ifndef A\n#define A 1\n#endif\n", ("a.cu", "1", "proved", 0)),
        ("#define A 0\n#ifndef A\n#define A 1\n#endif\n", ("a.cu", "0", "proved", 0)),
        ("int x;\n", None),
    ],
)
def test_definitions_of_one_file(text: str, wanted: tuple | None) -> None:
    found = shown(choice(tree({"a.cu": text}), "A"))
    assert (found and (found[0], found[1].strip(), *found[2:])) == wanted


ONCE = "#pragma once\n#define A 1\n"
GUARDED = "#ifndef N_H\n#define N_H\n#define A 1\nvoid n();\n#endif\n"


@pytest.mark.parametrize(
    ("header", "middle", "unit", "wanted"),
    [
        (ONCE, "", '#include "n.h"\n#undef A\n#define A 9\n#include "n.h"\n', "9"),
        (GUARDED, "", '#include "n.h"\n#undef A\n#define A 9\n#include "n.h"\n', "9"),
        ("#undef A\n#define A 1\n", "", '#include "n.h"\n#undef A\n#define A 9\n#include "n.h"\n', "1"),
        (GUARDED, "", '#include "n.h"\n#undef A\n#define A 9\n#undef N_H\n#include "n.h"\n', "1"),
        (GUARDED, '#include "n.h"\n#undef A\n#define A 3\n', '#include "mid.h"\n#include "n.h"\n', "3"),
        (GUARDED, '#include "n.h"\n', '#include "n.h"\n#undef A\n#define A 9\n#include "mid.h"\n', "9"),
        (
            ONCE,
            '#ifdef USE_ROCM\n#include "n.h"\n#endif\n',
            '#include "mid.h"\n#undef A\n#define A 9\n#include "n.h"\n',
            "1",
        ),
        (
            "#pragma once\n#define A 1\n#undef A\n",
            '#include "n.h"\n#ifndef A\n#define A 4\n#endif\n',
            '#include "mid.h"\n#include "n.h"\n',
            "4",
        ),
    ],
)
def test_a_file_that_is_read_one_time_only(header: str, middle: str, unit: str, wanted: str) -> None:
    found = choice(tree({"n.h": header, "mid.h": middle, "a.cu": unit}), "A")
    assert found.event.body.strip() == wanted and found.certainty == "proved"


@pytest.mark.parametrize(
    ("files", "read"),
    [
        ({"conf.h": "#if 2 > 3\n#define DEEP\n#endif\n", "a.cu": '#include "conf.h"\n'}, False),
        ({"conf.h": "#if 3 > 2\n#define DEEP\n#endif\n", "a.cu": '#include "conf.h"\n'}, True),
        # Whoever includes the file may have read another header, and a library may set what it is named for.
        ({"conf.h": "#define DEEP\n", "a.cu": ""}, None),
        ({"conf.h": "#if __GNUC__\n#define DEEP\n#endif\n", "a.cu": '#include "conf.h"\n'}, True),
    ],
)
def test_a_macro_whose_definitions_are_all_left_out_is_unset(files: dict[str, str], read: bool | None) -> None:
    closed = BuildView(lambda path: None, lambda path: (), lambda name: (), closed=True)
    macros = tree(files, view=closed).unit().macros
    assert macros.truth("a.cu", ("defined(DEEP)",), END, "a.cu") is read


def test_a_header_included_again_within_a_header_brings_in_nothing() -> None:
    unit = '#include "n.h"\n#undef A\n#define A 9\n#include "mid.h"\n'
    bench = tree({"n.h": ONCE, "mid.h": '#include "n.h"\nint x;\n', "a.cu": unit})
    assert choice(bench, "A", "mid.h", root="a.cu").event.body.strip() == "9"


def test_what_stands_below_the_place_does_not_count() -> None:
    text = "#define A 1\nint x;\n#define A 2\n"
    bench = tree({"a.cu": text})
    assert choice(bench, "A", offset=text.index("int")).event.line == 1
    assert choice(bench, "A").event.line == 3
    assert choice(bench, "A", offset=0) is None


def test_object_like_macros_of_strange_files_are_not_meant() -> None:
    bench = tree({"a.cu": "", "b.cu": "#define A 1\n#define F(x) x\n"})
    assert choice(bench, "A") is None
    assert shown(choice(bench, "F"))[:1] == ("b.cu",)
    assert choice(bench, "F").certainty == "matched"


def test_definitions_of_strange_files_for_another_build_are_not_meant() -> None:
    text = "#ifdef USE_ROCM\n#define F(x) r(x)\n#else\n#define F(x) c(x)\n#endif\n"
    files = {"a.cu": "", "b.h": text}
    assert choice(tree(files), "F").event.body.strip() == "c(x)"
    assert choice(tree(files, "rocm"), "F").event.body.strip() == "r(x)"


def test_the_same_definition_in_several_files_is_one() -> None:
    bench = tree({"a.cu": "", "b.h": "#define F(x)  g( x )\n", "c.h": "#define F(x) g( x )\n"})
    assert choice(bench, "F").certainty == "matched"


def test_includes_under_a_condition() -> None:
    files = {
        "a.cu": '#ifdef USE_ROCM\n#include "r.h"\n#else\n#include "c.h"\n#endif\n',
        "r.h": "#define A rocm\n",
        "c.h": "#define A cuda\n",
    }
    assert choice(tree(files), "A").path == "c.h"
    assert choice(tree(files, "rocm"), "A").path == "r.h"


def test_an_include_that_may_not_be_reached_is_only_possible() -> None:
    files = {"a.cu": '#define A 1\n#ifdef OF_NOBODY\n#include "c.h"\n#endif\n', "c.h": "#define A 2\n"}
    found = choice(tree(files), "A")
    assert (found.path, found.certainty, found.others) == ("c.h", "possible", 1)


def test_a_header_seen_from_within_and_from_behind() -> None:
    header = "#define A 1\ninline int f() { return A; }\n#undef A\n#define A 2\n"
    bench = tree({"a.cu": '#include "k.h"\nint x = A;\n', "k.h": header})
    assert choice(bench, "A").event.line == 4
    assert choice(bench, "A", "k.h", header.index("return"), "a.cu").event.line == 1


def test_a_file_without_the_header_does_not_see_it() -> None:
    files = {"a.cu": '#include "k.h"\n', "b.cu": "", "k.h": "#define A 1\n"}
    bench = tree(files)
    assert choice(bench, "A", "a.cu") is not None
    assert choice(bench, "A", "b.cu") is None


def test_what_a_library_is_known_for() -> None:
    bench = tree({"a.cu": ""})
    found = choice(bench, "AT_DISPATCH_SWITCH")
    assert (found.path, found.certainty) == (KNOWN, "proved")
    bench = tree({"a.cu": "#define AT_DISPATCH_SWITCH(a) mine(a)\n"})
    assert choice(bench, "AT_DISPATCH_SWITCH").path == "a.cu"


def test_conditions_on_macros() -> None:
    text = """#define LEVEL 3
#define EMPTY
#define HIGH (LEVEL > 2)
int x;
#undef LEVEL
"""
    bench = tree({"a.cu": text, "b.h": "#define STRANGE 1\n"})
    macros = bench.unit().macros
    at = text.index("int")

    def truth(*terms: str, offset: int = at) -> bool | None:
        return macros.truth("a.cu", terms, offset, "a.cu")

    assert truth() is True
    assert truth("defined(LEVEL)") is True
    assert truth("LEVEL == 3") is True
    assert truth("LEVEL > 3") is False
    assert truth("defined(EMPTY)") is True
    assert truth("defined(STRANGE)") is None, "a file that is not included"
    assert truth("defined(OF_NOBODY)") is None
    assert truth("LEVEL == 3", "defined(USE_ROCM)") is False
    assert truth("defined(LEVEL)", offset=0) is not True


def test_the_condition_is_that_of_the_place() -> None:
    text = "#ifdef X\n#define A one\n#endif\n#define X\n#ifdef X\n#define A two\n#endif\n"
    assert choice(tree({"a.cu": text}), "A").event.body.strip() == "two"


def test_conditions_that_go_round_in_circles_end() -> None:
    text = "#if B\n#define A 1\n#endif\n#if A\n#define B 1\n#endif\n"
    assert choice(tree({"a.cu": text}), "A") is not None


# -- the spans that a build reads -------------------------------------------------------------------------------------

SPANS = [
    ("a\n#if T\nb\n#else\nc\n#endif\nd\n", "abd"),
    ("a\n#if F\nb\n#else\nc\n#endif\nd\n", "acd"),
    ("a\n#if U\nb\n#else\nc\n#endif\nd\n", "abcd"),
    ("a\n#if U\nb {\n#else\nc {\n#endif\nd }\n", "ab{d}"),
    ("a\n#if U\nb (\n#elif T\nc (\n#else\ne (\n#endif\nd )\n", "ab(d)"),
    ("a\n#if F\nb {\n#elif U\nc {\n#else\ne {\n#endif\nd }\n", "ac{d}"),
    ("a\n#if F\n#if T\nb\n#endif\nx\n#endif\nd\n", "ad"),
    ("a\n#if T\n#if F\nb\n#else\nc\n#endif\nx\n#endif\nd\n", "acxd"),
    ("a\n#if F\nb\n#endif\n#if T\nc\n#endif\n", "ac"),
    ("a\n#if F\nb\n#elif T\nc\n#elif T\ne\n#endif\n", "ac"),
    ("a\n#pragma x\nb\n#define Y \\\n  z\nc\n", "abc"),
    ("#if T\na\n#endif", "a"),
]


def truth(terms: tuple[str, ...], offset: int) -> bool | None:
    values = {"T": True, "F": False, "U": None}
    found = [
        not values[t[2:-1]] if t.startswith("!") and values[t[2:-1]] is not None else values[t.strip("!()")]
        for t in terms
    ]
    return False if False in found else None if None in found else True


@pytest.mark.parametrize(("text", "wanted"), SPANS)
def test_active_spans(text: str, wanted: str) -> None:
    spans = active_spans(FileView("a.cu", text), 0, len(text), truth)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == wanted
    assert all(a < b for a, b in spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_spans_stay_within_what_is_asked_for() -> None:
    text = "x\n#if F\ny\n#endif\n{ a\n#if F\nb\n#else\nc\n#endif\n}\n#if F\nz\n#endif\n"
    start, end = text.index("{"), text.index("}") + 1
    spans = active_spans(FileView("a.cu", text), start, end, truth)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "{ac}"
    assert spans[0][0] == start and spans[-1][1] == end


def test_a_span_inside_a_branch_is_read_whatever_the_branch() -> None:
    text = "#if F\n{ a }\n#endif\n"
    start, end = text.index("{"), text.index("}") + 1
    assert active_spans(FileView("a.cu", text), start, end, truth) == [(start, end)]


@pytest.mark.parametrize("first", ["the macro", "the file"])
def test_a_scope_is_named_whatever_is_asked_first(first: str) -> None:
    text = "#ifndef SPACE\n#define SPACE kit\n#endif\nnamespace SPACE {\nvoid f() {}\n}\n"
    bench = tree({"a.cu": text})
    if first == "the macro":
        assert choice(bench, "SPACE").event.body.strip() == "kit"
    assert [one.qualified_name for one in bench.index.facts("a.cu").functions] == ["kit::f"]


HEADERS = {
    "defs.h": "#ifdef MAYBE\n#define X 1\n#endif\n",
    "other.h": "#define X 9\n",
    "a.h": '#include "defs.h"\n',
    "b.h": '#include "defs.h"\n',
    "both.cu": '#include "a.h"\n#include "b.h"\nint both = X;\n',
    "one.cu": '#include "a.h"\nint one = X;\n',
}


@pytest.mark.parametrize("order", [("one.cu", "both.cu"), ("both.cu", "one.cu")])
def test_what_a_header_defines_does_not_hang_on_what_was_asked_before(order: tuple[str, ...]) -> None:
    bench = tree(HEADERS)
    found = {path: shown(choice(bench, "X", path, len(HEADERS[path]))) for path in order}
    assert found == dict.fromkeys(order, ("defs.h", " 1", "proved", 0))


CLANG = """#if defined(__clang__) && defined(__CUDA__)
#define CLANG_CUDA 1
#endif
#if !CLANG_CUDA && __CUDACC_VER_MAJOR__ > 12
#define SM100_SUPPORTED 1
#endif
"""


def test_nvcc_is_no_clang_that_compiles_cuda() -> None:
    bench = tree({"config.h": CLANG, "a.cu": '#include "config.h"\n'})
    assert choice(bench, "CLANG_CUDA") is None
    assert shown(choice(bench, "SM100_SUPPORTED")) == ("config.h", " 1", "proved", 0)
