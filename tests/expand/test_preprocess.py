"""Expansion of spans: what a build reads, where each piece was written and used, how it is shown to a reader."""

from __future__ import annotations

import pytest

from opwalker.expand.preprocess import Expanded
from opwalker.expand.workbench import Workbench
from tests.trees import expand, function, tree

UNKNOWN = "SOME_FLAG_OF_NOBODY"


def body(text: str, name: str = "f", **headers: str) -> tuple[Workbench, Expanded]:
    """The expanded body of a function of ``a.cu``, braces included."""
    bench = tree({"a.cu": text, **{f"{path}.h": content for path, content in headers.items()}})
    found = function(bench.index.facts("a.cu"), name)
    return bench, bench.unit().preprocessor.span("a.cu", found.body_start, found.body_end, "a.cu")


# -- substitution ---------------------------------------------------------------------------------------------

EXPANSIONS = [
    ("#define A 1", "x = A;", "x = 1;"),
    ("#define A(x) f(x)", "A(3);", "f(3);"),
    ("#define A(x) f(x)", "A (3);", "f(3);"),
    ("#define A(x) f(x)", "A;", "A;"),
    ("#define A(x) f(x)", "A\n(3);", "f(3);"),
    ("#define A() f()", "A();", "f();"),
    ("#define A(x, y) f(y, x)", "A(g(1, 2), [3]);", "f([3], g(1, 2));"),
    ("#define A(x) #x", 'A(a  b "c\\n");', '"a b \\"c\\\\n\\"";'),
    ("#define A(x) #x", "A();", '"";'),
    ("#define A(x, y) x##y", "A(a, b) A(1, 2) A(, c) A(d,);", "ab 12 c d;"),
    ("#define A(x) k_##x<x>", "A(float);", "k_float<float>;"),
    ("#define B 1\n#define A(x) #x x", "A(B);", '"B" 1;'),
    ("#define B 1\n#define A(x) x##x", "A(B);", "BB;"),
    ("#define A(...) f(__VA_ARGS__)", "A(); A(1); A(1, g(2, 3));", "f(); f(1); f(1, g(2, 3));"),
    ("#define A(x, ...) f(x, ##__VA_ARGS__)", "A(1); A(1, 2, 3);", "f(1); f(1, 2, 3);"),
    ("#define A(x, ...) f(x __VA_OPT__(,) __VA_ARGS__)", "A(1); A(1, 2);", "f(1); f(1, 2);"),
    ("#define A(x, rest...) f(x, rest)", "A(1, 2, 3);", "f(1, 2, 3);"),
    ("#define A A + 1", "A;", "A + 1;"),
    ("#define A B\n#define B A", "A; B;", "A; B;"),
    ("#define A(x) x(1)\n#define F(n) f##n", "A(F);", "f1;"),
    (
        "#define FN(T, N) k<T, N>()\n#define CALL(M) M(float, 1); M(half, 2)",
        "CALL(FN);",
        "k<float, 1>(); k<half, 2>();",
    ),
    ("#define A f(\n#define B )", "A 1 B;", "f( 1 );"),
    ("#define A(x) f(x) // end", "A(1); g();", "f(1); g();"),
    ("#define A(x) /* ( */ f(x)", "A(1);", "f(1);"),
    ("#define A(x) \\\n  f(x); \\\n  g(x)", "A(1);", "f(1); g(1);"),
    ('#define A(x) f("x", x)', "A(1);", 'f("x", 1);'),
    ("#define A(x) f(x)", 'A(")");', 'f(")");'),
    ("#define A(x) f(x)", "A(')');", "f(')');"),
    ("#define A(x) f(x)", 'A(R"(,))");', 'f(R"(,))");'),
    ("#define A(x) f(x)", "A([&](int a, int b) { return a; });", "f([&](int a, int b) { return a; });"),
    (
        "#define A(...) f(__VA_ARGS__)",
        "A([&](int a, int b) { return a, b; });",
        "f([&](int a, int b) { return a, b; });",
    ),
    ("#define A(x) f(x)", "A(1'000);", "f(1'000);"),
    ("#define A 1", 's = "A"; // A', 's = "A";'),
    ("#define A(x) f(x)", "A(1", "A(1"),
    ("#define EMPTY", "a EMPTY b;", "a b;"),
    ("#define A(x, y) x##y", "A(a b, c d);", "a bc d;"),
    ("#define A(x) x A(x)", "A(A(1));", "1 A(1) A(1 A(1));"),
    ("#define F(x) x\n#define G F", "G(1); F(G)(2);", "1; F(2);"),
    ("#define F(x) x G\n#define G F", "G(1)(2);", "1 F(2);"),
    ("#define A(x, y, z) f(x y z)", "A(1, , 3);", "f(1 3);"),
    ("#define A(x, ...) g(__VA_ARGS__) x", "A(1, a b, c);", "g(a b, c) 1;"),
    ("#define A(x) f(x)", "A((a, b));", "f((a, b));"),
    ("#define CAT(a, b) CAT_(a, b)\n#define CAT_(a, b) a##b\n#define N 3", "CAT(k_, N) CAT_(k_, N);", "k_3 k_N;"),
    ("#define STR(x) STR_(x)\n#define STR_(x) #x\n#define N 3", "STR(N) STR_(N);", '"3" "N";'),
    ("#define A # x", "A;", "# x;"),
    ("#define A(x) x ## 1 ## 2", "A(k);", "k12;"),
    ("#define A(x) [x##x]", "A();", "[];"),
]


