"""From a host function to its kernels: calls, objects, function pointers, lambdas, templates, other files."""

from __future__ import annotations

import pytest

from tests.trees import follow, kernels, tree

HEAD = """__global__ void k1(int* a) {}
__global__ void k2(int* a) {}
template <int N> __global__ void kn(int* a) {}
void go1(int* a) { k1<<<1, 2>>>(a); }
void go2(int* a) { k2<<<1, 2>>>(a); }
using F = void (*)(int*);
"""


def reached(text: str, head: str = "", name: str = "h") -> list[str]:
    """The kernels that ``h`` (or ``name``) reaches, with their template arguments."""
    found = follow(tree({"a.cu": HEAD + head + text}), "a.cu", name)
    made = [
        k.name + (f"<{', '.join(k.template_arguments)}>" if k.template_arguments else "")
        for s in found.launches
        for k in s.kernels
    ]
    return sorted(set(made))


def inside(body: str, head: str = "") -> list[str]:
    """The kernels that a function with this body reaches."""
    return reached(f"void h(int* a, int n, bool x) {{\n{body}\n}}\n", head)


# -- plain calls ----------------------------------------------------------------------------------------------

CALLS = [
    "go1(a);",
    "::go1(a);",
    "return go1(a);",
    "if (n) { go1(a); }",
    "int y = g(go1(a));",
    "for (int i = (go1(a), 0); i < n; i++) {}",
    "while (n) go1(a);",
    "switch (n) { case 1: go1(a); }",
    "try { go1(a); } catch (...) {}",
    "auto f = [&] { go1(a); };\nf();",
    "std::thread t([=] { go1(a); });",
    "x ? go1(a) : void();",
    "CHECK(go1(a));",
    "(void)go1(a);",
]


@pytest.mark.parametrize("body", CALLS)
def test_calls_wherever_they_stand(body: str) -> None:
    assert inside(body) == ["k1"]


@pytest.mark.parametrize(
    "body", ['// go1(a);\ng("go1(a)");', "", "go1;", "x.go1(a);", "other::go1(a);", "int go1 = 3;"]
)
def test_what_calls_nothing_of_the_tree(body: str) -> None:
    assert inside(body) == []


def test_steps_lead_from_the_entry_to_the_launch() -> None:
    text = "void m(int* a) {\n  go1(a);\n}\nvoid h(int* a) {\n\n  m(a);\n}\n"
    (site,) = follow(tree({"a.cu": HEAD + text}), "a.cu", "h").launches
    assert [(s.function, s.line) for s in site.steps] == [("h", 12), ("m", 8), ("go1", 4)]
    assert site.place == ("a.cu", 4)


def test_a_call_in_a_macro_steps_from_the_use() -> None:
    text = "#define RUN(f) \\\n  f(a)\nvoid h(int* a) {\n  RUN(go1);\n}\n"
    (site,) = follow(tree({"a.cu": HEAD + text}), "a.cu", "h").launches
    assert [(s.function, s.line) for s in site.steps] == [("h", 10), ("go1", 4)]


def test_functions_that_call_each_other() -> None:
    text = "void b(int* a);\nvoid h(int* a) { b(a); }\nvoid b(int* a) { h(a); k1<<<1, 1>>>(a); }\n"
    assert reached(text) == ["k1"]


def test_device_functions_launch_nothing_for_the_host() -> None:
    text = "__device__ void d(int* a) { k2<<<1, 2>>>(a); }\n__host__ __device__ void hd(int* a) { k1<<<1, 2>>>(a); }\n"
    assert inside("d(a); hd(a);", text) == ["k1"]


def test_every_function_on_the_way_is_told_once() -> None:
    text = "void m(int* a) { go1(a); }\nvoid h(int* a) { m(a); m(a); go1(a); }\n"
    found = follow(tree({"a.cu": HEAD + text}), "a.cu", "h")
    assert [function.name for _, function, _ in found.functions] == ["h", "m", "go1"]


# -- kernels as values ----------------------------------------------------------------------------------------

