"""Arguments of registration calls as values: literals, dispatch keys, functions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.expand.binding_text import function_ref, join_literals, key_name, literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a"', "a"),
        ('"a" "b"', "ab"),
        ('"a"\n  "b"', "ab"),
        ('"a\\n\\t\\"b\\\\"', 'a\n\t"b\\'),
        ('"\\x41\\101"', "AA"),
        ('R"(a\\n"b)"', 'a\\n"b'),
        ('R"x()")x" "c"', ')"c'),
        ('u8"a"', "a"),
        ('"a\\\nb"', "ab"),
        ("", None),
        ("a", None),
        ('"a" b', None),
        ('b "a"', None),
        ('"a" + x', None),
        ("'a'", None),
    ],
)
def test_literals(text: str, value: str | None) -> None:
    assert literal(text) == value


@given(parts=st.lists(st.text(alphabet='ab ,()\\"\n\t', max_size=8), min_size=1, max_size=4))
def test_adjacent_literals_join(parts: list[str]) -> None:
    def quoted(text: str) -> str:
        for char, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
            text = text.replace(char, escape)
        return f'"{text}"'

    assert literal(" ".join(quoted(part) for part in parts)) == "".join(parts)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"f(int a,"\n "  int b)"', "f(int a, int b)"),
        ('("f()")', "f()"),
        ('TORCH_SELECTIVE_SCHEMA("f()")', "f()"),
        ('TORCH_SELECTIVE_NAME("f")', "f"),
        ('torch::schema("f()", c10::AliasAnalysisKind::PURE_FUNCTION)', "f()"),
        ("name", None),
        ('g("f()")', None),
    ],
)
def test_joined_literals(text: str, value: str | None) -> None:
    assert join_literals(text) == value


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("torch::kCUDA", "CUDA"),
        ("c10::kCPU", "CPU"),
        ("kMeta", "Meta"),
        ("c10::DispatchKey::Autograd", "Autograd"),
        ("DispatchKey::CompositeImplicitAutograd", "CompositeImplicitAutograd"),
        ("at::DispatchKey :: Meta", "Meta"),
        ("c10::DeviceType::XPU", "XPU"),
        ("torch::headeronly::DispatchKey::CUDA", "CUDA"),
        ("CUDA", "CUDA"),
        ("PrivateUse1", "PrivateUse1"),
        ("HIP", "HIP"),
        ("&f", None),
        ("f", None),
        ("kernel", None),
        ("TORCH_FN(f)", None),
    ],
)
def test_keys(text: str, key: str | None) -> None:
    assert key_name(text) == key


@pytest.mark.parametrize(
    "text", ["nullptr", "torch::CppFunction::makeFallthrough()", "f(3)", "3", "x + y", "", 'py::arg("a")']
)
def test_what_names_no_function(text: str) -> None:
    assert function_ref(text, None, None)[0] is None


@pytest.mark.parametrize(
    "wrap", ["{}", "&{}", "TORCH_FN({})", "TORCH_BOX(&{})", "({})", "torch::dispatch(torch::kCUDA, {})"]
)
@pytest.mark.parametrize("name", ["f", "n::f", "C::f"])
def test_wrappers_are_seen_through(wrap: str, name: str) -> None:
    reference, key = function_ref(wrap.format(name), None, None)
    assert reference.name == name
    assert key == ("CUDA" if "dispatch" in wrap else None)
