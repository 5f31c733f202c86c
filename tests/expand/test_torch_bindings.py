"""Every form in which a C++ file registers an op with torch: names, schemas, keys, functions, conditions, lines."""

from __future__ import annotations

import pytest

from opwalker.model.binding import Binding, FunctionRef
from opwalker.model.walk import Gap
from tests.trees import tree

EXPAND = (
    "#define TORCH_LIBRARY_EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)\n"
    "#define TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) TORCH_LIBRARY_IMPL(NAME, DEVICE, MODULE)\n"
)
CONCAT = "#define CONCAT_(A, B) A##B\n#define CONCAT(A, B) CONCAT_(A, B)\n"


def read(files: str | dict[str, str], **settings) -> tuple[list[Binding], list[Gap]]:
    if isinstance(files, str):
        files = {"a.cpp": files}
    found = tree(files, **settings).bindings()
    return list(found.bindings), list(found.gaps)


def block(*statements: str, head: str = "TORCH_LIBRARY(ns, m)") -> str:
    """A registration block with one statement a line, the first one on line 2."""
    return f"{head} {{\n" + "".join(f"  {statement}\n" for statement in statements) + "}\n"


def shown(function: FunctionRef | None) -> str | None:
    if function is None:
        return None
    return function.name + (f"<{function.template}>" if function.template else "")


def one(statement: str, role: str = "impl") -> Binding:
    """The only binding of a role that a statement in a block makes."""
    bindings, gaps = read(block(statement))
    found = [b for b in bindings if b.role == role]
    assert len(found) == 1, bindings
    assert not gaps
    return found[0]


def test_a_wrapper_of_functions_is_not_taken_from_a_header_that_the_file_does_not_include() -> None:
    bindings, gaps = read(
        {
            "a.cpp": block('m.impl("op", TORCH_BOX(&n::f));', head="STABLE_TORCH_LIBRARY_IMPL(ns, CUDA, m)"),
            "tests/double.h": "#define TORCH_BOX(FUNCTION) ::doubled::Registered{&doubled::Boxed<(FUNCTION)>::call}\n",
        }
    )
    assert [(shown(one.function), one.key) for one in bindings] == [("n::f", "CUDA")]
    assert not gaps


# -- blocks ---------------------------------------------------------------------------------------------------

BLOCKS = [
    ("TORCH_LIBRARY(ns, m)", "ns", None),
    ("TORCH_LIBRARY_FRAGMENT(ns, m)", "ns", None),
    ("TORCH_LIBRARY_IMPL(ns, CUDA, m)", "ns", "CUDA"),
    ("TORCH_LIBRARY_IMPL(ns, CompositeExplicitAutograd, m)", "ns", "CompositeExplicitAutograd"),
    ("STABLE_TORCH_LIBRARY(ns, m)", "ns", None),
    ("STABLE_TORCH_LIBRARY_FRAGMENT(ns, m)", "ns", None),
    ("STABLE_TORCH_LIBRARY_IMPL(ns, CPU, m)", "ns", "CPU"),
    ("TORCH_LIBRARY (\n  ns ,\n  m )", "ns", None),
    ("TORCH_LIBRARY(_C, m)", "_C", None),
]


@pytest.mark.parametrize(("head", "namespace", "key"), BLOCKS)
def test_blocks(head: str, namespace: str, key: str | None) -> None:
    bindings, gaps = read(block('m.impl("f", &f);', head=head))
    assert [(b.name, b.key, b.kind) for b in bindings] == [
        (f"{namespace}::f", key or "CompositeImplicitAutograd", "torch_library")
    ]
    assert not gaps


@pytest.mark.parametrize("handle", ["m", "ops", "lib", "cache_ops", "m_"])
def test_any_name_of_the_handle(handle: str) -> None:
    bindings, _ = read(block(f'{handle}.def("f() -> ()");', head=f"TORCH_LIBRARY(ns, {handle})"))
    assert [b.name for b in bindings] == ["ns::f"]


def test_calls_on_another_object_are_no_registrations() -> None:
    assert not read(block('other.def("f() -> ()");', 'x.impl("g", &g);'))[0]


