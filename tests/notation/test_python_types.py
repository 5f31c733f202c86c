"""Annotations, text to value."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.notation.python_types import NotAType, PyType, parse_type

TENSOR = PyType("torch.Tensor")
INT = PyType("int")
NONE = PyType("None")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torch.Tensor", TENSOR),
        ("torch.\n  Tensor  # a note", TENSOR),
        ('"torch.Tensor"', TENSOR),
        ("Optional[int]", PyType("union", (INT, NONE))),
        ("int | None", PyType("union", (INT, NONE))),
        ("typing.Union[int, None, int]", PyType("union", (INT, NONE))),
        ("Optional[int | None]", PyType("union", (INT, NONE))),
        ("list[int]", PyType("list", (INT,), True)),
        ('List["torch.Tensor"]', PyType("List", (TENSOR,), True)),
        ("tuple[()]", PyType("tuple", (), True)),
        ("tuple[int, ...]", PyType("tuple", (INT, PyType("...")), True)),
        ("Annotated[int, x]", INT),
        ("dict[int, list[int],]", PyType("dict", (INT, PyType("list", (INT,), True)), True)),
    ],
)
def test_types(text: str, found: PyType) -> None:
    assert parse_type(text) == found


@pytest.mark.parametrize("text", ["", "list[", "list[]", "a b", "f(x)", "int |", "1", "'int", "[int]", "a[b]c"])
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(NotAType):
        parse_type(text)


@given(st.text(alphabet="abOptional[]|,.() '\"#\n", max_size=60))
def test_any_text_is_a_type_or_is_refused(text: str) -> None:
    with contextlib.suppress(NotAType):
        assert isinstance(parse_type(text), PyType)
