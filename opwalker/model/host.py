"""What a host function says: parameters with shapes, sizes, strides, checks, guards, streams."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.held import HeldFact
from opwalker.model.places import Span


class ShapeSource(Struct, frozen=True):
    """A place that gives a parameter's shape: ``kind`` is ``comment`` (beside it), ``above`` (the function's comment),
    ``declaration`` (beside it in a header), ``python`` (the wrapper), ``way`` (of the parameter of a function on the
    way that the tensor is passed for) or ``kernel`` (beside the kernel's parameter that the tensor's data goes to).
    ``alternatives`` are its readings, ``text`` is the shape as written."""

    kind: str
    alternatives: tuple[tuple[str, ...], ...]
    text: str
    span: Span


class DerivedFact(Struct, frozen=True):
    """What code says of a tensor's shape: of one ``dimension`` (None: of all) it says ``text``. ``how``: ``named`` (a
    local that holds it), ``checked`` (what a check demands), ``passed`` (the kernel's parameter that gets it), ``rank``
    (the number of dimensions that a check demands); ``under`` which conditions, in words."""

    dimension: int | None
    text: str
    how: str
    file: str
    line: int
    under: tuple[str, ...] = ()


class Contradiction(Struct, frozen=True):
    """A documented shape and the code that says otherwise."""

    documented: str
    documented_at: Span
    derived: str
    reason: str
    file: str
    line: int


class ParameterFact(Struct, frozen=True):
    """A C++ parameter. ``argument`` is the schema argument at the same place; shapes come from comments.

    ``shape`` is the first reading of the first of ``sources``. ``derived_shape`` is what code says of the dimensions
    (``"?"`` for nothing, ``"..."`` for an unknown number of them), ``rank`` and ``ranks`` the number of dimensions that
    checks allow. ``agrees`` compares the two: None where they say nothing of the same thing. ``layout`` says in words
    what is asked of the strides, ``layout_line`` where, or ``layout_at`` where that is in another file.
    ``unused`` where the function's body does not name it.
    """

    name: str
    type: str
    argument: str | None = None
    shape: tuple[str, ...] | None = None
    shape_text: str | None = None
    shape_span: Span | None = None
    sources: tuple[ShapeSource, ...] = ()
    derived_shape: tuple[str, ...] | None = None
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    derived_from: tuple[DerivedFact, ...] = ()
    agrees: bool | None = None
    contradictions: tuple[Contradiction, ...] = ()
    layout: str | None = None
    layout_line: int | None = None
    unused: bool = False
    layout_at: Span | None = None


class SizeFact(Struct, frozen=True):
    """A size or stride that a host function takes from a tensor; ``narrowed`` where 64 bits are kept in fewer."""

    name: str | None
    value: str
    type: str | None
    narrowed: bool
    line: int


class CheckFact(Struct, frozen=True):
    """A check at the start of the work: the macro, what it demands, and what it says when that does not hold.

    ``words`` are the condition in words, None where its code is the best that can be shown. Where nothing but a branch
    leads to it (``else { CHECK(false) }``, ``if (bad) throw …``) they say what leads around it. ``under`` are the
    conditions that the check itself stands under, in words, outermost first; ``via`` the macro whose use brings it;
    ``past`` is what holds there because no early return was taken; ``compiled`` the preprocessor condition that it
    stands under and its function does not.
    """

    kind: str
    condition: str
    message: str | None
    line: int
    words: str | None = None
    under: tuple[str, ...] = ()
    via: str | None = None
    past: tuple[str, ...] = ()
    compiled: str | None = None


class GuardFact(Struct, frozen=True):
    """A device guard and the device it is made from; ``device`` says whose in words, as far as that can be followed,
    and ``end_line`` where its scope ends. ``under``, ``past`` and ``compiled`` are as for a check."""

    type: str
    of: str | None
    line: int
    device: str | None = None
    end_line: int | None = None
    under: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    compiled: str | None = None


class StreamFact(Struct, frozen=True):
    """The stream that the work is put on, as written and in ``words``. ``under``, ``past`` and ``compiled`` are as for
    a check; of one that is ``unused`` it is known that no launch runs on it."""

    value: str
    line: int
    words: str | None = None
    under: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    compiled: str | None = None
    unused: bool = False


class ContiguousFact(Struct, frozen=True):
    """A tensor that is made contiguous, and where. ``compiled`` is as for a check."""

    tensor: str
    line: int
    under: tuple[str, ...] = ()
    compiled: str | None = None


class DimensionFact(Struct, frozen=True):
    """Where Python makes a documented dimension: ``name = value`` at ``line``, and the call that makes a tensor with it
    as the last dimension."""

    name: str
    value: str
    file: str
    line: int
    made: str
    made_line: int


class ReturnFact(Struct, frozen=True):
    """A ``return`` that leaves the steps behind it undone: its condition in code and in ``words`` (all of them hold
    there, outermost first), what is returned, None for nothing, and the line. ``compiled`` is as for a check."""

    condition: str
    words: tuple[str, ...]
    value: str | None
    line: int
    compiled: str | None = None


class Host(Struct, frozen=True):
    """A host function and what its body says, in source order. ``file`` holds for every ``line`` in it. ``returns`` are
    its early returns. Of a function on the way, ``under`` are the conditions that all its calls stand under, in words
    of the callers. ``held`` is what the locals hold that its checks name, ``named`` the same of all other conditions of
    the implementation."""

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
    dimensions: tuple[DimensionFact, ...] = ()
    returns: tuple[ReturnFact, ...] = ()
    under: tuple[str, ...] = ()
    held: tuple[HeldFact, ...] = ()
    named: tuple[HeldFact, ...] = ()
