"""Functions, classes and other declarations of one file, with exact names, parameters, flags and lines."""

from __future__ import annotations

import pytest

from opwalker.facts.cpp_scan import names
from opwalker.model.cpp import CppFacts
from tests.trees import function, functions, scan_text

#: A function that must still be found behind whatever stands before it.
LATER = "\nvoid later() {}\n"


def signature(facts: CppFacts, name: str) -> str:
    """A function as one line: return type, qualified name, parameter types and names."""
    found = function(facts, name)
    parameters = ", ".join(f"{p.type} {p.name}".strip() for p in found.parameters)
    return f"{found.return_type} {found.qualified_name}({parameters})".strip()


SIGNATURES = [
    ("void f() {}", "void f()"),
    ("void f(void) {}", "void f()"),
    ("static inline int f(int a, float* b) { return 1; }", "int f(int a, float* b)"),
    ("auto f(int a) -> std::vector<int> { return {}; }", "std::vector<int> f(int a)"),
    ("template <class T> auto f(T a) -> decltype(a.b(1)) { return a.b(1); }", "decltype(a.b(1)) f(T a)"),
    ("void f(int a) noexcept(noexcept(g(a))) {}", "void f(int a)"),
    ("template <class T> void f(T a) requires (sizeof(T) == 2) {}", "void f(T a)"),
    ("template <class T> requires std::is_integral_v<T> && (sizeof(T) > 2)\nvoid f(T* a) {}", "void f(T* a)"),
    ("template <class T> requires requires(T t) { t.foo(); }\nvoid f(T a) {}", "void f(T a)"),
    ("template <class T> requires A<T> || B<T>\nint f(T a) { return 1; }", "int f(T a)"),
    ("[[nodiscard]] [[gnu::noinline]] int f([[maybe_unused]] int a) { return 1; }", "int f(int a)"),
    ('__attribute__((visibility("default"))) void f(int a) {}', "void f(int a)"),
    ("void f(int a) __attribute__((noinline)) {}", "void f(int a)"),
    ("static inline int const f(int const a) { return a; }", "int const f(int const a)"),
    (
        "template <typename T>\nstd::enable_if<(sizeof(T) > 2) && A<T>::value, void>::type\nf(T* a, int b) {}",
        "std::enable_if<(sizeof(T) > 2) && A<T>::value, void>::type f(T* a, int b)",
    ),
    (
        "template <typename T> std::enable_if_t<std::is_same_v<T, int>, void> f(T a) {}",
        "std::enable_if_t<std::is_same_v<T, int>, void> f(T a)",
    ),
    ("template <typename T, std::enable_if_t<(N < 3), int> = 0>\nvoid f(T a) {}", "void f(T a)"),
    (
        "template <typename T = int, int N = (3 > 2) ? 1 : 0, typename... Ts>\nvoid f(T a, Ts&&... ts) {}",
        "void f(T a, Ts&&... ts)",
    ),
    ("void f(void (*cb)(int, float), int n) {}", "void f(void (*)(int, float) cb, int n)"),
    ("template <int N> void f(const int (&arr)[N], int* const p[]) {}", "void f(const int (&)[N] arr, int* const[] p)"),
    ("void f(int, float*, const char* = nullptr) {}", "void f(int, float*, const char*)"),
    ("void f(std::vector<int> v = {}, int b = int{3}) {}", "void f(std::vector<int> v, int b)"),
    (
        "void f(std::function<int(int)> fn = [](int a) { return a + 1; }, int b = 3) {}",
        "void f(std::function<int(int)> fn, int b)",
    ),
    ("void f(std::map<int, float> m, unsigned int n) {}", "void f(std::map<int, float> m, unsigned int n)"),
    (
        "const std::vector<std::pair<int, int>>& f(int a) { return x; }",
        "const std::vector<std::pair<int, int>>& f(int a)",
    ),
    ("struct X f(int a) { return {}; }", "struct X f(int a)"),
    ("consteval int f(int a) { return a; }", "int f(int a)"),
    ("void f(int a,\n       int b)\n{\n}", "void f(int a, int b)"),
    ("void f(int a /* x, y */, // z )\n  int b) {}", "void f(int a, int b)"),
    (
        "std::tuple<at::Tensor, at::Tensor> f(const at::Tensor& x, c10::optional<at::Tensor> y) {}",
        "std::tuple<at::Tensor, at::Tensor> f(const at::Tensor& x, c10::optional<at::Tensor> y)",
    ),
    ("C10_HOST_DEVICE inline float f(float a) { return a; }", "C10_HOST_DEVICE float f(float a)"),
    ("std::function<void(int, float)> f(int a) { return g; }", "std::function<void(int, float)> f(int a)"),
    ("A<B(C)>::type<int (*)(int)> f(D<E(F)> a) {}", "A<B(C)>::type<int (*)(int)> f(D<E(F)> a)"),
    ("auto f(int a) { return a; }", "auto f(int a)"),
    ("constexpr auto f(int a) noexcept { return a; }", "auto f(int a)"),
    ("decltype(auto) f(int a) { return (a); }", "decltype(auto) f(int a)"),
    ("auto f(int a) -> A<B(C)> { return {}; }", "A<B(C)> f(int a)"),
    ("template <class T> requires n::A<T> && (!B<T>)\nvoid f(T a) {}", "void f(T a)"),
]


