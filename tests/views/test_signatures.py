"""Schemas are parsed once, in whatever run; what is wrong with one is said every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.asking import Options
from opwalker.notation import op_schema
from opwalker.notation.op_schema import SchemaError
from opwalker.views.signatures import Signatures


def test_a_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Signatures()
    said = first.of("f(Tensor! x, int n=1) -> Tensor")
    assert [one.name for one in said[0]] == ["x", "n"]
    assert first.fresh
    monkeypatch.setattr(op_schema, "parse_schema", lambda text: pytest.fail("parsed again"))
    assert first.of("f(Tensor! x, int n=1) -> Tensor") == said
    later = Signatures(lambda: first.known)
    assert later.of("f(Tensor! x, int n=1) -> Tensor") == said
    assert not later.fresh


def test_a_bad_text_is_bad_again() -> None:
    signatures = Signatures()
    for _ in range(2):
        with pytest.raises(SchemaError):
            signatures.of("f(Tensor x")
    assert not signatures.fresh


def test_a_later_run_on_another_state_of_the_tree_parses_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "tree" / "a.cpp"
    source.parent.mkdir()
    text = 'void f(at::Tensor x);\nTORCH_LIBRARY(k, m) { m.def("f(Tensor x) -> ()", &f); }\n'
    source.write_text(text, encoding="utf-8")
    options = Options(source=str(source.parent), cache=tmp_path / "cache", jobs=1)
    before = pipeline.list_ops(options).ops
    parsed = []
    real = op_schema.parse_schema
    monkeypatch.setattr(op_schema, "parse_schema", lambda text: parsed.append(text) or real(text))
    source.write_text("\n" + text.replace("}", 'm.def("g(Tensor x) -> Tensor"); }'), encoding="utf-8")
    after = pipeline.list_ops(options).ops
    assert parsed == ["g(Tensor x) -> Tensor"]
    assert after[0].arguments == before[0].arguments
    assert [op.name for op in after] == ["k::f", "k::g"]
