"""Preprocessor branches in the structure of a file: every variant is read, under its own condition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwalker.expand.files import holds
from opwalker.model.cpp import CppFacts
from tests.facts.fragments import balanced_texts, texts
from tests.trees import function, functions, scan_text

LATER = "\nvoid later() {}\n"


def variants(facts: CppFacts, name: str) -> list[tuple[tuple[str, ...], str]]:
    """The conditions and parameter types of every function called ``name``."""
    found = sorted((f for f in facts.functions if f.name == name), key=lambda f: f.offset)
    return [(facts.conditions[f.condition], ", ".join(p.type for p in f.parameters)) for f in found]


def test_whole_functions_in_branches() -> None:
    text = "#ifdef A\nvoid f(int a) {}\n#elif B > 3\nvoid f(float a) {}\n#else\nvoid f() {}\n#endif"
    facts = scan_text(text + LATER)
    assert variants(facts, "f") == [
        (("defined(A)",), "int"),
        (("!defined(A)", "B > 3"), "float"),
        (("!defined(A)", "!(B > 3)"), ""),
    ]
    assert variants(facts, "later") == [((), "")]


def test_branches_that_each_open_the_same_body() -> None:
    text = "#ifdef A\nvoid f(int a) {\n#else\nvoid f(float a, int b) {\n#endif\n  body();\n}"
    facts = scan_text(text + LATER)
    assert variants(facts, "f") == [(("defined(A)",), "int"), (("!defined(A)",), "float, int")]
    ends = {f.end_line for f in facts.functions if f.name == "f"}
    assert ends == {7}
    assert function(facts, "later").line == 8


def test_three_branches_that_each_open_the_same_body() -> None:
    text = "#if A\nvoid f(int a) {\n#elif B\nvoid f(float a) {\n#else\nvoid f(bool a) {\n#endif\n  body();\n}"
    facts = scan_text(text + LATER)
    assert variants(facts, "f") == [(("A",), "int"), (("!(A)", "B"), "float"), (("!(A)", "!(B)"), "bool")]
    assert functions(facts) == ["f", "f", "f", "later"]


def test_any_number_of_branches_with_whole_functions() -> None:
    text = (
        "#if N == 0\nvoid f0() {}\n" + "".join(f"#elif N == {n}\nvoid f{n}() {{}}\n" for n in range(1, 20)) + "#endif"
    )
    assert functions(scan_text(text + LATER)) == [*(f"f{n}" for n in range(20)), "later"]


def test_opening_and_closing_under_one_condition_agree() -> None:
    text = "#if A\nvoid f(int a) {\n  if (a) {\n#else\nvoid f() {\n#endif\n  x();\n#if A\n  }\n#endif\n}"
    facts = scan_text(text + LATER)
    assert variants(facts, "f") == [(("A",), "int"), (("!(A)",), "")]
    assert {f.end_line for f in facts.functions if f.name == "f"} == {11}
    assert functions(facts)[-1] == "later"


def test_a_name_that_differs_by_branch() -> None:
    text = "void\n#ifdef X\nf1\n#else\nf2\n#endif\n(int* a) {}"
    facts = scan_text(text + LATER)
    assert variants(facts, "f1") == [(("defined(X)",), "int*")]
    assert variants(facts, "f2") == [(("!defined(X)",), "int*")]
    assert functions(facts) == ["f1", "f2", "later"]


def test_an_attribute_that_stands_under_a_condition() -> None:
    text = "template <typename T>\n#if __CUDA_ARCH__ >= 800\n__launch_bounds__(256)\n#endif\n__global__ void k(T* a) {}"
    facts = scan_text(text + LATER)
    assert function(facts, "k").attributes == ("__launch_bounds__(256)",)
    assert function(facts, "k").condition == 0


LISTS = [
    (
        "void f(\n  int a,\n#if defined(A) && \\\n   defined(B)\n  int b,\n#endif\n  int c) {\n}",
        [("defined(A) && defined(B)", "a b c"), ("!(defined(A) && defined(B))", "a c")],
    ),
    ("void f(int a\n#ifdef A\n  , int b\n#endif\n) {\n}", [("defined(A)", "a b"), ("!defined(A)", "a")]),
    ("void f(\n#ifdef A\n  int a\n#else\n  float b\n#endif\n) {\n}", [("defined(A)", "a"), ("!defined(A)", "b")]),
    (
        "void f(int a,\n#ifndef A\n  int b) {\n#else\n  int c, int d) {\n#endif\n  g();\n}",
        [("!defined(A)", "a b"), ("defined(A)", "a c d")],
    ),
    ("void f(int a,\n#ifdef A\n  int b,\n#endif\n  int c);", [("defined(A)", "a b c"), ("!defined(A)", "a c")]),
    ("#ifdef A\n__global__\n#endif\nvoid f(int a) {\n}", [("", "a")]),
    ("void f(int a)\n#ifdef A\n noexcept\n#endif\n{\n}", [("", "a")]),
]


@pytest.mark.parametrize(("text", "wanted"), LISTS)
def test_directives_in_a_parameter_list(text: str, wanted: list[tuple[str, str]]) -> None:
    facts = scan_text(text + LATER)
    found = [f for f in facts.functions if f.name == "f"]
    assert [(" ".join(facts.conditions[f.condition]), " ".join(p.name for p in f.parameters)) for f in found] == wanted
    assert "later" in functions(facts)


HEADS = [
    (
        "template <typename T\n#if defined(A)\n  , int E\n#endif\n  , int N>\n__global__ void f(T* a) {\n}",
        [("defined(A)", "typename T , int E , int N"), ("!defined(A)", "typename T , int N")],
    ),
    (
        "template <typename T,\n#ifdef A\n  int E,\n#else\n  bool B,\n#endif\n  int N>\nvoid f(T* a);",
        [("defined(A)", "typename T, int E, int N"), ("!defined(A)", "typename T, bool B, int N")],
    ),
    ("template <typename T>\n#ifdef A\n__global__\n#endif\nvoid f(T* a) {\n}", [("", "typename T")]),
    ("#ifdef A\ntemplate <int N>\nvoid f(int* a) {\n}\n#endif", [("defined(A)", "int N")]),
]


@pytest.mark.parametrize(("text", "wanted"), HEADS)
def test_directives_in_the_head_of_a_template(text: str, wanted: list[tuple[str, str]]) -> None:
    facts = scan_text(text + LATER)
    found = [f for f in facts.functions if f.name == "f"]
    assert [(" ".join(facts.conditions[f.condition]), f.template) for f in found] == wanted
    assert "later" in functions(facts)


BODIES = [
    "#ifdef A\n  if (a) {\n#else\n  if (b) {\n#endif\n    x();\n  }",
    "#ifdef A\n  if (a) {\n#endif\n    x();\n#ifdef A\n  }\n#endif",
    "  if (x) {\n    a();\n#ifdef A\n  } else if (y) {\n    b();\n#endif\n  } else {\n  c();\n  }",
    "#if A\n  f(a,\n#else\n  f(b,\n#endif\n  c);",
    "#if A\n  for (;;) {\n#elif B\n  while (1) {\n#else\n  {\n#endif\n  x();\n  }",
    "#ifndef A\n  if (y) {\n#endif\n  x();\n#ifndef A\n  }\n#endif",
]


@pytest.mark.parametrize("body", BODIES)
def test_branches_that_split_the_blocks_of_a_body(body: str) -> None:
    facts = scan_text(f"void f() {{\n{body}\n}}{LATER}")
    assert functions(facts) == ["f", "later"]
    assert function(facts, "f").end_line == body.count("\n") + 3
    assert not facts.problems


def test_a_scope_that_is_opened_and_closed_under_the_same_condition() -> None:
    text = '#ifdef __cplusplus\nextern "C" {\n#endif\nvoid f(int a);\nvoid g(int a) {}\n#ifdef __cplusplus\n}\n#endif'
    assert functions(scan_text(text + LATER)) == ["g", "later"]


def test_code_that_is_switched_off() -> None:
    facts = scan_text("#if 0\nvoid dead( {\n#endif" + LATER)
    assert functions(facts) == ["later"]
    facts = scan_text("#if 0\nvoid dead() {}\n#endif" + LATER)
    assert variants(facts, "dead") == [(("0",), "")]


def test_a_macro_that_is_defined_and_used_in_a_class() -> None:
    text = "struct A {\n#define X(n) int n;\nX(a)\nX(b)\n#undef X\nvoid f() {}\n};" + LATER
    facts = scan_text(text)
    assert functions(facts) == ["A::f", "later"]
    assert [i.arguments for i in facts.invocations] == [("a",), ("b",)]


def test_namespaces_under_a_condition() -> None:
    text = "#ifdef A\nnamespace a {\nvoid f() {}\n}\n#else\nnamespace b {\nvoid f() {}\n}\n#endif" + LATER
    facts = scan_text(text)
    assert functions(facts) == ["a::f", "b::f", "later"]
    assert [c for c, _ in variants(facts, "f")] == [("defined(A)",), ("!defined(A)",)]


def test_a_condition_holds_for_everything_below_it() -> None:
    text = "#ifdef A\nstruct S { void m() {} };\nenum E { P };\nusing T = int;\nint v;\nUSE(x);\n#define M 1\n#endif\n"
    facts = scan_text(text)
    for entries in (
        facts.functions,
        facts.classes,
        facts.enums,
        facts.aliases,
        facts.variables,
        facts.invocations,
        facts.macros,
    ):
        assert [facts.conditions[entry.condition] for entry in entries] == [("defined(A)",)]


def test_an_include_guard_is_no_condition_of_what_it_guards() -> None:
    facts = scan_text("#ifndef A_H\n#define A_H\nvoid f() {}\n#ifdef B\nvoid g() {}\n#endif\n#endif\n", "a.h")
    assert variants(facts, "f") == [((), "")]
    assert variants(facts, "g") == [(("defined(B)",), "")]


def test_a_brace_that_is_never_closed_is_a_problem_with_its_size() -> None:
    text = "void f() { if (x) {\n}\n"
    facts = scan_text(text)
    assert [p.kind for p in facts.problems] == ["unbalanced"]
    assert facts.unread == len(text) - text.index("{")
    assert functions(facts) == ["f"]


CHOICE = "#if B\n  if (x) {\n#else\n  if (y) {\n#endif\n  }\n"


@pytest.mark.parametrize(
    "text",
    [
        f"#if A\nvoid f() {{\n{CHOICE}}}\n#else\nvoid f() {{}}\n#endif",
        f"#if A\nvoid f() {{}}\n#else\nvoid f() {{\n{CHOICE}}}\n#endif",
        f"#if A\nvoid f() {{\n{CHOICE}#elif E\nvoid f() {{\n#else\nvoid f(int a) {{\n#endif\n}}",
        f"#if A\n#if B\nvoid f() {{\n#else\nvoid f(int a) {{\n#endif\n{CHOICE}}}\n#else\nvoid f() {{\n}}\n#endif",
    ],
)
def test_branches_within_branches_that_open_the_same_block_balance(text: str) -> None:
    facts = scan_text(text + LATER)
    assert not facts.problems
    assert facts.unread == 0
    later = function(facts, "later")
    assert later.line == text.count("\n") + 2
    assert all(f.end_line < later.line for f in facts.functions if f.name == "f")


def test_a_brace_that_stays_open_in_every_branch_is_told_once() -> None:
    text = "void f() {\n#if A\n  if (x) {\n#elif B\n  if (y) {\n#else\n  {\n#endif\n  }\n"
    assert [(p.kind, p.line) for p in scan_text(text).problems] == [("unbalanced", 1)]


def test_nesting_beyond_every_real_file_is_a_problem() -> None:
    facts = scan_text("namespace a {\n" * 1000 + "}\n" * 1000)
    assert "too-deep" in {p.kind for p in facts.problems}


@settings(max_examples=300, deadline=None)
@given(before=balanced_texts())
def test_no_garbage_loses_a_later_function(before: str) -> None:
    facts = scan_text(f"{before}\n;\nvoid later(int a) {{}}\n")
    assert "later" in {f.name for f in facts.functions if f.is_definition}


@settings(max_examples=300, deadline=None)
@given(text=texts())
def test_nothing_makes_the_scan_raise(text: str) -> None:
    facts = scan_text(text)
    for entry in (*facts.functions, *facts.invocations):
        assert 0 <= entry.offset < max(1, len(text))
        assert entry.body_start <= entry.body_end <= len(text)
        assert 1 <= entry.line <= entry.end_line <= facts.line_count
        assert 0 <= entry.condition < len(facts.conditions)
    assert 0 <= facts.unread <= len(text) * 6


@settings(max_examples=100, deadline=None)
@given(text=texts())
def test_a_scan_is_the_same_each_time(text: str) -> None:
    assert scan_text(text) == scan_text(text)


@settings(max_examples=150, deadline=None)
@given(
    heads=st.lists(
        st.sampled_from(("void {}(int a)", "template <typename T> T {}(T a, int b)", "__global__ void {}()")),
        min_size=1,
        max_size=6,
    ),
    gap=st.sampled_from(
        ("\n", "\n// c {\n", "\n#define X {\n", "\n#if A\n#endif\n", "\nMACRO(x)\n", "\nint v = 3;\n", " ")
    ),
)
def test_every_function_is_found_at_its_place(heads: list[str], gap: str) -> None:
    pieces = [head.format(f"fn{number}") + " { if (x) { y(); } }" for number, head in enumerate(heads)]
    text = gap.join(pieces)
    facts = scan_text(text)
    assert functions(facts) == [f"fn{number}" for number in range(len(heads))]
    for number, found in enumerate(sorted(facts.functions, key=lambda f: f.offset)):
        assert text.startswith(f"fn{number}(", found.offset)
        assert found.line == text.count("\n", 0, found.offset) + 1
        assert text[found.body_start : found.body_end] == "{ if (x) { y(); } }"


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"#ifdef A{n}\n" for n in range(10_000)) + "void f() { g(); }\n" + "#endif\n" * 10_000,
        "#if 0\n" + "".join(f"#elif A{n} > 1\nvoid f{n}();\n" for n in range(10_000)) + "#endif\nvoid f() { g(); }\n",
        "".join(f"#ifndef A{n}\nint x{n};\n#else\n" for n in range(10_000))
        + "void f() { g(); }\n"
        + "#endif\n" * 10_000,
    ],
)
def test_conditionals_that_nobody_writes_take_bounded_space(text):
    facts = scan_text(text)
    assert "f" in functions(facts)
    assert max(map(len, facts.conditions)) == 129 and sum(map(len, facts.conditions)) < 130 * 20_000
    assert [p.kind for p in facts.problems] == ["too-deep"]


def test_a_condition_beyond_the_kept_ones_is_not_decided():
    text = "".join(f"#ifdef A{n}\n" for n in range(200)) + "void f();\n" + "#endif\n" * 200
    facts = scan_text(text)
    terms = facts.conditions[function(facts, "f").condition]
    assert terms[:2] == ("defined(A0)", "defined(A1)") and terms[-1] == "…"
    assert holds(terms, lambda name: (True, "1")) is None
    assert holds(terms, lambda name: (False, None)) is False


INNER = "#if defined(A)\n#if B\nlimit(64, 2)\n#endif\n#else\n#if C >= D\nlimit(64, 1)\n#else\nlimit(2)\n#endif\n#endif"


@pytest.mark.parametrize(
    "branches",
    [
        "#if defined(A)\nlimit(64, 2)\n#else\nlimit(64, 1)\n#endif",
        "#if defined(A)\nlimit(64, 2)\n#elif defined(B)\nlimit(64, 3)\n#else\nlimit(64, 1)\n#endif",
        INNER,
    ],
)
def test_branches_of_attributes_in_a_head_are_no_condition_of_its_function(branches: str) -> None:
    head = branches.replace("limit", "__launch_bounds__")
    facts = scan_text(f"#ifdef OUT\ntemplate <int N>\n{head}\nstatic __global__ void k(int* a) {{}}\n#endif\n")
    assert [facts.conditions[f.condition] for f in facts.functions if f.name == "k"] == [("defined(OUT)",)]
