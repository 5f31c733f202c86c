"""What becomes of a case: an op that refuses, a device that faults, a machine that lacks something, a mistake here."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from opwalker import resources
from opwalker.model.verify import TOO_LATE, Device, VerifyReport, VerifyResult, WrongVariant
from opwalker.serve.render.page import lay_out
from opwalker.serve.render.verify import verify_page
from opwalker.serve.render.words import Reading
from opwalker.views.verify import build, run
from opwalker.views.verify.calling import Called, CallFailed, DeviceFault, NotHere, Parameter
from opwalker.views.verify.contract import Contract, load
from opwalker.views.verify.plan import Plan
from opwalker.views.verify.trial import Outcome, Subject, Trial, answered
from opwalker.views.verify.workers import outcomes
from tests.views.verify.doubled import CONTRACT


class Op:
    """Doubles its argument in place, or does what it is told to."""

    parameters = (Parameter("x", "Tensor", True), Parameter("times", "int", True))

    def __init__(self, failure: Exception | None, times: float = 2.0) -> None:
        self._failure = failure
        self._times = times

    def __call__(self, arguments: dict, seed: int) -> Called:
        if self._failure is not None:
            raise self._failure
        values = arguments["x"].view.view(np.float32)
        values *= np.float32(self._times)
        return Called((), ("k",))


@pytest.fixture
def contract(tmp_path: Path) -> Contract:
    (tmp_path / "double.py").write_text(CONTRACT, encoding="utf-8")
    return load(tmp_path, "double")


def outcome(contract: Contract, op: Op) -> Outcome:
    return answered(contract, op, Trial(0, "float32", 7))


def test_a_number_that_a_schema_marks_as_mutated_is_no_result(contract: Contract) -> None:
    found = outcome(contract, Op(None))
    assert (found.reasons, found.refused, found.kernels, found.max_error) == ((), None, ("k",), 0.0)


def test_what_a_library_is_free_in_is_taken_from_what_it_gave(contract: Contract) -> None:
    def allowed(expected: dict, observed: dict, **_: object) -> dict:
        return {"x": np.where(observed["x"] == expected["x"] * 2, observed["x"], expected["x"])}

    free = replace(contract, allowed=allowed)
    assert outcome(free, Op(None, 4.0)).reasons == ()
    assert outcome(free, Op(None, 3.0)).reasons != ()


def test_tokens_of_an_expert_may_come_in_any_order_from_a_library_and_from_no_other_expert() -> None:
    contract = load(Path(str(resources.folder("reference_kernels"))), "moe_align_block_size")
    right = {"sorted_token_ids": np.array([1, 3, 0, 2, 4, 9, 9, 9]), "experts_ids": np.array([0, 1, 1, -1])}
    assert contract.allowed is not None

    def taken(*given: int) -> list[int]:
        observed = {"sorted_token_ids": np.array(given)}
        return contract.allowed(right, observed, block_size=2)["sorted_token_ids"].tolist()

    assert taken(3, 1, 4, 9, 2, 0, 9, 9) == [3, 1, 4, 9, 2, 0, 9, 9]
    assert taken(0, 3, 1, 2, 4, 9, 9, 9) == [1, 3, 0, 2, 4, 9, 9, 9]


def test_wrong_values_are_told_with_their_place(contract: Contract) -> None:
    (reason,) = outcome(contract, Op(None, 3.0)).reasons
    assert reason.startswith("x[0]: ")
    assert "5 of 5 differ" in reason


@pytest.mark.parametrize(
    ("failure", "reasons", "refused", "not_run", "ends"),
    [
        (CallFailed("n is odd"), (), "n is odd", None, False),
        (DeviceFault("misaligned address"), ("the device reports: misaligned address",), None, None, True),
        (NotHere("it needs 2 GPUs"), (), None, "it needs 2 GPUs", False),
        (KeyError("y"), ("the check itself failed: KeyError: 'y'",), None, None, False),
    ],
)
def test_a_call_that_fails(
    contract: Contract, failure: Exception, reasons: tuple, refused: str | None, not_run: str | None, ends: bool
) -> None:
    found = outcome(contract, Op(failure))
    assert (found.reasons, found.refused, found.not_run, found.ends) == (reasons, refused, not_run, ends)


def test_ranks_that_shared_a_device_are_remarked_on(tmp_path: Path) -> None:
    class Ranks(Op):
        def expect(self, ranks: int) -> str | None:
            return f"{ranks} ranks shared 1 GPU"

        def __call__(self, rounds: list, seed: int) -> list:
            return [[Op.__call__(self, of_rank, seed) for of_rank in each] for each in rounds]

    of_all = CONTRACT.replace("def inputs(", "def of_one(").replace("def golden(", "def golden_of_one(")
    of_all += (
        "COLLECTIVE = True\n"
        "def inputs(draw, dtype, n):\n    return [[of_one(draw, dtype, n) for _ in range(2)]]\n"
        "def golden(ranks):\n    return [golden_of_one(one['x'], 2) for one in ranks]\n"
    )
    (tmp_path / "double.py").write_text(of_all, encoding="utf-8")
    found = outcome(load(tmp_path, "double"), Ranks(None))
    assert (found.reasons, found.remark) == ((), "2 ranks shared 1 GPU")
    result = VerifyResult("double", "ones", "confirmed", remark=found.remark)
    page = verify_page(VerifyReport(device=Device("a GPU", "gpu"), results=(result,)), Reading())
    written = "".join(text for line in lay_out(page, 120) for text, _ in line)
    assert "2 ranks shared 1 GPU" in written


def test_what_comes_too_late_is_not_run(tmp_path: Path) -> None:
    """No process is started for it, and nothing is confirmed."""
    subject = Subject(str(tmp_path), "none", (), ())
    late = list(outcomes((subject,), [Trial(0, "float32", 1), Trial(1, "float32", 2)], 60, time.monotonic() - 1))
    assert [one.not_run for one in late] == [TOO_LATE, TOO_LATE]


def test_the_deadline_of_a_contract_is_that_of_its_wrong_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel as it is has the time of the plan: a machine may be slow."""
    contract = CONTRACT.replace("WRONG = {}", 'WRONG = {"TRIPLED": "it triples"}\nDEADLINE = 15.0')
    (tmp_path / "double.py").write_text(contract, encoding="utf-8")
    (tmp_path / "double_threads.cpp").touch()
    asked: list[tuple[str, float]] = []

    def outcomes(subjects, trials, deadline, until):
        asked.append((subjects[0].libraries[0], deadline))
        return iter([Outcome() for _ in trials])

    def watched(program: Path, deadline: float) -> Outcome:
        asked.append((str(program), deadline))
        return Outcome()

    monkeypatch.setattr(run, "outcomes", outcomes)
    monkeypatch.setattr(run.threads, "watched", watched)
    monkeypatch.setattr(
        build, "build", lambda folder, wanted, *_: [build.Built(one, Path(one.label)) for one in wanted]
    )
    report = run.Verification(tmp_path, tmp_path, Plan("cpu", ("double",), deadline=60.0), lambda *_: None).run({})
    assert report.wrong_variants == (WrongVariant("double", "TRIPLED", "it triples", False),)
    assert asked == [
        ("double", 60.0),
        ("double-threads", 60.0),
        ("double-TRIPLED-threads", 15.0),
        ("double-TRIPLED", 15.0),
    ]