@pytest.mark.parametrize(("text", "wanted"), SIGNATURES, ids=range(len(SIGNATURES)))
def test_signatures(text: str, wanted: str) -> None:
    facts = scan_text(text + LATER)
    assert signature(facts, "f") == wanted
    assert function(facts, "later").is_definition
    assert not facts.unread and not facts.problems


@pytest.mark.parametrize(("text", "wanted"), SIGNATURES, ids=range(len(SIGNATURES)))
def test_signatures_in_a_namespace_with_windows_line_ends(text: str, wanted: str) -> None:
    facts = scan_text(f"namespace n {{\n{text}\n}}{LATER}".replace("\n", "\r\n"))
    assert signature(facts, "n::f") == wanted.replace(" f(", " n::f(")
    assert function(facts, "later").scope == ()


KERNELS = [
    ("__global__ void k(int* a) {}", ()),
    ("template <int N>\n__launch_bounds__(128, 2) __global__ void k(int* a) {}", ("__launch_bounds__(128, 2)",)),
    ("__global__ void __launch_bounds__(N * (1 + 2), 2) k(int* a) {}", ("__launch_bounds__(N * (1 + 2), 2)",)),
    ("static __global__ __launch_bounds__(1024) void k(int* a) {}", ("__launch_bounds__(1024)",)),
    ("__global__ void __launch_bounds__(\n  64)\nk(int* a) {}", ("__launch_bounds__( 64)",)),
    ("__global__ __cluster_dims__(2, 1, 1) void k(int* a) {}", ("__cluster_dims__(2, 1, 1)",)),
    ('extern "C" __global__ void k(int* a) {}', ()),
    ("inline __attribute__((used)) __global__ void k(int* a) {}", ("__attribute__((used))",)),
    ("__global__ void // why\n/* ( */ k(int* a) {}", ()),
]


@pytest.mark.parametrize(("text", "attributes"), KERNELS, ids=range(len(KERNELS)))
def test_kernels(text: str, attributes: tuple[str, ...]) -> None:
    facts = scan_text(text + LATER)
    found = function(facts, "k")
    assert "global" in found.flags and found.return_type == "void"
    assert found.attributes == attributes
    assert [(p.type, p.name) for p in found.parameters] == [("int*", "a")]
    assert functions(facts) == ["k", "later"]