@pytest.mark.parametrize(("head", "text", "wanted"), EXPANSIONS, ids=range(len(EXPANSIONS)))
def test_expansions(head: str, text: str, wanted: str) -> None:
    assert expand(text, head) == wanted


def test_windows_line_ends() -> None:
    head = "#define A(x) \\\r\n  f(x); \\\r\n  g(x)\r\n"
    assert expand("A(1);\r\nA(\r\n2);", head) == "f(1); g(1); f(2); g(2);"


def test_an_argument_over_branches() -> None:
    text = "A(1\n#ifdef USE_ROCM\n + 2\n#else\n + 3\n#endif\n);"
    assert expand(text, "#define A(x) f(x)") == "f(1 + 3);"
    assert expand(text, "#define A(x) f(x)", "rocm") == "f(1 + 2);"


def test_a_macro_defined_and_undefined_between_functions() -> None:
    text = (
        "#define CASE(n) one(n)\nvoid f() { CASE(1); }\n#undef CASE\nvoid g() { CASE(2); }\n"
        "#define CASE(n) two(n)\nvoid h() { CASE(3); }\n"
    )
    assert [body(text, name)[1].text for name in "fgh"] == ["{ one(1); }", "{ CASE(2); }", "{ two(3); }"]


def test_a_macro_defined_and_undefined_within_a_function() -> None:
    one, two = "#define CASE(n) one(n)\nCASE(1);\n#undef CASE", "#define CASE(n) two(n)\nCASE(2);\n#undef CASE"
    text = f"CASE(0);\n{one}\n{two}\nCASE(3);"
    assert expand(text, "#undef CASE") == "CASE(0); one(1); two(2); CASE(3);"


def test_a_macro_takes_effect_where_it_is_used_not_where_it_is_named() -> None:
    head = "#define RUN CASE(1)\n#define CASE(n) one(n)\n"
    text = "RUN;\n#undef CASE\n#define CASE(n) two(n)\nRUN;"
    assert expand(text, head) == "one(1); two(1);"


# -- which definition -----------------------------------------------------------------------------------------


def test_the_last_included_header_decides() -> None:
    one, two = "#define A first\n", "#undef A\n#define A second\n"
    assert expand("A;", '#include "one.h"\n#include "two.h"', one=one, two=two) == "second;"
    assert expand("A;", '#include "two.h"\n#include "one.h"', one=one, two=two) == "first;"
    assert expand("A;", '#include "one.h"\n#define A mine', one=one) == "mine;"
    assert expand("A;", '#define A mine\n#include "one.h"', one=one) == "first;"


