"""Differences between two schemas, and that "breaking" is what torch calls incompatible."""

from __future__ import annotations

import pytest

from opwalker.notation.op_schema import parse_schema
from opwalker.notation.schema_change import schema_changes

#: old, new, the changes in words; ``!`` before one that breaks.
CASES = [
    ("f(int x) -> int", "f(int x) -> int", []),
    ("f(int x) -> int", "f(SymInt x) -> int", ["argument x: int became SymInt"]),
    ("f(int x) -> int", "f(int? x) -> int", ["argument x: int became int?"]),
    ("f(int? x) -> int", "f(int x) -> int", ["!argument x: int? became int"]),
    ("f(int x) -> int", "f(int x, int y=1) -> int", ["argument y (int) added with default 1"]),
    ("f(int x) -> int", "f(int x, int y) -> int", ["!argument y (int) added without a default"]),
    ("f(int x, int y=1) -> int", "f(int x, int y=2) -> int", ["!argument y: default 1 became 2"]),
    ("f(float x=7.0) -> int", "f(float x=7.) -> int", []),
    ("f(int x, int y) -> int", "f(int x, int y=2) -> int", ["argument y: default 2 added"]),
    ("f(int x, int y=2) -> int", "f(int x, int y) -> int", ["!argument y: default 2 removed"]),
    ("f(int x, int y) -> int", "f(int x, *, int y) -> int", ["!argument y is keyword-only now"]),
    ("f(int x, *, int y) -> int", "f(int x, int y) -> int", ["argument y may be given by position now"]),
    ("f(int x, int y) -> int", "f(int x) -> int", ["!argument y removed"]),
    (
        "f(int x, *, int y) -> int",
        "f(int x, *, int z=1, int y) -> int",
        ["!argument z (int) added before others"],
    ),
    (
        "f(int x, *, int y, int z) -> int",
        "f(int x, *, int z, int y) -> int",
        ["!argument y moved from place 2 to 3", "!argument z moved from place 3 to 2"],
    ),
    ("f(Tensor x) -> Tensor", "f(Tensor(a!) x) -> Tensor", ["!argument x is now written"]),
    ("f(Tensor! x) -> Tensor", "f(Tensor x) -> Tensor", ["!argument x is no longer written"]),
    ("f(Tensor(a!) x) -> Tensor", "f(Tensor(b!) x) -> Tensor", ["!argument x: alias set (a!) became (b!)"]),
    ("f(Tensor x) -> Tensor?", "f(Tensor x) -> Tensor", ["the result: Tensor? became Tensor"]),
    ("f(Tensor x) -> Tensor", "f(Tensor x) -> Tensor?", ["!the result: Tensor became Tensor?"]),
    ("f(Tensor x) -> Tensor", "f(Tensor x) -> (Tensor, Tensor)", ["!1 result became 2"]),
    ("f(Tensor x) -> (Tensor, Tensor)", "f(Tensor x) -> ()", ["!2 results became 0"]),
    ("f(Tensor x) -> Tensor a", "f(Tensor x) -> Tensor b", ["!the result: name a became b"]),
    ("f(Tensor[] x) -> Tensor", "f(Tensor?[] x) -> Tensor", ["!argument x: Tensor[] became Tensor?[]"]),
    ("f(float x) -> Tensor", "f(Scalar x) -> Tensor", ["argument x: float became Scalar"]),
    ("f(int x) -> Tensor", "f(float x) -> Tensor", ["!argument x: int became float"]),
    ("f(int x) -> Tensor", "f(int y) -> Tensor", ["!argument x renamed to y"]),
    (
        "f(int x) -> Tensor",
        "f(Tensor y) -> Tensor",
        ["!argument x removed", "!argument y (Tensor) added before others"],
    ),
    ("f.a(int x) -> Tensor", "f(int x) -> Tensor", ["!overload a became default"]),
    ("f(int x) -> Tensor", "g(int x) -> Tensor", ["!name f became g"]),
    (
        "f(int x, *, Tensor(a!) out) -> Tensor(a!)",
        "f(int x, int z=1, *, Tensor(a!) out) -> Tensor(a!)",
        ["argument z (int) added with default 1"],
    ),
    (
        "f(int x, *, Tensor(a!) out) -> Tensor(a!)",
        "f(int x, *, Tensor(a!) result) -> Tensor(a!)",
        ["!out argument out renamed to result"],
    ),
    ("f(ScalarType x) -> Tensor", "f(int x) -> Tensor", ["argument x: ScalarType became int"]),
    ("f(int[2] x) -> Tensor", "f(int[] x) -> Tensor", ["!argument x: int[2] became int[]"]),
    ("f(int x, ...) -> Tensor", "f(int x) -> Tensor", ["!further arguments (...) no longer taken"]),
]


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_changes_are_said_and_judged(old: str, new: str, expected: list[str]) -> None:
    found = schema_changes(parse_schema(old), parse_schema(new))
    assert [("!" if change.breaking else "") + change.text for change in found] == expected


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_breaking_is_what_torch_refuses(old: str, new: str, expected: list[str]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: it cannot be asked what breaks")
    torch_schema = torch._C.parse_schema
    theirs = torch_schema(f"ns::{new}").is_backward_compatible_with(torch_schema(f"ns::{old}"))
    assert theirs == (not any(text.startswith("!") for text in expected))
