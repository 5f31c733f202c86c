"""Everything that ``verify`` does: build, run each case apart, judge, compare with what the source says.

In: the folder of reference kernels, what of it to run and how (``Plan``), and what the walk knows of each op
(``Known``). Out: ``VerifyReport``. The order of results is that of the contracts, whatever ran first.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec.structs import replace

from opwalker.errors import EnvironmentMissing
from opwalker.model.verify import Device, DocumentedShape, VerifyReport, VerifyResult, WrongVariant
from opwalker.views.verify import build as building
from opwalker.views.verify import threads
from opwalker.views.verify.calling import parameters_of
from opwalker.views.verify.contract import Contract, load, ops_in
from opwalker.views.verify.documented import against_contract, documented_shapes
from opwalker.views.verify.launched import unpredicted
from opwalker.views.verify.plan import NAMESPACE, Known, Plan
from opwalker.views.verify.times import measured_in_turn
from opwalker.views.verify.trial import Outcome, Subject, Trial
from opwalker.views.verify.workers import outcomes

Told = Callable[[str, int, int], None]

_OPCHECK = "torch.library.opcheck"


class Verification:
    """One run."""

    def __init__(self, folder: Path, cache: Path, plan: Plan, told: Told) -> None:
        self._folder = folder
        self._cache = cache
        self._plan = plan
        self._told = told
        self._emulated = plan.device == "cpu"
        self._until = math.inf
        self._known: Mapping[str, Known] = {}
        self._built: Mapping[str, building.Built] = {}
        self.contracts = tuple(load(folder, op) for op in (plan.ops or ops_in(folder)))

    def names(self) -> dict[str, tuple[str, ...]]:
        """What each op may be called in a source, its own name first."""
        return {one.op: (f"{NAMESPACE}::{one.op}", *one.names) for one in self.contracts}

    def run(self, known: Mapping[str, Known]) -> VerifyReport:
        """Builds and runs. ``known`` by op."""
        self._known = known
        device = None if self._plan.build_only else self._device()
        self._built = self._build(device)
        if device is None:
            return self._of_build()
        if self._plan.limit is not None:
            self._until = time.monotonic() + self._plan.limit
        work: list[Callable[[], list[VerifyResult] | WrongVariant]] = []
        for contract in self.contracts if self._plan.cases else ():
            work += self._work(contract)
        results: list[VerifyResult] = []
        variants: list[WrongVariant] = []
        with ThreadPoolExecutor(self._plan.jobs) as pool:
            for done, one in enumerate([pool.submit(piece) for piece in work], start=1):
                found = one.result()
                self._told("run", done, len(work))
                if isinstance(found, WrongVariant):
                    variants.append(found)
                else:
                    results += found
        notes = [f"the code of {', '.join(self._plan.libraries)} was loaded and run"] if self._plan.libraries else []
        copy = None
        if self._plan.bench and not self._emulated:
            copy, measured = self._bench()
            results += measured
        return VerifyReport(
            device=device,
            results=tuple(results),
            wrong_variants=tuple(variants),
            copy_gb_per_s=copy,
            notes=tuple(notes),
        )

    def _work(self, contract: Contract) -> Iterator[Callable[[], list[VerifyResult] | WrongVariant]]:
        """The pieces of work for an op; each runs in a process of its own."""
        yield lambda: self._confirm(contract)
        if self._plan.libraries and not self._emulated:
            yield lambda: self._of_library(contract)
        for variant in contract.wrong if self._plan.wrong else ():
            yield lambda variant=variant: self._refute(contract, variant)

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
            forms = (None, *(contract.wrong if self._plan.wrong else ()))
            wanted += [building.Wanted(contract.op, variant) for variant in forms]
            if self._emulated and threads.driver(self._folder, contract.op):
                wanted += [building.Wanted(contract.op, variant, threads=True) for variant in forms]
        if self._emulated:
            toolchain = building.host_compiler()
        else:
            own = (device.compute_capability,) if device and device.compute_capability else ("9.0",)
            toolchain = building.nvcc(self._plan.architectures or own)
        self._told("build", 0, len(wanted))
        jobs = self._plan.jobs if self._emulated else os.cpu_count() or 1
        done = building.build(self._folder, wanted, toolchain, self._cache, jobs)
        return {one.wanted.label: one for one in done}

    def _of_build(self) -> VerifyReport:
        """The report of a run that only builds: each file that did not compile is refuted."""
        failed = tuple(
            VerifyResult(one.wanted.op, f"build of {label}", "refuted", (f"it does not compile: {one.error}",))
            for label, one in self._built.items()
            if one.library is None
        )
        made = tuple(label for label, one in self._built.items() if one.library is not None)
        return VerifyReport(device=None, results=failed, built=made)

    def _subject(self, wanted: building.Wanted) -> Subject | None:
        library = self._built[wanted.label].library
        if library is None:
            return None
        known = self._known.get(wanted.op)
        parameters = parameters_of(known.op.arguments) if known else None
        names = (f"{NAMESPACE}::{wanted.op}",)
        return Subject(str(self._folder), wanted.op, (str(library),), names, self._emulated, parameters)

    def _library(self, contract: Contract) -> Subject:
        """The op of the libraries that were given, under any of the names that it has elsewhere."""
        space = self._plan.namespace
        names = tuple(name for name in contract.names if space is None or name.startswith(f"{space}::"))
        if not names and space is not None:
            names = (f"{space}::{contract.op}",)
        return Subject(str(self._folder), contract.op, self._plan.libraries, names, implementation="library")

    def _trials(self, contract: Contract) -> list[Trial]:
        """Every case with every element type; on a CPU the small ones."""
        return [
            Trial(number, dtype, self._plan.seed + 1000 * number + place)
            for number, case in enumerate(contract.cases)
            if not (self._emulated and case.large)
            for place, dtype in enumerate(case.dtypes)
        ]

    def _confirm(self, contract: Contract) -> list[VerifyResult]:
        """Runs every case of the kernel as it is."""
        wanted = building.Wanted(contract.op)
        subject = self._subject(wanted)
        if subject is None:
            error = f"it does not compile: {self._built[wanted.label].error}"
            return [VerifyResult(contract.op, "build", "refuted", (error,))]
        known = self._known.get(contract.op)
        shapes, against = _documented(contract, known)
        results = []
        trials = self._trials(contract)
        for trial, outcome in self._outcomes(subject, trials, self._plan.deadline):
            found = [*against, *unpredicted(outcome.kernels, known.kernels)] if known else against
            results.append(_result(contract, trial, outcome, shapes, found))
        watched = self._watched(contract, None, self._plan.deadline)
        if watched:
            results.append(replace(_result(contract, trials[0], watched, (), ()), case=threads.CASE))
        if not self._emulated:
            # It calls the op on one rank, which waits for the others unless there is nothing to do.
            fitting = [trial for trial in trials if contract.cases[trial.case].empty == contract.collective]
            results += self._opcheck(contract, subject, replace(fitting[0], kind="opcheck")) if fitting else []
        return results

    def _opcheck(self, contract: Contract, subject: Subject, trial: Trial) -> list[VerifyResult]:
        outcome = next(outcomes((subject,), [trial], self._plan.deadline * 3, self._until))
        results = [replace(_result(contract, trial, outcome, (), ()), case=_OPCHECK)]
        if outcome.left_out:
            results.append(VerifyResult(contract.op, f"{_OPCHECK}, in part", "not_run", (outcome.left_out,)))
        return results

    def _outcomes(self, subject: Subject, trials: Sequence[Trial], deadline: float) -> Iterator[tuple[Trial, Outcome]]:
        """Each trial with its outcome, as it comes."""
        yield from zip(trials, outcomes((subject,), trials, deadline, self._until), strict=False)

    def _watched(self, contract: Contract, variant: str | None, deadline: float) -> Outcome | None:
        """What a thread checker says of a collective op's protocol; None where the op has no program for it."""
        built = self._built.get(building.Wanted(contract.op, variant, threads=True).label)
        if built is None:
            return None
        if built.library is None:
            return Outcome(not_run=f"the program with threads does not compile: {built.error}")
        return threads.watched(built.library, deadline)

    def _of_library(self, contract: Contract) -> list[VerifyResult]:
        """Runs every case of a library's own op. What it does not take is not run, and what it says is the reason."""
        subject = self._library(contract)
        results = []
        trials = self._trials(contract)
        for trial, outcome in self._outcomes(subject, trials, self._plan.deadline):
            if outcome.refused:
                outcome = replace(outcome, refused=None, not_run=f"the library refuses: {outcome.refused}")
            results.append(_result(contract, trial, outcome, (), (), "library"))
            if outcome.not_run and outcome.ends:
                break  # the op is not there: no other case will find it
        return results

    def _refute(self, contract: Contract, variant: str) -> WrongVariant:
        """Runs cases of a wrong variant until one notices.

        The deadline of the contract holds here alone: a slow machine must not accuse the kernel as it is of hanging.
        """
        deadline = min(contract.deadline or math.inf, self._plan.deadline)
        what = contract.wrong[variant]
        wanted = building.Wanted(contract.op, variant)
        subject = self._subject(wanted)
        if subject is None:
            error = self._built[wanted.label].error
            return WrongVariant(contract.op, variant, what, None, None, f"it does not compile: {error}")
        watched = self._watched(contract, variant, deadline)
        if watched and watched.reasons:
            return WrongVariant(contract.op, variant, what, True, threads.CASE, watched.reasons[0])
        subject = replace(subject, profiled=False)
        for trial, outcome in self._outcomes(subject, self._trials(contract), deadline):
            if outcome.not_run:
                return WrongVariant(contract.op, variant, what, None, None, outcome.not_run)
            if outcome.refused or outcome.reasons:
                reason = outcome.refused or outcome.reasons[0]
                return WrongVariant(contract.op, variant, what, True, _named(contract, trial), reason)
        return WrongVariant(contract.op, variant, what, False)

    def _bench(self) -> tuple[float | None, list[VerifyResult]]:
        """Times of every op that has a case for it, ours beside the library's; the rate of a copy in the same run."""
        timed: list[tuple[Contract, Subject]] = []
        for contract in self.contracts if self._plan.bench else ():
            own = self._subject(building.Wanted(contract.op))
            timed += [(contract, own)] if own is not None else []
            timed += [(contract, self._library(contract))] if self._plan.libraries else []
        copy, measured = measured_in_turn(timed, self._plan.seed, self._plan.deadline, self._until)
        results = []
        for number, trial, outcome, rate in measured:
            contract, subject = timed[number]
            result = _result(contract, trial, outcome, (), (), subject.implementation)
            share = rate / copy if rate and copy else None
            results.append(
                replace(result, time_us=outcome.time_us, bytes=outcome.bytes, gb_per_s=rate, share_of_copy=share)
            )
        return copy, results


