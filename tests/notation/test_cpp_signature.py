"""C++ types against schema types. The expected texts are what PyTorch 2.13's dispatcher printed for such functions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.model.schema import SchemaType
from opwalker.notation.cpp_signature import (
    CppType,
    infer_schema,
    read_cpp_type,
    schema_type_of,
    split_arguments,
    types_agree,
)
from opwalker.notation.op_schema import parse_schema, print_type

TABLE = [
    ("at::Tensor", "Tensor"),
    ("const at::Tensor&", "Tensor"),
    ("at::Tensor &", "Tensor"),
    ("at::Tensor&&", "Tensor"),
    ("torch::Tensor const &", "Tensor"),
    ("torch::stable::Tensor&", "Tensor"),
    ("const torch::stable::Tensor&", "Tensor"),
    ("Tensor", "Tensor"),
    ("::at::Tensor", "Tensor"),
    ("int64_t", "int"),
    ("const int64_t&", "int"),
    ("std::int64_t", "int"),
    ("int8_t", "int"),
    ("long", "int"),
    ("double", "float"),
    ("bool", "bool"),
    ("std::string", "str"),
    ("const std::string &", "str"),
    ("std::string_view", "str"),
    ("c10::string_view", "str"),
    ("c10::SymInt", "SymInt"),
    ("at::ScalarType", "ScalarType"),
    ("torch::Dtype", "ScalarType"),
    ("torch::headeronly::ScalarType", "ScalarType"),
    ("c10::Layout", "Layout"),
    ("at::MemoryFormat", "MemoryFormat"),
    ("torch::stable::Device", "Device"),
    ("c10::Stream", "Stream"),
    ("at::Generator", "Generator?"),
    ("std::optional<at::Generator>", "Generator?"),
    ("std::optional<torch::Tensor>", "Tensor?"),
    ("const c10::optional<at::Tensor>&", "Tensor?"),
    ("std::optional<const at::Tensor> &", "Tensor?"),
    ("std::optional<c10::ScalarType>", "ScalarType?"),
    ("at::IntArrayRef", "int[]"),
    ("c10::SymIntArrayRef", "SymInt[]"),
    ("at::OptionalIntArrayRef", "int[]?"),
    ("at::OptionalSymIntArrayRef", "SymInt[]?"),
    ("c10::OptionalArrayRef<int64_t>", "int[]?"),
    ("const std::vector<double>&", "float[]"),
    ("std::vector< std::vector<int64_t> >", "int[][]"),
    ("std::vector<std::optional<at::Tensor>>", "Tensor?[]"),
    ("std::optional<std::vector<at::Tensor>>", "Tensor[]?"),
    ("torch::TensorList", "Tensor[]"),
    ("at::ITensorListRef", "Tensor[]"),
    ("c10::ArrayRef<c10::SymInt>", "SymInt[]"),
    ("torch::headeronly::HeaderOnlyArrayRef<int64_t>", "int[]"),
    ("std::array<bool, 3>", "bool[]"),
    ("c10::List<bool>", "bool[]"),
    ("std::vector<std::string>", "str[]"),
    ("c10::complex<double>", "complex"),
    ("c10::Dict<std::string, at::Tensor>", "Dict(str, Tensor)"),
    ("std::tuple<int64_t, std::tuple<at::Tensor, bool>>", "(int, (Tensor, bool))"),
    ("c10::IValue", "Any"),
    ("at::DeviceIndex", "int"),
    ("c10::SymBool", "SymBool"),
]


@pytest.mark.parametrize(("cpp", "schema"), TABLE)
def test_the_table(cpp: str, schema: str) -> None:
    found = schema_type_of(cpp)
    assert found is not None and print_type(found) == schema
    assert types_agree(found, cpp) is True


@pytest.mark.parametrize(
    "cpp",
    [
        "float",
        "int",
        "uint8_t",
        "size_t",
        "long long",
        "unsigned long",
        "const char*",
        "at::Tensor*",
        "void*",
        "std::vector<bool>",
        "std::vector<float>",
        "std::optional<float>",
        "std::pair<int64_t, int64_t>",
        "std::map<std::string, at::Tensor>",
        "std::array<bool>",
        "c10::OptionalArrayRef<double>",
        "c10::complex<float>",
        "std::tuple<at::Tensor, float>",
        "cute::Tensor",
        "ffi::Tensor",
        "MyTensor",
        "T",
        "auto",
        "Tensor<float>",
        "int64_t[3]",
        "void (*)(int64_t)",
        "std::vector<int64_t",
        "",
    ],
)
def test_what_the_dispatcher_does_not_box(cpp: str) -> None:
    assert schema_type_of(cpp) is None
    assert infer_schema("f", [(cpp, "x")], "void") is None


@pytest.mark.parametrize(
    ("name", "parameters", "returned", "schema"),
    [
        ("scale", [("at::Tensor&", "out"), ("double", "factor")], "void", "scale(Tensor _0, float _1) -> ()"),
        ("ns::f.out", [("std::optional<at::Tensor>", "x")], "at::Tensor", "ns::f.out(Tensor? _0) -> Tensor _0"),
        ("f", [], "int64_t", "f() -> int _0"),
        ("f", [], "const at::Tensor &", "f() -> Tensor _0"),
        ("f", [], "std::tuple<at::Tensor, int64_t>", "f() -> (Tensor _0, int _1)"),
        ("f", [], "std::tuple<at::Tensor&,at::Tensor&>", "f() -> (Tensor _0, Tensor _1)"),
        ("f", [], "std::tuple<at::Tensor>", "f() -> Tensor _0"),
        ("f", [], "std::tuple<>", "f() -> ()"),
        ("f", [], "std::vector<at::Tensor>", "f() -> Tensor[] _0"),
        ("f", [], "std::tuple<std::tuple<int64_t, int64_t>, bool>", "f() -> ((int, int) _0, bool _1)"),
        ("f", [], "std::tuple<at::Tensor, float>", None),
        ("f", [], "void*", None),
        ("f", [("at::Tensor", "x"), ("int", "n")], "void", None),
    ],
)
def test_inferred_schemas(name: str, parameters: list[tuple[str, str]], returned: str, schema: str | None) -> None:
    assert infer_schema(name, parameters, returned) == schema
    if schema is not None:
        parse_schema(schema)


def test_names_for_a_reader() -> None:
    parameters = [("at::Tensor&", "out"), ("int64_t", "")]
    assert infer_schema("f", parameters, "bool", keep_names=True) == "f(Tensor out, int _1) -> bool"


def test_aliases_of_the_source_are_followed() -> None:
    aliases = {
        "fptr_t": "int64_t",
        "Maybe": "std::optional<Tensors>",
        "Tensors": "std::vector<at::Tensor>",
        "Loop": "Loop",
    }
    assert schema_type_of("fptr_t") is None
    assert schema_type_of("const fptr_t", aliases) == SchemaType("int")
    assert schema_type_of("std::vector<fptr_t>", aliases) == SchemaType("int", ("[]",))
    assert schema_type_of("Maybe", aliases) == SchemaType("Tensor", ("[]", "?"))
    assert schema_type_of("Loop", aliases) is None
    assert schema_type_of("other::fptr_t", aliases) is None
    assert infer_schema("f", [("fptr_t", "p")], "Tensors", aliases=aliases) == "f(int _0) -> Tensor[] _0"
    assert types_agree(SchemaType("int"), "fptr_t", aliases) is True


@pytest.mark.parametrize(
    ("schema", "cpp", "answer"),
    [
        ("Tensor!", "const at::Tensor&", True),
        ("Tensor(a!)?", "std::optional<at::Tensor>", True),
        ("Tensor?", "at::Tensor", False),
        ("Tensor", "std::optional<at::Tensor>", False),
        ("SymInt", "int64_t", True),
        ("SymInt", "c10::SymInt", True),
        ("int", "c10::SymInt", False),
        ("SymInt[2]", "at::IntArrayRef", True),
        ("int[3]", "std::vector<int64_t>", True),
        ("bool[3]", "std::array<bool, 3>", True),
        ("int[1]?", "at::OptionalIntArrayRef", True),
        ("int[]", "std::vector<double>", False),
        ("int", "double", False),
        ("int", "int", False),
        ("int", "size_t", False),
        ("float", "float", False),
        ("float", "double", True),
        ("float", "int64_t", False),
        ("str", "std::string_view", True),
        ("str", "const char*", None),
        ("ScalarType", "int64_t", False),
        ("ScalarType", "at::ScalarType", True),
        ("DeviceIndex", "c10::DeviceIndex", True),
        ("Generator?", "at::Generator", True),
        ("int", "fptr_t", None),
        ("Tensor", "MyTensor", None),
        ("Tensor", "at::Tensor*", None),
        ("t", "at::Tensor", None),
        ("t", "int", None),
        ("(int, Tensor)", "std::tuple<int64_t, at::Tensor>", True),
        ("(int, Tensor)", "std::tuple<int64_t, int64_t>", False),
        ("Dict(str, Tensor)", "c10::Dict<std::string, at::Tensor>", True),
        ("Dict(str, t)", "c10::Dict<std::string, at::Tensor>", None),
        ("__torch__.torch.classes.demo.Box", "const c10::intrusive_ptr<Box>&", True),
        ("__torch__.torch.classes.demo.Box", "c10::intrusive_ptr<demo::Other>", None),
        ("int", "c10::intrusive_ptr<Box>", False),
        ("Any", "c10::IValue", True),
    ],
)
def test_agreement(schema: str, cpp: str, answer: bool | None) -> None:
    declared = parse_schema(f"f({schema} x) -> ()").arguments[0].type
    assert types_agree(declared, cpp) is answer


def test_the_parts_of_a_type() -> None:
    assert read_cpp_type("const  std :: vector<at::Tensor> &") == CppType("std", "vector", ("at::Tensor",))
    assert read_cpp_type("unsigned long") == CppType("", "unsigned long")
    assert read_cpp_type("const scalar_t* __restrict__") == CppType("", "scalar_t", (), True)
    assert split_arguments("A<B, C>, (D, E), f") == ("A<B, C>", "(D, E)", "f")
    assert split_arguments(" ") == ()


_CPP = {"Tensor": "at::Tensor", "int": "int64_t", "float": "double", "str": "std::string", "SymInt": "c10::SymInt"}


@st.composite
def pairs(draw: st.DrawFn, depth: int = 3) -> tuple[str, SchemaType]:
    """A C++ type and the schema type that it is."""
    kind = draw(st.sampled_from(["plain", "list", "optional", "tuple"])) if depth else "plain"
    if kind == "plain":
        base = draw(st.sampled_from(sorted(_CPP)))
        return _CPP[base], SchemaType(base)
    if kind == "tuple":
        items = draw(st.lists(pairs(depth - 1), min_size=1, max_size=3))
        return f"std::tuple<{', '.join(cpp for cpp, _ in items)}>", SchemaType(
            "tuple", items=tuple(t for _, t in items)
        )
    cpp, inner = draw(pairs(depth - 1))
    if kind == "optional" and inner.suffixes[-1:] != ("?",):
        return f"std::optional<{cpp}>", SchemaType(inner.base, (*inner.suffixes, "?"), items=inner.items)
    head = draw(st.sampled_from(["std::vector<{}>", "c10::List< {} >", "c10::ArrayRef<{}>", "std::array<{}, 4>"]))
    return head.format(cpp), SchemaType(inner.base, (*inner.suffixes, "[]"), items=inner.items)


@given(pairs(), st.sampled_from(["{}", "const {}&", "{} const &", "{} &", " {} "]))
def test_nested_types(pair: tuple[str, SchemaType], place: str) -> None:
    cpp, expected = pair
    assert schema_type_of(place.format(cpp)) == expected
    assert types_agree(expected, cpp) is True


@given(st.text(alphabet="atTensor:<>,&* _0()", max_size=30))
def test_any_text_gets_an_answer(text: str) -> None:
    found = schema_type_of(text)
    assert found is None or types_agree(found, text) is True
