"""What is read from a function's body: calls, launches, locals, assignments, blocks, lambdas."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwalker.facts.cpp_body import argument_spans, mask, read_body
from opwalker.model.body import BodyFacts


class Read:
    """A body's facts with spans as text."""

    def __init__(self, text: str) -> None:
        self.text = "{" + text + "}"
        self.facts: BodyFacts = read_body(self.text)

    def at(self, span: tuple[int, int] | None) -> str | None:
        return None if span is None else self.text[span[0] : span[1]]

    def calls(self) -> list[tuple]:
        """``(name, template arguments, arguments, receiver)``."""
        return [
            (
                c.name,
                None if c.template_arguments is None else [self.at(a) for a in c.template_arguments],
                [self.at(a) for a in c.arguments],
                self.at(c.receiver),
            )
            for c in self.facts.calls
        ]

    def locals(self) -> list[tuple]:
        """``(name, type, value)``."""
        return [(f.name, f.type, self.at(f.value)) for f in self.facts.locals]

    def blocks(self) -> list[tuple]:
        """``(kind, condition, kind of the parent)``."""
        blocks = self.facts.blocks
        return [(b.kind, self.at(b.condition), blocks[b.parent].kind if b.parent >= 0 else None) for b in blocks]

    def block_of(self, name: str) -> list[str]:
        """The kinds of the blocks around the call of ``name``, innermost first."""
        number = next(c.block for c in self.facts.calls if c.name == name)
        out = []
        while number >= 0:
            out.append(self.facts.blocks[number].kind)
            number = self.facts.blocks[number].parent
        return out


CALLS = [
    ("f();", [("f", None, [], None)]),
    ("f(a, g(b));", [("f", None, ["a", "g(b)"], None), ("g", None, ["b"], None)]),
    ("x.h<int, 3>(c);", [("h", ["int", "3"], ["c"], "x")]),
    ("p->q();", [("q", None, [], "p")]),
    ("this->u();", [("u", None, [], "this")]),
    ("n::m::r<T>(d);", [("n::m::r", ["T"], ["d"], None)]),
    ("T::template s<U>(e);", [("T::s", ["U"], ["e"], None)]),
    ("x.template t<V>();", [("t", ["V"], [], "x")]),
    ("(*fp)(w);", [("(*fp)", None, ["w"], None)]),
    ("fns[i](z);", [("fns[i]", None, ["z"], None)]),
    ("::g(a);", [("::g", None, ["a"], None)]),
    ("a.b().c(d);", [("c", None, ["d"], "a.b()"), ("b", None, [], "a")]),
    ("S<int>::run(d);", [("S<int>::run", None, ["d"], None)]),
    ("int a = f(1);", [("f", None, ["1"], None)]),
    ("return f(1);", [("f", None, ["1"], None)]),
    ("if (f(1)) {}", [("f", None, ["1"], None)]),
    ("f([](int i) { return i; }, 3);", [("f", None, ["[](int i) { return i; }", "3"], None)]),
    ("f(\"a, b\", '(');", [("f", None, ['"a, b"', "'('"], None)]),
    ("f({1, 2}, T{3});", [("f", None, ["{1, 2}", "T{3}"], None)]),
    ("f(/* x */ a, // y\n b);", [("f", None, ["a", "b"], None)]),
]


@pytest.mark.parametrize(("text", "wanted"), CALLS)
def test_calls(text: str, wanted: list) -> None:
    read = Read(text)
    assert sorted(read.calls(), key=str) == sorted(wanted, key=str)
    assert not read.facts.errors


@pytest.mark.parametrize(
    ("text", "kernel", "configuration", "arguments"),
    [
        ("k<<<1, 2>>>(a);", "k", ["1", "2"], ["a"]),
        ("k<<<1, 2>>>();", "k", ["1", "2"], []),
        (
            "n::k<T, (3 > 2)><<<dim3(1, 2), b, 0, s>>>(a, b);",
            "n::k<T, (3 > 2)>",
            ["dim3(1, 2)", "b", "0", "s"],
            ["a", "b"],
        ),
        ("k\n  <<<grid,\n   block>>>\n  (a);", "k", ["grid", "block"], ["a"]),
        ("kern[i]<<<1, 2>>>(a);", "kern[i]", ["1", "2"], ["a"]),
        ("pick()<<<1, 2>>>(a);", "pick()", ["1", "2"], ["a"]),
        ("p.fn<<<1, 2>>>(a);", "p.fn", ["1", "2"], ["a"]),
        ("(x ? k1 : k2)<<<1, 2>>>(a);", "(x ? k1 : k2)", ["1", "2"], ["a"]),
        ("k<<<f(a, b), (n + 31) / 32>>>(a);", "k", ["f(a, b)", "(n + 31) / 32"], ["a"]),
    ],
)
def test_launches(text: str, kernel: str, configuration: list[str], arguments: list[str]) -> None:
    read = Read(text)
    (found,) = read.facts.launches
    assert read.at(found.kernel) == kernel
    assert [read.at(c) for c in found.configuration] == configuration
    assert [read.at(a) for a in found.arguments] == arguments
    assert read.at((found.start, found.end)) == text.rstrip(";")


