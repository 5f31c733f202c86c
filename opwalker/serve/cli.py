"""The command line: which commands there are, what they take, and what they hand to the pipeline.

Comes in: the words of the command line. Goes out: an exit code; the answer on stdout, everything else on stderr. The
options that all commands share are ``session.open_session``'s; errors are put into words in ``border``.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from opwalker import __version__
from opwalker.errors import UsageError
from opwalker.serve import border
from opwalker.serve.session import Session, one_of, open_session

#: The bindings that ``ops --kind`` can be narrowed to.
KINDS = ("torch_library", "aten", "pybind11", "tvm_ffi", "python", "ctypes")
STAGES = ("source", "facts", "index")

Command = Callable[..., None]


class _AsTyped:
    """What stands in for typer's value conversion: a value is the word, or the list of words, that was typed."""

    def coerce(self, value: object, **_: object) -> object:
        return value


class _TextOnly:
    """Parameters that are all text or flags, so that their values need no conversion.

    typer would import pydantic to find that out, which takes longer than all the rest of a warm start.
    """

    def get_params(self, context: Any) -> list[Any]:
        parameters = super().get_params(context)
        for parameter in parameters:
            parameter.get_runtime_param = _AsTyped
        return parameters


class PlainCommand(_TextOnly, TyperCommand):
    """A command of text and flags."""


class PlainGroup(_TextOnly, TyperGroup):
    """The commands together, with the options that stand before a command."""


app = typer.Typer(
    name="opwalker",
    cls=PlainGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExample:\n  opwalker walk reshape_and_cache --source vllm==0.30.0",
)


def command(name: str, *, example: str) -> Callable[[Command], Command]:
    """Registers a command. Its own parameters follow ``session``; the shared options are added after them."""

    def register(function: Command) -> Command:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        shared = inspect.signature(open_session, eval_str=True).parameters

        def run(**values: object) -> None:
            session = open_session(**{option: values.pop(option) for option in shared})
            function(session, **values)

        run.__signature__ = inspect.Signature([*own, *shared.values()])
        run.__doc__ = function.__doc__
        app.command(name, cls=PlainCommand, epilog=f"\b\nExample:\n  {example}")(run)
        return function

    return register


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"opwalker {__version__}")
        raise typer.Exit


@app.callback()
def opwalker(
    version: Annotated[
        bool,
        typer.Option("--version", "-v", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Read inference-library C++/CUDA: from a Python op through macros and templates to the kernels it launches."""


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
) -> None:
    """Walk an op from its Python callers to the kernels it launches."""
    session.show(session.ask(lambda flow: flow.walk, op), instances=instances)


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


@command("dump", example="opwalker dump facts csrc/cache_kernels.cu --source ./vllm")
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. ``arguments`` are the words after the program's name."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # One answer a process: what is made lives until the end, and looking for garbage in it costs a tenth of a walk.
    gc.set_threshold(200_000, 100, 100)
    try:
        if not words:
            raise UsageError(f"no command given: {', '.join(_names())}", "see 'opwalker --help'")
        code = typer.main.get_command(app).main(args=words, prog_name="opwalker", standalone_mode=False)
        return int(code or 0)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return border.report(error, words)


def _names() -> list[str]:
    return [info.name for info in app.registered_commands if info.name]
