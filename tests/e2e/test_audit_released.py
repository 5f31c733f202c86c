"""Released wheels beside the sources that were released with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.errors import EnvironmentMissing
from opwalker.model.audit import AuditResult
from opwalker.source.cache import cache_root
from tests.conftest import CACHE_VARIABLE
from tests.not_run import NotRun


@pytest.fixture(scope="module")
def audit(released: Callable[[str, str], Path]) -> Callable[[str, str], AuditResult]:
    """``audit("xgrammar", "0.2.9")``: its wheel beside its sources."""
    cache = Path(os.environ[CACHE_VARIABLE]) if os.environ.get(CACHE_VARIABLE) else cache_root()

    def run(name: str, version: str) -> AuditResult:
        released(name, version)
        try:
            return pipeline.audit(pipeline.Options(cache=cache), [f"{name}=={version}"])
        except EnvironmentMissing as error:
            raise NotRun(f"the wheel of {name}=={version} cannot be fetched: {error.message}") from error

    return run


def test_a_wheel_with_device_code(audit: Callable[[str, str], AuditResult]) -> None:
    result = audit("xformers", "0.0.35")
    (library,) = result.libraries
    assert library.path == "xformers/_C.so"
    assert {code.arch for code in library.device_code if code.form == "elf"} == {"7.5", "8.0", "9.0a"}
    assert [code.kernels for code in library.device_code if code.form == "elf"] == [50, 50, 50]
    assert result.counts.ops_both == 14
    assert result.counts.kernels_both == 6
    assert result.counts.kernels_different == 0
    assert result.counts.unexplained == 0
    assert {one.origin.name for one in result.foreign if one.origin} == {"CUTLASS"}


def test_a_wheel_of_a_tvm_ffi_library(audit: Callable[[str, str], AuditResult]) -> None:
    result = audit("xgrammar", "0.2.9")
    assert [(library.path, library.device_code) for library in result.libraries] == [
        ("xgrammar/libxgrammar_bindings.so", ())
    ]
    assert result.counts.ops_both == 85
    assert result.counts.unexplained == 0