LOCALS = [
    ("int a = 3, *b = &a;", [("a", "int", "3"), ("b", "int*", "&a")]),
    ("dim3 grid(x, y);", [("grid", "dim3", "(x, y)")]),
    ("dim3 grid{1, 2};", [("grid", "dim3", "{1, 2}")]),
    ("dim3 grid{unsigned(n / 4), 1};", [("grid", "dim3", "{unsigned(n / 4), 1}")]),
    ("dim3 grid(unsigned(n / 4), 2);", [("grid", "dim3", "(unsigned(n / 4), 2)")]),
    ("dim3 grid = dim3(1);", [("grid", "dim3", "dim3(1)")]),
    ("const auto& r = x;", [("r", "const auto&", "x")]),
    ("auto&& r = x;", [("r", "auto&&", "x")]),
    ("auto [p, q] = g;", [("p", "auto", None), ("q", "auto", None)]),
    ("T arr[3] = {1, 2, 3};", [("arr", "T[3]", "{1, 2, 3}")]),
    ("using S = float;", [("S", "using", "float")]),
    ("typedef int I;", [("I", "using", "int")]),
    ("namespace fs = a::b;", [("fs", "namespace", "a::b")]),
    ("using namespace c::d;", [("", "using namespace", "c::d")]),
    ("using e::f;", [("f", "using", "e::f")]),
    ("static constexpr int N = 3;", [("N", "static constexpr int", "3")]),
    ("__shared__ float sm[32];", [("sm", "__shared__ float[32]", None)]),
    ("__shared__ float sm[4][kRows][32];", [("sm", "__shared__ float[4][kRows][32]", None)]),
    ("float* rows[2][3], x;", [("rows", "float*[2][3]", None), ("x", "float", None)]),
    ("extern __shared__ char smem[];", [("smem", "extern __shared__ char[]", None)]),
    ("Foo foo;", [("foo", "Foo", None)]),
    ("std::vector<int> v(3, 4);", [("v", "std::vector<int>", "(3, 4)")]),
    (
        "const at::cuda::OptionalCUDAGuard guard(device_of(x));",
        [("guard", "const at::cuda::OptionalCUDAGuard", "(device_of(x))")],
    ),
    ("if (int y = 3; y) {}", [("y", "int", "3")]),
    ("for (int i = 0; i < 3; i++) {}", [("i", "int", "0")]),
]


@pytest.mark.parametrize(("text", "wanted"), LOCALS)
def test_locals(text: str, wanted: list) -> None:
    assert Read(text).locals() == wanted


def test_a_function_pointer_is_a_local_with_its_value() -> None:
    (found,) = Read("void (*fp)(int*) = k;").locals()
    assert found[0] == "fp" and found[2] == "k"


def test_assignments() -> None:
    read = Read("a = b; c.d = e; p->q = r; x[i] = y; cfg.gridDim.x = 3; *w = v;")
    found = [(a.target, read.at(a.value)) for a in read.facts.assigns]
    assert found == [("a", "b"), ("c.d", "e"), ("p->q", "r"), ("x[i]", "y"), ("cfg.gridDim.x", "3"), ("*w", "v")]


BLOCKS = [
    ("if (a) { f(); }", ["if"], [("if", "a", None)]),
    ("if (a) f();", ["if"], [("if", "a", None)]),
    ("if (a) {} else { f(); }", ["else"], [("if", "a", None), ("else", "a", None)]),
    (
        "if (a) {} else if (b) { f(); } else {}",
        ["if", "else"],
        [("if", "a", None), ("else", "a", None), ("if", "b", "else"), ("else", "b", "else")],
    ),
    ("if constexpr (a) { f(); }", ["if constexpr"], [("if constexpr", "a", None)]),
    ("switch (x) { case 1: f(); break; }", ["case", "switch"], [("switch", "x", None), ("case", "1", "switch")]),
    (
        'switch (x) { case 1: static_assert(true, ""); f(); break; case 2: ; }',
        ["case", "switch"],
        [("switch", "x", None), ("case", "1", "switch"), ("case", "2", "switch")],
    ),
    ("switch (x) { default: f(); }", ["case", "switch"], [("switch", "x", None), ("case", None, "switch")]),
    ("for (int i = 0; i < 3; i++) { f(); }", ["loop"], [("loop", None, None)]),
    ("while (k) f();", ["loop"], [("loop", None, None)]),
    ("do { f(); } while (k);", ["loop"], [("loop", None, None)]),
    ("for (auto& z : zs) f();", ["loop"], [("loop", None, None)]),
    ("g([&] { f(); });", ["lambda"], [("lambda", None, None)]),
    (
        "if (a) { auto l = [&] { while (b) f(); }; }",
        ["loop", "lambda", "if"],
        [("if", "a", None), ("lambda", None, "if"), ("loop", None, "lambda")],
    ),
    ("{ f(); }", [], []),
]