def test_a_constrained_return_type_of_a_kernel() -> None:
    text = "template <typename T>\n__global__ typename std::enable_if<(sizeof(T) > 2), void>::type\nk(T* a) {}"
    found = function(scan_text(text), "k")
    assert "global" in found.flags
    assert (found.start_line, found.line) == (2, 3)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("static void f() {}", {"static"}),
        ("inline void f() {}", {"inline"}),
        ("__forceinline__ __device__ void f() {}", {"inline", "device"}),
        ("__host__ __device__ constexpr int f() { return 1; }", {"host", "device", "constexpr"}),
        ('extern "C" void f() {}', {"extern_c"}),
        ("struct S { virtual void f() = 0; };", {"virtual", "pure", "member"}),
        ("struct S { void f() override {} };", {"override", "member"}),
        ("struct S { void f() const {} };", {"const", "member"}),
        ("struct S { static void f() {} };", {"static", "member"}),
        ("struct S { void f() = delete; };", {"deleted", "member"}),
        ("struct S { friend void f(S& s) {} };", {"friend", "member"}),
        ("template void f<float>(float);", {"explicit_instantiation"}),
        ("template __global__ void f<int>(int*);", {"explicit_instantiation", "global"}),
        ("void f();", set()),
    ],
)
def test_flags(text: str, flags: set[str]) -> None:
    assert set(function(scan_text(text), "f").flags) == flags


@pytest.mark.parametrize(
    ("text", "template", "specialisation"),
    [
        ("void f() {}", None, None),
        ("template <typename T, int N = 3>\nvoid f() {}", "typename T, int N = 3", None),
        ("template <>\nvoid f<float, 3>() {}", "", "float, 3"),
        ("template <template <class> class C> void f() {}", "template <class> class C", None),
        ("template <typename T>\ntemplate <typename U>\nvoid A<T>::f(U u) {}", "typename T, typename U", None),
        ("template void f<float, 3>(float* a);", None, "float, 3"),
        ("template <typename... Ts> void f() {}", "typename... Ts", None),
        ("template <typename T,\n          int N>\nvoid f() {}", "typename T, int N", None),
    ],
)
def test_templates(text: str, template: str | None, specialisation: str | None) -> None:
    found = function(scan_text(text), "f")
    assert (found.template, found.specialisation) == (template, specialisation)


def test_defaults_are_kept_as_written() -> None:
    text = 'void f(int a = 3, const char* s = "a", std::vector<int> v = {1, 2}, bool b = x < 3, T t = T(1, 2));'
    found = function(scan_text(text), "f")
    assert [p.default for p in found.parameters] == ["3", '"a"', "{1, 2}", "x < 3", "T(1, 2)"]


def test_a_parameter_spans_its_own_text() -> None:
    text = "void f(const std::map<int, int>& m = {}, // first\n       int b[3],\n       float) {}"
    found = function(scan_text(text), "f")
    spans = [text[p.offset : p.end] for p in found.parameters]
    assert spans == ["const std::map<int, int>& m = {}", "int b[3]", "float"]


OPERATORS = [
    ("V operator+(const V& o) const { return o; }", "operator+"),
    ("bool operator()(int a) const { return true; }", "operator()"),
    ("int& operator[](int i) { return x; }", "operator[]"),
    ("operator bool() const { return 1; }", "operator bool"),
    ("V* operator->() { return this; }", "operator->"),
    ("bool operator<(const V& o) const { return 1; }", "operator<"),
    ("bool operator==(const V& o) const { return 1; }", "operator=="),
    ("V& operator+=(int a) { return *this; }", "operator+="),
    ("void* operator new(size_t s) { return 0; }", "operator new"),
    ("std::ostream& operator<<(std::ostream& os) { return os; }", "operator<<"),
    ("bool operator>=(int a) { return 1; }", "operator>="),
]


@pytest.mark.parametrize(("text", "name"), OPERATORS)
def test_operators(text: str, name: str) -> None:
    facts = scan_text(f"struct V {{ {text} }};{LATER}")
    assert functions(facts) == [f"V::{name}", "later"]


CONSTRUCTORS = [
    "S(int a) : a_{1}, b_(2) { x(); }",
    "S(int a) : a_{a}, v_{{1, 2}, {3}} {}",
    "explicit S(int a) noexcept : Base<int>(a), b_{a} {}",
    "S(int a) {}",
    "S(int a)\n  : a_(a)\n  , b_{\n 1 }\n{\n}",
    "template <class T> S(int a) : Base<T>{a}, x_(1) {}",
    "S(int a) : f_([](int x) { return x; }) { y(); }",
]


