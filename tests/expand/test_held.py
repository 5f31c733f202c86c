# ruff: noqa: E501 - an example reads better whole
"""Functions that objects hold, names of inline namespaces, operands that are not run, calls through torch's dispatcher."""

from __future__ import annotations

import pytest

from tests.trees import follow, tree

HEAD = """
__global__ void k1(int* a) {}
__global__ void k2(int* a) {}
void f1(int* a) { k1<<<1, 1>>>(a); }
void f2(int* a) { k2<<<1, 1>>>(a); }
"""
ROW = "struct Row { int n; void (*fn)(int*); };\n"


def reach(text: str, **files: str):
    return follow(tree({"a.cu": HEAD + text, **files}), "a.cu", "h")


def kernels_of(text: str, **files: str) -> list[str]:
    return sorted({kernel.name for site in reach(text, **files).launches for kernel in site.kernels})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (ROW + "static const Row table[] = {{1, f1}, {2, &f2}};\nvoid h(int* a, int n) { table[n].fn(a); }", "k1 k2"),
        (
            "static struct { int n; void (*fn)(int*); } table[] = {{1, f1}};\nvoid h(int* a, int n) { table[n].fn(a); }",
            "k1",
        ),
        (ROW + "static const Row t[] = {{1, f1}}, u[] = {{2, f2}};\nvoid h(int* a, int n) { u[n].fn(a); }", "k2"),
        (
            ROW
            + "static const Row table[] = {{1, f1}, {2, f2}};\nvoid h(int* a, int n) { for (auto& r : table) if (r.n == n) r.fn(a); }",
            "k1 k2",
        ),
        (
            ROW
            + "void h(int* a, int n) { static const Row table[] = {{.n = 1, .fn = f1}, {.fn = f2}}; table[n].fn(a); }",
            "k1 k2",
        ),
        ("struct S { void (*fn)(int*); };\nvoid h(int* a) { S s; s.fn = f1; s.fn(a); }", "k1"),
        ("struct S { void (*fn)(int*); };\nvoid h(int* a) { S s{f1}; S t{f2}; s.fn(a); }", "k1"),
        ("struct S { void (*fn)(int*) = f1; };\nvoid h(int* a) { S s; s.fn(a); }", "k1"),
        (
            "struct S { std::function<void(int*)> fn; S(std::function<void(int*)> f) : fn(std::move(f)) {} };\nvoid h(int* a) { S s(f2); s.fn(a); }",
            "k2",
        ),
        (
            "struct C { void (*fn_)(int*); C() : fn_(f1) {} void run(int* a) { fn_(a); } };\nvoid h(int* a) { C c; c.run(a); }",
            "k1",
        ),
        (
            "static std::map<int, void (*)(int*)> table = {{1, f1}, {2, f2}};\nvoid h(int* a, int n) { auto it = table.find(n); it->second(a); }",
            "k1 k2",
        ),
        (
            "static const std::map<int, std::function<void(int*)>> table = {{1, f1}};\nvoid h(int* a, int n) { table.at(n)(a); }",
            "k1",
        ),
        ("static void (*table[])(int*) = {f1, f2};\nvoid h(int* a, int n) { table[n](a); }", "k1 k2"),
        ("static constexpr std::array<void (*)(int*), 1> table{f2};\nvoid h(int* a, int n) { table[n](a); }", "k2"),
        (
            "static std::map<int, void (*)(int*)> table;\nvoid init() { table[1] = f1; table.emplace(2, f2); }\nvoid h(int* a, int n) { table[n](a); }",
            "k1 k2",
        ),
        (
            "using T = std::map<int, void (*)(int*)>;\nT& all() { static T t; return t; }\nvoid init() { all()[1] = f1; }\nvoid h(int* a, int n) { all().at(n)(a); }",
            "k1",
        ),
        ("void h(int* a, int n) { std::map<int, void (*)(int*)> t = {{1, f1}}; t[2] = f2; t[n](a); }", "k1 k2"),
        ("void h(int* a) { std::pair<int, void (*)(int*)> p{1, f1}; p.second(a); }", "k1"),
    ],
)
def test_functions_that_objects_hold(text, wanted):
    found = reach(text)
    assert sorted({kernel.name for site in found.launches for kernel in site.kernels}) == wanted.split()
    assert found.unfollowed == ()


def test_a_member_that_nothing_in_sight_fills_is_not_passed_over():
    found = reach("struct S { void (*fn)(int*); };\nvoid h(S* s, int* a) { s->fn(a); }")
    assert [name for name, *_ in found.unfollowed] == ["s->fn"]


def test_what_any_object_of_the_class_holds_is_possible():
    text = "struct S { void (*fn)(int*); };\nstatic S one = {f1};\nvoid h(S* s, int* a) { s->fn(a); }"
    assert [(site.kernels[0].name, site.certainty) for site in reach(text).launches] == [("k1", "possible")]


