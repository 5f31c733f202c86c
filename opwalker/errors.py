"""Every error that stops a command: its exit code and the help it gives.

Errors are exceptions; a *problem* (a fault of one file) and a *gap* (a link that could not be made) are data and never
raised. ``str(error)`` is the one line that the user reads.
"""

from __future__ import annotations


class OpwalkerError(Exception):
    """Root of all errors. ``help`` is the next step for the user, shown on the same line."""

    exit_code = 70

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return f"{self.message}; {self.help}" if self.help else self.message


class UsageError(OpwalkerError):
    """The command line is wrong."""

    exit_code = 2


class InputError(OpwalkerError):
    """The input is wrong: no such op, unreadable source, unsafe archive, no such package."""

    exit_code = 3


class EnvironmentMissing(OpwalkerError):
    """Something is missing on this machine: network, compiler, GPU, torch, room on the disk."""

    exit_code = 5


class InternalError(OpwalkerError):
    """A fault of opwalker's own."""

    exit_code = 70