VALUES = [
    ("auto f = &kn<1>;\nf<<<1, 2>>>(a);", ["kn<1>"]),
    ("auto f = kn<1>;\nif (x) f = &kn<2>;\nf<<<1, 2>>>(a);", ["kn<1>", "kn<2>"]),
    ("auto f = x ? k1 : k2;\nf<<<1, 2>>>(a);", ["k1", "k2"]),
    ("(x ? k1 : k2)<<<1, 2>>>(a);", ["k1", "k2"]),
    ("void (*f)(int*) = kn<5>;\nf<<<1, 2>>>(a);", ["kn<5>"]),
    (
        "F f = nullptr;\nswitch (n) { case 1: f = kn<6>; break; default: f = kn<7>; }\nf<<<1, 2>>>(a);",
        ["kn<6>", "kn<7>"],
    ),
    ("F t[2] = {kn<3>, &kn<4>};\nt[n]<<<1, 2>>>(a);", ["kn<3>", "kn<4>"]),
    ("std::map<int, F> m = {{1, kn<5>}, {2, k1}};\nm[1]<<<1, 2>>>(a);", ["k1", "kn<5>"]),
    ("std::map<int, F> m = {{1, kn<5>}};\nm.at(1)<<<1, 2>>>(a);", ["kn<5>"]),
    ("P p;\np.fn = kn<1>;\np.fn<<<1, 2>>>(a);", ["kn<1>"]),
    ("P q{kn<2>};\nq.fn<<<1, 2>>>(a);", ["kn<2>"]),
    ("auto go = [&](auto kernel, int m) { kernel<<<m, 2>>>(a); };\ngo(kn<1>, 1);\ngo(&kn<2>, 1);", ["kn<1>", "kn<2>"]),
    (
        "auto pick = [&](int m) { if (m) return kn<1>; return kn<2>; };\nauto f = pick(2);\nf<<<1, 2>>>(a);",
        ["kn<1>", "kn<2>"],
    ),
    ("auto f = kn<1>;\nauto g = f;\ng<<<1, 2>>>(a);", ["kn<1>"]),
    ("auto f = (void*)kn<1>;\ncudaLaunchKernel(f, 1, 2, args);", ["kn<1>"]),
    ("auto f = reinterpret_cast<const void*>(&kn<1>);\ncudaLaunchKernel(f, 1, 2, args);", ["kn<1>"]),
    ("auto f = kn<1>;\nauto unused = kn<2>;\nf<<<1, 2>>>(a);", ["kn<1>"]),
]


@pytest.mark.parametrize(("body", "wanted"), VALUES)
def test_kernels_held_in_variables(body: str, wanted: list[str]) -> None:
    assert inside(body, "struct P { F fn; };\n") == wanted


PASSED = [
    ("template <typename K> void launch(K f, int* a) { f<<<1, 2>>>(a); }\n", "launch(kn<1>, a);", ["kn<1>"]),
    ("template <typename K> void launch(K* f, int* a) { f<<<1, 2>>>(a); }\n", "launch(&kn<1>, a);", ["kn<1>"]),
    (
        "template <typename K> void launch(K f, int* a) { f<<<1, 2>>>(a); }\n",
        "launch(kn<1>, a);\nlaunch(k2, a);",
        ["k2", "kn<1>"],
    ),
    (
        "template <auto K> void launch(int* a) { K<<<1, 2>>>(a); }\n",
        "launch<kn<1>>(a);\nlaunch<&kn<2>>(a);",
        ["kn<1>", "kn<2>"],
    ),
    (
        (
            "template <typename K> void l2(K f, int* a) { f<<<1, 2>>>(a); }\n"
            "template <typename K> void l1(K f, int* a) { l2(f, a); }\n"
        ),
        "l1(kn<1>, a);",
        ["kn<1>"],
    ),
    (
        "template <typename K, typename... A> void launch(K&& f, A&&... a) { std::forward<K>(f)<<<1, 2>>>(a...); }\n",
        "launch(kn<1>, a);",
        ["kn<1>"],
    ),
    ("F get(int n) { if (n) return kn<1>; return &kn<2>; }\n", "auto f = get(1);\nf<<<1, 2>>>(a);", ["kn<1>", "kn<2>"]),
    ("F get(int n) { return n ? kn<1> : kn<2>; }\n", "get(1)<<<1, 2>>>(a);", ["kn<1>", "kn<2>"]),
    ("F inner() { return k1; }\nF get() { return inner(); }\n", "get()<<<1, 2>>>(a);", ["k1"]),
    (
        "template <typename K> void launch(int m, K f, int* a) { auto g = f; g<<<1, 2>>>(a); }\n",
        "launch(3, k1, a);",
        ["k1"],
    ),
    ("void launch(F f, int* a) { cudaLaunchKernelEx(&c, f, a); }\n", "launch(k1, a);", ["k1"]),
]