@pytest.mark.parametrize("text", CONSTRUCTORS)
def test_constructors_with_member_initialisers(text: str) -> None:
    facts = scan_text(f"struct S {{\n{text}\nvoid g() {{}}\nint a_;\n}};{LATER}")
    assert functions(facts) == ["S::S", "S::g", "later"]
    assert [p.name for p in function(facts, "S::S").parameters] == ["a"]
    assert [v.name for v in facts.variables] == ["a_"]


@pytest.mark.parametrize("text", ["S::S(double d) : a_(d), m_{d} { y(); }", "S::S(double d)\n  : m_{d} {\n}"])
def test_constructors_out_of_their_class(text: str) -> None:
    facts = scan_text(f"namespace n {{ {text}\nS::~S() {{}}\n}}{LATER}")
    assert functions(facts) == ["n::S::S", "n::S::~S", "later"]


def test_access_labels_are_no_part_of_what_follows() -> None:
    text = "class A {\n public:\n  int f() { return 1; }\n private: float x;\nprotected :\n  std::vector<int> v;\n};"
    facts = scan_text(text + LATER)
    assert signature(facts, "A::f") == "int A::f()"
    assert [(v.name, v.type) for v in facts.variables] == [("x", "float"), ("v", "std::vector<int>")]


def test_what_a_class_only_declares() -> None:
    text = "struct A { A() = default; A(const A&) = delete; virtual ~A() = default; void f(int a); int x = f(3); };"
    facts = scan_text(text)
    assert [(f.name, f.is_definition) for f in facts.functions] == [
        ("A", False),
        ("A", False),
        ("~A", False),
        ("f", False),
    ]
    assert [(v.name, v.value) for v in facts.variables] == [("x", "f(3)")]


SCOPES = [
    ("namespace a::b::inline c { void f() {} }", ("a", "b", "c")),
    ("namespace a { namespace { void f() {} } }", ("a", "(anonymous namespace)")),
    ("inline namespace v1 { void f() {} }", ("v1",)),
    ("namespace [[deprecated]] e { void f() {} }", ("e",)),
    ('extern "C" { void f() {} }', ()),
    ('namespace a { extern "C" {\nvoid f() {}\n} }', ("a",)),
    ("struct A { struct B { void f() {} }; };", ("A", "B")),
    ("template <typename T, int N>\nvoid A<T, N>::f(T* a) {}", ("A",)),
    ("int ns::A<int>::f(int a) { return 1; }", ("ns", "A")),
    ("namespace n { template <> void A<3>::B::f() {} }", ("n", "A", "B")),
    ("class TORCH_API A final : public B<int>, private ns::C { public: void f() {} };", ("A",)),
    ("template <> struct A<int, 3> { static void f() {} };", ("A",)),
    ("template <typename T, int N> struct alignas(sizeof(T) * N) A { void f() {} };", ("A",)),
    ("struct __align__(16) A { void f() {} };", ("A",)),
    ('class __attribute__((visibility("hidden"))) A : public B { void f() {} };', ("A",)),
    ("union A { int x; void f() {} };", ("A",)),
    ("class A { public: A() {} protected : void f() {} private: int x; };", ("A",)),
]


@pytest.mark.parametrize(("text", "scope"), SCOPES)
def test_scopes(text: str, scope: tuple[str, ...]) -> None:
    facts = scan_text(text + LATER)
    assert function(facts, "f").scope == scope
    assert function(facts, "later").scope == ()


CLASSES = [
    ("struct A {};", ("A", "struct", (), None, None)),
    ("class A final : public B<int>, private ns::C {};", ("A", "class", ("B<int>", "ns::C"), None, None)),
    ("template <typename T> struct A : B<T> {};", ("A", "struct", ("B<T>",), "typename T", None)),
    ("template <> struct A<int, 3> {};", ("A", "struct", (), "", "int, 3")),
    ("template <typename T> struct A<T*> {};", ("A", "struct", (), "typename T", "T*")),
    ("union A { int a; };", ("A", "union", (), None, None)),
    ("struct TORCH_API A {};", ("A", "struct", (), None, None)),
    ("struct alignas(16) A {};", ("A", "struct", (), None, None)),
    ("struct A : B, virtual C<D, E> {};", ("A", "struct", ("B", "C<D, E>"), None, None)),
]


