"""One case run and judged, in the process that may crash for it.

In: which op, built where, which case and seed. Out: ``Outcome``, plain data that crosses a pipe.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from opwalker.views.verify.arrays import Array
from opwalker.views.verify.calling import CallFailed, DeviceFault, NotHere, Parameter
from opwalker.views.verify.compare import judge
from opwalker.views.verify.contract import Case, Contract, load, tensors
from opwalker.views.verify.draw import Draw

#: Reasons of a collective op's case that are kept: every rank has the same to say.
_SHOWN = 4


class Subject(Struct, frozen=True):
    """What is run: an op under the contract that a folder has for it. ``libraries`` are loaded; of ``names`` the first
    that they register is meant. ``parameters`` are the registered ones, None to ask the dispatcher. ``profiled``: a GPU
    notes the kernels that ran."""

    folder: str
    op: str
    libraries: tuple[str, ...]
    names: tuple[str, ...]
    emulated: bool = False
    parameters: tuple[Parameter, ...] | None = None
    implementation: str = "reference"
    profiled: bool = True


class Trial(Struct, frozen=True):
    """A case by its number, with an element type and a seed. ``kind``: ``case``, ``opcheck``, ``bench`` or ``copy``
    (no case: what the device's memory gives). ``subject`` is the number of the one meant, where a process has
    several."""

    case: int
    dtype: str
    seed: int
    kind: str = "case"
    subject: int = 0


class Outcome(Struct):
    """What came of a trial; ``reasons`` is empty where the contract held. ``not_run`` says why it could not be run,
    ``refused`` what the op said when it did not take the arguments, ``left_out`` which part of a trial could not be
    made. ``remark`` is what else a reader should know. ``ends``: the process that ran it is of no more use."""

    reasons: tuple[str, ...] = ()
    not_run: str | None = None
    refused: str | None = None
    left_out: str | None = None
    max_error: float | None = None
    tolerance: str | None = None
    kernels: tuple[str, ...] = ()
    dtypes: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    seconds: float = 0.0
    time_us: float | None = None
    bytes: int | None = None
    remark: str | None = None
    ends: bool = False


def serve(subjects: Sequence[Subject], connection: Connection) -> None:
    """Answers trials until the other end closes. This is the main function of a worker process."""
    emulated = any(one.emulated for one in subjects)
    # What a kernel or a library prints must not get between the lines of the answer.
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    if emulated:
        os.dup2(quiet, 2)  # nor may what the C library says of memory that a wrong variant has spoilt
    loaded = [_loaded(one) for one in subjects]
    if all(isinstance(one, Outcome) for one in loaded):
        connection.send(loaded[0])
        return
    connection.send(None)
    while True:
        try:
            trial = connection.recv()
        except EOFError:
            return
        ready = loaded[trial.subject]
        connection.send(ready if isinstance(ready, Outcome) else answered(*ready, trial))


def _loaded(subject: Subject) -> tuple[Contract, Any] | Outcome:
    """A subject's contract and its op; an outcome that says why there is none."""
    try:
        contract = load(Path(subject.folder), subject.op)
        if subject.implementation == "reference":
            contract = replace(contract, allowed=None)
        return contract, op_of(subject, contract)
    except Exception as error:
        return Outcome(not_run=f"{type(error).__name__}: {error}")


def answered(contract: Contract, op: Any, trial: Trial) -> Outcome:
    """The outcome of a trial, whatever becomes of it."""
    started = time.monotonic()
    try:
        outcome = run(contract, op, trial)
    except DeviceFault as error:
        outcome = Outcome(reasons=(f"the device reports: {error}",), ends=True)
    except Exception as error:
        outcome = Outcome(reasons=(f"the check itself failed: {type(error).__name__}: {error}",))
    outcome.seconds = time.monotonic() - started
    return outcome


def op_of(subject: Subject, contract: Contract) -> Any:
    """The op, to be called: on the device that the subject is for, on all ranks where it is a collective."""
    if subject.emulated:
        from opwalker.views.verify.on_cpu import EmulatedOp
        from opwalker.views.verify.ranks_on_cpu import EmulatedRanks

        kind = EmulatedRanks if contract.collective else EmulatedOp
        return kind(subject.libraries[0], subject.names[0].partition("::")[2], subject.parameters or ())
    if contract.collective:
        from opwalker.views.verify.ranks_on_gpu import GpuRanks

        return GpuRanks(subject.libraries, subject.names)
    from opwalker.views.verify.on_gpu import GpuOp

    return GpuOp(subject.libraries, subject.names, profiled=subject.profiled)


def case_of(contract: Contract, trial: Trial) -> Case:
    """The case that a trial names."""
    return (contract.bench if trial.kind == "bench" else contract.cases)[trial.case]


def run(contract: Contract, op: Any, trial: Trial) -> Outcome:
    """Runs one trial with an op that can be called."""
    if trial.kind == "copy":
        from opwalker.views.verify.bench import copy

        return copy()
    case = case_of(contract, trial)
    arguments = contract.inputs(Draw(trial.seed), dtype=trial.dtype, **case.values)
    if trial.kind == "opcheck":
        return _opcheck(contract, op, arguments)
    if trial.kind == "bench":
        from opwalker.views.verify.bench import measure

        return measure(contract, op, arguments)
    judged = _judged_ranks if contract.collective else _judged
    try:
        return judged(contract, op, arguments, trial.seed)
    except NotHere as error:
        return Outcome(not_run=str(error))


def _opcheck(contract: Contract, op: Any, arguments: Any) -> Outcome:
    from opwalker.views.verify.on_gpu import opcheck

    if not contract.collective:
        wrong, beyond = opcheck(op, named_for(op.parameters, arguments, contract))
        return Outcome(reasons=tuple(wrong), left_out="; ".join(beyond) or None)
    try:
        op.expect(len(arguments[0]))
        wrong, beyond = op.opcheck(arguments)
    except NotHere as error:
        return Outcome(not_run=str(error))
    remark = "on one rank and without elements: it would wait for the others else"
    return Outcome(reasons=tuple(wrong), left_out="; ".join(beyond) or None, remark=remark)


def named_for(parameters: tuple[Parameter, ...], arguments: dict[str, Any], contract: Contract) -> dict[str, Any]:
    """The arguments under the names that an op's own schema has: by name where it has them all, else by position."""
    own = [one.name for one in parameters]
    if contract.library_arguments is not None:
        return contract.library_arguments(own, arguments)
    if set(arguments) <= set(own):
        return arguments
    return dict(zip(own, arguments.values(), strict=False))


def _judged(contract: Contract, op: Any, arguments: dict[str, Any], seed: int) -> Outcome:
    parameters = op.parameters
    arrays = tensors(arguments)
    outcome = Outcome(
        dtypes={name: one.type.name for name, one in arrays.items()},
        shapes={name: one.shape for name, one in arrays.items()},
        tolerance=_tolerances(contract),
    )
    values = {name: one.values() if isinstance(one, Array) else one for name, one in arguments.items()}
    with np.errstate(all="ignore"):
        expected = contract.golden(**values)
    before = {id(one.storage): one.storage.copy() for one in arrays.values()}
    renamed = named_for(parameters, arguments, contract)
    ours = {id(one): name for name, one in arrays.items()}
    # A schema may mark a number as mutated (vLLM's `int!?` does): there is nothing to look at.
    marked = [ours[id(value)] for one in parameters if one.mutated and id(value := renamed.get(one.name)) in ours]
    try:
        called = op(renamed, seed)
    except CallFailed as error:
        outcome.refused = str(error)
        return outcome
    if contract.allowed is not None:
        expected = contract.allowed(expected, {name: arrays[name].values() for name in marked}, **values)
    judgement = judge(contract, arrays, before, expected, called.returned, marked)
    outcome.reasons = tuple(judgement.reasons)
    outcome.max_error = judgement.max_error
    outcome.kernels = called.kernels
    return outcome


def _judged_ranks(contract: Contract, op: Any, rounds: list[list[dict[str, Any]]], seed: int) -> Outcome:
    """As ``_judged``, for rounds of calls on every rank; a reason names its rank, and its round."""
    arrays = [[tensors(arguments) for arguments in ranks] for ranks in rounds]
    outcome = Outcome(
        dtypes={name: one.type.name for name, one in arrays[0][0].items()},
        shapes={name: one.shape for name, one in arrays[0][0].items()},
        tolerance=_tolerances(contract),
    )
    outcome.remark = op.expect(len(rounds[0]))
    values = [[{name: one.values() for name, one in of_rank.items()} for of_rank in ranks] for ranks in arrays]
    expected = [contract.golden(ranks) for ranks in values]
    before = [
        [{id(one.storage): one.storage.copy() for one in of_rank.values()} for of_rank in ranks] for ranks in arrays
    ]
    marked = [one.name for one in op.parameters if one.mutated]
    try:
        called = op(rounds, seed)
    except CallFailed as error:
        outcome.refused = str(error)
        return outcome
    reasons: list[str] = []
    errors = []
    for number, ranks in enumerate(arrays):
        for rank, of_rank in enumerate(ranks):
            returned = called[number][rank].returned
            found = judge(contract, of_rank, before[number][rank], expected[number][rank], returned, marked)
            reasons += [f"round {number}, rank {rank}: {reason}" for reason in found.reasons]
            errors += [found.max_error] if found.max_error is not None else []
    outcome.reasons = tuple(reasons[:_SHOWN])
    outcome.max_error = max(errors, default=None)
    outcome.kernels = tuple(dict.fromkeys(name for ranks in called for each in ranks for name in each.kernels))
    return outcome


def _tolerances(contract: Contract) -> str:
    if not isinstance(contract.tolerance, dict):
        return f"{contract.tolerance}: {contract.tolerance.reason}"
    return "; ".join(f"{name} {one}: {one.reason}" for name, one in contract.tolerance.items())
