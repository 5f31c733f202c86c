"""The schema reader against PyTorch's own: run where torch is installed, reported as not run elsewhere."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from opwalker.model.schema import OpSchema
from opwalker.notation.op_schema import SchemaError, arguments_of, parse_schema, print_schema
from tests.notation.schema_samples import equal_to_dispatcher, schemas

torch = pytest.importorskip("torch", reason="torch is not installed: its schema reader cannot be asked")


#: Where the two differ on purpose, and where torch's reader has a fault of its own.
_EXCUSED = re.compile(
    r"Unknown custom class"  # a class that this process has not registered
    r"|[Dd]evice string|device type at start"  # the value of a string is not read here
    r"|std?o(?:ll|d)"  # numbers out of range, and `complex x=1`
    r"|union_type"  # unions of types of which one holds the other
)


def _theirs(text: str) -> tuple[Any, str]:
    """What torch reads, or None with the reason why it refuses."""
    try:
        return torch._C.parse_schema(text), ""
    except RuntimeError as error:
        return None, str(error)
    except (ValueError, IndexError) as error:
        return None, str(error)


def _ours(text: str) -> tuple[OpSchema | None, str]:
    try:
        return parse_schema(text), ""
    except SchemaError as error:
        return None, error.message


def _agree(text: str) -> bool:
    """Whether both accept or both refuse, apart from what is excused."""
    (ours, our_reason), (theirs, their_reason) = _ours(text), _theirs(text)
    if (ours is None) == (theirs is None):
        return True
    return bool(_EXCUSED.search(their_reason)) or "unknown type" in our_reason


def _real_schemas() -> list[str]:
    """Every schema that torch ships: those of its yaml and those that are registered."""
    folder = Path(torch.__file__).parent.parent / "torchgen" / "packaged" / "ATen" / "native"
    yaml = (folder / "native_functions.yaml").read_text(encoding="utf-8")
    texts = re.findall(r"^- func: (.*)$", yaml, re.MULTILINE)
    texts += [str(schema) for schema in torch._C._jit_get_all_schemas()]
    assert len(texts) > 5000
    return texts


def test_every_schema_of_torch_reads_the_same() -> None:
    compared = 0
    for text in _real_schemas():
        ours = parse_schema(text)
        theirs, reason = _theirs(text)
        if theirs is None:
            assert "Unknown custom class" in reason, text
            continue
        assert equal_to_dispatcher(print_schema(ours), str(theirs)), text
        for mine, argument in zip(arguments_of(ours), theirs.arguments, strict=True):
            assert (mine.name, mine.kwarg_only) == (argument.name, argument.kwarg_only), text
            assert (mine.default is not None) == argument.has_default_value(), text
            assert mine.mutated == (argument.alias_info is not None and argument.alias_info.is_write), text
        compared += 1
    assert compared > 5000


@given(schemas())
@settings(max_examples=300)
def test_generated_schemas_read_the_same(schema: OpSchema) -> None:
    text = print_schema(schema)
    theirs, reason = _theirs(text)
    if theirs is None:
        assert _EXCUSED.search(reason), (text, reason)
        return
    assert [a.name for a in theirs.arguments] == [a.name for a in schema.arguments]
    assert [a.kwarg_only for a in theirs.arguments] == [a.kwarg_only for a in schema.arguments]
    assert [a.has_default_value() for a in theirs.arguments] == [a.default is not None for a in schema.arguments]
    assert [r.name or None for r in theirs.returns] == [r.name for r in schema.returns]
    printed = str(theirs)
    assert ("...) -> " in printed, printed.endswith(("...", "...)"))) == (schema.vararg, schema.varret)


def test_damaged_schemas_are_refused_alike() -> None:
    """One or two tokens of a real schema taken out, put in or replaced: both readers say yes or both say no."""
    rng = random.Random(20240607)
    pool = [text for text in _real_schemas() if len(text) < 200]
    parts = [*"()[]!?,*=:| -'", "->", "...", "Tensor", "int", "1", "None", "=1", "(a!)", "(a -> *)", "[]", "[2]", "\n"]
    accepted = 0
    for _ in range(4000):
        text = rng.choice(pool)
        for _ in range(rng.choice((1, 1, 2))):
            spans = [match.span() for match in re.finditer(r"[\w.]+|->|\s+|.", text)]
            start, end = rng.choice(spans)
            text = text[:start] + rng.choice(("", rng.choice(parts), text[start:end] * 2)) + text[end:]
        assert _agree(text), (text, _ours(text), _theirs(text))
        accepted += _ours(text)[0] is not None
    assert accepted > 300


@pytest.mark.parametrize(
    "type_text",
    "Tensor int SymInt float bool str Scalar ScalarType Layout MemoryFormat Device Generator int[] int[2] float[] "
    "bool[] bool[3] str[] Tensor[] Tensor?[] SymInt[] SymInt[2] int? float? str? Tensor? ScalarType? Device? int[]? "
    "int[1]? Generator? Tensor[]? Any Stream Storage QScheme t Dict(str,int) (int,int) complex[] Quantizer".split(),
)
def test_defaults_are_accepted_alike(type_text: str) -> None:
    literals = (
        "None True False 1 -1 1.5 -1.5e-3 1e5 'a' [] [0,1] [0.5] [True] ['a'] 1j long Mean contiguous_format strided "
        "cpu inf -inf nan foo float32 bfloat16 (1,2) [None] {} 0x10 1_0 .5 5. +1 --1 [-1] [long] true nullptr [[1]] "
        "1L a.b '' [1,] 007"
    ).split()
    for literal in literals:
        text = f"f({type_text} x={literal}) -> ()"
        assert _agree(text), (text, _ours(text), _theirs(text))
