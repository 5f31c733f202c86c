"""The project's own kernels pass its own check with every rule on."""

from __future__ import annotations

from pathlib import Path

from opwalker import pipeline, resources
from opwalker.model.check import CheckOptions


def test_the_reference_kernels_pass_every_rule(tmp_path: Path) -> None:
    options = pipeline.Options(source=str(resources.folder("reference_kernels")), cache=tmp_path)
    result, _ = pipeline.check(options, CheckOptions(select=("ALL",)))
    assert len(result.rules) > 55
    assert [f"{one.file}:{one.line} {one.rule}" for one in result.findings] == []
    assert "settings" not in result.hidden, "a finding is put aside by the settings"
