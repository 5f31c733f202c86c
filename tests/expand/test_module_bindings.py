"""Functions and classes bound by pybind11, nanobind and TVM-FFI: names, functions, classes, modules, other files."""

from __future__ import annotations

import pytest

from opwalker.model.binding import FunctionRef
from tests.expand.test_torch_bindings import read, shown


def module(*statements: str, head: str = "PYBIND11_MODULE(mod, m)") -> str:
    """A module's block with one statement a line, the first one on line 2."""
    return f"{head} {{\n" + "".join(f"  {statement}\n" for statement in statements) + "}\n"


def implemented(files: str | dict[str, str], **settings) -> list[tuple[str, str | None]]:
    """``(name, function)`` of every implementation."""
    return [(b.name, shown(b.function)) for b in read(files, **settings)[0] if b.role == "impl"]


HEADS = [
    ("PYBIND11_MODULE(mod, m)", "mod", "pybind11"),
    ("PYBIND11_EMBEDDED_MODULE(mod, m)", "mod", "pybind11"),
    ("NB_MODULE(mod, m)", "mod", "pybind11"),
    ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)", "my_ext", "pybind11"),
    ("PYBIND11_MODULE(mod, m, py::mod_gil_not_used())", "mod", "pybind11"),
]


@pytest.mark.parametrize(("head", "name", "kind"), HEADS)
def test_modules(head: str, name: str, kind: str) -> None:
    bindings, gaps = read(module('m.def("f", &f);', head=head), names_of={"a.cpp": ["my_ext"]})
    assert [(b.role, b.name, b.kind) for b in bindings] == [("def", f"{name}.f", kind), ("impl", f"{name}.f", kind)]
    assert not gaps


FUNCTIONS = [
    ('m.def("f", &f);', FunctionRef("f")),
    ('m.def("f", f, "doc", py::arg("a"), py::arg("b") = 3);', FunctionRef("f")),
    ('m.def("f", &n::f, py::call_guard<py::gil_scoped_release>());', FunctionRef("n::f")),
    ('m.def("f", &f<float>);', FunctionRef("f", "float")),
    ('m.def("f", py::overload_cast<int, float>(&n::f), "doc");', FunctionRef("n::f", None, 2)),
    ('m.def("f", pybind11::overload_cast<>(&A::f, py::const_));', FunctionRef("A::f", None, 0)),
    ('m.def("f", static_cast<int (*)(int)>(&f));', FunctionRef("f", None, 1)),
    ('m.def("f", (int (*)(int, int)) f);', FunctionRef("f", None, 2)),
    ('m.def("f", &A::f, py::return_value_policy::reference);', FunctionRef("A::f")),
    ('m.def("f",\n  &f,\n  R"(doc, (with { parens)");', FunctionRef("f")),
]


@pytest.mark.parametrize(("statement", "function"), FUNCTIONS)
def test_functions(statement: str, function: FunctionRef) -> None:
    bindings, gaps = read(module(statement))
    assert [(b.role, b.name, b.function) for b in bindings] == [
        ("def", "mod.f", function),
        ("impl", "mod.f", function),
    ]
    assert not gaps


def test_a_lambda_is_spanned() -> None:
    text = module('m.def("f", [](int a) { return a; }, "doc");')
    start, end = read(text)[0][0].function.lambda_span
    assert text[start:end] == "[](int a) { return a; }"


def test_overloads_of_one_name_are_kept_apart() -> None:
    text = module('m.def("f", py::overload_cast<int>(&f));', 'm.def("f", py::overload_cast<int, int>(&f));')
    assert sorted(b.function.arity for b in read(text)[0] if b.role == "impl") == [1, 2]


