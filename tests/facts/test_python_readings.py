"""Two ways of reading must agree: without a parser and with one, at once and name by name."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from opwalker.facts.python_full import full, quick_facts
from opwalker.facts.python_layout import Layout
from opwalker.facts.python_needles import Finder, plan
from opwalker.facts.python_quick import Quick
from opwalker.facts.python_reader import Reader
from opwalker.model.python import PyFacts
from tests.python_trees import facts, source

SIMPLE = [
    "torch.ops.a.b(x)",
    "return torch.ops.a.c.default(x)",
    "y = torch.ops.a.d(\n    x,\n)",
    "self.m(x)",
    "cls.s(x); super().m(2)",
    "h(x)",
    "return ops.f(g(x))",
    "C.s(1)",
    "z = [ops.f(i) for i in f(x)]",
    "s = 'torch.ops.a.b()'  # torch.ops.a.b(",
    'x = """\nh(x)\n  def f(): torch.ops.a.b()\n"""',
    "ops = 1",
    "for h in x: h(1)",
    "check(torch.ops.a.b, torch.ops.a)",
    "call(h=h, ops=ops)",
    "w = lambda h: h(x)",
    "pass",
    "from other import h",
]
HEADS = [
    "def f(x, h=None):",
    "def g(x: h) -> ops.T:",
    "@staticmethod\ndef s(x):",
    "@decorate(\n    h(1),\n)\nasync def m(self, x):",
    "class C(Base):",
    "class D(C, metaclass=M):",
    "if hasattr(torch.ops.a, 'b'):",
    "try:\n    f(1)\nexcept E as h:",
    "with g(x) as ops:",
    "def inner(\n    x,\n):",
]


def indented(text: str) -> str:
    """The text as a block, strings over several lines left as they are."""
    lines, inside = [], False
    for line in text.split("\n"):
        lines.append(line if inside or not line else f"    {line}")
        inside ^= line.count('"""') % 2 == 1
    return "\n".join(lines)


BLOCKS = st.recursive(
    st.sampled_from(SIMPLE),
    lambda inner: st.builds(
        lambda head, body: f"{head}\n{indented(chr(10).join(body))}",
        st.sampled_from(HEADS),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


def is_python(text: str) -> bool:
    """Whether Python itself can read the text; ``return`` outside of functions does not matter here."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def both(text: str, watch: tuple[str, ...]) -> tuple[PyFacts, PyFacts] | None:
    """The facts by the quick reading and by parsing; None where the quick one declines or Python could not read it."""
    needles = plan(text, watch, True)
    layout = Layout(text)
    Finder(layout, needles).find()
    quick = Quick(layout, needles)
    if not needles.anything or not quick.read():
        return None
    reader = Reader(layout, needles)
    reader.read()
    parsed = reader.facts(())
    if parsed.problems:
        return None
    return quick_facts(quick), parsed


def told(found: PyFacts) -> tuple[object, ...]:
    """What the linker goes by: uses, calls, and where their functions stand."""
    functions = set()
    for made in (*found.op_calls, *found.calls):
        around = [one for one in found.functions if one.qualname == made.function and one.line <= made.line]
        functions.add(max(((one.line, one.qualname, one.method_of) for one in around), default=None))
    calls = sorted({(one.line, one.callee, one.function or "") for one in found.calls})
    uses = sorted({(one.line, one.op, one.function or "", one.called) for one in found.op_calls})
    return uses, calls, functions


@settings(max_examples=400)
@given(st.lists(BLOCKS, min_size=1, max_size=6))
def test_the_quick_reading_agrees_with_the_parsed_one(blocks: list[str]) -> None:
    text = "\n".join(["import torch", "from pkg import ops, helper as h", *blocks, ""])
    assume(is_python(text))
    readings = both(text, ("call:h", "call:ops.*", "call:C.s"))
    if readings is not None:
        assert told(readings[0]) == told(readings[1])


def test_plain_files_are_not_parsed_and_others_are() -> None:
    assert both("import torch\ndef f():\n    torch.ops.a.b()\n", ()) is not None
    assert both("import torch\nop = torch.ops.a.b\nop()\n", ()) is None


TEXT = textwrap.dedent(
    """
    import torch
    from pkg import ops, f, C, lib
    op = torch.ops.a.b
    @torch.library.custom_op("a::b", mutates_args=())
    def one(x: torch.Tensor) -> None:
        op(x)
        ops.g(1)
    class D(C):
        def run(self):
            f(one(2))
        def call(self):
            C.run(3)
            self.run()
    lib.define("q() -> ()")
    def two():
        return torch.ops.a.c(D().call())
    """
)
NAMES = ["call:ops.*", "call:f", "call:C.run", "call:C.call", "reg:lib", "def:two", "def:op", "call:D", "call:C"]


@given(st.lists(st.sampled_from(NAMES), unique=True), st.data())
def test_reading_for_further_names_gives_what_reading_at_once_gives(names: list[str], data: st.DataObject) -> None:
    first = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    at_once = facts(TEXT, names)
    before = full(source(TEXT), first)
    after = full(source(TEXT), [*first, *names], before)
    assert replace(after, watched=()) == replace(at_once, watched=())
    assert set(at_once.watched) == set(after.watched)


@pytest.mark.parametrize(
    "text", [TEXT, TEXT.replace("\n", "\r\n"), TEXT.replace("    ", "\t"), "\n# é 日本\n" * 3 + TEXT]
)
def test_line_ends_tabs_and_wide_characters_change_lines_at_most(text: str) -> None:
    shift = text.count("\n") - TEXT.count("\n")
    found = facts(text, NAMES)
    assert [(one.op, one.line - shift, one.function) for one in found.op_calls if one.called] == [
        ("b", 7, "one"),
        ("c", 17, "two"),
    ]
    assert {(one.qualname, one.line - shift) for one in found.functions} >= {("one", 6), ("D.run", 10), ("two", 16)}
