"""What a call of an op is, on whatever device: parameters in order, what came back, and how it fails."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from opwalker.model.ops import Argument
from opwalker.views.verify.arrays import Array


class Parameter(Struct, frozen=True):
    """A parameter of a registered schema: name, type as written, whether it is mutated, and its default's value."""

    name: str
    type: str
    mutated: bool
    default: Any = None


class Called(Struct, frozen=True):
    """What a call gave: returned tensors, and names of the kernels it launched."""

    returned: tuple[Array, ...]
    kernels: tuple[str, ...]


class NotHere(Exception):
    """The call cannot be made on this machine; the text says what is missing."""


class DeviceFault(Exception):
    """A kernel failed on the device, and the process can use it no more; the text is what the device reports."""


class CallFailed(Exception):
    """The op refused its arguments, or its kernel failed; the text is what it said."""


def parameters_of(arguments: Sequence[Argument]) -> tuple[Parameter, ...]:
    """The parameters of an op as it is registered."""
    return tuple(Parameter(one.name, one.type, one.mutated, _literal(one.default)) for one in arguments)


def _literal(text: str | None) -> Any:
    """The value of a default, as a schema writes it."""
    if text is None or text == "None":
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