def test_a_block_that_a_project_macro_expands_to() -> None:
    files = {
        "registration.h": "#pragma once\n#define REGISTER_LIBRARY(NAME, M) TORCH_LIBRARY(NAME, M)\n",
        "a.cpp": '#include "registration.h"\nREGISTER_LIBRARY(mine, m) {\n  m.def("f() -> ()");\n}\n',
    }
    bindings, gaps = read(files)
    assert [(b.name, b.path, b.line, b.macros) for b in bindings] == [("mine::f", "a.cpp", 3, ("REGISTER_LIBRARY",))]
    assert not gaps


def test_a_namespace_that_is_a_macro() -> None:
    text = "#define NS mine\n" + block('m.def("f() -> ()");', head="TORCH_LIBRARY(NS, m)")
    assert [b.name for b in read(text)[0]] == ["mine::f"]


def test_the_extension_name_of_the_target() -> None:
    text = EXPAND + block('ops.def("f() -> ()");', head="TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops)")
    bindings, gaps = read(text, names_of={"a.cpp": ["_C"]})
    assert [(b.name, b.target, b.unresolved) for b in bindings] == [("_C::f", "_C", None)]
    assert not gaps


def test_an_extension_name_joined_with_a_suffix() -> None:
    head = "TORCH_LIBRARY_EXPAND(CONCAT(TORCH_EXTENSION_NAME, _cache_ops), ops)"
    text = EXPAND + CONCAT + block('ops.def("f() -> ()");', head=head)
    assert [b.name for b in read(text, names_of={"a.cpp": ["_C"]})[0]] == ["_C_cache_ops::f"]


def test_an_implementation_block_with_the_extension_name() -> None:
    text = EXPAND + block('m.impl("f", &f);', head="TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, m)")
    assert [(b.name, b.key) for b in read(text, names_of={"a.cpp": ["_C"]})[0]] == [("_C::f", "CUDA")]


def test_a_file_in_two_targets_registers_twice() -> None:
    text = EXPAND + block('ops.def("f() -> ()");', head="TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops)")
    bindings, _ = read(text, names_of={"a.cpp": ["_C", "_rocm_C"]})
    assert {(b.name, b.target) for b in bindings} == {("_C::f", "_C"), ("_rocm_C::f", "_rocm_C")}


def test_an_extension_name_that_no_build_file_sets_stays_unresolved() -> None:
    text = EXPAND + block('ops.def("f() -> ()");', head="TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops)")
    bindings, gaps = read(text)
    assert [b.unresolved for b in bindings] == ["TORCH_EXTENSION_NAME is not resolved"]
    assert [(g.kind, g.span.line) for g in gaps] == [("namespace", 3)]


def test_the_build_goes_before_the_fallback_in_the_source() -> None:
    fallback = "#ifndef TORCH_EXTENSION_NAME\n#define TORCH_EXTENSION_NAME fallback\n#endif\n"
    text = fallback + EXPAND + block('m.def("f() -> ()");', head="TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, m)")
    assert [b.name for b in read(text, names_of={"a.cpp": ["_C"]})[0]] == ["_C::f"]


def test_a_whole_block_out_of_a_macro() -> None:
    text = (
        "#define REGISTER(NS, NAME, FN) TORCH_LIBRARY_FRAGMENT(NS, m) { m.def(#NAME, &FN); }\n"
        "REGISTER(ns, foo, foo_impl)\nREGISTER(ns, bar, x::bar_impl);\nvoid later() {}\n"
    )
    found = [(b.name, shown(b.function), b.line) for b in read(text)[0] if b.role == "impl"]
    assert found == [("ns::foo", "foo_impl", 2), ("ns::bar", "x::bar_impl", 3)]


# -- definitions ----------------------------------------------------------------------------------------------

