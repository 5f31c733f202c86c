"""Registrations as libraries write them, where reading them is easily wrong: wrappers, macros, branches, classes."""

from __future__ import annotations

import pytest

from tests.expand.test_module_bindings import implemented, module
from tests.expand.test_torch_bindings import block, read, shown


# What only says where Python code lies is no implementation.
@pytest.mark.parametrize(
    "call",
    [
        'm.impl_abstract_pystub("my.ops");',
        'm.impl_abstract_pystub("my.ops", "//my:ops");',
        'm.set_python_module("my.ops");',
    ],
)
def test_stubs_are_no_implementations(call) -> None:
    bindings, _ = read(block(call, 'm.def("f() -> ()");'))
    assert [b.name for b in bindings] == ["ns::f"]


# Macros in arguments hold as they do where the call stands.
@pytest.mark.parametrize(
    ("head", "statement", "wanted"),
    [
        ('#define SCHEMA "f(Tensor x) -> Tensor"', "m.def(SCHEMA);", ("ns::f", None)),
        ('#define NAME "f"', "m.impl(NAME, torch::kCUDA, &g);", ("ns::f", "g")),
        ("#define FN g", 'm.impl("f", torch::kCUDA, &FN);', ("ns::f", "g")),
        ("#define KEY torch::kCUDA", 'm.impl("f", KEY, &g);', ("ns::f", "g")),
        ('#define OP(x) "f" x', 'm.impl(OP(""), torch::kCUDA, &g);', ("ns::f", "g")),
    ],
)
def test_macros_in_arguments(head, statement, wanted) -> None:
    bindings, gaps = read(f"{head}\n{block(statement)}")
    assert [(b.name, shown(b.function)) for b in bindings] == [wanted]
    assert not gaps


# What no build reads is no op.
def test_what_is_switched_off_is_no_registration() -> None:
    text = block(
        "", "\n#if 0", 'm.def("dead() -> ()");', 'm.impl("dead", torch::kCUDA, &f);', "\n#endif", 'm.def("f() -> ()");'
    )
    assert [b.name for b in read(text)[0]] == ["ns::f"]


# A body that includes its calls from a file of the tree.
@pytest.mark.parametrize("head", ["PYBIND11_MODULE(mod, m)", "TORCH_LIBRARY(mod, m)"])
def test_calls_in_an_included_fragment(head) -> None:
    files = {"a.cpp": f'{head} {{\n#include "defs.inc"\n}}\n', "defs.inc": 'm.def("f", &f);\nm.def("g", &g);\n'}
    found = [(b.name.replace("::", "."), b.path, b.line) for b in read(files)[0] if b.role == "impl"]
    assert found == [("mod.f", "defs.inc", 1), ("mod.g", "defs.inc", 2)]


# A constructor is named by the class in C++, not by its name in Python.
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('py::class_<ns::Impl>(m, "Buffer").def(py::init<int>());', "ns::Impl::Impl"),
        ('py::class_<ns::Impl, std::shared_ptr<ns::Impl>>(m, "Buffer").def(py::init<int>());', "ns::Impl::Impl"),
        ('py::class_<Impl> c(m, "Buffer");\n c.def(py::init<>());', "Impl::Impl"),
    ],
)
def test_constructors_of_classes(text, wanted) -> None:
    assert implemented(module(text)) == [("mod.Buffer.__init__", wanted)]


# Wrappers around a bound function are seen through.
@pytest.mark.parametrize(
    "wrapped",
    [
        "torch::wrap_pybind_function(f)",
        "torch::wrap_pybind_function_no_gil(&f)",
        "py::cpp_function(&f)",
        "std::function<int(int)>(f)",
    ],
)
def test_wrapped_functions(wrapped) -> None:
    assert implemented(module(f'm.def("f", {wrapped});')) == [("mod.f", "f")]


# A unary plus before a lambda makes it a pointer.
def test_a_lambda_made_a_pointer() -> None:
    text = block('m.impl("f", torch::kCUDA, +[](int a) { return a; });')
    (found,) = read(text)[0]
    assert found.function is not None and found.function.lambda_span is not None


