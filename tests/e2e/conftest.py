"""Asking opwalker the way a user does, with one cache for the whole session."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from opwalker.serve.cli import main


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document on stdout; the command must have succeeded."""
        assert self.code == 0, self.err
        return json.loads(self.out)


Ask = Callable[..., Answer]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache folder that every end-to-end test shares."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def ask(cache: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Ask:
    """``ask("walk", "x", "--source", folder)``: one command, in this process."""

    def run(*words: str | Path) -> Answer:
        own = [] if "--cache" in words else ["--cache", str(cache)]
        code = main([*map(str, words), *own])
        captured = capsysbinary.readouterr()
        return Answer(code, captured.out.decode(), captured.err.decode())

    return run