def test_a_header_behind_a_header() -> None:
    assert (
        expand("A(1);", '#include "one.h"', one='#pragma once\n#include "two.h"\n', two="#define A(x) f(x)\n")
        == "f(1);"
    )


def test_a_header_takes_its_definition_back() -> None:
    assert expand("A;", '#include "one.h"', one="#define A 1\n#undef A\n") == "A;"


def test_include_guards_hide_nothing() -> None:
    guarded = "#ifndef ONE_H\n#define ONE_H\n#define A(x) f(x)\n#endif\n"
    assert expand("A(1);", '#include "one.h"\n#include "one.h"', one=guarded) == "f(1);"


def test_headers_that_include_each_other() -> None:
    one, two = '#pragma once\n#include "two.h"\n#define A B\n', '#pragma once\n#include "one.h"\n#define B 1\n'
    assert expand("A;", '#include "one.h"', one=one, two=two) == "1;"


@pytest.mark.parametrize(
    ("condition", "build", "wanted"),
    [
        ("ifdef USE_ROCM", "cuda", "no;"),
        ("ifdef USE_ROCM", "rocm", "yes;"),
        ("ifndef USE_ROCM", "cuda", "yes;"),
        ("if defined(__CUDACC__)", "cuda", "yes;"),
        ("if defined(CUDA_VERSION) && CUDA_VERSION >= 12000", "cuda", "yes;"),
        ("if CUDA_VERSION < 11000", "cuda", "no;"),
        ("if 0", "cuda", "no;"),
        ("if 1 // always", "cuda", "yes;"),
        ("if defined(_WIN32) || defined(_MSC_VER)", "cuda", "no;"),
        ("ifdef __CUDA_ARCH__", "cuda", "no;"),
    ],
)
def test_definitions_under_a_condition_of_the_build(condition: str, build: str, wanted: str) -> None:
    head = f"#{condition}\n#define A yes\n#else\n#define A no\n#endif"
    assert expand("A;", head, build) == wanted


def test_a_condition_on_what_the_file_defined_above() -> None:
    head = "#define LEVEL 3\n#if LEVEL > 2\n#define A high\n#else\n#define A low\n#endif"
    assert expand("A;", head) == "high;"
    assert expand("A;", head.replace("LEVEL 3", "LEVEL 1")) == "low;"


def test_a_condition_on_what_a_header_defined() -> None:
    head = '#include "one.h"\n#ifdef LEVEL\n#define A yes\n#else\n#define A no\n#endif'
    assert expand("A;", head, one="#define LEVEL\n") == "yes;"


def test_a_fallback_gives_way_to_the_definition_before_it() -> None:
    assert expand("A;", "#define A mine\n#ifndef A\n#define A fallback\n#endif") == "mine;"
    assert expand("A;", "#ifndef A\n#define A fallback\n#endif") == "fallback;"


def test_what_nobody_includes_is_found_when_it_is_the_only_one() -> None:
    files = {"a.cu": "void f() { A(1); }\n", "b.h": "#define A(x) g(x)\n"}
    bench = tree(files)
    choice = bench.unit().macros.lookup("A", "a.cu", 12, "a.cu")
    assert (choice.path, choice.certainty) == ("b.h", "matched")
    bench = tree({**files, "c.h": "#define A(x) h(x)\n"})
    assert bench.unit().macros.lookup("A", "a.cu", 12, "a.cu") is None


def test_a_definition_of_the_unit_goes_before_that_of_another_file() -> None:
    bench = tree({"a.cu": "#define A(x) f(x)\nvoid f() { A(1); }\n", "b.h": "#define A(x) g(x)\n"})
    choice = bench.unit().macros.lookup("A", "a.cu", 30, "a.cu")
    assert (choice.path, choice.certainty) == ("a.cu", "proved")


