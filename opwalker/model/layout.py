"""Where a kernel finds the elements of a tensor, beside where its documented shape says they are."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.places import Span


class Coordinate(Struct, frozen=True):
    """The part of an index that belongs to one dimension, or to several that are run through as one. ``stride`` is what
    it is multiplied with; ``passed`` says that the stride comes from the host (``key.stride(0)``) instead of the
    dimensions behind."""

    dim: str
    value: str
    stride: str
    passed: bool = False


class IndexName(Struct, frozen=True):
    """A name in an index and what it holds: ``value``, or where branches set it, one of ``cases`` (``(condition,
    value)``)."""

    name: str
    value: str | None = None
    cases: tuple[tuple[str, str], ...] = ()


class LayoutFact(Struct, frozen=True):
    """One way in which a kernel addresses a documented tensor.

    ``computed`` is the index in elements as a polynomial. ``verdict`` is ``equal`` (the row-major layout of the
    documented shape), ``equal_with_strides`` (the same with strides that the host passes), ``differs`` (then
    ``reason`` says what it computes instead), ``not_decided`` (with the reason) or ``undocumented`` (of a tensor
    without a documented shape). ``given`` is what the verdict takes for granted,
    ``requires`` what the caller has to hold to. ``access`` is ``read``, ``write`` or ``read, write``;
    ``through`` names the device function that the access stands in, if not the kernel itself; ``under`` is what has to
    hold: the branch that chooses the address, those around the access and the returns before it. ``also_at`` are more
    lines of the same access. ``names`` are the names in the index that stand for something shown. ``tests_more`` says
    that the functions of ``through`` test more than ``under`` says, in terms of their own, before they get there.
    """

    tensor: str
    parameter: str
    documented: str
    computed: str
    verdict: str
    line: int
    file: str
    access: str
    coordinates: tuple[Coordinate, ...] = ()
    reason: str | None = None
    given: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    width: str | None = None
    through: str | None = None
    documented_at: Span | None = None
    under: str | None = None
    also_at: tuple[int, ...] = ()
    names: tuple[IndexName, ...] = ()
    tests_more: bool = False


class UntoldFact(Struct, frozen=True):
    """A pointer parameter of a kernel of which not every access is described: ``ways`` more ways than are told, or
    none at all though the kernel names it (``ways`` None, first at ``line``). Without a ``parameter``: further accesses
    of the kernel were not looked at."""

    parameter: str
    ways: int | None
    line: int = 0
