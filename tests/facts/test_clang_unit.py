"""One unit as clang reads it: what a use resolves to, where a macro's text counts, what a template's instances call."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker.facts.clang_headers import Headers, base_arguments, find_headers
from opwalker.facts.clang_unit import read_unit
from opwalker.model.clang import ClangUnit, UnitRequest

NOTHING = Headers()


def read(root: Path, text: str, name: str = "a.cu", headers: Headers = NOTHING, behind: str = "") -> ClangUnit:
    (root / name).write_text(text)
    return read_unit(UnitRequest(str(root), name, base_arguments(name, headers), (), behind))


def uses(unit: ClangUnit, name: str) -> list[tuple]:
    """``(kind, line, dependent, lines of the targets)`` of the uses of a name, in order."""
    found = [
        (use.kind, use.line, use.dependent, sorted(unit.symbols[number].line for number in use.targets))
        for use in unit.uses
        if use.name == name
    ]
    return sorted(found, key=lambda row: (row[1], row[0], row[2]))


PIECES = {
    "an overload is chosen by the types": (
        "void f(int) {}\nvoid f(double) {}\nvoid g() {\n  f(1.5);\n}",
        "f",
        [("call", 4, False, [2]), ("name", 4, False, [2])],
    ),
    "a template's call has its candidates as written, and its target where it is instantiated": (
        "void f(int) {}\nvoid f(double) {}\ntemplate <class T> void g(T t) {\n  f(t);\n}\nvoid h() { g(1); }",
        "f",
        [("call", 4, False, [1]), ("name", 4, False, [1]), ("name", 4, True, [1, 2])],
    ),
    "a branch that an instance does not have does not count": (
        "template <bool B> void f() {}\ntemplate <bool B> void u() {}\ntemplate <bool B> void g() {\n"
        + "  if constexpr (B) u<B>();\n  else f<B>();\n}\nvoid h() { g<false>(); }",
        "u",
        [("name", 4, True, [2])],
    ),
    "a launch": (
        "__global__ void k(int*) {}\nvoid g(int* p) {\n  k<<<1, 32>>>(p);\n}",
        "k",
        [("call", 3, False, [1]), ("launch", 3, False, [1]), ("name", 3, False, [1])],
    ),
    "a macro's text counts where the macro is used, its argument where it is written": (
        "void f() {}\nvoid e(int) {}\n#define RUN(x) f(); x\nvoid g() {\n  RUN(\n    e(1));\n}",
        "e",
        [("call", 6, False, [2]), ("name", 6, False, [2])],
    ),
    "an explicit specialisation is a function of its own": (
        "template <class T> void f(T) {}\ntemplate <> void f<int>(int) {}\nvoid g() {\n  f(1);\n  f(2.0);\n}",
        "f",
        [("call", 4, False, [2]), ("name", 4, False, [2]), ("call", 5, False, [1]), ("name", 5, False, [1])],
    ),
    "what a kernel calls is not looked at": (
        "__device__ void f() {}\n__global__ void k() {\n  f();\n}",
        "f",
        [],
    ),
    "nor what a kernel's template and its instances call": (
        "__device__ void f() {}\ntemplate <int N> __global__ void k() {\n  f();\n}\nvoid g() { k<1><<<1, 1>>>(); }",
        "f",
        [],
    ),
}


@pytest.mark.parametrize(("text", "name", "expected"), PIECES.values(), ids=PIECES)
def test_uses(text: str, name: str, expected: list[tuple], tmp_path: Path) -> None:
    unit = read(tmp_path, text)
    assert (unit.errors, unit.missing) == (0, ())
    assert uses(unit, name) == expected


def test_what_a_macro_runs_is_used_on_the_line_of_its_use(tmp_path: Path) -> None:
    unit = read(tmp_path, "void f() {}\n#define RUN() \\\n  f();\nvoid g() {\n  RUN()\n}")
    assert uses(unit, "f") == [("call", 5, False, [1]), ("name", 5, False, [1])]
    (use,) = [one for one in unit.macro_uses if one.name == "RUN"]
    assert (use.file, use.line, use.defined_file, use.defined_line) == ("a.cu", 5, "a.cu", 2)
    (macro,) = unit.macros
    assert (macro.name, macro.line, macro.end_line, macro.words) == ("RUN", 2, 3, ("f",))


def test_the_definition_of_a_macro_that_holds_at_a_use(tmp_path: Path) -> None:
    unit = read(tmp_path, "#define N 1\nint a = N;\n#undef N\n#define N 2\nint b = N;\n")
    assert [(one.line, one.defined_line) for one in unit.macro_uses if one.name == "N"] == [(2, 1), (5, 4)]


def test_functions_with_their_scopes_and_lines(tmp_path: Path) -> None:
    unit = read(
        tmp_path, "namespace a { namespace {\nstruct S {\n  template <class T>\n  void f(T)\n  {\n  }\n};\n} }\n"
    )
    assert [(f.name, f.start_line, f.line, f.end_line) for f in unit.functions] == [
        ("a::(anonymous namespace)::S::f", 3, 4, 6)
    ]


def test_functions_that_go_into_variables_and_out_of_functions(tmp_path: Path) -> None:
    unit = read(
        tmp_path,
        "typedef void (*F)();\nvoid a() {}\nvoid b() {}\n"
        "F pick(int n) {\n  if (n) return a;\n  return n > 1 ? a : b;\n}\n"
        "void g() {\n  F f = pick(1);\n  f = b;\n  bool same = f == a;\n  f();\n}\n",
    )
    names = [symbol.name for symbol in unit.symbols]
    found = {
        (value.into, value.line): ([names[n] for n in value.names], [names[n] for n in value.calls])
        for value in unit.values
    }
    assert found[None, 5] == (["a"], [])
    assert found[None, 6] == (["a", "b"], [])
    assert found[("a.cu", 9), 9] == ([], ["pick"])
    assert found[("a.cu", 9), 10] == (["b"], [])
    assert not any(line == 11 for _, line in found)
    assert {use.through for use in unit.uses if use.line == 12} == {("a.cu", 9)}


def test_a_template_of_a_library_calls_back_into_the_class_it_is_made_for(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "function.h").write_text(
        "template <class T> struct Function {\n"
        "  template <class... A> static void apply(A... a) { T::forward(a...); }\n};\n"
    )
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.cu").write_text(
        "#include <function.h>\nstruct Op : Function<Op> {\n  static void forward(int) {}\n};\n"
        "void g() { Op::apply(1); }\n"
    )
    arguments = (*base_arguments("a.cu", NOTHING), "-isystem", str(outside))
    unit = read_unit(UnitRequest(str(root), "a.cu", arguments, (str(outside),)))
    assert unit.errors == 0
    assert uses(unit, "forward") == [("call", 5, False, [3])]
    (applied,) = [unit.symbols[use.targets[0]] for use in unit.uses if use.name == "apply" and use.kind == "call"]
    assert (applied.file, applied.here) == ("<function.h>", False)


INSTANCES = {
    "types": ("template <class A, class B> __global__ void k() {}", "k<float, n::S>", "float, n::S"),
    "aliases stand for what they are": ("template <class A> __global__ void k() {}", "k<byte_t>", "unsigned char"),
    "numbers": (
        "template <int A, unsigned B, long C> __global__ void k() {}",
        "k<-1, 4294967295u, 8>",
        "-1, 4294967295, 8",
    ),
    "truth values": ("template <bool A, bool B> __global__ void k() {}", "k<true, 0>", "true, false"),
    "enumerators": ("template <n::E A> __global__ void k() {}", "k<n::E::two>", "(n::E)2"),
    "what is deduced": ("template <class A> __global__ void k(A* = nullptr) {}", "k<n::T<int>>", "n::T<int>"),
    "a function": ("template <class A, void (*F)()> __global__ void k() {}", "k<int, f>", "int, &f"),
    "a pack": ("template <int N, class... A> __global__ void k() {}", "k<3, int, n::T<float>>", "3, int, n::T<float>"),
    "one whose body does not fit": ("template <class A> __global__ void k() { A().no(); }", "k<int>", "int"),
    "an empty pack": ("template <int N, class... A> __global__ void k() {}", "k<3>", "3"),
}


@pytest.mark.parametrize(("kernel", "launched", "text"), INSTANCES.values(), ids=INSTANCES)
def test_instances_of_kernels(kernel: str, launched: str, text: str | None, tmp_path: Path) -> None:
    names = "namespace n { struct S {}; enum class E { one = 1, two }; template <class X> struct T {}; } void f() {}"
    unit = read(
        tmp_path, f"{names} typedef unsigned char byte_t;\n{kernel}\nvoid g() {{\n  {launched}<<<1, 1>>>();\n}}\n"
    )
    assert unit.errors == (".no()" in kernel)
    assert {(one.line, unit.symbols[one.symbol].name, one.text) for one in unit.instances} == {(4, "k", text)}


def test_missing_headers_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    unit = read(tmp_path, '#include <no/such.h>\n#include "nor_this.h"\nvoid f() {}\nvoid g() { f(); nothing(); }\n')
    assert unit.missing == ("no/such.h", "nor_this.h")
    assert unit.errors == 3
    assert unit.error_lines == (("a.cu", 1), ("a.cu", 2), ("a.cu", 4))
    assert unit.first_errors == ("a.cu:4: use of undeclared identifier 'nothing'",)
    assert uses(unit, "f")[0] == ("call", 4, False, [3])


def test_text_behind_the_unit_adds_instances_and_no_errors(tmp_path: Path) -> None:
    text = "void f(int) {}\nvoid f(double) {}\ntemplate <class T> void g(T t) {\n  f(t);\n}"
    assert ("call", 4, False, [2]) not in uses(read(tmp_path, text), "f")
    unit = read(tmp_path, text, behind="static const auto p = &g<double>;\nstatic const auto q = &g<Unknown>;")
    assert ("call", 4, False, [2]) in uses(unit, "f")
    assert unit.errors == 0


def test_instances_beyond_the_bound_are_left_out_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opwalker.facts.clang_bodies.MOST_OF_ONE", 2)
    text = "template <int N> void f() {}\nvoid g() { f<1>(); f<2>();"
    assert not read(tmp_path, text + " }").cut
    assert read(tmp_path, text + " f<3>(); }").cut


def test_the_headers_of_this_project_stand_for_those_of_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the C library asks the compiler's headers for, they give: C++ headers of all kinds can be read."""
    monkeypatch.setattr("opwalker.facts.clang_library.resources", lambda: None)
    includes = "climits cfloat cstdarg cstddef cstdint cstdlib string vector map memory sstream algorithm mutex thread"
    text = "".join(f"#include <{name}>\n" for name in includes.split()) + (
        "static_assert(INT_MAX == 2147483647 && CHAR_BIT == 8 && FLT_DIG == 6 && sizeof(std::max_align_t) >= 16);\n"
        "static_assert(PATH_MAX > 0 && LLONG_MIN < 0 && sizeof(size_t) == sizeof(void*));\n"
        "int sum(int n, ...) { va_list l; va_start(l, n); int s = va_arg(l, int); va_end(l); return s; }\n"
        "size_t place = offsetof(div_t, quot);\n"
    )
    unit = read(tmp_path, text, "a.cpp")
    assert (unit.errors, unit.first_errors, unit.missing) == (0, (), ())


def test_installed_headers_of_cuda_can_be_read(tmp_path: Path) -> None:
    """With or without a toolkit on this machine, a unit of device code has the names that it relies on."""
    unit = read(
        tmp_path,
        "__global__ void k(float* p) { __shared__ float s[32]; s[threadIdx.x] = *p; __syncthreads(); }\n"
        "void g(float* p, cudaStream_t s) {\n  k<<<dim3(4, 2), 32, 0, s>>>(p);\n"
        "  if (cudaGetLastError() != cudaSuccess) return;\n}\n",
        headers=find_headers(),
    )
    assert [one for one in unit.first_errors if one.startswith("a.cu")] == []
    assert ("launch", 3, False, [1]) in uses(unit, "k")