@pytest.mark.parametrize(("text", "wanted"), CLASSES)
def test_classes(text: str, wanted: tuple) -> None:
    facts = scan_text(text + LATER)
    assert [(c.name, c.kind, c.bases, c.template, c.specialisation) for c in facts.classes] == [wanted]
    assert functions(facts) == ["later"]


@pytest.mark.parametrize(
    "text", ["struct A;", "class A;", "enum class A : int;", "template struct A<int>;", "friend class A;"]
)
def test_declared_classes_are_no_definitions(text: str) -> None:
    assert not scan_text(text + LATER).classes


def test_enumerations() -> None:
    text = "enum class E : uint8_t { A = 1, B = (2 << 3), C };\nnamespace n { enum { P, Q = P, }; }\n"
    facts = scan_text(text)
    found = [(e.name, e.scope, e.scoped, e.underlying, e.members) for e in facts.enums]
    assert found == [
        ("E", (), True, "uint8_t", (("A", "1"), ("B", "(2 << 3)"), ("C", None))),
        ("", ("n",), False, None, (("P", None), ("Q", "P"))),
    ]


ALIASES = [
    ("using T = A<B>::type;", ("type", "T", "A<B>::type", None)),
    ("template <class U> using V = A<U, 3>;", ("type", "V", "A<U, 3>", "class U")),
    ("using F = void (*)(int, float);", ("type", "F", "void (*)(int, float)", None)),
    ("typedef unsigned int u32;", ("type", "u32", "unsigned int", None)),
    ("typedef std::map<int, int> M;", ("type", "M", "std::map<int, int>", None)),
    ("typedef void (*G)(int);", ("type", "G", "void (*)(int)", None)),
    ("using a::b::f;", ("using", "f", "a::b::f", None)),
    ("using namespace a::b;", ("directive", "", "a::b", None)),
    ("namespace fs = std::filesystem;", ("namespace", "fs", "std::filesystem", None)),
    ("typedef struct { int a; } T;", ("type", "T", "T", None)),
]


@pytest.mark.parametrize(("text", "wanted"), ALIASES)
def test_aliases(text: str, wanted: tuple) -> None:
    facts = scan_text(text + LATER)
    assert [(a.kind, a.name, a.target, a.template) for a in facts.aliases] == [wanted]
    assert functions(facts) == ["later"]


VARIABLES = [
    ("constexpr int N = 3;", ("N", "int", "3", True)),
    ("static const int N = f(3);", ("N", "const int", "f(3)", True)),
    ("__constant__ float table[3] = {1, 2, 3};", ("table", "float[3]", "{1, 2, 3}", True)),
    ("Foo x(3);", ("x", "Foo", "(3)", False)),
    ('Foo x("s");', ("x", "Foo", '("s")', False)),
    ("Foo x{1};", ("x", "Foo", "{1}", False)),
    ("static auto fn = [](int a) { return a; };", ("fn", "auto", "[](int a) { return a; }", False)),
    ("static bool ok = []() { reg(); return true; }();", ("ok", "bool", "[]() { reg(); return true; }()", False)),
    ("static KernelFn table[] = {&k<1>, &k<2>};", ("table", "KernelFn[]", "{&k<1>, &k<2>}", False)),
    (
        "template <typename T> constexpr bool is_x = std::is_same<T, int>::value;",
        ("is_x", "bool", "std::is_same<T, int>::value", True),
    ),
    ('const char* s = "} { \\" {";', ("s", "const char*", '"} { \\" {"', True)),
    ('const char* s = R"x(} void fake() { )" )x";', ("s", "const char*", 'R"x(} void fake() { )" )x"', True)),
    ("char c = '{';", ("c", "char", "'{'", False)),
    (
        "std::map<int, F> m = {{1, []() { x(); }}, {2, g}};",
        ("m", "std::map<int, F>", "{{1, []() { x(); }}, {2, g}}", False),
    ),
    ("auto l = [] __device__ (int a) { return a; };", ("l", "auto", "[] __device__ (int a) { return a; }", False)),
    ("int ns::A::count = 0;", ("count", "int", "0", False)),
    ("__device__ int x;", ("x", "int", None, False)),
]


