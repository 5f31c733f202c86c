"""Texts that nobody should write: each is read without a fault, in bounded time, and says what is wrong with it."""

from __future__ import annotations


import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.facts.python_full import full
from opwalker.facts.python_light import light
from tests.python_trees import facts, source

DEEP = 10_000
ABSURD = {
    "nested calls": "x = " + "torch.ops.a.b(" * DEEP + ")" * DEEP,
    "nested brackets": "def f():\n  x = " + "(" * DEEP + "torch.ops.a.b" + ")" * DEEP + "(1)",
    "nested lists": "y = " + "[" * DEEP + "torch.ops.a.b" + "]" * DEEP,
    "deep indentation": "".join(" " * i + "if x:\n" for i in range(900)) + " " * 900 + "torch.ops.a.b()",
    "a long chain": "x = torch.ops.a.b" + ".c" * DEEP + "()",
    "many functions": "def f():\n    torch.ops.a.b()\n" * 5000,
    "one long line": "X = [" + "torch.ops.a.b, " * 5000 + "]",
    "quotes": "'" * 50_001 + "\ntorch.ops.a.b()\n",
    "back-slashes": "x = '" + "\\" * 50_000 + "\ntorch.ops.a.b()\n",
    "an import without an end": "from torch import (\n" + "a,\n" * DEEP,
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_texts_come_to_an_end(name: str) -> None:
    text = f"import torch\n{ABSURD[name]}\n"
    with must_end():
        light(source(text))
        full(source(text), ["call:f", "call:ops.*"])


def test_what_stands_too_deep_is_a_problem() -> None:
    found = facts(f"import torch\n{ABSURD['nested lists']}\n")
    assert [(one.kind, one.line) for one in found.problems] == [("too-deep", 2)]


def test_a_fault_of_syntax_is_a_problem_and_the_rest_is_read() -> None:
    text = "import torch\nop = torch.ops.a.b\ndef f():\n    op(1))\n\ndef g():\n    torch.ops.a.c(2)\n"
    found = facts(text)
    assert [(one.kind, one.line) for one in found.problems] == [("syntax", 4)]
    assert ("c", 7, "g") in [(one.op, one.line, one.function) for one in found.op_calls]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=120), st.sampled_from(["call:f", "reg:lib", "def:x"]))
def test_any_text_is_read(text: str, watch: str) -> None:
    for whole in (text, f"import torch\n{text}\ntorch.ops.a.b()\nlib = torch.library.Library('a', 'DEF')\n{text}"):
        found = full(source(whole), [watch])
        assert found == full(source(whole), [watch])


@given(st.text(alphabet="torch.ops a()b=[]'\"\n:defclass@#\\{}f", max_size=200))
def test_any_mixture_of_python_signs_is_read(text: str) -> None:
    full(source(f"import torch\n{text}\n"), ["call:f", "call:b.*"])
