"""The doors with a pipeline behind them that knows only the samples."""

from __future__ import annotations

import sys

import pytest

import opwalker
from opwalker.serve.cli import main
from tests.serve.fake_pipeline import FakePipeline


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> FakePipeline:
    """The stand-in for the pipeline, in place for one test."""
    fake = FakePipeline()
    monkeypatch.setitem(sys.modules, "opwalker.pipeline", fake)
    monkeypatch.setattr(opwalker, "pipeline", fake, raising=False)
    return fake


@pytest.fixture
def run(flow: FakePipeline, capsysbinary: pytest.CaptureFixture[bytes]):
    """``run("walk", "x")``: exit code, stdout and stderr of one command."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        captured = capsysbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return call