def _documented(contract: Contract, known: Known | None) -> tuple[tuple[DocumentedShape, ...], list[str]]:
    """Shapes that the source documents (the one compared, else our own kernel file), and what they or the schema say
    against the contract."""
    if known is None:
        return (), []
    own = documented_shapes(contract, known.walk)
    against = against_contract(own)
    marked = {one.name for one in known.op.arguments if one.mutated}
    for name, argument in contract.arguments.items():
        if argument.mutated != (name in marked):
            says = "does not mark" if argument.mutated else "marks"
            against.append(f"the schema {says} {name} as mutated, and the contract says otherwise")
    if known.compared is None:
        return own, against
    compared = documented_shapes(contract, known.compared)
    return compared, [*against, *against_contract(compared)]


def _named(contract: Contract, trial: Trial) -> str:
    case = (contract.bench if trial.kind == "bench" else contract.cases)[trial.case]
    return f"{case.name} [{trial.dtype}]"


def _result(
    contract: Contract,
    trial: Trial,
    outcome: Outcome,
    shapes: tuple[DocumentedShape, ...],
    against: Sequence[str],
    implementation: str = "reference",
) -> VerifyResult:
    reasons = [f"the call failed: {outcome.refused}"] if outcome.refused else []
    reasons += [*outcome.reasons, *against]
    if outcome.not_run:
        reasons = [outcome.not_run]
    return VerifyResult(
        op=contract.op,
        case=_named(contract, trial),
        verdict="not_run" if outcome.not_run else "refuted" if reasons else "confirmed",
        reasons=tuple(reasons),
        implementation=implementation,
        dtypes=outcome.dtypes,
        shapes=outcome.shapes,
        documented_shapes=shapes,
        max_error=outcome.max_error,
        tolerance=outcome.tolerance,
        kernels_launched=outcome.kernels,
        seed=trial.seed,
        seconds=round(outcome.seconds, 3) if outcome.seconds > 0 else None,
        remark=outcome.remark,
    )