SCHEMAS = [
    ('m.def("f(Tensor x) -> Tensor");', "f(Tensor x) -> Tensor"),
    ('m.def("f(Tensor! out, "\n  "float eps=1e-6) -> "  // why\n  "()");', "f(Tensor! out, float eps=1e-6) -> ()"),
    ('m.def(R"(f(Tensor x,\n    int n) -> Tensor)");', "f(Tensor x, int n) -> Tensor"),
    ('m.def(R"SCHEMA(f(str s=")") -> ())SCHEMA");', 'f(str s=")") -> ()'),
    ('m.def("f(str x=\\"a,b\\") -> ()");', 'f(str x="a,b") -> ()'),
    ('m.def(("f() -> ()"));', "f() -> ()"),
    ('m.def(TORCH_SELECTIVE_SCHEMA("f(Tensor x) -> Tensor"));', "f(Tensor x) -> Tensor"),
    ('m.def(torch::schema("f(Tensor x) -> Tensor"));', "f(Tensor x) -> Tensor"),
    (
        'm.def(torch::schema("f(Tensor x) -> Tensor", c10::AliasAnalysisKind::PURE_FUNCTION));',
        "f(Tensor x) -> Tensor",
    ),
    ('m . def ( "f() -> ()" ) ;', "f() -> ()"),
    ('m.def("ns::f(int a) -> ()");', "ns::f(int a) -> ()"),
]


@pytest.mark.parametrize(("statement", "schema"), SCHEMAS)
def test_schemas(statement: str, schema: str) -> None:
    found = one(statement, "def")
    assert (found.name, found.schema, found.function) == ("ns::f", schema, None)


def test_an_overload_is_part_of_the_name() -> None:
    assert one('m.def("f.out(Tensor x) -> Tensor");', "def").name == "ns::f.out"


def test_a_schema_may_name_another_namespace() -> None:
    assert one('m.def("other::f(Tensor x) -> Tensor");', "def").name == "other::f"


BOUND = [
    ('m.def("f", &f);', "f", None),
    ('m.def("f", f);', "f", None),
    ('m.def("f", &ns::C::f);', "ns::C::f", None),
    ('m.def("f", TORCH_FN(f));', "f", None),
    ('m.def("f(int a) -> int", &f);', "f", "f(int a) -> int"),
    ('m.def(torch::schema("f(int a) -> int"), &f);', "f", "f(int a) -> int"),
    ('m.def("f", [](int64_t a) { return a; });', "lambda", None),
]


@pytest.mark.parametrize(("statement", "function", "schema"), BOUND)
def test_a_definition_that_binds_a_function(statement: str, function: str, schema: str | None) -> None:
    bindings, _ = read(block(statement))
    definition = next(b for b in bindings if b.role == "def")
    implementation = next(b for b in bindings if b.role == "impl")
    assert (definition.name, definition.schema) == ("ns::f", schema)
    assert shown(implementation.function) == function
    assert implementation.key == "CompositeImplicitAutograd"
    # Without a schema, the function's signature has to speak for it.
    assert shown(definition.function) == (function if schema is None else None)


TAGS = [
    ('m.def("f() -> ()", {at::Tag::pt2_compliant_tag});', ("pt2_compliant_tag",)),
    ('m.def("f() -> ()", {at::Tag::core, torch::Tag::pointwise});', ("core", "pointwise")),
    ('m.def("f() -> ()", at::Tag::core);', ("core",)),
    ('m.def("f() -> ()", std::vector<at::Tag>{at::Tag::core});', ("core",)),
    ('m.def("f() -> ()");', ()),
]


@pytest.mark.parametrize(("statement", "tags"), TAGS)
def test_tags(statement: str, tags: tuple[str, ...]) -> None:
    found = one(statement, "def")
    assert (found.schema, found.tags) == ("f() -> ()", tags)


# -- implementations ------------------------------------------------------------------------------------------