@pytest.mark.parametrize(("text", "wanted"), VARIABLES)
def test_variables(text: str, wanted: tuple) -> None:
    facts = scan_text(text + LATER)
    assert [(v.name, v.type, v.value, v.constant) for v in facts.variables] == [wanted]
    assert functions(facts) == ["later"]


INVOCATIONS = [
    ("REGISTER(a, b)", [("REGISTER", ("a", "b"), False)]),
    ("REGISTER(a, b);", [("REGISTER", ("a", "b"), False)]),
    ("REGISTER(a, (b, c), {d, e})", [("REGISTER", ("a", "(b, c)", "{d, e}"), False)]),
    ("REGISTER(a)\nREGISTER(b)", [("REGISTER", ("a",), False), ("REGISTER", ("b",), False)]),
    ("BEGIN_NS", [("BEGIN_NS", None, False)]),
    ("TORCH_LIBRARY(ns, m) {\n m.def();\n}", [("TORCH_LIBRARY", ("ns", "m"), True)]),
    ('REGISTER("a, (b", f<1, 2>)', [("REGISTER", ('"a, (b"', "f<1", "2>"), False)]),
]


@pytest.mark.parametrize(("text", "wanted"), INVOCATIONS)
def test_uses_that_may_be_macros(text: str, wanted: list) -> None:
    facts = scan_text(text + LATER)
    assert [(i.name, i.arguments, i.body_end > 0) for i in facts.invocations] == wanted
    assert functions(facts) == ["later"]


def test_a_use_and_its_body_are_spanned() -> None:
    text = "\nTORCH_LIBRARY(ns, m) {\n  m.def();\n}\n"
    found = scan_text(text).invocations[0]
    assert text[found.offset : found.end] == "TORCH_LIBRARY(ns, m)"
    assert text[found.body_start : found.body_end] == "{\n  m.def();\n}"
    assert (found.line, found.end_line) == (2, 4)


def test_a_class_that_a_macro_ends_without_a_semicolon() -> None:
    text = "class A {\n public:\n  void f() {}\n  DISALLOW_COPY(A)\n}\nCLASS_END\nvoid g() {}" + LATER
    assert functions(scan_text(text)) == ["A::f", "g", "later"]


def test_macros_that_open_and_close_a_scope() -> None:
    facts = scan_text("BEGIN_NS(x)\nvoid g() {}\nEND_NS(x)" + LATER)
    assert functions(facts) == ["g", "later"]
    assert [i.name for i in facts.invocations] == ["BEGIN_NS", "END_NS"]


@pytest.mark.parametrize(
    "text",
    [
        "/* void fake() { */",
        "// void fake() {",
        'static_assert(sizeof(int) == 4, "x{");',
        'asm("nop");',
        "template <class T> Foo(T) -> Foo<T>;",
        '#line 3 "x"\n#pragma unroll\n#error "don\'t"',
        "#if 0\n#error don't do this\n#endif",
        "int (A::*fp)(int) = nullptr;",
        "constexpr int n = 1'000'000;",
        "; ;;",
        "int x = (3;",
        "}",
    ],
)
def test_what_defines_no_function(text: str) -> None:
    assert functions(scan_text(text + LATER)) == ["later"]


def test_lines_and_spans_of_a_definition() -> None:
    text = "// one\n\ntemplate <typename T>\nstatic void\nf(T a,\n  int b)\n{\n  g();\n}\n"
    found = function(scan_text(text), "f")
    assert (found.start_line, found.line, found.end_line) == (4, 5, 9)
    assert text[found.offset :].startswith("f(T a,")
    assert text[found.body_start : found.body_end] == "{\n  g();\n}"


def test_lines_and_spans_of_a_declaration() -> None:
    found = function(scan_text("\nint f(int a,\n      int b);\n"), "f")
    assert (found.line, found.end_line, found.body_start, found.body_end) == (2, 3, 0, 0)
    assert not found.is_definition


