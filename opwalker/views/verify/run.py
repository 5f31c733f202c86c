"""Everything that ``verify`` does: build, run each case apart, judge, compare with what the source says.

In: the folder of reference kernels, what of it to run and how (``Plan``), and what the walk knows of each op
(``Known``). Out: ``VerifyReport``. The order of results is that of the contracts, whatever ran first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from opwalker.errors import EnvironmentMissing
from opwalker.model.verify import Device, DocumentedShape, VerifyReport, VerifyResult, WrongVariant
from opwalker.model.walk import KernelEntry, Op, Walk
from opwalker.views.verify import build as building
from opwalker.views.verify.calling import Parameter, parameters_of
from opwalker.views.verify.contract import Contract, load, ops_in
from opwalker.views.verify.documented import documented_shapes
from opwalker.views.verify.launched import unpredicted
from opwalker.views.verify.trial import Outcome, Subject, Trial
from opwalker.views.verify.workers import outcomes

NAMESPACE = "opwalker_ref"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for. ``device`` is ``cuda`` or ``cpu``; ``deadline`` in seconds for a case; ``library`` and
    ``namespace`` name an extension whose own ops are run as well."""

    device: str = "cuda"
    ops: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    library: str | None = None
    namespace: str | None = None
    bench: bool = False
    build_only: bool = False
    wrong: bool = True
    seed: int = 0
    deadline: float = 60.0
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class Known:
    """What the program read of a reference kernel: its op, its walk, and the kernels predicted; and the walk of the same
    op in the source that is compared, None where that has none."""

    op: Op
    walk: Walk
    kernels: tuple[KernelEntry, ...]
    compared: Walk | None = None


Told = Callable[[str, int, int], None]


class Verification:
    """One run."""

    def __init__(self, folder: Path, cache: Path, plan: Plan, told: Told) -> None:
        self._folder = folder
        self._cache = cache
        self._plan = plan
        self._told = told
        self._emulated = plan.device == "cpu"
        self.contracts = tuple(load(folder, op) for op in (plan.ops or ops_in(folder)))

    def run(self, known: Mapping[str, Known]) -> VerifyReport:
        """Builds and runs. ``known`` by op."""
        device = None if self._plan.build_only else self._device()
        built = self._build(device)
        if self._plan.build_only:
            return _of_build(built)
        subjects = {label: self._subject(one, known) for label, one in built.items()}
        jobs: list[tuple[Contract, str | None, bool]] = []
        for contract in self.contracts:
            jobs.append((contract, None, False))
            jobs += [(contract, variant, False) for variant in contract.wrong] if self._plan.wrong else []
        done = 0
        results: list[VerifyResult] = []
        variants: list[WrongVariant] = []
        with ThreadPoolExecutor(self._plan.jobs) as pool:
            started = [
                pool.submit(self._check, contract, variant, subjects, built, known) for contract, variant, _ in jobs
            ]
            for one in started:
                found = one.result()
                done += 1
                self._told("run", done, len(jobs))
                if isinstance(found, WrongVariant):
                    variants.append(found)
                else:
                    results += found
        return VerifyReport(device=device, results=tuple(results), wrong_variants=tuple(variants))

    def _device(self) -> Device:
        if self._emulated:
            return Device("host CPU", "cpu-emulation")
        try:
            from opwalker.views.verify.on_gpu import device
        except ImportError as error:
            raise EnvironmentMissing("torch is missing", "pip install 'opwalker[verify]', or --device cpu") from error
        return device()

    def _build(self, device: Device | None) -> dict[str, building.Built]:
        wanted = []
        for contract in self.contracts:
            wanted.append(building.Wanted(contract.op))
            wanted += [building.Wanted(contract.op, variant) for variant in contract.wrong] if self._plan.wrong else []
        if self._emulated:
            toolchain = building.host_compiler()
        else:
            own = (device.compute_capability,) if device and device.compute_capability else ("9.0",)
            toolchain = building.nvcc(self._plan.architectures or own)
        self._told("build", 0, len(wanted))
        jobs = self._plan.jobs if self._emulated else os.cpu_count() or 1
        done = building.build(self._folder, wanted, toolchain, self._cache, jobs)
        return {one.wanted.label: one for one in done}

    def _subject(self, built: building.Built, known: Mapping[str, Known]) -> Subject | None:
        if built.library is None:
            return None
        op = built.wanted.op
        parameters: tuple[Parameter, ...] | None = parameters_of(known[op].op.arguments) if op in known else None
        return Subject(str(self._folder), op, str(built.library), self._emulated, NAMESPACE, op, parameters)

    def _trials(self, contract: Contract) -> list[Trial]:
        """Every case with every element type; on a CPU the small ones."""
        trials = [
            Trial(number, dtype, self._plan.seed + 1000 * number + place)
            for number, case in enumerate(contract.cases)
            if not (self._emulated and case.large)
            for place, dtype in enumerate(case.dtypes)
        ]
        return trials

    def _check(
        self,
        contract: Contract,
        variant: str | None,
        subjects: Mapping[str, Subject | None],
        built: Mapping[str, building.Built],
        known: Mapping[str, Known],
    ) -> list[VerifyResult] | WrongVariant:
        label = building.Wanted(contract.op, variant).label
        subject = subjects[label]
        if variant is None:
            return self._confirm(contract, subject, built[label], known.get(contract.op))
        return self._refute(contract, variant, subject, built[label])

    def _confirm(
        self, contract: Contract, subject: Subject | None, built: building.Built, known: Known | None
    ) -> list[VerifyResult]:
        """Runs every case of the kernel as it is."""
        shapes, against = _documented(contract, known)
        if subject is None:
            return [VerifyResult(contract.op, "build", "not_run", (f"it does not compile: {built.error}",))]
        results = []
        trials = self._trials(contract)
        for trial, outcome in zip(trials, outcomes(subject, trials, self._plan.deadline), strict=False):
            result = _result(contract, trial, outcome, shapes, subject.implementation)
            reasons = [*against, *unpredicted(outcome.kernels, known.kernels)] if known else list(against)
            if reasons and result.verdict != "not_run":
                result = replace(result, verdict="refuted", reasons=(*result.reasons, *reasons))
            results.append(result)
        if not self._emulated:
            first = next((t for t in trials if 0 not in (contract.cases[t.case].values.get("shape") or (1,))), trials[0])
            checked = [Trial(first.case, first.dtype, first.seed, "opcheck")]
            for outcome in outcomes(subject, checked, self._plan.deadline * 3):
                results.append(
                    VerifyResult(
                        contract.op,
                        "torch.library.opcheck",
                        "not_run" if outcome.not_run else "refuted" if outcome.reasons else "confirmed",
                        (outcome.not_run,) if outcome.not_run else outcome.reasons,
                    )
                )
        return results

    def _refute(
        self, contract: Contract, variant: str, subject: Subject | None, built: building.Built
    ) -> WrongVariant:
        """Runs cases of a wrong variant until one notices."""
        what = contract.wrong[variant]
        if subject is None:
            return WrongVariant(contract.op, variant, what, None, None, f"it does not compile: {built.error}")
        trials = self._trials(contract)
        not_run = None
        for trial, outcome in zip(trials, outcomes(subject, trials, self._plan.deadline), strict=False):
            if outcome.not_run:
                not_run = outcome.not_run
                break
            if outcome.reasons:
                named = f"{contract.cases[trial.case].name} [{trial.dtype}]"
                return WrongVariant(contract.op, variant, what, True, named, outcome.reasons[0])
        return WrongVariant(contract.op, variant, what, None if not_run else False, None, not_run)