def test_the_unit_decides_what_a_header_sees() -> None:
    files = {
        "k.h": "inline void f() { A(1); }\n",
        "a.cu": '#define A(x) one(x)\n#include "k.h"\n',
        "b.cu": '#define A(x) two(x)\n#include "k.h"\n',
    }
    bench = tree(files)
    found = function(bench.index.facts("k.h"), "f")
    read = [
        bench.unit().preprocessor.span("k.h", found.body_start, found.body_end, root).text for root in ("a.cu", "b.cu")
    ]
    assert read == ["{ one(1); }", "{ two(1); }"]


def test_what_the_user_asked_for_goes_before_everything() -> None:
    files = {"a.cu": "void f() {\n#ifdef MINE\n yes();\n#else\n no();\n#endif\n}\n"}
    for asked, wanted in (([("MINE", "1")], "{ yes(); }"), ([], "{ yes(); no(); }")):
        bench = tree(files, asked=asked)
        found = function(bench.index.facts("a.cu"), "f")
        made = bench.unit().preprocessor.span("a.cu", found.body_start, found.body_end, "a.cu")
        assert " ".join(made.text.split()) == wanted


def test_checks_stay_as_they_are_written() -> None:
    head = "#define TORCH_CHECK(c, ...) if (!(c)) throw_it(__VA_ARGS__)\n#define N 3"
    assert expand('TORCH_CHECK(x == N, "bad");', head) == 'TORCH_CHECK(x == 3, "bad");'


# -- branches -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("#ifdef USE_ROCM\na();\n#else\nb();\n#endif\nc();", "b(); c();"),
        ("#if 0\na();\n#elif 1\nb();\n#else\nc();\n#endif", "b();"),
        (f"#ifdef {UNKNOWN}\na();\n#else\nb();\n#endif", "a(); b();"),
        (f"#ifdef {UNKNOWN}\nif (x) {{\n#else\nif (y) {{\n#endif\na(); }}", "if (x) { a(); }"),
        (f"#ifndef USE_ROCM\n#if {UNKNOWN} > 3\na();\n#endif\nb();\n#else\nc();\n#endif", "a(); b();"),
        ("#ifdef USE_ROCM\n#if 1\na();\n#endif\n#else\nb();\n#endif", "b();"),
        ("#pragma unroll\nfor (;;) {}\n#include <x.h>\n#define Y 1\n", "for (;;) {}"),
    ],
)
def test_branches_of_a_body(text: str, wanted: str) -> None:
    assert expand(text) == wanted


def test_device_code_sees_an_architecture() -> None:
    inside = "#ifdef __CUDA_ARCH__\n on_device();\n#endif\n#if __CUDA_ARCH__ >= 900\n new_one();\n#endif"
    text = f"__global__ void k() {{\n{inside}\n}}\n"
    bench = tree({"a.cu": text})
    found = function(bench.index.facts("a.cu"), "k")
    host = bench.unit().preprocessor.span("a.cu", found.body_start, found.body_end, "a.cu").text
    device = bench.unit().device_preprocessor.span("a.cu", found.body_start, found.body_end, "a.cu").text
    assert "on_device" not in host and "new_one" not in host
    assert "on_device" in device and "new_one" in device


# -- origins --------------------------------------------------------------------------------------------------

NESTED = """#define INNER(n) \\
  leaf(n)
#define OUTER(a) \\
  first(a); \\
  INNER(a)
void f() {
  plain();
  OUTER(7);
}
"""


def place(bench: Workbench, made: Expanded, word: str) -> tuple[str, int, list[str], int]:
    """Where a word of the expanded text was written, through which macros, and on which line it is used."""
    offset = made.text.index(word)
    path, position, expansion = made.origin(offset)
    line = bench.files.view(path).blanked.line
    use = bench.files.view("a.cu").blanked.line(made.use_position(offset))
    return path, line(position), [e.name for e in made.chain(expansion)], use


