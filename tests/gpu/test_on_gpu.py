"""The reference kernels on a GPU: contracts, wrong variants, torch's own checks, what the profiler saw; ranks together.

Not run without a device, and said so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opwalker import pipeline, resources
from opwalker.model.verify import VerifyReport
from opwalker.views.verify.contract import ops_in
from opwalker.views.verify.plan import Plan
from tests.not_run import NoDevice

ROOT = Path(__file__).resolve().parents[2]
OPS = ops_in(resources.folder("reference_kernels"))


def devices() -> int:
    """How many GPUs torch sees."""
    try:
        import torch
    except ImportError as error:
        raise NoDevice("torch is not installed") from error
    return torch.cuda.device_count()


@pytest.fixture(scope="session")
def report() -> VerifyReport:
    """Everything that `opwalker verify` runs on this machine's GPU."""
    if devices() == 0:
        raise NoDevice("torch sees no CUDA device")
    return pipeline.verify(pipeline.Options(), Plan(seed=int.from_bytes(os.urandom(3), "little"), jobs=8))


@pytest.mark.parametrize("op", OPS)
def test_the_contract_holds(report: VerifyReport, op: str) -> None:
    mine = [one for one in report.results if one.op == op]
    assert [f"{one.case} (seed {one.seed}): {one.reasons}" for one in mine if one.verdict == "refuted"] == []
    # One device is too few for the ranks of a collective op, and torch cannot make each of its checks with fp8.
    left = [one for one in mine if one.verdict == "not_run" and not one.case.endswith(", in part")]
    assert (op == "all_reduce" and devices() < 2) or [one.reasons for one in left] == []


@pytest.mark.parametrize("op", OPS)
def test_every_wrong_variant_is_refuted(report: VerifyReport, op: str) -> None:
    mine = [one for one in report.wrong_variants if one.op == op]
    assert [(one.variant, one.reason) for one in mine if one.refuted is False] == []


def test_ranks_of_several_processes() -> None:
    if devices() < 2:
        raise NoDevice(f"two GPUs are needed, and there are {devices()}")
    command = [sys.executable, "-m", "tests.gpu.all_reduce", "--rounds", "2000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert " 0 elements wrong" in done.stdout