def _documented(contract: Contract, known: Known | None) -> tuple[tuple[DocumentedShape, ...], list[str]]:
    """Shapes that the compared source documents, and what our own kernel file says against its contract."""
    if known is None:
        return (), []
    against = [
        f"{one.argument} is documented as {one.source} at {one.source_at}, and the contract says {one.contract}"
        for one in documented_shapes(contract, known.walk)
        if one.agrees is False
    ]
    marked = {one.name for one in known.op.arguments if one.mutated}
    for name, argument in contract.arguments.items():
        if argument.mutated != (name in marked):
            says = "does not mark" if argument.mutated else "marks"
            against.append(f"the schema {says} {name} as mutated, and the contract says otherwise")
    if known.compared is None:
        return documented_shapes(contract, known.walk), against
    compared = documented_shapes(contract, known.compared)
    against += [
        f"{one.argument} is documented as {one.source} at {one.source_at} of the source compared, and the contract says "
        f"{one.contract}"
        for one in compared
        if one.agrees is False
    ]
    return compared, against


def _result(
    contract: Contract, trial: Trial, outcome: Outcome, shapes: tuple[DocumentedShape, ...], implementation: str
) -> VerifyResult:
    reasons: Sequence[str] = (outcome.not_run,) if outcome.not_run else outcome.reasons
    return VerifyResult(
        op=contract.op,
        case=f"{contract.cases[trial.case].name} [{trial.dtype}]",
        verdict="not_run" if outcome.not_run else "refuted" if outcome.reasons else "confirmed",
        reasons=tuple(reasons),
        implementation=implementation,
        dtypes=outcome.dtypes,
        shapes=outcome.shapes,
        documented_shapes=shapes,
        max_error=outcome.max_error,
        tolerance=outcome.tolerance,
        kernels_launched=outcome.kernels,
        seed=trial.seed,
    )


def _of_build(built: Mapping[str, building.Built]) -> VerifyReport:
    """The report of a run that only builds: each file that did not compile is refuted."""
    failed = tuple(
        VerifyResult(one.wanted.op, f"build of {label}", "refuted", (f"it does not compile: {one.error}",))
        for label, one in built.items()
        if one.library is None
    )
    return VerifyReport(
        device=None, results=failed, built=tuple(label for label, one in built.items() if one.library is not None)
    )
