"""Fixtures of the source stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opwalker.source import fetch
from tests.source.loopback import Index, serving


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, named by the environment."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("OPWALKER_CACHE", str(folder))
    return folder


@pytest.fixture
def no_pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No index named by this machine."""
    for name in ("OPWALKER_INDEX_URL", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


@pytest.fixture
def index(no_pip_settings: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """A package index on the loopback address, named by the environment; retries wait for no time."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "FIRST_PAUSE_SECONDS", 0.0)
    with serving() as served:
        monkeypatch.setenv("OPWALKER_INDEX_URL", served.url)
        yield served