def test_a_class_and_its_members() -> None:
    text = module(
        'py::class_<ns::Buffer>(m, "Buffer")',
        '  .def("run", &ns::Buffer::run)',
        '  .def("size", [](const ns::Buffer& b) { return b.size(); })',
        '  .def_static("make", &ns::Buffer::make)',
        '  .def_property_readonly("rank", &ns::Buffer::rank);',
    )
    bindings, gaps = read(text)
    assert [(b.name, shown(b.function), b.line) for b in bindings if b.role == "impl"] == [
        ("mod.Buffer.run", "ns::Buffer::run", 3),
        ("mod.Buffer.size", "lambda", 4),
        ("mod.Buffer.make", "ns::Buffer::make", 5),
        ("mod.Buffer.rank", "ns::Buffer::rank", 6),
    ]
    (itself,) = [b for b in bindings if b.name == "mod.Buffer"]
    assert (itself.role, itself.class_name, itself.function, itself.line) == ("def", "ns::Buffer", None, 2)
    assert not gaps


@pytest.mark.parametrize(
    "made",
    [
        'py::class_<A> cls(m, "A");',
        'auto cls = py::class_<A>(m, "A", py::module_local());',
        'py::class_<A, std::shared_ptr<A>> cls(m, "A");',
        'pybind11::class_<A, Base> cls{m, "A"};',
    ],
)
def test_a_class_that_is_held_in_a_variable(made: str) -> None:
    text = module(made, 'cls.def("go", &A::go);', 'cls.def("stop", &A::stop).def("again", &A::again);')
    assert sorted(implemented(text)) == [
        ("mod.A.again", "A::again"),
        ("mod.A.go", "A::go"),
        ("mod.A.stop", "A::stop"),
    ]


def test_a_class_within_a_class() -> None:
    text = module('py::class_<A> cls(m, "A");', 'py::class_<A::In>(cls, "In").def("z", &A::In::z);')
    assert implemented(text) == [("mod.A.In.z", "A::In::z")]


def test_a_constructor_of_a_class_that_is_called_the_same_in_python() -> None:
    found = implemented(module('py::class_<Buffer>(m, "Buffer").def(py::init<int, float>());'))
    assert found == [("mod.Buffer.__init__", "Buffer::Buffer")]


def test_an_enumeration_and_an_attribute_are_listed() -> None:
    text = module('py::enum_<E>(m, "E").value("P", E::P).export_values();', 'm.attr("version") = "1";')
    bindings, gaps = read(text)
    assert [(b.role, b.name) for b in bindings] == [("def", "mod.E"), ("def", "mod.version")]
    assert not gaps


@pytest.mark.parametrize(
    "made",
    [
        'auto sub = m.def_submodule("sub", "doc");',
        'py::module_ sub = m.def_submodule("sub");',
        'py::module sub(m.def_submodule("sub"));',
    ],
)
def test_submodules(made: str) -> None:
    text = module(made, 'sub.def("f", &f);', 'py::class_<A>(sub, "A").def("x", &A::x);', 'm.def("g", &g);')
    assert implemented(text) == [("mod.sub.f", "f"), ("mod.sub.A.x", "A::x"), ("mod.g", "g")]


def test_a_submodule_of_a_submodule() -> None:
    text = module('auto a = m.def_submodule("a");', 'auto b = a.def_submodule("b");', 'b.def("f", &f);')
    assert implemented(text) == [("mod.a.b.f", "f")]


def test_functions_of_other_files_that_get_the_module() -> None:
    files = {
        "main.cpp": '#include "apis.hpp"\n'
        + module("deep::attention::register_apis(m);", "deep::gemm::register_apis(m);", head="PYBIND11_MODULE(mod, m)"),
        "apis.hpp": """#pragma once
namespace deep::attention {
static void register_apis(pybind11::module_& m) {
  m.def("attention", &attention);
}
}
namespace deep::gemm {
void inner(pybind11::module_& x) { x.def("deepest", &deepest); }
static void register_apis(pybind11::module_& mod) {
  mod.def("gemm", &gemm);
  inner(mod);
}
}
""",
    }
    bindings, gaps = read(files)
    found = [(b.name, b.path, b.line, b.scope) for b in bindings if b.role == "impl"]
    assert found == [
        ("mod.attention", "apis.hpp", 4, ("deep", "attention")),
        ("mod.deepest", "apis.hpp", 8, ("deep", "gemm")),
        ("mod.gemm", "apis.hpp", 10, ("deep", "gemm")),
    ]
    assert not gaps


