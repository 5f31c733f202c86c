# ruff: noqa: E501 - an example reads better whole
"""Resolution, reach and launches: receivers, constructors, overrides, casts, tables and what several fit."""

from __future__ import annotations

import pytest

from opwalker.expand.arity import accepts
from tests.expand.test_launches import KERNELS, configuration, only, reach
from tests.expand.test_reach import HEAD, inside, reached
from tests.trees import follow, function, kernels, scan_text, tree


@pytest.mark.parametrize("call", ["b->run(a);", "b_ref.run(a);"])
def test_virtual_calls_reach_every_override(call):
    head = (
        "struct B { virtual void run(int* a) = 0; };\nstruct D1 : B { void run(int* a) override { k1<<<1, 1>>>(a); } };\n"
        "struct D2 : public B { void run(int* a) override { k2<<<1, 1>>>(a); } };\n"
    )
    assert reached(f"void h(B* b, B& b_ref, int* a) {{ {call} }}\n", head) == ["k1", "k2"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cudaLaunchKernel(reinterpret_cast<const void*>(&kt<int, 3>), 1, 2, args);", ("int", "3")),
        ("cudaLaunchCooperativeKernel(reinterpret_cast<void*>(k), 1, 2, args, 0, s);", ()),
        ("cudaLaunchKernel(static_cast<const void*>(kt<int, 3>), 1, 2, args);", ("int", "3")),
        ("auto f = kt<int, 3>;\ncudaLaunchKernel(reinterpret_cast<const void*>(f), 1, 2, args);", ("int", "3")),
    ],
)
def test_a_cast_is_not_the_kernel(text, wanted):
    assert only(reach(text)).template_arguments == wanted


def test_a_forwarded_kernel_keeps_its_arguments():
    head = KERNELS + "template <class K, class... A> void go(K&& f, A&&... x) { std::forward<K>(f)<<<1, 2>>>(x...); }\n"
    assert only(reach("go(kt<int, 3>, a, n);", head)).template_arguments == ("int", "3")


def test_a_kernel_that_is_passed_to_a_launch_macro():
    head = KERNELS + "#define RUN(fn, n) \\\n  fn<<<grid, n>>>(a)\n"
    site = only(reach("RUN(k, 32);", head))
    assert (site.macros, site.used_at, site.style) == (("RUN",), ("a.cu", 3), "macro:triple_chevron")
    assert site.place == ("kernels.h", 5)


def test_a_using_declaration_decides():
    text = (
        "namespace a { void go(int* x) { k1<<<1, 1>>>(x); } }\nnamespace c { void go(int* x) { k2<<<1, 1>>>(x); } }\n"
        "using a::go;\nvoid h(int* x) { go(x); }\n"
    )
    assert reached(text) == ["k1"]


@pytest.mark.parametrize(
    "body",
    ["L l(a);", "L l{a};", "auto l = new L(a);", "auto l = std::make_shared<L>(a);", "auto l = L(a);", "L l = L(a);"],
)
def test_constructors_run(body):
    assert inside(body, "struct L { L(int* a) { k1<<<1, 1>>>(a); } };\n") == ["k1"]


def test_a_constructor_out_of_its_class():
    assert inside("L l(a);", "struct L { L(int* a); };\nL::L(int* a) { k1<<<1, 1>>>(a); }\n") == ["k1"]


@pytest.mark.parametrize(
    "body",
    [
        "R rs[3];\nrs[0].run(a);",
        "R r;\n(&r)->run(a);",
        "std::optional<R> o;\no.value().run(a);",
        "std::vector<R> rs;\nfor (auto& r : rs) r.run(a);",
        "R::instance().run(a);",
        "S s;\ns.r.run(a);",
        "S* s = q;\ns->r.run(a);",
        "get()->run(a);",
        "auto r = get();\nr->run(a);",
        "auto& r = R::instance();\nr.run(a);",
    ],
)
def test_members_of_objects(body):
    head = (
        "struct R { void run(int* a) { k1<<<1, 1>>>(a); } static R& instance() { static R r; return r; } };\n"
        "struct S { R r; };\nR* get() { return nullptr; }\n"
    )
    assert inside(body, head) == ["k1"]


