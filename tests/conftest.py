"""Fixtures for every test: a throw-away library, and a released one that is fetched once and kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from opwalker.errors import EnvironmentMissing
from opwalker.source.cache import cache_root
from opwalker.source.opened import open_source
from tests.not_run import NotRun, pytest_runtest_makereport, pytest_terminal_summary

__all__ = ["pytest_runtest_makereport", "pytest_terminal_summary"]

# How long an example takes says something of the machine alone: a loaded one must not fail a test.
# Where nobody looks for new examples, the same code is tried with the same ones.
settings.register_profile(
    "no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("no clock")

CACHE_VARIABLE = "OPWALKER_TEST_CACHE"
_PAUSES = (2.0, 10.0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses ``released`` carries the mark ``network``."""
    for item in items:
        if "released" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.network)


@pytest.fixture
def library(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """``library({"csrc/a.cu": "…"})`` writes a tree of files (text as it stands) and returns its folder."""

    def write(files: Mapping[str, str]) -> Path:
        root = tmp_path / "library"
        for path, text in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="")
        return root

    return write


@pytest.fixture(scope="session")
def released() -> Callable[[str, str], Path]:
    """``released("vllm", "0.30.0")``: the folder of a released package's sources, fetched once.

    Kept in ``$OPWALKER_TEST_CACHE``, or in the user's cache. Tried again after a pause; raises ``NotRun`` where it
    stays out of reach, and does not try the network again for the rest of the session.
    """
    cache = Path(os.environ[CACHE_VARIABLE]) if os.environ.get(CACHE_VARIABLE) else cache_root()
    unreachable: list[str] = []

    def fetch(name: str, version: str) -> Path:
        for pause in (*_PAUSES, None):
            try:
                return Path(open_source(f"{name}=={version}", cache=cache).path)
            except EnvironmentMissing as error:
                if pause is None or unreachable:
                    unreachable.append(str(error))
                    raise NotRun(f"{name}=={version} cannot be fetched: {error.message}") from error
            time.sleep(pause)
        raise AssertionError("the last try neither returned nor raised")

    return fetch
