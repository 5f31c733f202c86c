"""Comes in: whatever a command raised. Goes out: one line on stderr and an exit code; a traceback only on request."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import typer

from opwalker.errors import EnvironmentMissing, InternalError, OpwalkerError, UsageError
from opwalker.serve.voice import one_line, say

_PACKAGE = Path(__file__).resolve().parents[1]
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


def report(error: BaseException, words: Sequence[str]) -> int:
    """Says an error in one line and returns its exit code. ``words`` are those of the command line."""
    known = as_ours(error, words)
    if "--debug" in words and sys.stderr is not None:
        traceback.print_exception(error, file=sys.stderr)
    say(f"error: {known}")
    return known.exit_code


def as_ours(error: BaseException, words: Sequence[str] = ()) -> OpwalkerError:
    """The error as one of ours: the single table of foreign exceptions that a user can cause."""
    if isinstance(error, OpwalkerError):
        return error
    if isinstance(error, typer.TyperException):
        return _usage(error, words)
    if isinstance(error, MemoryError):
        return EnvironmentMissing("there is not enough memory for this", "try fewer --jobs")
    if isinstance(error, OSError) and error.errno in _FULL_DISK:
        return EnvironmentMissing("no room is left on the disk", "free some, or set OPWALKER_CACHE to another folder")
    return InternalError(
        f"a fault of opwalker itself: {_fault(error)}",
        "please report it with the source's name and what the same command prints with --debug",
    )


def _usage(error: typer.TyperException, words: Sequence[str]) -> UsageError:
    """What the command-line parser found wrong, with the help page to read: the command's own where it is known."""
    said = one_line(error.format_message()).rstrip(".").replace(". Did you mean", ", did you mean")
    if said[:1].isupper() and not said[1:2].isupper():
        said = said[0].lower() + said[1:]
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else " ".join(["opwalker", *words[:1]])
    page = f"see '{command} --help'"
    return UsageError(f"{said} {page}") if said.endswith("?") else UsageError(said, page)


def _fault(error: BaseException) -> str:
    """Kind, text and the innermost place inside the package: enough to find a report of the same fault again."""
    text = one_line(str(error))
    named = f"{type(error).__name__}: {text}" if text else type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(os.path.realpath(frame.filename))
        if path.is_relative_to(_PACKAGE):
            return f"{named} (in {frame.name}, {path.relative_to(_PACKAGE.parent).as_posix()}:{frame.lineno})"
    return named