def test_a_function_that_gets_a_submodule() -> None:
    text = 'void reg(py::module_& q) {\n  q.def("r", &r);\n}\n' + module(
        'auto sub = m.def_submodule("sub");', "reg(sub);"
    )
    assert implemented(text) == [("mod.sub.r", "r")]


def test_a_function_that_gets_the_module_twice_is_bound_once_under_each_name() -> None:
    text = 'void reg(py::module_& q) { q.def("r", &r); }\n' + module(
        'auto a = m.def_submodule("a");', "reg(a);", "reg(m);", "reg(m);"
    )
    assert sorted(implemented(text)) == [("mod.a.r", "r"), ("mod.r", "r")]


def test_a_function_that_nobody_calls_binds_nothing() -> None:
    assert implemented('void reg(py::module_& m) { m.def("r", &r); }\n') == []


def test_two_modules_in_one_file() -> None:
    text = module('m.def("f", &f);', head="PYBIND11_MODULE(a, m)") + module(
        'm.def("f", &f);', head="PYBIND11_MODULE(b, m)"
    )
    assert [name for name, _ in implemented(text)] == ["a.f", "b.f"]


def test_branches_in_a_module() -> None:
    text = module("\n#ifdef A", 'm.def("f", &f);', "\n#else", 'm.def("f", &g);', "\n#endif")
    found = [(shown(b.function), b.condition) for b in read(text)[0] if b.role == "impl"]
    assert found == [("f", ("defined(A)",)), ("g", ("!defined(A)",))]


def test_a_statement_that_is_a_macro() -> None:
    macro = '#define DEF_OPS(name, T) m.def(#name "_" #T, &name<T>, "doc")\n'
    assert implemented(macro + module("DEF_OPS(foo, float);", "DEF_OPS(foo, half);")) == [
        ("mod.foo_float", "foo<float>"),
        ("mod.foo_half", "foo<half>"),
    ]


def test_bindings_under_control_structures() -> None:
    text = module('if (x) { m.def("f", &f); }', 'else m.def("g", &g);')
    assert implemented(text) == [("mod.f", "f"), ("mod.g", "g")]


def test_a_name_that_is_computed_is_a_gap() -> None:
    bindings, gaps = read(module("m.def(name.c_str(), &f);"))
    assert not bindings
    assert [(g.kind, g.span.line) for g in gaps] == [("registration", 2)]


# -- TVM-FFI --------------------------------------------------------------------------------------------------

EXPORTS = [
    ("TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, ns::Run);", "x.run", "ns::Run"),
    ("TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, RunImpl)\nint later;", "x.run", "RunImpl"),
    ("TVM_FFI_DLL_EXPORT_TYPED_FUNC(\n    run,\n    RunImpl);", "x.run", "RunImpl"),
    ("namespace q {\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);\n}", "x.run", "Run"),
    ("TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run<float>);", "x.run", "Run<float>"),
]


@pytest.mark.parametrize(("text", "name", "function"), EXPORTS)
def test_exported_functions(text: str, name: str, function: str) -> None:
    bindings, gaps = read({"csrc/x.cu": text + "\n"})
    assert [(b.kind, b.role, b.name, shown(b.function)) for b in bindings] == [
        ("tvm_ffi", "def", name, function),
        ("tvm_ffi", "impl", name, function),
    ]
    assert not gaps


def test_an_export_that_a_project_macro_makes() -> None:
    text = "#define EXPORT(name) TVM_FFI_DLL_EXPORT_TYPED_FUNC(name, name##_impl)\nEXPORT(run);\nEXPORT(plan);\n"
    bindings, _ = read(text)
    found = [(b.name, shown(b.function), b.line, b.macros) for b in bindings if b.role == "impl"]
    assert found == [("a.run", "run_impl", 2, ("EXPORT",)), ("a.plan", "plan_impl", 3, ("EXPORT",))]