KEYS = [
    ('m.impl("f", torch::kCUDA, &f);', "CUDA"),
    ('m.impl("f", c10::kCPU, &f);', "CPU"),
    ('m.impl("f", at::kMeta, &f);', "Meta"),
    ('m.impl("f", at::kPrivateUse1, &f);', "PrivateUse1"),
    ('m.impl("f", torch::kHIP, &f);', "CUDA"),
    ('m.impl("f", c10::DispatchKey::Meta, &f);', "Meta"),
    ('m.impl("f", torch::DispatchKey::AutogradCUDA, &f);', "AutogradCUDA"),
    ('m.impl("f", DispatchKey::CUDA, &f);', "CUDA"),
    ('m.impl("f", c10::DispatchKey::CompositeExplicitAutograd, &f);', "CompositeExplicitAutograd"),
    ('m.impl("f", torch::dispatch(c10::DispatchKey::CUDA, TORCH_FN(f)));', "CUDA"),
    ('m.impl("f", torch::dispatch(torch::kCPU, &f));', "CPU"),
    ('m.impl("f", dispatch(DispatchKey::Meta, f));', "Meta"),
    ('m.impl("f", &f);', "CompositeImplicitAutograd"),
    ('m.impl("f", c10::DeviceType::XPU, &f);', "XPU"),
]


@pytest.mark.parametrize(("statement", "key"), KEYS)
def test_keys(statement: str, key: str) -> None:
    found = one(statement)
    assert (found.name, found.key, shown(found.function)) == ("ns::f", key, "f")


def test_a_key_of_the_call_goes_before_that_of_the_block() -> None:
    text = block('m.impl("f", c10::DispatchKey::Meta, &f);', 'm.impl("g", &g);', head="TORCH_LIBRARY_IMPL(ns, CUDA, m)")
    assert [(b.name, b.key) for b in read(text)[0]] == [("ns::f", "Meta"), ("ns::g", "CUDA")]


FUNCTIONS = [
    ("&f", FunctionRef("f")),
    ("f", FunctionRef("f")),
    ("&n::m::f", FunctionRef("n::m::f")),
    ("::n::f", FunctionRef("::n::f")),
    ("TORCH_FN(f)", FunctionRef("f")),
    ("TORCH_FN(n::f)", FunctionRef("n::f")),
    ("TORCH_BOX(&f)", FunctionRef("f")),
    ("TORCH_BOX(n::f)", FunctionRef("n::f")),
    ("&f<float, 3>", FunctionRef("f", "float, 3")),
    ("TORCH_FN((f<float, 2>))", FunctionRef("f", "float, 2")),
    ("&C::f", FunctionRef("C::f")),
    ("&S<int>::f", FunctionRef("S::f", owner="S<int>")),
    ("static_cast<at::Tensor (*)(at::Tensor, int64_t)>(&f)", FunctionRef("f", None, 2)),
    ("static_cast<void (*)()>(f)", FunctionRef("f", None, 0)),
    ("(void (*)(int)) &f", FunctionRef("f", None, 1)),
    ("TORCH_FN((static_cast<int (*)(int, std::map<int, int>)>(f)))", FunctionRef("f", None, 2)),
    ("torch::CppFunction::makeFromBoxedFunction<&f>()", FunctionRef("f")),
    ("( &f )", FunctionRef("f")),
]


@pytest.mark.parametrize(("argument", "function"), FUNCTIONS)
def test_functions(argument: str, function: FunctionRef) -> None:
    found = one(f'm.impl("f", torch::kCUDA, {argument});')
    assert found.function == function
    assert found.key == "CUDA"


@pytest.mark.parametrize(
    "text",
    [
        "[](at::Tensor x) -> at::Tensor { return f(x); }",
        "[](std::vector<int> v, std::map<int, int> m) { return g({1, 2}); }",
        "[]() {\n    return 3;\n  }",
    ],
)
def test_a_lambda_is_spanned(text: str) -> None:
    source = block(f'm.impl("f", torch::kCUDA, {text});')
    (found,) = read(source)[0]
    start, end = found.function.lambda_span
    assert source[start:end] == text


def test_a_selective_name() -> None:
    found = one('m.impl(TORCH_SELECTIVE_NAME("ns::f"), TORCH_FN(f));')
    assert (found.name, shown(found.function)) == ("ns::f", "f")


# -- places and conditions ------------------------------------------------------------------------------------