@pytest.mark.parametrize(("text", "around", "blocks"), BLOCKS)
def test_blocks(text: str, around: list[str], blocks: list) -> None:
    read = Read(text)
    assert read.block_of("f") == around
    assert read.blocks() == blocks


@pytest.mark.parametrize(
    ("text", "template", "parameters"),
    [
        ("auto f = [&] { a(); };", None, ()),
        ("auto f = [=](auto x, int y) mutable -> int { return x; };", None, (("auto", "x"), ("int", "y"))),
        ("auto f = [&]<typename T, int N>(T t) { b<T>(t); };", "typename T, int N", (("T", "t"),)),
        ("auto f = [] __device__ (int q) { e(q); };", None, (("int", "q"),)),
        ("f([](const std::map<int, int>& m) { c(m); });", None, (("const std::map<int, int>&", "m"),)),
    ],
)
def test_lambdas(text: str, template: str | None, parameters: tuple) -> None:
    (found,) = Read(text).facts.lambdas
    assert (found.template, found.parameters) == (template, parameters)


def test_a_lambda_spans_itself_and_its_body() -> None:
    read = Read("auto f = [&](int a) { g(a); };")
    (found,) = read.facts.lambdas
    assert read.at((found.start, found.end)) == "[&](int a) { g(a); }"
    assert read.at(found.body) == "{ g(a); }"


def test_returns_ternaries_and_assembly() -> None:
    read = Read('if (a) return b; x = c ? d : e; asm volatile("y"); return c ? {1} : k<2>;')
    assert read.at(read.facts.returns[0]) == "b"
    assert [read.at(s) for s in read.facts.ternaries[0]] == ["c", "d", "e"]
    assert read.at(read.facts.asm[0]) == 'asm volatile("y")'


@pytest.mark.parametrize(
    "text",
    [
        "[[maybe_unused]] int b = 3; f();",
        "__attribute__((aligned(16))) float c[3]; f();",
        "PRAGMA_UNROLL for (;;) f();",
        "float* __restrict__ p = q; f();",
        "__align__(16) char s[4]; f();",
        "alignas(sizeof(T) * 2) T v; f();",
        "auto l = [] __host__ __device__ (int a) { return a; }; f();",
        "typename T::X y; f();",
        "__pragma(unroll) for (;;) f();",
    ],
)
def test_what_a_parser_does_not_know_is_masked(text: str) -> None:
    read = Read(text)
    assert "f" in [c.name for c in read.facts.calls]
    assert not read.facts.errors


def test_what_cannot_be_read_is_an_error_and_loses_nothing_else() -> None:
    read = Read("a(); foo bar baz ! ; b(); k<<<1, 2>>>(x);")
    assert read.facts.errors
    assert [c.name for c in read.facts.calls] == ["a", "b"]
    assert len(read.facts.launches) == 1


@given(text=st.text(alphabet="(){}[]<>,;a =&*.:'\"#\n", max_size=60))
@settings(max_examples=200, deadline=None)
def test_no_text_makes_the_reader_raise(text: str) -> None:
    made = "{" + text + "}"
    facts = read_body(made)
    for call in facts.calls:
        assert -1 <= call.block < len(facts.blocks)
    for block in facts.blocks:
        assert block.parent < len(facts.blocks)


@given(text=st.text(alphabet="[] __attribute__((a))alignas(3)__restrict__ x", max_size=60))
def test_masking_keeps_the_length(text: str) -> None:
    assert len(mask(text)) == len(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(a, b)", ["a", "b"]),
        ("{1, f(2, 3)}", ["1", "f(2, 3)"]),
        ("( a ,\n b )", ["a", "b"]),
        ("()", []),
        ("x", ["x"]),
        ("{.a = 1, .b = T<c, d>()}", [".a = 1", ".b = T<c, d>()"]),
    ],
)
def test_argument_spans(text: str, parts: list[str]) -> None:
    assert [text[a:b] for a, b in argument_spans(text, (0, len(text)))] == parts
