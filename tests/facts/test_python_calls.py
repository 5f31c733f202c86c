"""Ops called, handed on and bound to names, as one file shows them."""

from __future__ import annotations

import textwrap

import pytest

from tests.python_trees import facts


def uses(text: str) -> list[tuple[str, int, str | None, bool]]:
    """``(ns::op.overload, line, function, called)`` of every use."""
    found = facts(textwrap.dedent(text)).op_calls
    return [
        (
            f"{one.namespace}::{one.op}" + (f".{one.overload}" if one.overload else ""),
            one.line,
            one.function,
            one.called,
        )
        for one in found
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.ops.a.b(x)\n", [("a::b", 1, None, True)]),
        ("def f(x):\n    return torch.ops.a.b.default(\n        x)\n", [("a::b.default", 2, "f", True)]),
        ("class C:\n    def m(self):\n        torch.ops.a.b()\n", [("a::b", 3, "C.m", True)]),
        ("def f():\n    def g():\n        return lambda: torch.ops.a.b()\n", [("a::b", 3, "f.g", True)]),
        ("ops = torch.ops.a\ndef f():\n    ops.b()\n", [("a::b", 3, "f", True)]),
        (
            "def f():\n    op = torch.ops.a.b.out\n    op(1)\n",
            [("a::b.out", 2, "f", False), ("a::b.out", 3, "f", True)],
        ),
        ("from torch import ops as o\no.a.b()\n", [("a::b", 2, None, True)]),
        ("import torch.ops as tops\ntops.a.b()\n", [("a::b", 2, None, True)]),
        ("import torch as t\nt.ops.a.b()\n", [("a::b", 2, None, True)]),
        ("from torch.ops import a as x\nx.b()\n", [("a::b", 2, None, True)]),
        ("getattr(torch.ops.a, 'b')(1)\n", [("a::b", 1, None, True)]),
        ("x = getattr(torch.ops, 'a').b\nx()\n", [("a::b", 1, None, False), ("a::b", 2, None, True)]),
        (
            "f(torch.ops.a.b, [torch.ops.a.c], k=torch.ops.a.d)\n",
            [("a::b", 1, None, False), ("a::c", 1, None, False), ("a::d", 1, None, False)],
        ),
        ("def f():\n    return r, *torch.ops.a.b(1)\n", [("a::b", 2, "f", True)]),
        ("if torch.ops.a.b(x):\n    pass\n", [("a::b", 1, None, True)]),
        ("x = f'{torch.ops.a.b(1)}'\n", [("a::b", 1, None, True)]),
        ("def f(x=torch.ops.a.b()):\n    pass\n", [("a::b", 1, None, True)]),
        ("@register(torch.ops.a.b)\ndef f(): pass\n", [("a::b", 1, None, False)]),
        ("print 'x'\ndef f():\n    torch.ops.a.b()\n", [("a::b", 3, "f", True)]),
        ("type X = int\ndef f[T](x: T) -> T:\n    return torch.ops.a.b(f'{x['k']}')\n", [("a::b", 3, "f", True)]),
    ],
)
def test_uses(text: str, expected: list[tuple[str, int, str | None, bool]]) -> None:
    assert uses(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "if hasattr(torch.ops.a, 'b') and hasattr(torch.ops.a.b, 'default'):\n    pass\n",
        "torch.ops.load_library('x.so')\n",
        "torch.ops.a.b\n",
        "assert torch.ops.a.b\n",
        "if node.target == torch.ops.a.b.default:\n    pass\n",
        "x = 'torch.ops.a.b()'  # torch.ops.a.b()\n",
        '"""\ntorch.ops.a.b()\n"""\n',
        "torch.ops.a.b.default._schema.arguments\n",
        "torch.ops.a.b.overloads()\n",
        "patch.object(torch.ops.a, 'b')\n",
        "my.torch.ops.a.b()\n",
        "torch.opsy.a.b()\n",
        "op = torch.ops.a.b\ndef f(op):\n    op()\n",
        "def f():\n    op = torch.ops.a.b\ndef g():\n    op()\n",
    ],
)
def test_what_is_no_call(text: str) -> None:
    assert [one for one in uses(text) if one[3]] == []


def test_a_name_that_two_branches_bind_is_a_call_of_both() -> None:
    text = """
    def f(x):
        if x:
            op = torch.ops.a.b
        else:
            op = torch.ops.a.c
        return op(x)
    """
    assert sorted(one[0] for one in uses(text) if one[3]) == ["a::b", "a::c"]


def test_attributes_of_self_and_of_the_class() -> None:
    text = """
    class C:
        OP = torch.ops.a.b
        def __init__(self):
            self.other = torch.ops.a.c
        def m(self):
            self.other(1)
            self.OP(2)
            C.OP(3)
    class D:
        def m(self):
            self.other(1)
    """
    called = [one for one in uses(text) if one[3]]
    assert ("a::c", 7, "C.m", True) in called
    assert not [one for one in called if one[2] == "D.m"]


def test_calls_of_wrappers_in_the_same_file() -> None:
    text = """
    import torch
    def wrapper(x):
        return torch.ops.a.b(x)
    class C:
        def run(self, x):
            return wrapper(x)
        def forward(self, x):
            return self.run(x)
    def shadow(wrapper):
        return wrapper(1)
    def local():
        wrapper = 1
        wrapper(2)
    """
    found = facts(textwrap.dedent(text))
    assert [(one.callee, one.line, one.function) for one in found.calls] == [
        ("wrapper", 7, "C.run"),
        ("self.run", 9, "C.forward"),
    ]
    assert [(one.qualname, one.method_of) for one in found.functions] == [
        ("wrapper", None),
        ("C.run", "C"),
        ("C.forward", "C"),
    ]


def test_watched_names() -> None:
    text = """
    from pkg import ops, f, C
    def one():
        ops.reshape(1)
        f(2)
        C.run(3)
        C.other(4)
    def two():
        ops.reshape
        return f
    """
    found = facts(textwrap.dedent(text), ["call:ops.*", "call:f", "call:C.run"])
    assert [(one.callee, one.function) for one in found.calls] == [
        ("ops.reshape", "one"),
        ("f", "one"),
        ("C.run", "one"),
    ]
    assert {one.alias for one in found.imports} == {"ops", "f", "C"}
    assert found.watched == ("call:C.run", "call:f", "call:ops.*")
    assert facts(textwrap.dedent(text)).calls == ()