def test_lines_are_those_of_the_name() -> None:
    text = block('m.def(\n      "f(Tensor x) -> Tensor",\n      {});', 'm.impl("g", &g);')
    assert [(b.name, b.line) for b in read(text)[0]] == [("ns::f", 3), ("ns::g", 5)]


def test_each_branch_keeps_its_condition() -> None:
    text = block(
        "",
        "\n#ifdef USE_ROCM",
        'm.def("a() -> ()");',
        "\n#else",
        'm.def("b() -> ()");',
        "\n#endif",
        "\n#if defined(X) && Y > 3",
        'm.impl("b", torch::kCUDA, &b);',
        "\n#elif Z",
        'm.impl("b", torch::kCUDA, &c);',
        "\n#endif",
    )
    found = [(b.name, shown(b.function), b.condition) for b in read(text)[0]]
    assert found == [
        ("ns::a", None, ("defined(USE_ROCM)",)),
        ("ns::b", None, ("!defined(USE_ROCM)",)),
        ("ns::b", "b", ("defined(X) && Y > 3",)),
        ("ns::b", "c", ("!(defined(X) && Y > 3)", "Z")),
    ]


def test_a_block_under_a_condition() -> None:
    text = "#ifdef A\n" + block('m.def("f() -> ()");') + "#endif\n"
    assert [b.condition for b in read(text)[0]] == [("defined(A)",)]


def test_two_heads_for_one_body_register_under_both_names() -> None:
    text = '#ifdef A\nTORCH_LIBRARY(one, m) {\n#else\nTORCH_LIBRARY(two, m) {\n#endif\n  m.def("f() -> ()");\n}\n'
    assert {b.name for b in read(text)[0]} == {"one::f", "two::f"}


def test_what_is_commented_out_is_no_registration() -> None:
    text = block(
        '// m.def("a() -> ()");',
        '/* m.def("b() -> ()");\n m.impl("b", &b); */',
        'm.def("c() -> ()"); // m.impl("c", &x);',
    )
    assert [b.name for b in read(text)[0]] == ["ns::c"]


def test_the_scope_of_the_block() -> None:
    text = "namespace a { namespace {\n" + block('m.def("f", &f);') + "} }\n"
    assert {b.scope for b in read(text)[0]} == {("a", "(anonymous namespace)")}


def test_registrations_in_a_device_file() -> None:
    text = "__global__ void k() {}\n" + block('m.impl("f", &f);', head="STABLE_TORCH_LIBRARY_IMPL(ns, CUDA, m)")
    assert [(b.path, b.line, b.name) for b in read({"x/y.cu": text})[0]] == [("x/y.cu", 3, "ns::f")]


# -- macros and functions in between --------------------------------------------------------------------------


def test_a_statement_that_is_a_macro() -> None:
    macro = '#define DEF_OPS(NAME, T) m.def(#NAME "_" #T, &NAME<T>)\n'
    bindings, gaps = read(macro + block("DEF_OPS(foo, float);", "DEF_OPS(foo, half);"))
    found = [(b.name, shown(b.function), b.line, b.macros) for b in bindings if b.role == "impl"]
    assert found == [
        ("ns::foo_float", "foo<float>", 3, ("DEF_OPS",)),
        ("ns::foo_half", "foo<half>", 4, ("DEF_OPS",)),
    ]
    assert not gaps


def test_a_macro_that_makes_both_calls() -> None:
    macro = '#define OP(n) m.def(#n "(Tensor x) -> Tensor"); m.impl(#n, torch::kCUDA, &n##_cuda)\n'
    found = [(b.role, b.name, b.key, shown(b.function)) for b in read(macro + block("OP(bar);"))[0]]
    assert found == [("def", "ns::bar", None, None), ("impl", "ns::bar", "CUDA", "bar_cuda")]


def test_a_function_that_gets_the_handle() -> None:
    files = {
        "reg.h": "namespace r { void reg(int n, torch::Library& lib); }\n",
        "reg.cpp": '#include "reg.h"\nvoid r::reg(int n, torch::Library& lib) {\n  lib.def("f() -> ()");\n}\n',
        "main.cpp": '#include "reg.h"\n' + block("r::reg(3, m);"),
    }
    assert [(b.name, b.path, b.line) for b in read(files)[0]] == [("ns::f", "reg.cpp", 3)]


