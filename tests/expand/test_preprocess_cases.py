"""Expansion where it is easily wrong: folding uses back, tokens that come together, what configures a header."""

from __future__ import annotations

import pytest

from opwalker.expand.tokens import tokenize
from tests.expand.test_preprocess import body as bench_and_body
from tests.trees import expand, follow, function, tree


def body(text: str, **headers: str):
    """The expanded body of the function ``f`` of a file."""
    return bench_and_body(text, **headers)[1]


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ("#define DIV(a, b) (((a) + (b) - 1) / (b))", "f(DIV(n, 4))"),
        ("#define DIV(a, b) a / b", "f(DIV(n, 4), 3)"),
        ("#define A(x) B(x)\n#define B(x) (x)", "f(A(3))"),
        ("#define MIN(a, b) std::min(a, b)", "f(MIN(n * 2, g(3)), 7)"),
        ("#define N 128", "f(1, N)"),
    ],
)
def test_a_reader_sees_macros_with_arguments_as_they_are_used(head, text) -> None:
    made = body(f"{head}\nvoid f() {{{text};}}\n")
    assert made.written(1, len(made.text) - 2) == text


def test_a_span_that_is_one_macro_use() -> None:
    made = body("#define THREADS 128\n#define DIV(a, b) ((a) / (b))\nvoid f() { g(THREADS, DIV(n, 4)); }\n")
    start = made.text.index("128")
    assert made.written(start, start + 3) == "THREADS"
    start = made.text.index("((n)")
    assert made.written(start, made.text.index(");")) == "DIV(n, 4)"


def test_within_a_macro_its_own_text_is_shown() -> None:
    made = body("#define N 3\n#define LAUNCH(x) k(x, N, (x))\nvoid f() { LAUNCH(7); }\n")
    start = made.text.index("k(") + 2
    assert made.written(start, made.text.index(", (")) == "7, N"
    start = made.text.index("(7)")
    assert made.written(start, start + 3) == "(7)"


@pytest.mark.parametrize(
    ("head", "text", "wanted"),
    [
        ("#define NEG -1", "x = a-NEG;", ["x", "=", "a", "-", "-", "1", ";"]),
        ("#define PLUS +1", "x = a+PLUS;", ["x", "=", "a", "+", "+", "1", ";"]),
        ("#define F(x) x", "F(a)b;", ["a", "b", ";"]),
        ("#define EMPTY", "int EMPTY()x;", None),
        ("#define A(...) __VA_OPT__(x) y", "aA(1)A(1);", None),
        ("#define REF &", "f(T&REF x);", ["f", "(", "T", "&", "&", "x", ")", ";"]),
        ("#define LT <", "a<LT b;", ["a", "<", "<", "b", ";"]),
        ("#define WIDE L", "f(WIDE\"a\", WIDE'b');", ["f", "(", "L", '"a"', ",", "L", "'b'", ")", ";"]),
    ],
)
def test_the_text_cuts_into_the_tokens_that_were_made(head, text, wanted) -> None:
    bench = tree({"a.cu": f"{head}\nvoid f() {{{text}}}\n"})
    found = function(bench.index.facts("a.cu"), "f")
    made = bench.unit().preprocessor.span("a.cu", found.body_start + 1, found.body_end - 1, "a.cu")
    assert [t.text for t in tokenize(made.text)] == [t.text for t in made.tokens]
    if wanted:
        assert [t.text for t in made.tokens] == wanted


def test_a_blank_before_va_opt() -> None:
    assert expand("A(1);", "#define A(...) return __VA_OPT__(x) + y") == "return x + y;"


def test_a_header_is_configured_by_the_file_that_includes_it() -> None:
    one = "#ifdef FAST\n#define RUN fast()\n#else\n#define RUN slow()\n#endif\n"
    assert expand("RUN;", '#define FAST\n#include "one.h"', one=one) == "fast();"
    one = "#if LEVEL > 2\n#define RUN fast()\n#else\n#define RUN slow()\n#endif\n"
    assert expand("RUN;", '#define LEVEL 3\n#include "one.h"', one=one) == "fast();"
    assert expand("RUN;", '#define LEVEL 1\n#include "one.h"', one=one) == "slow();"


def test_what_was_undefined_is_not_defined() -> None:
    assert expand("#ifdef X\nyes();\n#else\nno();\n#endif", "#define X 1\n#undef X") == "no();"


def test_a_definition_below_the_use_does_not_hold() -> None:
    assert expand("A(1);\n#define A(x) f(x)\nA(2);", "") == "A(1); f(2);"


def test_va_opt_with_arguments_that_vanish() -> None:
    head = "#define EMPTY\n#define A(x, ...) f(x __VA_OPT__(,) __VA_ARGS__)"
    assert expand("A(1, EMPTY);", head) in ("f(1);", "f(1 );")


def test_blanks_in_stringified_variable_arguments() -> None:
    assert expand("A(p , q);", "#define A(...) #__VA_ARGS__") == '"p , q";'


def test_a_character_right_behind_a_word() -> None:
    assert [t.text for t in tokenize("case'x':")] == ["case", "'x'", ":"]


def test_a_condition_before_and_behind_an_include() -> None:
    text = (
        '#ifdef X\n#define A one\n#else\n#define A two\n#endif\n#include "x.h"\n'
        "#ifdef X\n#define B one\n#else\n#define B two\n#endif\n"
    )
    bench = tree({"a.cu": text, "x.h": "#define X\n"})
    macros = bench.unit().macros
    assert macros.truth("a.cu", ("defined(X)",), 1 << 30, "a.cu") is True
    assert macros.truth("a.cu", ("defined(X)",), 0, "a.cu") is not True
    assert macros.lookup("B", "a.cu", 1 << 30, "a.cu").event.body.strip() == "one"


def test_a_header_in_two_units() -> None:
    files = {
        "k.h": "inline void f() {\n#ifdef FAST\n fast();\n#else\n slow();\n#endif\n}\n",
        "a.cu": '#include "fast.h"\n#include "k.h"\n',
        "b.cu": '#include "k.h"\n',
        "fast.h": "#define FAST\n",
    }
    bench = tree(files)
    found = function(bench.index.facts("k.h"), "f")
    read = bench.unit().preprocessor.span
    texts = [read("k.h", found.body_start, found.body_end, root).text for root in ("a.cu", "b.cu")]
    assert "slow" not in texts[0] and "fast" in texts[0]
    assert "slow" in texts[1]


def test_a_file_included_in_a_body_is_read_there() -> None:
    files = {
        "a.cu": '#include "k.cuh"\n#define N 1\nvoid f() {\n#include "body.inc"\n#if 0\n#include "dead.inc"\n#endif\n'
        "  h();\n}\n",
        "body.inc": "\n#if N > 1\nno();\n#else\ng(N);\nk<<<1, 2>>>(3);\n#endif\n",
        "dead.inc": "dead();\n",
        "k.cuh": "__global__ void k(int a) {}\n",
    }
    bench = tree(files)
    found = function(bench.index.facts("a.cu"), "f")
    made = bench.unit().preprocessor.span("a.cu", found.body_start, found.body_end, "a.cu")
    assert made.text == "{ g(1); k<<<1, 2>>>(3); h(); }"
    assert made.origin(made.text.index("g"))[:2] == ("body.inc", files["body.inc"].index("g(N)"))
    (site,) = follow(bench, "a.cu", "f").launches
    assert (site.place, site.used_at) == (("body.inc", 6), ("a.cu", 4))