@pytest.mark.parametrize(("head", "body", "wanted"), PASSED)
def test_kernels_that_are_passed_or_returned(head: str, body: str, wanted: list[str]) -> None:
    assert inside(body, head) == wanted


def test_a_table_of_kernels_at_namespace_level() -> None:
    assert {name.split("<")[0] for name in inside("table[n]<<<1, 2>>>(a);", "static F table[] = {k1, &k2};\n")} == {
        "k1",
        "k2",
    }


def test_a_kernel_that_a_class_holds() -> None:
    head = "struct P { static constexpr auto kernel = &k1; };\n"
    assert inside("P::kernel<<<1, 2>>>(a);", head) == ["k1"]


# -- host functions as values ---------------------------------------------------------------------------------

HOSTS = [
    ("auto f = x ? &go1 : &go2;\nf(a);", ["k1", "k2"]),
    ("void (*f)(int*) = go1;\nf(a);", ["k1"]),
    ("void (*f)(int*);\nswitch (n) { case 1: f = go1; break; default: f = go2; }\nf(a);", ["k1", "k2"]),
    ("run(go1, a);", ["k1"]),
    ("run(&go1, a);\nrun(go2, a);", ["k1", "k2"]),
    ("std::function<void(int*)> f = go1;\nf(a);", ["k1"]),
]


@pytest.mark.parametrize(("body", "wanted"), HOSTS)
def test_host_functions_as_values(body: str, wanted: list[str]) -> None:
    assert inside(body, "void run(F f, int* a) { f(a); }\n") == wanted


# -- objects --------------------------------------------------------------------------------------------------

RUNNER = """struct R {
  void run(int* a) { k1<<<1, 1>>>(a); }
  static void fixed(int* a) { k2<<<2, 2>>>(a); }
  void operator()(int* a) { k2<<<3, 3>>>(a); }
};
R* get();
"""
OBJECTS = [
    ("R r;\nr.run(a);", ["k1"]),
    ("R& r = *p;\nr.run(a);", ["k1"]),
    ("R* r = p;\nr->run(a);", ["k1"]),
    ("auto r = R();\nr.run(a);", ["k1"]),
    ("auto r = R{};\nr.run(a);", ["k1"]),
    ("auto r = new R();\nr->run(a);", ["k1"]),
    ("auto r = std::make_unique<R>();\nr->run(a);", ["k1"]),
    ("std::shared_ptr<R> r;\nr->run(a);", ["k1"]),
    ("std::vector<R> v;\nv[0].run(a);", ["k1"]),
    ("static_cast<R*>(p)->run(a);", ["k1"]),
    ("auto r = reinterpret_cast<R*>(p);\nr->run(a);", ["k1"]),
    ("auto r = (R*)p;\nr->run(a);", ["k1"]),
    ("R{}.run(a);", ["k1"]),
    ("R().run(a);", ["k1"]),
    ("R r;\n(*p).run(a);\nr.run(a);", ["k1"]),
    ("R::fixed(a);", ["k2"]),
    ("R r;\nr(a);", ["k2"]),
    ("R{}(a);", ["k2"]),
    ("using Q = R;\nQ q;\nq.run(a);", ["k1"]),
    ("const R r{};\nr.run(a);", ["k1"]),
    ("Other r;\nr.run(a);", []),
]


@pytest.mark.parametrize(("body", "wanted"), OBJECTS)
def test_members_of_objects(body: str, wanted: list[str]) -> None:
    assert inside(body, RUNNER) == wanted


def test_members_of_a_parameter() -> None:
    assert reached("void h(R* p, int* a) { p->run(a); }\n", RUNNER) == ["k1"]
    assert reached("void h(const std::shared_ptr<R>& p, int* a) { p->run(a); }\n", RUNNER) == ["k1"]


def test_members_of_the_object_itself() -> None:
    head = "struct S { void run(int* a); void inner(int* a) { k1<<<1, 1>>>(a); } int x_; };\n"
    assert reached("void S::run(int* a) { inner(a); }\n", head, "S::run") == ["k1"]
    assert reached("void S::run(int* a) { this->inner(a); }\n", head, "S::run") == ["k1"]
    assert reached("void S::run(int* a) { (*this).inner(a); }\n", head, "S::run") == ["k1"]


