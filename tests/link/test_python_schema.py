"""Schemas inferred from annotations; where torch is installed, against its own inference."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.python_trees import Tree

HEAD = textwrap.dedent(
    """
    import typing
    import torch
    from collections.abc import Sequence
    from torch import Tensor, device, dtype
    from torch.types import Number
    from typing import List, Optional, Tuple, Union
    SCALE = 0.5
    lib = torch.library.Library("a", "DEF")
    """
)


def inferred(signature: str, mutates: str = "()") -> str | None:
    """The schema of ``def f<signature>: ...`` without its name, None where there is none."""
    text = f"{HEAD}def f{signature}: ...\nlib.define('f' + torch.library.infer_schema(f, mutates_args={mutates}))\n"
    schema = Tree({"m.py": text}).op("a::f").schema
    return schema.removeprefix("f") if schema is not None else None


@pytest.mark.parametrize(
    ("signature", "mutates", "schema"),
    [
        ("(x: torch.Tensor, n: int) -> torch.Tensor", "()", "(Tensor x, SymInt n) -> Tensor"),
        ("(x: Tensor) -> Tensor", "{}", "(Tensor x) -> Tensor"),
        ("(x: Tensor) -> None", "{'x': 1}", "(Tensor(a0!) x) -> ()"),
        ("(x: Tensor | None, y: Optional[Tensor] = None) -> None", "()", "(Tensor? x, Tensor? y=None) -> ()"),
        (
            "(n: int, x: Tensor, y: List[Tensor]) -> None",
            "['x', 'y']",
            "(SymInt n, Tensor(a1!) x, Tensor(a2!)[] y) -> ()",
        ),
        ("(x: Tensor, y: Optional[Tensor]) -> None", "'unknown'", "(Tensor(a0!) x, Tensor(a1!)? y) -> ()"),
        ("(x: list[int], y: Sequence[float] | None = None) -> int", "()", "(SymInt[] x, float[]? y=None) -> SymInt"),
        (
            "(*, d: torch.dtype = torch.float) -> Tuple[Tensor, int]",
            "()",
            "(*, ScalarType d=float32) -> (Tensor, SymInt)",
        ),
        ("(d: torch.device, n: Number = 1e-5) -> tuple[Tensor]", "()", "(Device d, Scalar n=1e-05) -> ((Tensor))"),
        (
            "(s: str = 'auto', b: bool = True, f: float = -1) -> bool",
            "()",
            '(str s="auto", bool b=True, float f=-1) -> bool',
        ),
        ("(x: 'torch.Tensor', s: float = SCALE) -> 'list[Tensor]'", "()", "(Tensor x, float s=0.5) -> Tensor[]"),
        ("(n: Union[int, float, bool]) -> Union[bool, float, int]", "()", "(Scalar n) -> Scalar"),
    ],
)
def test_schemas(signature: str, mutates: str, schema: str) -> None:
    assert inferred(signature, mutates) == schema


@pytest.mark.parametrize(
    ("signature", "mutates"),
    [
        ("(x) -> None", "()"),
        ("(x: Tensor)", "()"),
        ("(x: Tensor, /) -> None", "()"),
        ("(*x: Tensor) -> None", "()"),
        ("(**x: Tensor) -> None", "()"),
        ("(x: tuple[int, int]) -> None", "()"),
        ("(x: list[str]) -> None", "()"),
        ("(x: object) -> None", "()"),
        ("(x: Tensor) -> Optional[Tensor]", "()"),
        ("(x: Tensor) -> str", "()"),
        ("(x: int) -> None", "['x']"),
        ("(x: Tensor) -> None", "['y']"),
        ("(x: int = now()) -> None", "()"),
    ],
)
def test_refusals(signature: str, mutates: str) -> None:
    assert inferred(signature, mutates) is None


LEAVES = st.sampled_from(["Tensor", "torch.Tensor", "int", "float", "bool", "str", "dtype", "torch.device", "Number"])
TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map("Optional[{}]".format),
        inner.map("{} | None".format),
        inner.map("List[{}]".format),
        inner.map("list[{}]".format),
        inner.map("Sequence[{}]".format),
        inner.map("Union[{}, None]".format),
    ),
    max_leaves=2,
)
DEFAULTS = st.sampled_from(["None", "1", "-2.5", "1e-7", "True", "'x'", "torch.half", "torch.int64", "1_000", "SCALE"])
RETURNS = st.sampled_from(["None", "Tensor", "list[Tensor]", "tuple[Tensor, int]", "bool", "str", "Optional[Tensor]"])


@st.composite
def signatures(draw: st.DrawFn) -> tuple[str, str]:
    """A signature, and the list of mutated arguments."""
    parts, mutated, star = [], [], draw(st.booleans())
    for at in range(draw(st.integers(0, 3))):
        if star and at == 1:
            parts.append("*")
        parts.append(f"p{at}: {draw(TYPES)}" + (f" = {draw(DEFAULTS)}" if star and at else ""))
        if draw(st.integers(0, 3)) == 0:
            mutated.append(f"p{at}")
    return f"({', '.join(parts)}) -> {draw(RETURNS)}", repr(mutated) if draw(st.integers(0, 9)) else "'unknown'"


@settings(max_examples=150, deadline=None)
@given(signatures())
def test_as_torch_infers_them(case: tuple[str, str]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: its inference cannot be asked")
    signature, mutates = case
    names: dict[str, Any] = {}
    exec(HEAD.replace('lib = torch.library.Library("a", "DEF")', "") + f"def f{signature}: ...\n", names)
    try:
        theirs = torch.library.infer_schema(names["f"], mutates_args=eval(mutates))
    except ValueError:
        theirs = None
    assert inferred(signature, mutates) == theirs


@pytest.mark.parametrize("seed", ["5", "6", "7", "8"])
def test_a_default_is_found_in_any_order_of_names(seed: str) -> None:
    """The order in which names of a set come must not decide which of them are read."""
    code = (
        "from tests.link.test_python_schema import inferred\n"
        "print(inferred(\"(x: 'torch.Tensor', s: float = SCALE) -> 'list[Tensor]'\"))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True)
    assert ran.stdout.strip() == "(Tensor x, float s=0.5) -> Tensor[]", ran.stderr
