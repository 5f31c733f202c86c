"""Every reference kernel, emulated: small cases confirmed, wrong variants refuted, walked and predicted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from opwalker import pipeline, resources
from opwalker.errors import InputError
from opwalker.model.check import CheckOptions
from opwalker.model.verify import VerifyReport
from opwalker.serve.cli import main
from opwalker.views.verify.contract import load, ops_in
from opwalker.views.verify.plan import Plan

FOLDER = resources.folder("reference_kernels")
OPS = ops_in(FOLDER)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled kernels: the user's cache, where one is named, so that a second run of the tests is quick."""
    named = os.environ.get("OPWALKER_CACHE")
    return Path(named) if named else tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def report(cache: Path) -> VerifyReport:
    """Other data each time, but for a run that judges a change; no deadline that a loaded machine could miss."""
    seed = 0 if "CI" in os.environ else int.from_bytes(os.urandom(3), "little")
    plan = Plan(device="cpu", seed=seed, jobs=os.cpu_count() or 1, deadline=600.0)
    return pipeline.verify(pipeline.Options(cache=cache), plan)


@pytest.mark.parametrize("op", OPS)
def test_the_contract_holds(report: VerifyReport, op: str) -> None:
    mine = [one for one in report.results if one.op == op]
    assert [f"{one.case} (seed {one.seed}): {one.reasons}" for one in mine if one.verdict != "confirmed"] == []
    assert len(mine) >= 8
    assert any(one.kernels_launched for one in mine) or op == "swap_blocks"
    assert any(one.max_error is not None for one in mine)


@pytest.mark.parametrize("op", OPS)
def test_every_wrong_variant_is_refuted(report: VerifyReport, op: str) -> None:
    mine = [one for one in report.wrong_variants if one.op == op]
    assert [(one.variant, one.reason) for one in mine if not one.refuted] == []
    assert len(mine) >= 2


@pytest.mark.parametrize("op", OPS)
def test_every_tensor_is_documented_where_a_reader_looks(report: VerifyReport, op: str) -> None:
    shapes = next(one.documented_shapes for one in report.results if one.op == op)
    assert shapes
    assert [(one.argument, one.source) for one in shapes if not one.agrees] == []


@pytest.mark.parametrize("op", OPS)
def test_variants_of_the_contract_are_those_of_the_source(op: str) -> None:
    text = (FOLDER / f"{op}.cu").read_text(encoding="utf-8")
    text += "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("common/*") if path.name in text)
    assert [name for name in load(FOLDER, op).wrong if f"def OPWALKER_WRONG_{name}\n" not in text] == []


def test_the_programs_own_rules_pass() -> None:
    found, _ = pipeline.check(pipeline.Options(source=str(FOLDER)), CheckOptions(select=("ALL",)))
    assert [f"{one.file}:{one.line} {one.rule}: {one.message}" for one in found.findings] == []


def test_the_report_says_that_it_is_an_emulation(report: VerifyReport) -> None:
    assert report.device is not None
    assert report.device.kind == "cpu-emulation"
    assert not report.refuted


def test_an_op_without_a_kernel_is_said() -> None:
    with pytest.raises(InputError, match=r"no reference kernel for 'rms_nrom'; there are: .*rms_norm"):
        pipeline.verify(pipeline.Options(), Plan(device="cpu", ops=("rms_nrom",)))


def test_a_source_without_the_op_is_said(tmp_path: Path, cache: Path) -> None:
    """Otherwise its shapes would seem to agree."""
    source = tmp_path / "kit"
    source.mkdir()
    (source / "a.cpp").write_text("int a;\n")
    plan = Plan(device="cpu", ops=("moe_sum",), wrong=False, deadline=600.0)
    report = pipeline.verify(pipeline.Options(source=str(source), cache=cache), plan)
    assert report.notes == (f"not in {source}: moe_sum; the shapes told of these are their reference kernels' own",)
    assert not report.refuted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["moe_sum", "--deadline", "0"], "--deadline 0 leaves no time; write --deadline 1"),
        (["torch.ops._C.rms_nrom"], "no reference kernel for 'rms_nrom'"),
        (["moe_sum", "--limit", "-1"], "--limit '-1' is no whole number"),
    ],
)
def test_wrong_words(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *words, "--device", "cpu"]) in (2, 3)
    assert said in capfd.readouterr().err


def test_an_op_is_run_once_however_it_is_named(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    named = ["moe_sum", "_moe_C::moe_sum", "torch.ops._moe_C.moe_sum"]
    shared = ["--device", "cpu", "--no-wrong", "--deadline", "600", "--json", "--cache", str(cache)]
    assert main(["verify", *named, *shared]) == 0
    results = json.loads(capfd.readouterr().out)["results"]
    assert results
    assert len({one["case"] for one in results}) == len(results)
