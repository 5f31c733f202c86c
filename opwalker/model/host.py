"""What a host function says: parameters with shapes, sizes, strides, checks, guards, streams."""

from __future__ import annotations

from dataclasses import dataclass

from opwalker.model.places import Span


@dataclass(frozen=True, slots=True)
class ParameterFact:
    """A C++ parameter. ``argument`` is the schema argument at the same place; shapes come from comments."""

    name: str
    type: str
    argument: str | None = None
    shape: tuple[str, ...] | None = None
    shape_text: str | None = None
    shape_span: Span | None = None


@dataclass(frozen=True, slots=True)
class SizeFact:
    """A size or stride that a host function takes from a tensor; ``narrowed`` where 64 bits are kept in fewer."""

    name: str | None
    value: str
    type: str | None
    narrowed: bool
    line: int


@dataclass(frozen=True, slots=True)
class CheckFact:
    """A check at the start of the work: the macro, what it demands, and what it says when that does not hold.

    ``words`` are the condition in words, None where its code is the best that can be shown. Where nothing but a branch
    leads to it (``else { CHECK(false) }``, ``if (bad) throw …``) they say what leads around it. ``under`` are the
    conditions that the check itself stands under, in words, outermost first; ``via`` the macro whose use brings it.
    """

    kind: str
    condition: str
    message: str | None
    line: int
    words: str | None = None
    under: tuple[str, ...] = ()
    via: str | None = None


@dataclass(frozen=True, slots=True)
class GuardFact:
    """A device guard and the device it is made from."""

    type: str
    of: str | None
    line: int


@dataclass(frozen=True, slots=True)
class StreamFact:
    """The stream that the work is put on."""

    value: str
    line: int


@dataclass(frozen=True, slots=True)
class ContiguousFact:
    """A tensor that is made contiguous."""

    tensor: str
    line: int


@dataclass(frozen=True, slots=True)
class Host:
    """A host function and what its body says, in source order. ``file`` holds for every ``line`` in it."""

    name: str
    file: str
    line: int
    end_line: int
    parameters: tuple[ParameterFact, ...] = ()
    sizes: tuple[SizeFact, ...] = ()
    strides: tuple[SizeFact, ...] = ()
    checks: tuple[CheckFact, ...] = ()
    guards: tuple[GuardFact, ...] = ()
    streams: tuple[StreamFact, ...] = ()
    contiguous_calls: tuple[ContiguousFact, ...] = ()
    signature: str | None = None
    condition: str | None = None