# The key of dispatch(KEY, makeFallthrough()) is kept.
def test_the_key_of_a_fallthrough() -> None:
    text = block('m.impl("f", torch::dispatch(c10::DispatchKey::Meta, torch::CppFunction::makeFallthrough()));')
    assert [b.key for b in read(text)[0]] == ["Meta"]


# An argument that says how to register is no function.
def test_register_or_verify_is_no_function() -> None:
    text = block('m.def("f() -> ()", {at::Tag::core}, torch::_RegisterOrVerify::REGISTER);')
    assert [(b.role, b.name) for b in read(text)[0]] == [("def", "ns::f")]


# Heads of one block in two branches: each binding has the condition of its head.
def test_two_heads_of_one_block_keep_their_conditions() -> None:
    text = '#ifdef A\nTORCH_LIBRARY(one, m) {\n#else\nTORCH_LIBRARY(two, m) {\n#endif\n  m.def("f() -> ()");\n}\n'
    found = {b.name: b.condition for b in read(text)[0]}
    assert found == {"one::f": ("defined(A)",), "two::f": ("!defined(A)",)}


# A literal with a directive in it is read as the build reads it.
def test_a_schema_that_differs_by_branch() -> None:
    text = block('m.def("f(Tensor x"\n#ifdef USE_ROCM\n   ", int b"\n#endif\n  ") -> ()");')
    bindings, gaps = read(text)
    assert "\n" not in "".join(g.reason for g in gaps)
    assert [b.name for b in bindings] == ["ns::f"]


# Calls chained to def_submodule land in the submodule.
def test_calls_chained_to_a_submodule() -> None:
    assert implemented(module('m.def_submodule("sub").def("f", &f);')) == [("mod.sub.f", "f")]


# A module that is passed as a pointer.
def test_a_module_passed_by_pointer() -> None:
    text = 'void reg(py::module* q) { q->def("r", &r); }\n' + module("reg(&m);")
    assert implemented(text) == [("mod.r", "r")]


# The lambda of an export has a span, so that it can be walked.
def test_an_exported_lambda_is_spanned() -> None:
    text = "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, [](int a) { return a; });\n"
    start, end = read(text)[0][0].function.lambda_span
    assert text[start:end] == "[](int a) { return a; }"


# A block that is a macro's argument.
def test_a_static_block_in_its_older_form() -> None:
    text = 'TVM_FFI_STATIC_INIT_BLOCK({\n  reflection::GlobalDef().def("my.f", f);\n});\n'
    assert implemented(text) == [("my.f", "f")]


# Classes bound by m.class_ in a TORCH_LIBRARY are a gap at least.
def test_custom_classes_of_torch() -> None:
    text = block('m.class_<Foo>("Foo").def(torch::init<int>()).def("run", &Foo::run);')
    bindings, gaps = read(text)
    assert any(shown(b.function) == "Foo::run" for b in bindings) or gaps


# A class whose name is computed is a gap at least.
def test_a_class_with_a_computed_name_is_a_gap() -> None:
    bindings, gaps = read(module('py::class_<V>(m, name.c_str()).def("run", &V::run);'))
    assert bindings or gaps


# A whole module in a macro's body.
def test_pybind_blocks_out_of_a_macro() -> None:
    text = '#define MODULE(NAME) PYBIND11_MODULE(NAME, m) { m.def("f", &f); }\nMODULE(mod)\nvoid later() {}\n'
    assert implemented(text) == [("mod.f", "f")]


# Kernels given as options of the older form.
def test_kernels_among_options() -> None:
    text = (
        'static auto r = torch::RegisterOperators().op("ns::g(Tensor x) -> Tensor", '
        "torch::RegisterOperators::options().kernel<decltype(g), &g>(c10::DispatchKey::CUDA));\n"
    )
    bindings, gaps = read(text)
    assert [(shown(b.function), b.key) for b in bindings if b.role == "impl"] == [("g", "CUDA")] or gaps
