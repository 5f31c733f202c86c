"""The command line: which commands there are, what they take, and what they hand to the pipeline.

Comes in: the words of the command line. Goes out: an exit code; the answer on stdout, everything else on stderr. The
options that all commands share are ``session.open_session``'s; errors are put into words in ``border``.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from opwalker.errors import UsageError
from opwalker.serve import border, commands
from opwalker.serve.app import app, command
from opwalker.serve.session import Session, one_of

#: The bindings that ``ops --kind`` can be narrowed to.
KINDS = ("torch_library", "aten", "pybind11", "cpython", "tvm_ffi", "python", "ctypes")
STAGES = ("source", "facts", "index")


@command("ops", example="opwalker ops --source vllm==0.30.0 --namespace _C")
def ops(
    session: Session,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help=f"Only ops of one binding: {', '.join(KINDS)}.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NS", help="Only ops of this namespace.")
    ] = None,
) -> None:
    """List the ops that a source registers: name, schema, dispatch keys, place."""
    if kind is not None:
        one_of(kind, KINDS, "--kind")
    result = session.ask(lambda flow: flow.list_ops, kind=kind, namespace=namespace)
    narrowed = [f"of kind {kind}"] if kind else []
    narrowed += [f"in namespace {namespace}"] if namespace else []
    session.show(result, " ".join(narrowed))


@command("walk", example="opwalker walk reshape_and_cache --source vllm==0.30.0")
def walk(
    session: Session,
    op: Annotated[str, typer.Argument(metavar="OP", help="An op, or a file, function, class or kernel.")],
    instances: Annotated[
        bool, typer.Option("--instances", help="List every template instance of the launches.")
    ] = False,
    clang: Annotated[
        bool, typer.Option("--clang", help="Have clang read the units on the walk, and prove or contradict each edge.")
    ] = False,
) -> None:
    """Walk an op from its Python callers to the kernels it launches."""
    # Only what is asked for is passed on: a walk without it is the plain question.
    settings = {"clang": True} if clang else {}
    session.show(session.ask(lambda flow: flow.walk, op, **settings), instances=instances)


@command("kernels", example="opwalker kernels _C::rms_norm --source vllm==0.30.0")
def kernels(
    session: Session,
    op: Annotated[str | None, typer.Argument(metavar="[OP]", help="Only the kernels that this op reaches.")] = None,
    instances: Annotated[bool, typer.Option("--instances", help="List every template instance.")] = False,
) -> None:
    """List the kernels of a source, the ops that reach them, and their template instances."""
    session.show(session.ask(lambda flow: flow.kernels, op), f"of {op}" if op else "", instances=instances)


@command("index", example="opwalker index --source ./vllm --jobs 4")
def index(session: Session) -> None:
    """Read a source into the cache and print what was read, what was reused, and what was wrong with it."""
    session.show(session.ask(lambda flow: flow.build_index))


@command("dump", example="opwalker dump facts csrc/libtorch_stable/cache_kernels.cu --source ./vllm")
def dump(
    session: Session,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help=f"One of {', '.join(STAGES)}.")],
    path: Annotated[str | None, typer.Argument(metavar="[PATH]", help="The file whose facts are printed.")] = None,
) -> None:
    """Print one stage as JSON: the files found, the facts of one file, or the index. For tests and for the curious."""
    one_of(stage, STAGES, "the stage")
    if stage == "facts" and path is None:
        raise UsageError("dump facts needs the path of a file", "write 'opwalker dump facts PATH'")
    if stage != "facts" and path is not None:
        raise UsageError(f"dump {stage} takes no path", f"write 'opwalker dump {stage}'")
    session.show_json(session.ask(lambda flow: flow.dump, stage, path), indent=2)


commands.declare()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. ``arguments`` are the words after the program's name."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # One answer a process: what is made lives until the end, and looking for garbage in it costs a tenth of a walk.
    gc.set_threshold(500_000, 100, 100)
    try:
        if not words:
            raise UsageError(f"no command given: {', '.join(_names())}", "see 'opwalker --help'")
        code = typer.main.get_command(app).main(args=words, prog_name="opwalker", standalone_mode=False)
        return int(code or 0)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return border.report(error, words)


def run() -> None:
    """The program: runs one command and ends the process."""
    code = main()
    # What is left is not looked through once more at the end: that would take as long as a small answer.
    gc.freeze()
    sys.exit(code)


def _names() -> list[str]:
    return [info.name for info in app.registered_commands if info.name]