def test_an_export_under_a_condition() -> None:
    text = "#ifdef A\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);\n#endif\n"
    assert {b.condition for b in read(text)[0]} == {("defined(A)",)}


TABLE = """static PyMethodDef methods[] = {
  {"go", (PyCFunction)py_go, METH_VARARGS, "doc, with a comma"},
  {"run", reinterpret_cast<PyCFunction>(ns::py_run), METH_NOARGS, nullptr},
  {.ml_name = "stop", .ml_meth = _PyCFunction_CAST(py_stop), .ml_flags = 1},
  {NULL, NULL, 0, NULL}
};
"""
TAKERS = [
    ('static PyModuleDef mod = {PyModuleDef_HEAD_INIT, "my_mod", "doc", -1, methods};', "my_mod"),
    ('static PyModuleDef mod = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "my_mod", .m_methods = methods};', "my_mod"),
    ('PyTypeObject T = {PyVarObject_HEAD_INIT(NULL, 0) "m.T", 0};\nvoid init() { T.tp_methods = methods; }', "m.T"),
    ('PyTypeObject T = {.ob_base = PyVarObject_HEAD_INIT(NULL, 0) .tp_name = "m.T", .tp_methods = methods};', "m.T"),
    (
        'static PyModuleDef mod = {PyModuleDef_HEAD_INIT, "a"};\nvoid i() { PyModule_AddFunctions(m, methods); }',
        "a",
    ),
]


@pytest.mark.parametrize(("taker", "name"), TAKERS)
def test_tables_of_methods(taker: str, name: str) -> None:
    bindings, gaps = read(TABLE + taker)
    assert [(b.kind, b.role, b.name, b.function, b.line) for b in bindings if b.role == "impl"] == [
        ("cpython", "impl", f"{name}.go", FunctionRef("py_go"), 2),
        ("cpython", "impl", f"{name}.run", FunctionRef("ns::py_run"), 3),
        ("cpython", "impl", f"{name}.stop", FunctionRef("py_stop"), 4),
    ]
    assert not gaps


def test_a_table_of_methods_that_nothing_takes() -> None:
    bindings, gaps = read(TABLE)
    assert [b.unresolved for b in bindings if b.name == "go"] == ["what takes the table `methods` is not known"] * 2
    assert [gap.kind for gap in gaps] == ["namespace"]


def test_global_definitions() -> None:
    text = """TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("my.f", f)
      .def("my.g", [](int a) { return a; })
      .def_packed("my.h", n::h)
      .def_method("my.m", &Obj::m);
}
"""
    bindings, gaps = read(text)
    found = [(b.kind, b.name, shown(b.function), b.line) for b in bindings if b.role == "impl"]
    assert found == [
        ("tvm_ffi", "my.f", "f", 4),
        ("tvm_ffi", "my.g", "lambda", 5),
        ("tvm_ffi", "my.h", "n::h", 6),
        ("tvm_ffi", "my.m", "Obj::m", 7),
    ]
    assert not gaps


def test_definitions_of_an_object() -> None:
    text = """TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<ns::TensorObj>().def("size", &TensorObj::size).def_static("make", make);
}
"""
    assert implemented(text) == [("TensorObj.make", "make"), ("TensorObj.size", "TensorObj::size")]


def test_a_block_of_another_library_is_no_module() -> None:
    assert read('TVM_FFI_STATIC_INIT_BLOCK() {\n  m.def("f", &f);\n}\n') == ([], [])
    assert read('OTHER_MODULE(mod, m) {\n  m.def("f", &f);\n}\n') == ([], [])


def test_global_definitions_in_a_function() -> None:
    assert implemented('namespace n { void init() { reflection::GlobalDef().def("x.y", y); } }') == [("x.y", "y")]
    bindings, _ = read('namespace n { void init() { reflection::GlobalDef().def("x.y", y); } }')
    assert {b.scope for b in bindings} == {("n",)}