def test_includes() -> None:
    text = '#include "a/b.h"\n#ifdef X\n#  include <c.h>\n#endif\n#include MACRO\n'
    facts = scan_text(text)
    found = [(i.target, i.system, i.line, facts.conditions[i.condition]) for i in facts.includes]
    assert found == [("a/b.h", False, 1, ()), ("c.h", True, 3, ("defined(X)",))]


MACROS = [
    ("#define A", ("A", None, None, "")),
    ("#define A 1", ("A", None, None, "1")),
    ("#define A (x)", ("A", None, None, "(x)")),
    ("#define A(x, y) x + y", ("A", ("x", "y"), None, "x + y")),
    ("#define A() 1", ("A", (), None, "1")),
    ("#define A(...) f(__VA_ARGS__)", ("A", (), "__VA_ARGS__", "f(__VA_ARGS__)")),
    ("#define A(x, ...) f(x)", ("A", ("x",), "__VA_ARGS__", "f(x)")),
    ("#define A(x, rest...) f(rest)", ("A", ("x",), "rest", "f(rest)")),
    ("#define A(x) /* c */ x // d", ("A", ("x",), None, "x")),
    ("#undef A", ("A", None, None, None)),
    ("#define A(x, \\\n  y) x \\\n  y", ("A", ("x", "y"), None, "x y")),
]


@pytest.mark.parametrize(("text", "wanted"), MACROS)
def test_macro_definitions(text: str, wanted: tuple) -> None:
    event = scan_text(text + "\n").macros[0]
    body = None if event.body is None else " ".join(event.body.split())
    assert (event.name, event.parameters, event.variadic, body) == wanted


def test_a_macro_body_starts_where_it_says() -> None:
    text = "int x;\n#define A(x) \\\n  first \\\n  second\nint y;\n"
    event = scan_text(text).macros[0]
    assert (event.line, event.end_line) == (2, 4)
    at = event.body_offset + event.body.index("second")
    assert text[at : at + 6] == "second"


def test_the_table_of_names() -> None:
    text = """
#define M 1
#undef U
namespace fs = std::filesystem;
using T = int;
struct C { void member() {} };
enum E { P };
int v = 3;
void declared();
void given() {}
__global__ void kernel() {}
template void made<int>();
USE(x)
TORCH_LIBRARY(ns, m) { m.def("f", &f); }
"""
    found = set(names(scan_text(text)))
    assert {
        ("M", "macro"),
        ("U", "undef"),
        ("fs", "namespace_alias"),
        ("T", "alias"),
        ("C", "class"),
        ("member", "function"),
        ("E", "enum"),
        ("P", "enumerator"),
        ("v", "variable"),
        ("declared", "declaration"),
        ("given", "function"),
        ("kernel", "kernel"),
        ("made", "instantiation"),
        ("USE", "invocation"),
        ("TORCH_LIBRARY", "invocation"),
        ("", "bindings"),
        (scan_text(text).code_digest, "code"),
        (named(text), "named"),
    } == found


def named(text: str) -> str:
    (digest,) = (name for name, kind in names(scan_text(text)) if kind == "named")
    return digest


@pytest.mark.parametrize(
    ("edited", "same"),
    [
        ("\n// further down\nvoid f() { g(2); }\nint v;\n", True),
        ("int v;\nvoid f() { g(1); }\n", True),
        ("void f() { g(1); }\n", False),
        ("void f() { g(1); }\nint v, w;\n", False),
        ("void f();\nint v;\n", False),
        ("#define v 1\nvoid f() { g(1); }\n", False),
    ],
)
def test_what_a_lookup_by_name_can_see(edited: str, same: bool) -> None:
    assert (named("void f() { g(1); }\nint v;\n") == named(edited)) is same


@pytest.mark.parametrize(
    ("behind", "same"),
    [
        ("// a remark\n", True),
        ("\n\n/* one over\n   lines */  ", True),
        ("#define M 2\n", False),
        ("int w;\n", False),
        ('"a string"', False),
    ],
)
def test_what_stands_behind_the_code(behind: str, same: bool) -> None:
    text = "int v = 3;  // [n]\n"
    assert (scan_text(text).code_digest == scan_text(text + behind).code_digest) is same