def test_a_method_of_the_name_of_a_member_elsewhere():
    text = "struct S { void (*run)(int*); };\nstatic S one = {f1};\nstruct T { void run(int* a) { f2(a); } };\nvoid h(T t, int* a) { t.run(a); }"
    assert kernels_of(text) == ["k2"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("namespace o { inline namespace v1 { void g(int* a) { f1(a); } } }\nvoid h(int* a) { o::g(a); }", ["k1"]),
        ("namespace o::inline v1 { void g(int* a) { f1(a); } }\nvoid h(int* a) { o::g(a); }", ["k1"]),
        ("namespace o { inline namespace v1 { void g(int* a) { f1(a); } } }\nvoid h(int* a) { o::v1::g(a); }", ["k1"]),
        ("namespace o { inline namespace v1 { void g(int* a) { f1(a); } }\nvoid h(int* a) { g(a); } }", ["k1"]),
        (
            "namespace o { inline namespace v1 { void g(int* a) { f1(a); } }\nnamespace v2 { void g(int* a) { f2(a); } } }\nvoid h(int* a) { o::g(a); }",
            ["k1"],
        ),
        (
            "namespace p { namespace v1 { void g(int* a) { f2(a); } } }\nnamespace o { inline namespace v1 { void q() {} } }\nvoid h(int* a) { p::g(a); }",
            [],
        ),
    ],
)
def test_names_of_an_inline_namespace(text, wanted):
    assert kernels_of(text) == wanted


@pytest.mark.parametrize(
    "operand", ["sizeof(f1(a))", "alignof(decltype(f1(a)))", "noexcept(f1(a))", "typeid(f1(a)).name()"]
)
def test_an_operand_that_is_not_run(operand):
    assert kernels_of(f"void h(int* a) {{ auto n = {operand}; f2(a); }}") == ["k2"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            'auto op = c10::Dispatcher::singleton().findSchemaOrThrow("ns::f", "").typed<void(int*)>(); op.call(a);',
            "ns::f",
        ),
        ('c10::Dispatcher::singleton().findSchemaOrThrow("ns::f", "out").typed<void(int*)>().call(a);', "ns::f.out"),
        ('static auto op = c10::Dispatcher::singleton().findOp({"ns::f", ""}); op->callBoxed(&stack);', "ns::f"),
        (
            "c10::Dispatcher::singleton().findSchemaOrThrow(name, {}).typed<void()>().call();",
            "findSchemaOrThrow(name, {}).typed<void()>()",
        ),
    ],
)
def test_a_call_through_the_dispatcher(text, name):
    found = reach(f"void h(int* a) {{ {text} }}")
    assert [(t.kind, t.name) for t in found.terminals] == [("torch", name)]
    assert found.unfollowed == ()


UNDONE = "void h(int* a) {\n#ifdef X\nf1(a);\n#else\nf2(a);\n#endif\n}\n"


@pytest.mark.parametrize(
    ("before", "asked", "wanted"),
    [
        ("#undef X\n", (), ["k2"]),
        ("#ifdef X\n#undef X\n#endif\n", (("X", None),), ["k2"]),
        ("#undef X\n", (("X", None),), ["k2"]),
        ("#undef X\n#define X\n", (), ["k1"]),
        ("#ifdef Y\n#undef X\n#endif\n", (("X", None),), ["k1", "k2"]),
        ("", (("X", None),), ["k1"]),
        ('#include "undo.h"\n', (("X", None),), ["k2"]),
    ],
)
def test_what_is_undefined_is_not_set(before, asked, wanted):
    files = {"a.cu": HEAD + before + UNDONE, "undo.h": "#undef X\n"}
    found = follow(tree(files, asked=asked), "a.cu", "h")
    assert sorted({kernel.name for site in found.launches for kernel in site.kernels}) == wanted


REGISTRY = """
template <typename F, F f> class Registry;
template <typename R, typename... A, R (*f)(A...)>
class Registry<R (*)(A...), f> {
 public:
  using Function = R (*)(A...);
  void put(int device, Function function) { all_[device] = function; }
  Function find(int device) const { return all_[device]; }
  static Registry& instance() { static Registry one; return one; }
 private:
  Function all_[8];
};
template <typename R, typename... A> auto run_registered(const R& registry, A&&... a) {
  auto found = registry.find(0);
  return found(std::forward<A>(a)...);
}
#define REGISTRY_OF(key) Registry<decltype(&(key)), key>::instance()
#define REGISTER_FOR(key, device, function)                                     \\
  struct key##_##device##_entry {                                               \\
    key##_##device##_entry() { REGISTRY_OF(key).put(device_##device, function); } \\
  };                                                                            \\
  static key##_##device##_entry entry_of_##key##_##device;
#define RUN_FOR(key, ...) run_registered(REGISTRY_OF(key), __VA_ARGS__)
"""


def test_functions_that_a_macro_stores_under_a_key() -> None:
    files = {
        "registry.h": REGISTRY,
        "a.cu": '#include "registry.h"\nvoid op(int* a) { RUN_FOR(op, a); }\nvoid other(int* a) { RUN_FOR(other, a); }\n'
        "void h(int* a) { op(a); }\n",
        "b.cu": HEAD + '#include "registry.h"\nvoid op(int* a);\nvoid other(int* a);\n'
        "REGISTER_FOR(op, cuda, f1);\nREGISTER_FOR(other, cuda, f2);\n",
    }
    found = follow(tree(files), "a.cu", "h")
    assert [(site.kernels[0].name, site.certainty, site.steps[-1].function) for site in found.launches] == [
        ("k1", "possible", "f1")
    ]


