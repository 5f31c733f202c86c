"""A walk's reference kernel: by the names in a contract, or by its own name and the same arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from opwalker import pipeline, resources
from opwalker.model.ops import Op
from opwalker.model.verify import TOO_LATE, Device, VerifyReport, VerifyResult, WrongVariant
from opwalker.notation.op_schema import arguments_of, parse_schema
from opwalker.views.confirmed import confirmations, note_confirmed
from opwalker.views.notes.note import note_of
from opwalker.views.reference import reference_kernel
from tests.views.notes_text import section

KERNEL = 'OPS(kit_ref, ops) {\n  ops.def(\n      "scale(Tensor! x, float by, "\n      "int times=1) -> ()");\n}\n'
CONTRACT = '"""Scaled."""\n\nNAMES = ("_C::scale", "other_kit::scale_all")\nCASES = ("_C::fold",)\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale.cu").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "scale.py").write_text(CONTRACT, encoding="utf-8")
    (tmp_path / "shared.py").write_text("A = 1\n", encoding="utf-8")
    (tmp_path / "fold.cu").write_text("// no contract\n", encoding="utf-8")
    return tmp_path


def op(name: str, schema: str) -> Op:
    return Op(name, "torch_library", schema, arguments=arguments_of(parse_schema(schema)))


@pytest.mark.parametrize(
    ("name", "schema", "wanted"),
    [
        ("_C::scale", "scale(Tensor! x, float by) -> ()", "scale"),
        ("other_kit::scale_all", "scale_all(Tensor y, Tensor! x) -> ()", "scale"),
        ("opwalker_ref::scale", "scale(Tensor! x) -> ()", "scale"),
        ("opwalker_ref::gone", "gone(Tensor! x) -> ()", None),
        ("fork::scale", "scale(Tensor(a!) x, float by, int times=1) -> ()", "scale"),
        ("fork::scale", "scale(Tensor! x, float by) -> ()", "scale"),
        ("fork::scale", "scale(Tensor! x) -> ()", None),  # `by` has no default
        ("fork::scale", "scale(Tensor! y, float by) -> ()", None),
        ("fork::scale", "scale(Tensor! x, int by) -> ()", None),
        ("_C::fold", "fold(Tensor x) -> Tensor", None),
    ],
)
def test_matches(folder: Path, name: str, schema: str, wanted: str | None) -> None:
    assert reference_kernel(folder, op(name, schema)) == wanted


def test_a_walk_names_it_and_a_note_claims_no_more_than_it_keeps() -> None:
    folder = resources.folder("reference_kernels")
    found = pipeline.walk(pipeline.Options(source=str(folder)), "rms_norm")
    assert found.reference_kernel == "rms_norm"
    # What layouts and types it takes is its own: it may ask for a contiguous tensor where a library takes strides.
    (said,) = section(note_of(found, "cuda"), "confirmed")
    assert said == (
        "opwalker's own kernel for such an op is `rms_norm`: `opwalker verify rms_norm` builds and runs it, "
        "and with `--library` a library's op under the same contract."
    )


GPU = Device("A GPU", "gpu", "9.0", "torch 2.11")


def report(verdict: str, refuted: bool | None = True, device: Device | None = GPU) -> VerifyReport:
    results = (VerifyResult("scale", "one", "confirmed"), VerifyResult("scale", "two", verdict))
    return VerifyReport(device=device, results=results, wrong_variants=(WrongVariant("scale", "W", "w", refuted),))


def test_what_held_is_noted_until_the_text_changes(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert confirmations(folder, cache, "scale") == ()
    note_confirmed(folder, cache, report("not_run"))
    note_confirmed(folder, cache, report("confirmed", device=Device("host CPU", "cpu-emulation")))
    first, second = confirmations(folder, cache, "scale")
    assert (first.device, first.cases, first.wrong_refuted) == (GPU, 1, 1)
    assert (second.device.kind, second.cases) == ("cpu-emulation", 2)
    (folder / "shared.py").write_text("A = 2\n", encoding="utf-8")
    assert confirmations(folder, cache, "scale") == ()


@pytest.mark.parametrize(("verdict", "refuted"), [("refuted", True), ("confirmed", False)])
def test_what_did_not_hold_is_forgotten(folder: Path, tmp_path: Path, verdict: str, refuted: bool) -> None:
    cache = tmp_path / "cache"
    note_confirmed(folder, cache, report("confirmed"))
    note_confirmed(folder, cache, report(verdict, refuted))
    assert confirmations(folder, cache, "scale") == ()


def test_a_run_that_was_cut_short_confirms_nothing(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    whole = report("confirmed")
    late = VerifyResult("scale", "three", "not_run", (TOO_LATE,))
    note_confirmed(folder, cache, replace(whole, results=(*whole.results, late)))
    assert confirmations(folder, cache, "scale") == ()


def test_a_broken_record_is_none(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "confirmed.json").write_text("[1]", encoding="utf-8")
    assert confirmations(folder, tmp_path, "scale") == ()
