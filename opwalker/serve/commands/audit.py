"""``opwalker audit``: what a build contains, beside what its source says."""

from __future__ import annotations

from typing import Annotated

import typer

from opwalker.errors import InputError
from opwalker.serve.app import command
from opwalker.serve.session import Session, one_of

MACHINES = ("x86_64", "aarch64")


@command("audit", example="opwalker audit vllm==0.30.0 --op rms_norm")
def audit(
    session: Session,
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME==VERSION | FILE…", help="A released package; or .so files, wheels, folders."),
    ],
    op: Annotated[str | None, typer.Option("--op", metavar="OP", help="Only this op and its kernels.")] = None,
    machine: Annotated[
        str, typer.Option("--machine", metavar="|".join(MACHINES), help="Which wheel of a released package.")
    ] = MACHINES[0],
    instances: Annotated[
        bool, typer.Option("--instances", help="List the instances that differ or are not predicted.")
    ] = False,
) -> int:
    """Set shared libraries beside their source: ops, kernels, instances, architectures. Nothing is loaded or run.

    Exit code 1: something differs that neither the source nor the build files explain. Exit code 3: a file of a folder
    or a wheel could not be read; the others are compared all the same.
    """
    one_of(machine, MACHINES, "--machine")
    result = session.ask(lambda flow: flow.audit, names, op=op, machine=machine)
    session.show(result, instances=instances)
    if result.unread:
        return InputError.exit_code
    return 1 if result.counts.unexplained else 0