def test_of_several_stores_that_of_the_own_module_counts() -> None:
    entry = "void op(int* a);\nREGISTER_FOR(op, cuda, {});\n"
    files = {
        "registry.h": REGISTRY,
        "a.cu": '#include "registry.h"\nvoid op(int* a) { RUN_FOR(op, a); }\nvoid h(int* a) { op(a); }\n',
        "b.cu": HEAD + '#include "registry.h"\n' + entry.format("f1"),
        "c.cu": HEAD + '#include "registry.h"\n' + entry.format("f2"),
    }
    found = follow(tree(files, names_of={"a.cu": ["_C"], "b.cu": ["_C"]}), "a.cu", "h")
    assert [site.steps[-1].file for site in found.launches] == ["b.cu"]
    assert len(follow(tree(files), "a.cu", "h").launches) == 2


def test_a_specialisation_hides_no_template_of_a_header() -> None:
    head = (
        "template <typename T> void go(T* a) { k1<<<1, 1>>>(0); }\ntemplate <typename T> __global__ void kt(T* a) {}\n"
    )
    text = (
        '#include "t.h"\ntemplate <> void go<double>(double* a) { k2<<<1, 1>>>(0); }\n'
        "template <> __global__ void kt<double>(double* a) {}\n"
    )
    body = "void h(float* x) { go<float>(x); kt<float><<<1, 1>>>(x); }"
    found = follow(tree({"a.cu": HEAD + text + body, "t.h": head}), "a.cu", "h")
    assert sorted((k.name, k.path) for site in found.launches for k in site.kernels) == [("k1", "a.cu"), ("kt", "t.h")]


FUNCTOR = "struct GPU {};\ntemplate <typename D, int N> struct Apply { void operator()(const D& d, int* a); };\n"
FOR_GPU = "template <int N> struct Apply<GPU, N> { void operator()(const GPU& d, int* a) { k1<<<1, 1>>>(a); } };\n"


@pytest.mark.parametrize("local", ["auto f = Apply<GPU, 2>();", "auto f = Apply<GPU, 2>{};", "Apply<GPU, 2> f;"])
def test_an_object_whose_class_another_unit_defines(local):
    here = FUNCTOR + f"void h(int* a) {{ {local} f(GPU(), a); }}"
    found = reach(here, **{"b.cu": HEAD + FUNCTOR + FOR_GPU})
    assert [(k.name, site.certainty) for site in found.launches for k in site.kernels] == [("k1", "possible")]
    assert kernels_of(FUNCTOR + FOR_GPU + f"void h(int* a) {{ {local} f(GPU(), a); }}") == ["k1"]


def test_which_of_two_objects_of_a_name_is_called():
    other = "template <int N> struct Other { void operator()(int* a) { k2<<<1, 1>>>(a); } };\n"
    here = "void h(int* a, bool c) { if (c) { auto f = Apply<GPU, 2>(); f(GPU(), a); } else { auto f = Other<1>(); } }"
    assert kernels_of(FUNCTOR + other + here, **{"b.cu": HEAD + FUNCTOR + FOR_GPU}) == ["k1"]


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("void h(int* a) { auto f = made_elsewhere<int>(); f(a); }", ["made_elsewhere", "f"]),
        ("void h(int* a) { ext::Runner f; f(a); }", ["f"]),
        (FUNCTOR + "void h(int* a) { auto f = Apply<GPU, 2>(); f(GPU(), a); }", ["f"]),
        ("void h(int* a) { auto f = [&](int n) { return n; }; f(1); }", []),
        ("void h(int* a) { std::function<int(int)> f; f = [&](int n) { return n; }; f(1); }", []),
        ("void h(int* a) { using f = float; int n = int(f(1)); }", []),
    ],
)
def test_a_call_of_a_local_that_leads_nowhere_is_said(text, lost):
    assert [name for name, *_ in reach(text).unfollowed] == lost


@pytest.mark.parametrize("called", ["F f = Run<ext::Wide>::kernel; f", "Run<ext::Wide>::kernel"])
def test_a_kernel_that_one_of_two_specialisations_holds(called):
    """Which of them is meant hangs on what another source defines."""
    text = (
        "using F = void (*)(int*);\nnamespace ext { struct Wide {}; }\n"
        "template <typename T, typename E = void> struct Run { static constexpr F kernel = k1; };\n"
        "template <typename T> struct Run<T, typename ext::enable_if<T::width >= 80>::type> "
        "{ static constexpr F kernel = k2; };\n"
    )
    found = reach(text + f"void h(int* a) {{ {called}<<<1, 1>>>(a); }}")
    held = {(kernel.name, site.certainty) for site in found.launches for kernel in site.kernels}
    assert held == {("k1", "possible"), ("k2", "possible")}
