"""Kernels of a source beside those of a library: what counts as the same instance."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from opwalker.model.binary import BuiltKernel, LibraryFacts
from opwalker.model.reach import HASHED, VERSIONED
from opwalker.model.walk import KernelEntry
from opwalker.views.audit.kernels import audit_kernels

SIDE = SimpleNamespace(
    build="cuda",
    builds_of=lambda path: (),
    may_hold=lambda files, libraries: libraries,
    generated=lambda library: (),
)
UNIT = "_INTERNAL_0a1b2c3d_7_rows_cu_4e5f6a7b"


@pytest.mark.parametrize(
    ("built", "predicted", "why", "verdict"),
    [
        (f"float, &{UNIT}::twice", "float, &twice", f"`&twice` {HASHED}", "equal"),
        (f"float, &{UNIT}::twice", "float, &thrice", f"`&thrice` {HASHED}", "different"),
        ("(cub::CUB_200302_700_800_NS::Order)2", "(cub::Order)2", f"`cub::Order` {VERSIONED}", "equal"),
        ("(cub::CUB_300001_SM_900::Order)2", "(cub::Order)2", f"`cub::Order` {VERSIONED}", "equal"),
        ("float, &ns::twice", "float, &ns::twice", None, "equal"),
        ("float, 4", "float, 4", "`N` is not known", "incomplete"),
    ],
)
def test_what_a_build_alone_names_is_left_out_of_the_comparison(
    built: str, predicted: str, why: str | None, verdict: str
) -> None:
    library = LibraryFacts(
        path="rows.so", size=1, machine="x86_64", stripped=False, kernels=(BuiltKernel("_Z4rows", "rows", built),)
    )
    entry = KernelEntry("rows", "rows.cu", 1, ("mini::rows",), (predicted,), why is None, why)
    (audit,), _ = audit_kernels(SIDE, [entry], [library])
    assert audit.verdict == verdict


@pytest.mark.parametrize(
    ("built", "ops", "verdict"),
    [
        (("float, 4", "float, 8"), (), "equal"),
        # What is built besides may be the other definition's.
        (("float, 4", "float, 8", "float, 9"), (), "incomplete"),
        # An op that launches it may compile more of it.
        (("float, 4", "float, 8"), ("mini::columns",), "incomplete"),
    ],
)
def test_another_definition_of_the_name_that_nothing_launches(
    built: tuple[str, ...], ops: tuple[str, ...], verdict: str
) -> None:
    kernels = tuple(BuiltKernel(f"_Z4rows{n}", "rows", text) for n, text in enumerate(built))
    library = LibraryFacts(path="rows.so", size=1, machine="x86_64", stripped=False, kernels=kernels)
    entries = [
        KernelEntry("rows", "rows.cu", 1, ("mini::rows",), ("float, 4", "float, 8"), True, None),
        KernelEntry("rows", "rows.cu", 9, ops, (), False, "no op of the source launches it"),
    ]
    (audit,), _ = audit_kernels(SIDE, entries, [library])
    assert audit.verdict == verdict
