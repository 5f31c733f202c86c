"""A walk, read once more by a compiler: units chosen, read (or remembered), compared, and reported.

In: a ``Walk``, the workbench that made it and the surroundings of its source. Out: the walk with ``clang`` filled.
Where clang is not installed: ``ClangMissing``, and the caller has the walk as it was.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from opwalker.expand.workbench import Workbench
from opwalker.facts import clang_library
from opwalker.facts.clang_workers import LIMITS, Limits, Progress, read_units
from opwalker.model.clang import (
    CONTRADICTED,
    NOT_CONFIRMED,
    PROVED,
    RULED_OUT,
    ClangReport,
    ClangUnit,
    UnitReport,
)
from opwalker.model.walk import Walk
from opwalker.views.clang_units import MOST_UNITS, Surroundings, UnitChooser, UnitPlan, judged
from opwalker.views.second_opinion import compared


class Memory(Protocol):
    """Answers of earlier runs, by key."""

    def recall(self, key: str, kind: type[ClangUnit]) -> ClangUnit | None:
        """What was kept under a key, or None."""

    def keep(self, key: str, answer: ClangUnit) -> None:
        """Keep an answer."""


def with_clang(
    walk: Walk,
    workbench: Workbench,
    around: Surroundings,
    digest_of: Callable[[str], str],
    memory: Memory,
    jobs: int | None = None,
    progress: Progress | None = None,
    limits: Limits = LIMITS,
) -> Walk:
    """The walk with clang's opinion. ``digest_of`` gives the digest of a file's content. Raises ``ClangMissing``."""
    stamp = clang_library.stamp()
    workbench.add_instantiations()
    chooser = UnitChooser(workbench, around)
    chosen = judged(walk, workbench.build) if workbench.build != "rocm" else []
    paths = chooser.units(chosen)
    plans = [chooser.plan(path) for path in paths[:MOST_UNITS]]
    keys = [_key(plan, stamp, workbench, around, digest_of) for plan in plans]
    units: dict[str, ClangUnit] = {}
    for plan, key in zip(plans, keys, strict=True):
        known = memory.recall(key, ClangUnit)
        if known is not None:
            units[plan.request.path] = known
    missing = [(plan, key) for plan, key in zip(plans, keys, strict=True) if plan.request.path not in units]
    made = read_units([plan.request for plan, _ in missing], jobs, limits, progress)
    for (plan, key), unit in zip(missing, made, strict=True):
        units[plan.request.path] = unit
        if unit.unread is None:
            memory.keep(key, unit)
    read = [units[plan.request.path] for plan in plans]
    found, edges = compared(walk, read, chosen)
    counts = Counter(edge.status for edge in edges)
    report = ClangReport(
        clang=next((unit.clang for unit in read if unit.clang), ""),
        torch=around.headers.torch_version,
        cuda=_cuda_text(around.headers.cuda_version),
        units=tuple(_unit_report(plan, units[plan.request.path]) for plan in plans),
        edges=tuple(edges),
        proved=counts[PROVED],
        contradicted=counts[CONTRADICTED],
        ruled_out=counts[RULED_OUT],
        not_confirmed=counts[NOT_CONFIRMED],
        missing=tuple(_missing(workbench, around, read, len(paths) - len(plans), counts[NOT_CONFIRMED])),
    )
    return replace(found, clang=report)


def _key(
    plan: UnitPlan, stamp: str, workbench: Workbench, around: Surroundings, digest_of: Callable[[str], str]
) -> str:
    """What the facts of a unit depend on: what it includes, its flags, the headers outside, and the library."""
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(workbench.index.closure(plan.request.path)):
        state.update(f"{path}:{digest_of(path)};".encode("utf-8", "surrogateescape"))
    headers = around.headers
    about = (plan.request, stamp, headers.torch_version, headers.cuda_version)
    state.update(repr(about).encode("utf-8", "surrogateescape"))
    return f"clang-unit|{state.hexdigest()}"


def _cuda_text(version: int | None) -> str | None:
    return f"{version // 1000}.{version % 1000 // 10}" if version else None


def _unit_report(plan: UnitPlan, unit: ClangUnit) -> UnitReport:
    return UnitReport(
        unit.path, plan.flags_from, unit.seconds, unit.errors, unit.missing, unit.first_errors, unit.unread
    )


def _missing(
    workbench: Workbench, around: Surroundings, units: Sequence[ClangUnit], left: int, unsure: int
) -> list[str]:
    """What was not there, and what that costs, in words."""
    found = []
    if workbench.build == "rocm":
        found.append("clang reads the cuda and cpu builds here; the rocm build is not judged")
    wanted = {header for unit in units for header in unit.missing}
    if around.headers.torch_version is None and any(h.startswith(("torch/", "ATen/", "c10/")) for h in wanted):
        found.append("torch is not installed: its types are unknown, and calls that pass them are not resolved")
    if around.headers.cuda_version is None and any(unit.path.endswith(".cu") for unit in units):
        places = "CUDA_HOME, nvcc on PATH, nvidia packages"
        found.append(f"no CUDA headers were found ({places}): the types that they declare are unknown")
    if left:
        found.append(f"{left} more units of this walk were not read (at most {MOST_UNITS} are)")
    if unsure:
        found.extend(f"{unit.path} has more template instances than were looked into" for unit in units if unit.cut)
    return found