def test_members_of_the_object_itself_in_nested_scopes() -> None:
    inner = "void run(int* a) { this->inner(a); } void inner(int* a) { k1<<<1, 1>>>(a); }"
    head = f"namespace n {{ struct O {{ struct S {{ {inner} }}; }}; }}\n"
    assert reached("", head, "n::O::S::run") == ["k1"]


LIBRARY_OBJECTS = [
    ("cutlass::gemm::device::GemmUniversalAdapter<G> op;\nop.initialize(args);\nop.run(s);", ["library"]),
    ("cutlass::gemm::device::Gemm<G> op;\nop(args);", ["library"]),
    ("cutlass::gemm::device::Gemm<G> op;\nop.initialize(args);", []),
    ("at::Tensor x;\nx.copy_(y);", ["torch"]),
    ("at::Tensor x;\nx.size(0);", []),
    ("unknown.copy_(y);", []),
    ("Own x;\nx.copy_(y);", []),
]


@pytest.mark.parametrize(("body", "wanted"), LIBRARY_OBJECTS)
def test_objects_of_libraries_end_the_way(body: str, wanted: list[str]) -> None:
    found = follow(tree({"a.cu": f"void h(int* a) {{\n{body}\n}}\n"}), "a.cu", "h")
    assert [t.kind for t in found.terminals] == wanted


def test_a_deep_way_is_followed_to_its_end() -> None:
    chain = (
        "".join(f"void f{n}(int* a) {{ f{n + 1}(a); }}\n" for n in range(300))
        + "void f300(int* a) { k1<<<1, 1>>>(a); }\n"
    )
    found = follow(tree({"a.cu": HEAD + chain}), "a.cu", "f0")
    assert not found.truncated and kernels(found) == ["k1"]
    assert [site.kernels[0].incomplete for site in found.launches] == [None]


def test_a_deep_recursion_of_templates_makes_every_instance() -> None:
    head = (
        HEAD
        + """
template <int N> struct Unroll { static void run(int* a) { kn<N><<<1, 1>>>(a); Unroll<N - 1>::run(a); } };
template <> struct Unroll<0> { static void run(int* a) {} };
void start(int* a) { Unroll<100>::run(a); }
"""
    )
    found = follow(tree({"a.cu": head}), "a.cu", "start")
    assert {i for site in found.launches for k in site.kernels for i in k.instances} == {str(n) for n in range(1, 101)}
    assert not found.truncated


def test_a_recursion_without_end_is_cut_and_its_kernels_are_not_whole() -> None:
    head = (
        HEAD
        + """
template <int N> void unroll(int* a) { kn<N><<<1, 1>>>(a); unroll<N + 1>(a); }
void start(int* a) { unroll<0>(a); }
"""
    )
    found = follow(tree({"a.cu": head}), "a.cu", "start")
    assert found.truncated and [g.kind for g in found.gaps] == ["limit"]
    reasons = {k.incomplete for site in found.launches for k in site.kernels}
    assert reasons and None not in reasons


def test_branches_of_macros_that_are_too_many_lead_to_the_kernel_and_it_is_not_whole() -> None:
    """A quarter of a million ways to a launch: it is found once, and the reason is told why it is not whole."""
    branches = "if (N) { constexpr int W = 1; __VA_ARGS__(); } else { constexpr int W = 2; __VA_ARGS__(); }"
    head = f"#define PICK(N, ...) {branches}\ntemplate <int N> __global__ void k(int* a) {{}}\n"
    picks = "".join(f"PICK(n + {n}, [&] {{ " for n in range(18)) + "k<W><<<1, 2>>>(a);" + " });" * 18
    found = follow(tree({"a.cu": f"{head}void f(int* a, int n) {{ {picks} }}\n"}), "a.cu", "f")
    ((kernel,),) = [site.kernels for site in found.launches]
    assert kernel.instances == ()
    assert "its macros make more than 400,000 words" in (kernel.incomplete or "")
    assert [(gap.kind, gap.span.line, gap.reason.partition(":")[0]) for gap in found.gaps] == [("unread", 3, "f")]


def test_members_that_a_base_gives() -> None:
    head = "struct B { void run(int* a) { k1<<<1, 1>>>(a); } };\nstruct D : public B {};\n"
    assert inside("D d;\nd.run(a);", head) == ["k1"]


def test_a_member_of_a_class_template() -> None:
    head = "template <typename T, int N> struct L { static void run(int* a) { kn<N><<<N, 2>>>(a); } };\n"
    assert [name.split("<")[0] for name in inside("L<int, 4>::run(a);", head)] == ["kn"]