def test_a_chain_of_calls() -> None:
    text = block('m.def("f() -> ()")\n   .def("g() -> ()")\n   .impl("g", torch::kCPU, &g);')
    assert [(b.role, b.name, b.line) for b in read(text)[0]] == [
        ("def", "ns::f", 2),
        ("def", "ns::g", 3),
        ("impl", "ns::g", 4),
    ]


def test_a_name_that_is_no_literal_is_a_gap() -> None:
    bindings, gaps = read(block("m.def(name, &f);"))
    assert not bindings
    assert [(g.kind, g.span.line) for g in gaps] == [("registration", 2)]


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ('static auto r = torch::RegisterOperators("ns::f", &f);', None),
        ('torch::RegisterOperators r("ns::f", &f);', None),
        ('static c10::RegisterOperators r{"ns::f(Tensor x) -> Tensor", f};', "ns::f(Tensor x) -> Tensor"),
    ],
)
def test_an_operator_that_the_object_is_made_with(text: str, schema: str | None) -> None:
    bindings, gaps = read(text)
    assert [(b.role, b.name, b.schema, shown(b.function) if b.role == "impl" else None) for b in bindings] == [
        ("def", "ns::f", schema, None),
        ("impl", "ns::f", None, "f"),
    ]
    assert not gaps


def test_operators_registered_by_an_object() -> None:
    text = (
        "static auto registry = torch::RegisterOperators()\n"
        '  .op("ns::f", &f)\n'
        '  .op("ns::h(Tensor x) -> Tensor", &n::h);\n'
    )
    found = [(b.name, shown(b.function), b.line) for b in read(text)[0] if b.role == "impl"]
    assert found == [("ns::f", "f", 2), ("ns::h", "n::h", 3)]


@pytest.mark.parametrize(
    "text",
    [
        'void f() { x.def("a() -> ()"); }\n',
        'int TORCH_LIBRARY_count = 3;\nvoid f() { m.impl("a", &b); }\n',
        'OTHER_LIBRARY(ns, m) { m.def("a() -> ()"); }\n',
        "TORCH_LIBRARY(ns, m) {}\n",
        "TORCH_LIBRARY(ns);\n",
        '// TORCH_LIBRARY(ns, m) { m.def("a() -> ()"); }\n',
        'const char* s = "TORCH_LIBRARY(ns, m) { m.def(1); }";\n',
    ],
)
def test_what_registers_nothing(text: str) -> None:
    assert read(text) == ([], [])


def test_the_order_is_that_of_files_and_lines() -> None:
    files = {"b.cpp": block('m.def("b() -> ()");'), "a.cpp": block('m.def("z() -> ()");', 'm.def("y() -> ()");')}
    assert [(b.path, b.name) for b in read(files)[0]] == [("a.cpp", "ns::z"), ("a.cpp", "ns::y"), ("b.cpp", "ns::b")]


def test_a_list_in_yaml_defines_and_implements() -> None:
    text = (
        "- func: add(Tensor a) -> Tensor\n  dispatch:\n    CUDA: add_cuda\n- func: kit::mul.out(Tensor a) -> Tensor\n"
        "- func: neg(Tensor a) -> Tensor\n  structured_delegate: neg.out\n"
    )
    bindings, gaps = read({"ops.yaml": text, "a.cpp": "at::Tensor add_cuda(at::Tensor a) { return a; }\n"})
    assert gaps == []
    assert [(b.kind, b.role, b.name, b.key, shown(b.function), b.line) for b in bindings] == [
        ("aten", "def", "aten::add", None, None, 1),
        ("aten", "impl", "aten::add", "CUDA", "add_cuda", 3),
        ("aten", "def", "kit::mul.out", None, None, 4),
        ("aten", "impl", "kit::mul.out", "CompositeImplicitAutograd", "mul", 4),
        ("aten", "def", "aten::neg", None, None, 5),
    ]
