"""What could not run here is named, and is a failure where everything must run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEST = """
import pytest
from tests.not_run import NoDevice, NotRun

@pytest.fixture
def device():
    raise WHAT("no GPU here")

def test_that_needs_it(device):
    assert device

def test_that_needs_nothing():
    pass
"""


@pytest.mark.parametrize(
    ("what", "ci", "code", "closing"),
    [
        ("NotRun", "", 0, "1 passed, 1 skipped in"),
        ("NotRun", "true", 1, "1 passed, 1 error in"),
        ("NoDevice", "true", 0, "1 passed, 1 skipped in"),
    ],
)
def test_not_run_is_said_by_name(tmp_path: Path, what: str, ci: str, code: int, closing: str) -> None:
    (tmp_path / "test_it.py").write_text(TEST.replace("WHAT", what))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | ({"CI": ci} if ci else {})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.not_run", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "= not run =" in done.stdout
    assert "test_it.py::test_that_needs_it: no GPU here" in done.stdout
    assert closing in done.stdout.splitlines()[-1]


def test_a_library_is_written_as_it_stands(library) -> None:
    root = library({"csrc/a.cu": "int a;\r\n", "op.py": "é\n"})
    assert (root / "csrc" / "a.cu").read_bytes() == b"int a;\r\n"
    assert (root / "op.py").read_text(encoding="utf-8") == "é\n"
