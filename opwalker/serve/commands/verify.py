"""``opwalker verify``: reference kernels built and run, and what the source documents held against them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from opwalker.errors import EnvironmentMissing, UsageError
from opwalker.serve.app import command
from opwalker.serve.session import Session, one_of

DEVICES = ("cuda", "cpu")

#: Processes that share a GPU: more of them only wait for each other.
_ON_ONE_GPU = 8


@command("verify", example="opwalker verify rms_norm --device cpu")
def verify(
    session: Session,
    op: Annotated[list[str] | None, typer.Argument(metavar="[OP]...", help="Only these ops. Default: all.")] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="|".join(DEVICES), help="cpu: the same kernels, emulated.")
    ] = DEVICES[0],
    library: Annotated[
        list[str] | None,
        typer.Option("--library", metavar="FILE.so", help="Run the ops of this extension as well: loads its code."),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NS", help="The namespace of the library's ops.")
    ] = None,
    bench: Annotated[bool, typer.Option("--bench", help="Measure times, too.")] = False,
    plot: Annotated[str | None, typer.Option("--plot", metavar="FILE.png", help="Draw the times.")] = None,
    build_only: Annotated[bool, typer.Option("--build-only", help="Compile, and run nothing.")] = False,
    no_wrong: Annotated[bool, typer.Option("--no-wrong", help="Leave out the variants that must be refuted.")] = False,
    no_cases: Annotated[bool, typer.Option("--no-cases", help="Measure times only, and confirm nothing.")] = False,
    seed: Annotated[str | None, typer.Option("--seed", metavar="N", help="Make the inputs of an earlier run.")] = None,
    deadline: Annotated[str, typer.Option("--deadline", metavar="SECONDS", help="For one case.")] = "60",
    limit: Annotated[
        str | None, typer.Option("--limit", metavar="SECONDS", help="For all cases: what is left then is not run.")
    ] = None,
) -> int:
    """Build and run the reference kernels, and say whether documented shapes, layouts and outputs hold."""
    one_of(device, DEVICES, "--device")
    if (bench or library) and device == "cpu":
        raise UsageError("--bench and --library need a GPU", "leave out --device cpu")
    if no_cases and not bench:
        raise UsageError("--no-cases leaves nothing to do without --bench", "write --bench as well")
    if plot and not bench:
        raise UsageError("--plot draws what --bench measures", "write --bench as well")
    for file in library or ():
        if not Path(file).is_file():
            raise UsageError(f"--library {file}: there is no such file", "give the path of a shared library")
    plan = _plan(
        device=device,
        ops=tuple(dict.fromkeys(re.split(r"::|\.", name)[-1] for name in op or ())),
        architectures=session.archs,
        libraries=tuple(str(Path(file).resolve()) for file in library or ()),
        namespace=namespace,
        bench=bench,
        build_only=build_only,
        wrong=not (no_wrong or no_cases),
        cases=not no_cases,
        seed=_whole(seed, "--seed") if seed is not None else int.from_bytes(os.urandom(3), "little"),
        deadline=float(_whole(deadline, "--deadline", least=1)),
        limit=float(_whole(limit, "--limit")) if limit is not None else None,
        jobs=session.jobs or (os.cpu_count() or 1 if device == "cpu" else _ON_ONE_GPU),
    )
    try:
        report = session.ask(lambda flow: flow.verify, plan)
    except ModuleNotFoundError as error:
        if error.name not in ("numpy", "torch"):
            raise
        # By emulation, torch and what else the extra brings are not needed.
        install = "pip install numpy" if device == "cpu" else "pip install 'opwalker[verify]'"
        raise EnvironmentMissing(f"{error.name} is missing", install) from error
    session.show(report)
    if plot:
        from opwalker.serve.render.verify_plot import draw

        draw(report, plot)
    return 4 if report.refuted else 0


def _plan(**values: object) -> object:
    from opwalker.views.verify.plan import Plan

    return Plan(**values)


def _whole(text: str, option: str, least: int = 0) -> int:
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{option} {text!r} is no whole number", f"write {option} 1")
    if int(text) < least:
        raise UsageError(f"{option} {text} leaves no time", f"write {option} {least}")
    return int(text)
