"""Structure of C++ as it is written: heads with operators and braces in them, macros, branches, declarators."""

from __future__ import annotations

import pytest

from opwalker.facts.cpp_brackets import match_angle
from opwalker.facts.cpp_text import blank
from tests.trees import function, functions, scan_text

LATER = "\nvoid later() {}\n"


def variants(text, name):
    facts = scan_text(text + LATER)
    assert "later" in functions(facts)
    found = sorted((f for f in facts.functions if f.name == name), key=lambda f: f.offset)
    return [(facts.conditions[f.condition], f.return_type, ", ".join(p.type for p in f.parameters)) for f in found]


def test_two_heads_before_one_body():
    text = "#ifdef A\nvoid f(int a)\n#else\nvoid f(float a, int b)\n#endif\n{\n  body();\n}"
    assert variants(text, "f") == [(("defined(A)",), "void", "int"), (("!defined(A)",), "void", "float, int")]


def test_three_heads_before_one_body():
    text = (
        "#if defined(A)\ntemplate <typename T>\n__global__ void k(T* a)\n#elif defined(B)\n"
        "template <typename T, int N>\n__global__ void k(T* a, int b)\n#else\n__global__ void k(int* a)\n#endif\n{\n}"
    )
    assert [(r, p) for _, r, p in variants(text, "k")] == [("void", "T*"), ("void", "T*, int"), ("void", "int*")]


@pytest.mark.parametrize(
    "head",
    [
        "template <typename T, std::enable_if_t<std::is_same<T, float>{}, bool> = true>",
        "template <typename X, typename... Ys, typename std::enable_if<sizeof...(Ys) >= 2, bool>::type = false>",
        "template <typename T, bool B = sizeof(T) <= 4>",
        "template <typename T, int N = 1 << 4>",
        "template <typename T, auto F = [](int a) { return a; }>",
    ],
)
def test_operators_and_braces_in_a_template_head(head):
    assert functions(scan_text(f"{head}\nvoid f(T a) {{}}\nvoid g() {{}}{LATER}")) == ["f", "g", "later"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("REGISTER(a, b)\n", ["a"]),
        ("REGISTER(a)\nREGISTER(b)\n", ["a", "b"]),
        ("namespace n {\nREGISTER(a)\n}\n", ["a"]),
        ("namespace n {\nREGISTER(a)\nREGISTER(b)\n}  // namespace n\n", ["a", "b"]),
        ("#ifdef A\nREGISTER(a)\n#endif\n", ["a"]),
        ("REGISTER(a) REGISTER(b)\nvoid later() {}\n", ["a", "b"]),
        ("struct S { int x; X(a) };\n", ["a"]),
    ],
)
def test_macro_uses_at_the_end_of_a_scope(text, wanted):
    assert [i.arguments[0] for i in scan_text(text).invocations] == wanted


def test_a_string_default_with_a_comma():
    found = function(scan_text('void f(const char* s = "a, b", int n = 3);'), "f")
    assert [(p.name, p.default) for p in found.parameters] == [("s", '"a, b"'), ("n", "3")]


def test_an_extern_c_block():
    assert "extern_c" in function(scan_text('extern "C" { int f(int a) { return 1; } }'), "f").flags


def test_extern_templates():
    found = function(scan_text("extern template void f<int>(int*);"), "f")
    assert (found.return_type, found.specialisation) == ("void", "int")
    assert "extern_template" in found.flags
    assert not scan_text("extern template struct Bar<int>;").variables


def test_a_class_behind_a_macro_with_arguments():
    facts = scan_text("struct MY_ALIGN(16) Vec { void f() {} };" + LATER)
    assert [c.name for c in facts.classes] == ["Vec"]
    assert functions(facts) == ["Vec::f", "later"]


def test_a_comment_over_lines_in_a_directive():
    text = "#define X a /* b\n c */ d\nint z;\n"
    assert " ".join(scan_text(text).macros[0].body.split()) == "a d"
    assert "d" not in blank(text).plain.replace("define", "")


def test_a_raw_string_over_lines_in_a_directive():
    text = '#define SRC R"(\nvoid fake() {\n)"\nvoid g() {}\n'
    facts = scan_text(text)
    assert functions(facts) == ["g"]
    assert facts.macros[0].body.strip() == 'R"(\nvoid fake() {\n)"'


def test_several_declarators():
    facts = scan_text("inline constexpr int kA = 3, kB = 4;\nint x, *y;")
    assert [(v.name, v.value) for v in facts.variables] == [("kA", "3"), ("kB", "4"), ("x", None), ("y", None)]


def test_a_typedef_of_a_tagged_struct():
    facts = scan_text("typedef struct tag { int b; } Name;" + LATER)
    assert ("Name", "tag") in [(a.name, a.target) for a in facts.aliases]


@pytest.mark.parametrize(
    "clause",
    ["A<T> || B<T>::value", "A<T>::value && (!B<T>)", "n::A<T> && requires { T::x(1); } && C<T>", "!A<T>::value"],
)
def test_requires_clauses(clause):
    assert (
        function(scan_text(f"template <class T> requires {clause}\nint f(T a) {{ return 1; }}"), "f").return_type
        == "int"
    )