def test_a_member_that_holds_the_implementation():
    head = (
        "struct Impl { void run(int* a) { k1<<<1, 1>>>(a); } };\n"
        "struct W { void go(int* a); std::unique_ptr<Impl> impl_; };\n"
    )
    assert reached("void W::go(int* a) { impl_->run(a); }\n", head, "W::go") == ["k1"]
    assert reached("void W::go(int* a) { this->impl_->run(a); }\n", head, "W::go") == ["k1"]


@pytest.mark.parametrize(
    "body",
    [
        "F fns[2] = {go1, go1};\nfns[n](a);",
        "table[n](a);",
        "pick()(a);",
        "auto f = pick();\nf(a);",
        "std::map<int, F> m = {{1, go1}};\nm[1](a);",
    ],
)
def test_host_functions_in_tables_and_returns(body):
    assert inside(body, "static F table[] = {go1, &go1};\nF pick() { return go1; }\n") == ["k1"]


def test_explicit_specialisations_are_told_apart():
    head = (
        "template <typename T> void run(int* a) { kn<0><<<1, 2>>>(a); }\n"
        "template <> void run<int>(int* a) { k1<<<1, 2>>>(a); }\ntemplate <> void run<float>(int* a) { k2<<<1, 2>>>(a); }\n"
    )
    assert inside("run<int>(a);", head) == ["k1"]
    assert inside("run<float>(a);", head) == ["k2"]
    assert inside("run<half>(a);", head) == ["kn<0>"]


def test_specialised_classes_are_told_apart():
    head = (
        "template <typename T> struct S { static void run(int* a) { k1<<<1, 2>>>(a); } };\n"
        "template <> struct S<int> { static void run(int* a) { k2<<<1, 2>>>(a); } };\n"
    )
    assert inside("S<int>::run(a);", head) == ["k2"]
    assert inside("S<float>::run(a);", head) == ["k1"]


def test_what_several_definitions_fit_is_only_possible():
    files = {
        "a.cu": '#include "r.h"\nvoid h(int* a) { run(a); }\n',
        "r.h": "void run(int* a);\n",
        "b.cu": '#include "r.h"\n__global__ void k2(int* a) {}\nvoid run(int* a) { k2<<<1, 2>>>(a); }\n',
        "c.cu": '#include "r.h"\n__global__ void k3(int* a) {}\nvoid run(int* a) { k3<<<1, 2>>>(a); }\n',
    }
    assert {site.certainty for site in follow(tree(files), "a.cu", "h").launches} == {"possible"}


def test_a_body_that_goes_on_in_another_file():
    files = {"a.cu": HEAD + 'void h(int* a) {\n#include "body.inc"\n}\n', "body.inc": "k1<<<1, 2>>>(a);\n"}
    reach_ = follow(tree(files), "a.cu", "h")
    assert kernels(reach_) == ["k1"] or reach_.gaps


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("template <class... T> void f(int a, T... t);", 1),
        ("void f(int a, ...);", 1),
        ("template <class... T> void f(int a, int b, T... t);", 2),
    ],
)
def test_packs_need_what_stands_before_them(text, least):
    made = function(scan_text(text), "f")
    assert not accepts(made, least - 1)
    assert accepts(made, least)


def test_two_launches_on_one_line():
    found_ = reach("if (n) k<<<1, 2>>>(a); else k<<<3, 4>>>(a);")
    assert [configuration(s)[:2] for s in found_.launches] == [("1", "2"), ("3", "4")]


def test_template_arguments_in_a_table():
    assert inside("table[n]<<<1, 2>>>(a);", "static F table[] = {kn<1>, &kn<2>};\n") == ["kn<1>", "kn<2>"]
    assert inside("P::kernel<<<1, 2>>>(a);", "struct P { static constexpr auto kernel = &kn<1>; };\n") == ["kn<1>"]