def test_a_class_that_is_passed_as_a_template_argument() -> None:
    head = (
        "struct A { static void run(int* a) { k1<<<1, 2>>>(a); } };\n"
        "struct B { static void run(int* a) { k2<<<1, 2>>>(a); } };\n"
        "template <typename Impl> void launch(int* a) { Impl::run(a); }\n"
    )
    assert inside("launch<A>(a);", head) == ["k1"]
    assert inside("launch<B>(a);", head) == ["k2"]


def test_a_launcher_object() -> None:
    head = """struct LaunchKernel {
  LaunchKernel(int grid, int block) {}
  template <typename K, typename... A> void operator()(K kernel, A&&... args) {
    cudaLaunchKernelEx(&config, kernel, std::forward<A>(args)...);
  }
  cudaLaunchConfig_t config;
};
"""
    assert inside("LaunchKernel(1, 2)(kn<3>, a);", head) == ["kn<3>"]
    assert inside("LaunchKernel l(1, 2);\nl(kn<4>, a);", head) == ["kn<4>"]


# -- kernels whose head a macro makes -------------------------------------------------------------------------

MADE = [
    (
        "#define KERNEL(name, ...) template <class T> __global__ void name(__VA_ARGS__)\nKERNEL(made, T* a, int n){}\n",
        "made<float><<<1, 2>>>(a, 3);",
    ),
    (
        "#define KERNEL(name) __global__ void name##_kernel(int* a)\nKERNEL(made)\n{\n  x();\n}\n",
        "made_kernel<<<1, 2>>>(a);",
    ),
]


@pytest.mark.parametrize(("head", "body"), MADE)
def test_kernels_whose_head_a_macro_makes(head: str, body: str) -> None:
    (name,) = inside(body, head)
    assert name.startswith("made")
    found = follow(tree({"a.cu": f"{HEAD}{head}void h(int* a) {{ {body} }}\n"}), "a.cu", "h").launches[0].kernels[0]
    assert (found.path, found.function.line) == ("a.cu", 8)


def test_kernels_of_the_whole_tree_are_counted_once() -> None:
    bench = tree({"a.cu": HEAD + MADE[0][0]})
    names = {
        f.name
        for path in bench.index.paths_with("kernel")
        for f in bench.index.facts(path).functions
        if "global" in f.flags
    }
    assert names == {"k1", "k2", "kn", "made"}
    assert kernels(follow(bench, "a.cu", "go1")) == ["k1"]


# -- lists that are written for a macro of the file that includes them ------------------------------------------

LIST = "X(int, 4)\nX(float, 8)\n"
WRITES = '#define X(T, N) static void go_##T##_##N(int* x) { kn<N><<<1, 1>>>(x); }\n#include "LIST"\n#undef X\n'
USES = '#define X(T, N) else if (n == N) go_##T##_##N(a);\n#include "list.inc"\n#undef X\n'


@pytest.mark.parametrize(("included", "wanted"), [("list.inc", ["kn<4>", "kn<8>"]), ("other.inc", ["kn<8>"])])
def test_functions_that_an_included_list_writes(included: str, wanted: list[str]) -> None:
    text = HEAD + WRITES.replace("LIST", included) + f"void h(int* a, int n) {{\nif (n == 0) {{}}\n{USES}}}\n"
    found = follow(tree({"a.cu": text, "list.inc": LIST, "other.inc": LIST.replace("int", "char")}), "a.cu", "h")
    made = [k.name + f"<{', '.join(k.template_arguments)}>" for s in found.launches for k in s.kernels]
    assert sorted(made) == wanted


@pytest.mark.parametrize(
    ("table", "wanted"),
    [("TABLE(4)", ["kn<1>", "kn<4>"]), ("TABLE(8)", ["kn<1>", "kn<8>"]), ("static TABLE(8)", [])],
)
def test_a_table_of_kernels_that_a_macro_writes_in_another_unit(table: str, wanted: list[str]) -> None:
    files = {
        "k.h": "template <int N> __global__ void kn(int* a) {}\nusing F = void (*)(int*);\n"
        "#define DECLARED extern F rows[];\n#define TABLE(N) F rows[] = {kn<1>, kn<N>};\n",
        "t.cu": f'#include "k.h"\n{table}\n',
        "a.cu": '#include "k.h"\nDECLARED\nF pick(int n) { return rows[n]; }\n'
        "void h(int* a, int n) { auto f = pick(n);\n f<<<1, 1>>>(a); }\n",
    }
    found = follow(tree(files), "a.cu", "h")
    made = [k.name + f"<{', '.join(k.template_arguments)}>" for s in found.launches for k in s.kernels]
    assert sorted(made) == wanted