def test_every_piece_knows_where_it_was_written_and_used() -> None:
    bench, made = body(NESTED)
    assert place(bench, made, "plain") == ("a.cu", 7, [], 7)
    assert place(bench, made, "first") == ("a.cu", 4, ["OUTER"], 8)
    assert place(bench, made, "leaf") == ("a.cu", 2, ["OUTER", "INNER"], 8)
    assert place(bench, made, "7") == ("a.cu", 8, [], 8)


def test_pieces_out_of_a_header() -> None:
    text = '#include "one.h"\nvoid f() {\n\n  OUTER(7);\n}\n'
    bench, made = body(text, one="\n#define OUTER(a) first(a)\n")
    assert place(bench, made, "first") == ("one.h", 2, ["OUTER"], 4)


def test_a_macro_that_is_passed_is_named_here_and_applied_there() -> None:
    text = "#define FN(n) leaf(n)\n#define EACH(M) \\\n  M(1)\nvoid f() {\n  EACH(FN);\n}\n"
    bench, made = body(text)
    assert place(bench, made, "leaf")[1:] == (1, ["FN"], 5)
    (inner,) = [e for e in made.expansions if e.name == "FN"]
    assert made.expansions[inner.applied_in - 1].name == "EACH"


def test_every_token_is_the_text_at_its_origin() -> None:
    bench, made = body(NESTED)
    for number, token in enumerate(made.tokens):
        path = "a.cu" if token.expansion == 0 else made.expansions[token.expansion - 1].definition.path
        text = bench.files.view(path).blanked.text
        assert text.startswith(token.text, token.pos), number


@pytest.mark.parametrize(
    ("head", "text", "wanted"),
    [
        ("#define N 32", "f(N * 2);", "f(N * 2);"),
        ("#define A B + 1\n#define B 2", "f(A);", "f(A);"),
        ("#define A() g()", "f(A(), 1);", "f(A(), 1);"),
        ("#define N 32", "f(M, N, N);", "f(M, N, N);"),
        ("", "f(a /* c */, b);", "f(a , b);"),
    ],
)
def test_a_reader_sees_macros_as_they_are_used(head: str, text: str, wanted: str) -> None:
    _, made = body(f"{head}\nvoid f() {{{text}}}\n")
    assert made.written(1, len(made.text) - 1).replace(" ,", ",").replace("(a,", "(a,") == wanted.replace(" ,", ",")


def test_non_ascii_text_keeps_the_offsets() -> None:
    _, made = body('void f() { g("é—", 1); h(); }\n')
    assert len(made.text) == len(made.full) and made.text.isascii()
    assert made.full[made.text.index("h()") :].startswith("h()")
    assert "é—" in made.full


def test_an_expansion_without_end_is_given_up() -> None:
    head = "\n".join(f"#define A{n} A{n + 1} A{n + 1}" for n in range(30)) + "\n#define A30 x\n"
    _, made = body(f"{head}void f() {{ A0; }}\n")
    assert made.problems == ["too-large"]


def test_branches_within_branches_that_are_too_many_are_read_once() -> None:
    """Two of two of two …: a macro that is given a lambda stays a call, and what it is given is read."""
    pick = "#define PICK(N, ...) if (N) { constexpr int W = 1; __VA_ARGS__(); } else { __VA_ARGS__(); }"
    text = "".join(f"PICK(n{n}, [&] {{ " for n in range(18)) + "LAUNCH(k, g + h + i);" + " });" * 18
    _, made = body(f"{pick}\n#define LAUNCH(K, G) K<<<G, 1>>>()\nvoid f() {{ {text} }}\n")
    assert made.folded and not made.problems
    assert made.full.count("PICK(") == 18
    assert made.full.count("k<<<g + h + i, 1>>>()") == 1


def test_a_body_that_is_read_whole_is_not_folded() -> None:
    _, made = body("#define PICK(N, ...) if (N) { __VA_ARGS__(); }\nvoid f() { PICK(n, [&] { g(); }); }\n")
    assert not made.folded
    assert "if (n)" in made.full


def test_an_empty_body() -> None:
    _, made = body("void f() {}\n")
    assert made.text == "{}"
    assert made.written(1, 1) == ""
