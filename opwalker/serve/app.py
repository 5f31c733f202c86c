"""The program as a set of commands: how a command is declared, and the options that stand before any.

Comes in: a function and its parameters. Goes out: a command of ``app``. What a command does stands in ``cli`` and in
``commands``; the options that all share are ``session.open_session``'s.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from opwalker import __version__
from opwalker.serve.session import open_session

#: What a command is: it may return an exit code, None for 0.
Command = Callable[..., int | None]


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
    """Registers a command. Its own parameters follow ``session``; the shared options are added after them. What it
    returns is the exit code."""

    def register(function: Command) -> Command:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        shared = inspect.signature(open_session, eval_str=True).parameters

        def run(**values: object) -> int | None:
            session = open_session(**{option: values.pop(option) for option in shared})
            return function(session, **values)

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
