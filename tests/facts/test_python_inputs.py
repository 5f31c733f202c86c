"""Texts that nobody should write: each is read without a fault, in bounded time, and says what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.facts.python_full import full
from opwalker.facts.python_light import light
from tests.endless import must_end
from tests.python_trees import facts, source

DEEP = 10_000
#: Texts of a size.
ABSURD: dict[str, Callable[[int], str]] = {
    "nested calls": lambda n: "x = " + "torch.ops.a.b(" * n + ")" * n,
    "nested brackets": lambda n: "def f():\n  x = " + "(" * n + "torch.ops.a.b" + ")" * n + "(1)",
    "nested lists": lambda n: "y = " + "[" * n + "torch.ops.a.b" + "]" * n,
    "deep indentation": lambda n: "".join(" " * i + "if x:\n" for i in range(n // 11)) + " " * (n // 11) + "f()",
    "a long chain": lambda n: "x = torch.ops.a.b" + ".c" * n + "()",
    "many functions": lambda n: "def f():\n    torch.ops.a.b()\n" * n,
    "one long line": lambda n: "X = [" + "torch.ops.a.b, " * n + "]",
    "quotes": lambda n: "'" * (50 * n + 1) + "\ntorch.ops.a.b()\n",
    "back-slashes": lambda n: "x = '" + "\\" * (50 * n) + "\ntorch.ops.a.b()\n",
    "an import without an end": lambda n: "from torch import (\n" + "a,\n" * n,
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_texts_take_work_that_grows_no_faster_than_they_do(name: str) -> None:
    small, large = (calls_for(f"import torch\n{ABSURD[name](size)}\n") for size in (DEEP // 2, DEEP))
    assert large < 2.2 * small + 1000


def calls_for(text: str) -> int:
    """The calls that both readings of a text take."""
    count = 0

    def seen(frame: object, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        with must_end():
            light(source(text))
            full(source(text), ["call:f", "call:ops.*"])
    finally:
        sys.setprofile(before)
    return count


def test_what_stands_too_deep_is_a_problem() -> None:
    found = facts(f"import torch\n{ABSURD['nested lists'](DEEP)}\n")
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