def test_a_local_is_that_of_its_block():
    text = "if (n) { auto f = k1; f<<<1, 1>>>(a); } else { auto f = k2; f<<<1, 2>>>(a); }"
    made = follow(tree({"a.cu": f"{HEAD}void h(int* a, int n) {{\n{text}\n}}\n"}), "a.cu", "h")
    assert [(site.block, [k.name for k in site.kernels]) for site in made.launches] == [("1", ["k1"]), ("2", ["k2"])]


def test_an_assignment_in_another_block_is_to_another_variable():
    text = "if (n) { auto f = k1; f<<<1, 1>>>(a); } else { decltype(&k2) f; f = k2; f<<<1, 2>>>(a); }"
    made = follow(tree({"a.cu": f"{HEAD}void h(int* a, int n) {{\n{text}\n}}\n"}), "a.cu", "h")
    assert [[k.name for k in site.kernels] for site in made.launches] == [["k1"], ["k2"]]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{ auto f = k; f<<<1, 2>>>(a); }\n{ auto f = kt<int, 3>; f<<<3, 4>>>(a, n); }", [("k", "1"), ("kt", "3")]),
        ("auto f = k;\n{ auto f = kt<int, 3>; f<<<3, 4>>>(a, n); }\nf<<<1, 2>>>(a);", [("kt", "3"), ("k", "1")]),
        ("{ auto f = k;\n{ f<<<1, 2>>>(a); } }\n{ auto f = kt<int, 3>; }", [("k", "1")]),
        (
            "try { auto f = k; f<<<1, 2>>>(a); } catch (...) { auto f = kt<int, 3>; f<<<3, 4>>>(a, n); }",
            [("k", "1"), ("kt", "3")],
        ),
        (
            "switch (n) { case 1: { auto f = k; f<<<1, 2>>>(a); break; } default: { auto f = kt<int, 3>; f<<<3, 4>>>(a, n); } }",
            [("k", "1"), ("kt", "3")],
        ),
        ("auto f = k;\n{ f = kt<int, 3>; f<<<3, 4>>>(a, n); }", [("kt", "3")]),
    ],
)
def test_a_local_is_that_of_its_braces(text, wanted):
    found = reach(text)
    assert [(one.name, site.grid) for site in found.launches for one in site.kernels] == wanted


def test_a_grid_is_that_of_its_braces():
    found = reach("{ dim3 g(7); k<<<g, 1>>>(a); }\n{ dim3 g(n, 2); k<<<g, 1>>>(a); }")
    assert [site.grid for site in found.launches] == ["dim3 g(7)", "dim3 g(n, 2)"]


def test_an_assignment_is_to_the_variable_of_its_braces():
    text = "cudaLaunchConfig_t c;\nc.gridDim = 1;\nc.blockDim = 2;\n{ cudaLaunchConfig_t c;\nc.gridDim = 9; }\ncudaLaunchKernelEx(&c, k, a);"
    assert configuration(only(reach(text)))[:2] == ("1", "2")


@pytest.mark.parametrize(("asked", "wanted"), [((), ["k1"]), ((("R", None),), ["k2"])])
def test_the_parameter_list_of_the_build_decides(asked, wanted):
    text = (
        "void go(int* a,\n#ifndef R\n  int n) {\n#else\n  int n, int m) {\n#endif\n"
        "#ifndef R\n  k1<<<1, 1>>>(a);\n#else\n  k2<<<1, 1>>>(a);\n#endif\n}\n"
        "void h(int* a) {\n#ifndef R\n  go(a, 1);\n#else\n  go(a, 1, 2);\n#endif\n}\n"
    )
    made = follow(tree({"a.cu": HEAD + ("#undef R\n" if not asked else "") + text}, asked=asked), "a.cu", "h")
    assert [k.name for site in made.launches for k in site.kernels] == wanted
    assert made.unfollowed == ()