@pytest.mark.parametrize(
    "text", ["class A { friend class B; };", "template <class T> concept C = requires(T a) { a.f(); };"]
)
def test_what_is_no_variable(text):
    assert not scan_text(text).variables


def test_a_function_try_block():
    facts = scan_text("struct S { S(int a) try : a_(a) {} catch (...) {} int a_; };" + LATER)
    assert functions(facts) == ["S::S", "later"]


def test_an_open_parenthesis_is_a_problem():
    facts = scan_text("int x = f(3\nvoid g() {}\nvoid later() {}\n")
    assert facts.problems or "later" in functions(facts)


def test_prose_under_if_0_is_no_problem():
    assert not scan_text("#if 0\nthis isn't code { (\n#endif\nvoid f() {}" + LATER).problems


@pytest.mark.parametrize("text", ["< b) > c", "<b] > c"])
def test_an_angle_does_not_leave_its_parenthesis(text):
    assert match_angle(text, 0) == -1


def test_a_line_continuation_between_name_and_parameters():
    assert functions(scan_text("void f\\\n(int a) {}" + LATER)) == ["f", "later"]


@pytest.mark.parametrize("branches", ["#else\n#else", "#elif B\n#elif B"])
def test_branches_that_no_build_reads_hide_nothing(branches):
    assert "later" in functions(scan_text(f"int x\n#if A\n{branches}\n;{LATER}"))


def test_attributes_of_each_branch_are_not_heads():
    text = "#ifdef A\nstatic __attribute__((a)) __device__\n#else\nstatic __attribute__((a))\n#endif\nvoid f() {}"
    assert "device" in function(scan_text(text), "f").flags


@pytest.mark.parametrize("clause", ["requires (sizeof(T) > 1)", "requires C<T>", "requires requires(T a) { a.x(); }"])
def test_a_requires_clause_behind_the_parameters_opens_no_body(clause):
    assert functions(scan_text(f"template <class T> void f(T a) {clause} {{ g(); }}{LATER}")) == ["f", "later"]


def test_a_function_that_returns_a_function_pointer():
    facts = scan_text("static void (*pick(int n))(int*) { return k; }" + LATER)
    assert functions(facts) == ["pick", "later"]
    found = function(facts, "pick")
    assert (found.return_type, [p.name for p in found.parameters]) == ("void (*)(int*)", ["n"])


def test_a_pointer_to_a_function_is_none():
    assert not scan_text("void (*pick)(int n) = nullptr;\nvoid (*table[2])(int);").functions


def test_an_object_made_with_a_variable_is_no_function():
    facts = scan_text("constexpr int N = 3;\nFoo y(N);\nint g(M);\nint g(A<2, N, 3>&);")
    assert [f.name for f in facts.functions] == ["g", "g"]
    assert [v.name for v in facts.variables] == ["N", "y"]


@pytest.mark.parametrize(
    ("text", "name", "bases"),
    [
        ("__device__ struct A { int x; };", "A", ()),
        ("static struct A { int x; } a;", "A", ()),
        ("inline constexpr struct A { int x; } a{};", "A", ()),
        ("struct __align__(sizeof(int) * (2)) A { int x; };", "A", ()),
        ("struct alignas(alignof(float4) > 8 ? (16) : 8) A : B { int x; };", "A", ("B",)),
        ("template <class T> struct __attribute__((aligned(sizeof(T) * (1 << (2))))) A { T x; };", "A", ()),
        ("class __declspec(dllexport) A final : public B { int x; };", "A", ("B",)),
        ("struct [[gnu::aligned(16)]] A { int x; };", "A", ()),
        ("using A = class A_ : B { int x; };", "A_", ("B",)),
        ("using A = struct { int x; };", "A", ()),
    ],
)
def test_a_class_behind_specifiers_and_alignments(text, name, bases):
    facts = scan_text(text + LATER)
    assert [(c.name, c.bases) for c in facts.classes] == [(name, bases)]
    assert [f.name for f in facts.functions] == ["later"]


def test_what_is_no_class_in_spite_of_its_words():
    facts = scan_text(
        "static struct A f() { return {}; }\nstruct A g(struct B b) { return {}; }\nstatic const struct A a = {1, 2};\n"
        "struct Aa b;\nstruct API_WORD C;\nstruct D;\n"
    )
    assert facts.classes == ()
    assert functions(facts) == ["f", "g"]
    assert [(v.name, v.type) for v in facts.variables] == [("a", "const struct A"), ("b", "struct Aa")]


def test_objects_and_names_behind_a_class():
    facts = scan_text(
        "static struct Row { int n; void (*run)(int); } table[] = {{1, &f}, {2, &g}};\n"
        "struct { int n; } other;\nusing Kind = struct Kind_ { int n; };\n"
        "struct P { int x; } __attribute__((packed));\n"
    )
    assert [
        (v.name, v.type, v.value) for v in facts.variables if not v.scope or v.scope[-1] not in ("Row", "Kind_", "P")
    ][:2] == [("table", "Row[]", "{{1, &f}, {2, &g}}"), ("n", "int", None)]
    assert "other" in [v.name for v in facts.variables] and "P" not in [v.name for v in facts.variables]
    assert [(a.name, a.target) for a in facts.aliases] == [("Kind", "Kind_")]
