"""Shapes of reference kernels' contracts where a contract cannot be read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from opwalker import resources
from opwalker.views.check.shapes import OpShapes


@pytest.mark.parametrize(
    ("missing", "said"),
    [("numpy", "numpy is missing; pip install numpy"), ("kitlib", "No module named 'kitlib'")],
)
def test_why_contracts_were_not_read(missing: str, said: str) -> None:
    def fails(*words: object) -> Any:
        raise ModuleNotFoundError(f"No module named '{missing}'", name=missing)

    shapes = OpShapes(SimpleNamespace(), str, resources.folder("reference_kernels"), fails)
    assert shapes.contract(SimpleNamespace(name="_C::rms_norm")) is None
    assert shapes.missing == f"documented shapes were not compared with the reference kernels' contracts: {said}"