@pytest.mark.parametrize(("asked", "wanted"), [((), "float, 4"), ((("R", None),), "float, 3, 4")])
def test_the_template_head_of_the_build_decides(asked, wanted):
    text = (
        "template <typename T\n#ifdef R\n  , int E\n#endif\n  , int N>\n__global__ void k(T* a) {}\n"
        "#ifdef R\n#define ARGS(T, N) T, 3, N\n#else\n#define ARGS(T, N) T, N\n#endif\n"
        "void h(float* a) {\n  k<ARGS(float, 4)><<<1, 1>>>(a);\n}\n"
    )
    made = follow(tree({"a.cu": ("#undef R\n" if not asked else "") + text}, asked=asked), "a.cu", "h")
    assert [k.instances for site in made.launches for k in site.kernels] == [(wanted,)]


#: Types of torch and CUTLASS, whose headers are not in the source.
OUTSIDE = [
    ("template <torch::headeronly::ScalarType S>", "torch::headeronly::CppTypeToScalarType<c10::Half>::value",
     "(c10::ScalarType)5"),
    ("template <at::ScalarType S>", "c10::CppTypeToScalarType<at::BFloat16>::value", "(c10::ScalarType)15"),
    ("template <at::ScalarType S>", "at::ScalarType::Float", "(c10::ScalarType)6"),
    ("template <typename T>", "cutlass::float_e4m3_t", "cutlass::float_e4m3_t"),
    ("template <typename T>", "cutlass::half_t*", "cutlass::half_t*"),
    ("template <typename T>", "cutlass::int8_t", "signed char"),
    ("template <typename T>", "::cutlass::uint32_t", "unsigned int"),
    ("template <at::ScalarType S>", "c10::CppTypeToScalarType<Mine>::value", None),
    ("template <typename T>", "cutlass::Array<float, 4>", None),
]  # fmt: skip


@pytest.mark.parametrize(("head", "argument", "wanted"), OUTSIDE)
def test_types_of_libraries_outside_the_source(head, argument, wanted):
    text = (
        f"struct Mine {{}};\n{head} __global__ void k(int* a) {{}}\nvoid h(int* a) {{ k<{argument}><<<1, 1>>>(a); }}\n"
    )
    made = [k for site in follow(tree({"a.cu": text}), "a.cu", "h").launches for k in site.kernels]
    assert [(k.instances, k.incomplete is None) for k in made] == [((wanted,) if wanted else (), wanted is not None)]


@pytest.mark.parametrize(
    ("marks", "ends"),
    [("__device__", []), ("__host__ __device__", ["memcpy"]), ("", ["memcpy"])],
)
def test_what_a_lambda_of_the_device_calls_is_no_step_of_the_host(marks, ends):
    text = (
        "float part(float* to, const float* from, int n) { memcpy(to, from, n); return *to; }\n"
        f"void h(float* a, int n) {{ auto by = [=] {marks}(float x) {{ return part(a, &x, n); }}; go(by); }}\n"
    )
    assert [end.name for end in follow(tree({"a.cu": text}), "a.cu", "h").terminals] == ends


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        ("Raw raw(x); std::memcpy(&storage, &raw.x, sizeof(storage));", []),
        ("unsigned bits; memcpy(&bits, &x, 4);", []),
        ("float y; memcpy(&y, &x, sizeof x);", []),
        ("std::memcpy(&storage, table, sizeof(storage));", ["std::memcpy"]),
        ("memcpy(&x, &table[3], sizeof(x));", ["memcpy"]),
        ("memcpy(&storage, &x, count);", ["memcpy"]),
        ("float y; cudaMemcpy(&y, &x, sizeof(y), kind);", ["cudaMemcpy"]),
    ],
)
def test_the_bits_of_one_variable_given_to_another_are_no_end(body, ends):
    text = f"struct half_t {{ unsigned short storage; explicit half_t(float x) {{ {body} }} }};\n"
    text += "void h(float a) { half_t made(a); }\n"
    assert [end.name for end in follow(tree({"a.cu": text}), "a.cu", "h").terminals] == ends