def test_a_kernel_that_many_calls_hand_on_is_looked_for_once_a_function() -> None:
    chain = "".join(
        f"template <typename T> F f{n}(T a) {{ return a ? f{n + 1}(a) : f{n + 1}(a + 1); }}\n"
        for n in reversed(range(20))
    )
    text = (
        "using F = void (*)(int*);\ntemplate <typename T> __global__ void kn(T* a) {}\n"
        f"template <typename T> F f20(T a) {{ return kn<T>; }}\n{chain}"
        "void h(int* a, int n) { auto f = f0(n);\n f<<<1, 1>>>(a); }\n"
    )
    found = follow(tree({"a.cu": text}), "a.cu", "h")
    assert [(k.name, k.instances, k.incomplete) for s in found.launches for k in s.kernels] == [("kn", ("int",), None)]


@pytest.mark.parametrize(
    ("held", "wanted"), [("F row = kn<1>;", ["kn"]), ("F row = PICKED(kn, 1);", ["kn"]), ("const int row = LIMIT;", [])]
)
def test_a_function_that_returns_what_a_variable_holds(held: str, wanted: list[str]) -> None:
    text = (
        "template <int N> __global__ void kn(int* a) {}\nusing F = void (*)(int*);\n#define LIMIT sizeof(kn)\n"
        f"#define PICKED(name, N) name<N>\n{held}\nF pick() {{ return row; }}\n"
        "void h(int* a) { auto f = pick();\n f<<<1, 1>>>(a); }\n"
    )
    found = follow(tree({"a.cu": text}), "a.cu", "h")
    assert [k.name for s in found.launches for k in s.kernels] == wanted


def test_what_a_launch_means_is_worked_out_once_for_all_that_enter_its_function(monkeypatch) -> None:
    from opwalker.expand.instances import InstanceReader

    asked: list[str] = []
    read = InstanceReader.of

    def noted(self, candidate, *rest):
        asked.append(candidate.function.name)
        return read(self, candidate, *rest)

    monkeypatch.setattr(InstanceReader, "of", noted)
    text = (
        "template <typename T, int N> __global__ void kn(T* a) {}\n"
        "template <int N> void go(float* a) { kn<float, N><<<1, 1>>>(a); }\n"
        "void both(float* a) { go<1>(a); }\n"
        "void h(float* a) { both(a); }\nvoid g(float* a) { both(a); go<2>(a); }\n"
    )
    bench = tree({"a.cu": text})
    made = {
        name: [k.instances for s in follow(bench, "a.cu", name).launches for k in s.kernels] for name in ("h", "g", "h")
    }
    assert made == {"h": [("float, 1",)], "g": [("float, 1",), ("float, 2",)]}
    assert asked == ["kn", "kn"]


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        ("FILL_STUB(add_stub, &go1);", ["k1"]),
        ("REGISTER_DISPATCH(add_stub, go2)", ["k2"]),
        ("namespace n { void go3(int* a) { k1<<<1, 2>>>(a); } BIND(add_stub, &go3); }", ["k1"]),
        ("FILL_STUB(other_stub, &go1);", []),
        ("MENTION(add_stub, &go1);", []),
    ],
)
def test_a_macro_fills_an_object_that_is_called(fill: str, found: list[str]) -> None:
    assert reached("void h(int* a) { add_stub(a); }\n", f"{fill}\n") == found


def test_where_an_object_was_filled_is_on_the_way() -> None:
    text = f"{HEAD}struct S {{ F f; }};\nS runner;\nSET_FUNCTION(runner, &go1);\nvoid h(int* a) {{ runner(a); }}\n"
    (site,) = follow(tree({"a.cu": text}), "a.cu", "h").launches
    assert [(one.function, one.line) for one in site.steps] == [("h", 10), ("runner", 9), ("go1", 4)]


def test_a_function_of_that_name_is_called_rather_than_what_fills_it() -> None:
    head = "void add_stub(int* a) { k2<<<1, 2>>>(a); }\nFILL_STUB(add_stub, &go1);\n"
    assert reached("void h(int* a) { add_stub(a); }\n", head) == ["k2"]
